"""Sizes and timers of links, validated once. `FAR` is for sites joined over the Internet, where packets are passed up
at once; `NEAR` for processes beside each other, where they are passed up in order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.order.links.codec import HORIZON, LINK_HEAD_SIZE
from ordercast.order.links.packing import LENGTH_SIZE, PARTS_MAX
from ordercast.wire.head import PACKET_SIZE_MAX, SEAL_ROOM

PAYLOAD_MAX = 1 << 16  # bytes of the largest payload, wherever nothing else is said
ROOM_LEAST = 64  # bytes of payload in a packet, at least


@dataclass(frozen=True, slots=True)
class LinkConfig:
    packet_size: int = 1472  # of a whole packet, head and room for a seal included
    payload_max: int = PAYLOAD_MAX  # bytes of one payload; a larger one is refused
    rider_size: int = 0  # bytes that the engine lets ride on every packet
    is_ordered: bool = False  # payloads are passed up in the order of sending, not at once
    window: int = 16_384  # packets that were sent and not acknowledged, at most

    ack_every: int = 16  # packets, after which they are acknowledged
    ack_ns: int = 25 * MILLISECOND  # or after this
    calm_ns: int = 25 * MILLISECOND  # or, of packets that can wait, after this
    tail_ns: int = 25 * MILLISECOND  # the other side is told of the last packet when it has not acknowledged it by then
    tail_max_ns: int = 25 * MILLISECOND  # again and again, the time doubling up to this

    round_trip_ns: int = 200 * MILLISECOND  # until a packet has shown what it is
    nack_share: int = 8  # what is missing is asked for after the round trip divided by this,
    nack_min_ns: int = 2 * MILLISECOND  # but not sooner,
    nack_max_ns: int = 20 * MILLISECOND  # and, however much the path reorders, not later
    again_min_ns: int = 0  # asked again after a round trip more, but not sooner; doubling each time
    again_max_ns: int = 0  # up to this, or a round trip more if that is longer
    nacks_max: int = 10  # asked so often in vain, a packet fails the link, at both ends; 0: it never does

    silence_ns: int = 2_500 * MILLISECOND  # nothing heard for so long fails the link; 0: idle links are silent
    stall_ns: int = 0  # no progress for so long, while there is something to send, fails the link; 0: it does not

    @property
    def body_max(self) -> int:
        """Bytes of payloads and their lengths in one packet."""
        return self.packet_size - SEAL_ROOM - LINK_HEAD_SIZE - self.rider_size

    def validate(self) -> None:
        """Every key and every relation; all that is wrong is said at once."""
        positive = ("payload_max", "window", "ack_every", "ack_ns", "calm_ns", "tail_ns", "round_trip_ns", "nack_share")
        natural = ("rider_size", "nack_min_ns", "again_min_ns", "nacks_max", "silence_ns", "stall_ns")
        problems = [f"{name} must be at least 1" for name in positive if getattr(self, name) < 1]
        problems += [f"{name} must not be negative" for name in natural if getattr(self, name) < 0]
        part = self.body_max - LENGTH_SIZE
        rules = [
            (self.packet_size <= PACKET_SIZE_MAX, f"packet_size must be at most {PACKET_SIZE_MAX}"),
            (part >= ROOM_LEAST, f"packet_size leaves {part} bytes for payloads, {ROOM_LEAST} are needed"),
            (self.payload_max <= PARTS_MAX * max(part, 1), f"payload_max takes more than {PARTS_MAX} packets"),
            (self.window <= HORIZON, f"window must be at most {HORIZON}"),
            (self.ack_every <= self.window, "ack_every must be at most the window"),
            (self.ack_ns <= self.calm_ns, "calm_ns must be at least ack_ns"),
            (self.tail_ns <= self.tail_max_ns, "tail_max_ns must be at least tail_ns"),
            (self.nack_min_ns <= self.nack_max_ns, "nack_max_ns must be at least nack_min_ns"),
            (self.again_min_ns <= self.again_max_ns, "again_max_ns must be at least again_min_ns"),
        ]
        problems += [text for holds, text in rules if not holds]
        if problems:
            raise UsageError("; ".join(problems))


FAR = LinkConfig()
NEAR = LinkConfig(
    is_ordered=True,
    window=512,  # a socket of a neighbour has room for so much
    ack_every=64,
    ack_ns=12 * MILLISECOND,  # longer than what an engine has to say of what came (`tree.bundle.WAIT_NS`)
    calm_ns=SECOND // 10,
    tail_ns=25 * MILLISECOND,
    tail_max_ns=SECOND // 10,
    round_trip_ns=MILLISECOND,
    nack_min_ns=MILLISECOND,
    nack_max_ns=MILLISECOND,
    again_min_ns=2 * MILLISECOND,
    again_max_ns=40 * MILLISECOND,
    nacks_max=0,
    silence_ns=0,
    stall_ns=300 * MILLISECOND,
)


def near(stall_ns: int) -> LinkConfig:
    """Return `NEAR` for links that fail when nothing moves for so long. While something is to move, a timer of theirs
    goes off before half of that has passed: whoever does nothing for longer was paused, and counts anew
    (`tree.bundle`)."""
    return replace(
        NEAR,
        stall_ns=stall_ns,
        ack_ns=min(NEAR.ack_ns, stall_ns // 4),
        calm_ns=min(NEAR.calm_ns, stall_ns // 3),
        tail_ns=min(NEAR.tail_ns, stall_ns // 12),
        tail_max_ns=min(NEAR.tail_max_ns, stall_ns // 3),
        again_max_ns=max(NEAR.again_min_ns, min(NEAR.again_max_ns, stall_ns // 3)),
    )
