"""What the adaptive engine tells the layers beneath it of its packets. Its recovery has a ring's token."""

from __future__ import annotations

from ordercast.order.adaptive.codec import AdaptiveKind
from ordercast.order.ring.traffic import RingTraffic
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import FIXED_SIZE, FLAGS_AT, MessageKind


class AdaptiveTraffic(RingTraffic):
    data = frozenset({int(MessageKind.DATA), int(AdaptiveKind.DIRECT)})

    def name(self, packet: bytes) -> bytes | None:
        if packet[KIND_AT] == AdaptiveKind.DIRECT:
            return packet[KIND_AT:FLAGS_AT] + packet[FIXED_SIZE : FIXED_SIZE + 8]
        return RingTraffic.name(self, packet)


ADAPTIVE_TRAFFIC = AdaptiveTraffic()
