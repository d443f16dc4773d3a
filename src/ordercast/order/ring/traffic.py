"""What a ring tells the layers beneath it of its packets."""

from __future__ import annotations

import struct

from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.order.traffic import TokenName, Traffic
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import FIXED_SIZE, FLAGS_AT, MessageKind
from ordercast.wire.pieces import message_at

_TOKEN = struct.Struct(">23xQQQQ")  # ring, token_seq, seq
_RING = struct.Struct(">xQQ")  # behind the kind
_TOKEN_NAME = slice(KIND_AT, 47)  # kind, ring, token_seq


class RingTraffic(Traffic):
    data = frozenset({int(MessageKind.DATA)})
    tokens = frozenset({int(MessageKind.TOKEN)})
    announcements = frozenset({int(MessageKind.ANNOUNCEMENT)})

    def counted_kind(self, packet: bytes) -> int:
        at = message_at(packet)
        return packet[KIND_AT if at is None else at]

    def token(self, packet: bytes) -> TokenName | None:
        if len(packet) < _TOKEN.size:
            return None
        ring_seq, representative, number, seq = _TOKEN.unpack_from(packet)
        return TokenName(ConfigurationId(ring_seq, ProcessId(representative)), number, Seq(seq))

    def agreed(self, packet: bytes) -> ConfigurationId | None:
        at = message_at(packet)
        if at is None or packet[at] != MessageKind.COMMIT:
            return None
        ring_seq, representative = _RING.unpack_from(packet, at)
        return ConfigurationId(ring_seq, ProcessId(representative))

    def name(self, packet: bytes) -> bytes | None:
        match packet[KIND_AT]:
            case MessageKind.DATA:
                return packet[KIND_AT:FLAGS_AT] + packet[FIXED_SIZE : FIXED_SIZE + 8]
            case MessageKind.TOKEN:
                return packet[_TOKEN_NAME]
            case _:
                return None


RING_TRAFFIC = RingTraffic()
