"""Timeouts and windows of a ring, validated once, together.

Times are nanoseconds, windows are packets. The defaults suit a LAN whose hosts may be busy for half a second.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, Duration
from ordercast.order.outbox import OVERHEAD
from ordercast.wire.codec import REQUESTS_MAX
from ordercast.wire.head import PACKET_SIZE_MAX, SEAL_ROOM
from ordercast.wire.header import DESCRIPTOR_SIZE, HEADER_SIZE, ORIGIN_SIZE
from ordercast.wire.messages import MEMBERS_MAX

# Bytes of a packet beside its descriptors and payloads: it may have to travel again, wrapped, on another ring, sealed.
BESIDE_BODY = HEADER_SIZE + ORIGIN_SIZE + SEAL_ROOM

LIFETIME_ANNOUNCEMENTS = 5  # evidence is forgotten when this many announcements in a row were missed
MANY, THINNED = 32, 2  # so many announce themselves half as often
FEW = 8  # members that share `window`, and agree within `consensus_ns`; where there are more, both grow with them

# Keys on which all members should agree.
RING_RELEVANT = (
    "packet_size_max",
    "window",
    "backlog_max",
    "token_loss_ns",
    "join_ns",
    "consensus_ns",
    "announce_ns",
    "rest_ns",
    "fail_to_receive_rotations",
    "accelerated",
)

# Members should agree on what is beneath the engine too; it is known here as a text.
BENEATH = "networks, replication or copies"
ONE_NETWORK = "one network"

# What the digests in a Join are of. Append only: the next key of the ring goes behind the last of these.
COMPARED = (*RING_RELEVANT, BENEATH)


@dataclass(frozen=True, slots=True)
class RingConfig:
    cluster: str = "ordercast"  # strangers on the same network have another
    packet_size_max: int = 1472  # a whole datagram: an Ethernet frame less IP and UDP headers
    message_size_max: int = 16 << 20
    queue_size_max: int = 64 << 20  # bytes accepted by submit and not yet numbered

    window: int = 720  # packets that up to eight members together may send in a rotation (`window_size`)
    window_max: int = 2880  # so many at most where there are more members: `window` grows with them
    visit_max: int = 180  # packets that one member may send in a visit (`each_time`)
    backlog_max: int = 4096  # packets sent and not yet known to be received by all: bounds everybody's store
    requests_max: int = 512  # retransmission requests on a token

    token_retransmit_ns: int = 40 * MILLISECOND  # no sign of life after forwarding: forward again
    token_loss_ns: int = 800 * MILLISECOND  # no sign of life: the ring is broken
    join_ns: int = 40 * MILLISECOND  # repeat a Join
    consensus_ns: int = 250 * MILLISECOND  # who has not agreed by then has failed
    announce_ns: int = 200 * MILLISECOND  # tell other rings that we are here
    rest_ns: int = 100 * MILLISECOND  # how long an idle ring's token rests with whoever sent last
    linger_ns: int = 2 * MILLISECOND  # how long it rests on when something was added to it
    hold_down_ns: int = 1000 * MILLISECOND  # first pause before a process that failed us is merged again; doubles
    pause_ns: int = 250 * MILLISECOND  # a timer this late means that we were paused, not that others failed
    fail_to_receive_rotations: int = 100  # how often the aru may stand still before its holder is expelled

    accelerated: bool = False  # pass the token on before the last packets
    accelerated_window: int = 32  # how many packets may follow the token

    members_max: int = 128

    @property
    def storage_patience_ns(self) -> int:
        """A disk that takes longer to store a ring seq is not waited for. All members wait for their disks at the same
        time, and give up the ring that they form after `token_loss_ns`: a third leaves time to spare."""
        return self.token_loss_ns // 3

    @property
    def body_size_max(self) -> int:
        """Descriptors and payloads that fit in a packet."""
        return self.packet_size_max - BESIDE_BODY

    @property
    def whole_size_max(self) -> int:
        """The largest message that is not cut into parts."""
        return self.body_size_max - DESCRIPTOR_SIZE

    def window_of(self, members: int) -> int:
        """Return how many packets a ring of so many members may send in a rotation. Up to `FEW` share one
        `window`; where they are more it grows with them, or each visit would be for a few packets only."""
        grown = self.window * members // FEW
        return max(self.window, min(grown, self.window_max, self.backlog_max - self.visit_max))

    # What everybody sends everybody reads. Where more than a few hear each other, all of it goes at a slower pace.

    def announce_gap_of(self, heard: int) -> Duration:
        """Return how long a process waits between two announcements. Evidence outlives one that is lost."""
        return Duration(self.announce_ns * (1 if heard < MANY else THINNED))

    def calm_gap_of(self, members: int) -> Duration:
        """Return how long a member of a ring of many waits between two announcements while nobody else is heard. All
        of them together announce the ring as often as eight do: enough for whoever comes, and all of them read it."""
        return Duration(self.announce_ns * max(members, FEW) // FEW)

    def notice_gap_of(self, heard: int) -> Duration:
        """Return how long a process waits before it announces that it hears somebody new, for whom others wait."""
        return Duration(self.announce_ns * max(heard, FEW) // (8 * FEW))

    def join_gap_of(self, heard: int) -> Duration:
        """Return how long a process waits before it repeats a Join: never so long that it counts as not heard."""
        slowest = max(self.join_ns, LIFETIME_ANNOUNCEMENTS * self.announce_ns // 3)
        return Duration(min(self.join_ns * max(heard, FEW) // FEW, slowest))

    def consensus_of(self, heard: int) -> Duration:
        """Return how long candidates have to agree."""
        return Duration(self.consensus_ns * max(heard, FEW) // FEW)

    def commit_wait_of(self, heard: int) -> Duration:
        """Return how long a process that has consensus waits for the Commit token: the representative may have to wait
        for consensus as long as it may."""
        return Duration(self.token_loss_ns + self.consensus_of(heard) - self.consensus_ns)

    def opinion_gap_of(self, heard: int) -> Duration:
        """Return how long a process waits after one Join before it tells that its sets have changed. Few tell it at
        once. Many that come together at one moment would send a Join for each that they hear of: nobody could read all
        of them before the consensus timeout."""
        return Duration(self.join_ns * max(heard - FEW, 0) // (4 * FEW))

    @property
    def turn_size_max(self) -> int:
        """Bytes that one member may send in a visit."""
        return self.visit_max * self.packet_size_max

    def digests(self, beneath: str = ONE_NETWORK) -> tuple[int, ...]:
        values = (beneath if key == BENEATH else repr(getattr(self, key)) for key in COMPARED)
        return tuple(zlib.crc32(value.encode()) for value in values)

    def validate(self) -> None:
        """Every key and every relation; all that is wrong is said at once."""
        problems = [*self._ranges(), *self._relations()]
        if problems:
            raise UsageError("; ".join(problems))

    @property
    def ahead_max(self) -> int:
        """Packets above the last token's seq that may come before the next token, and that it may speak of."""
        return 2 * self.backlog_max

    def _ranges(self) -> list[str]:
        names = [field.name for field in fields(self) if field.name not in ("cluster", "accelerated")]
        problems = [f"{name} must be at least 1" for name in names if getattr(self, name) < 1]
        smallest = BESIDE_BODY + DESCRIPTOR_SIZE + 64
        if not smallest <= self.packet_size_max <= PACKET_SIZE_MAX:
            problems.append(f"packet_size_max must be within {smallest}..{PACKET_SIZE_MAX}")
        if self.members_max > MEMBERS_MAX:
            problems.append(f"members_max must be at most {MEMBERS_MAX}")
        if self.requests_max > REQUESTS_MAX:
            problems.append(f"requests_max must be at most {REQUESTS_MAX}, which is what a token can carry")
        return problems

    def _relations(self) -> list[str]:
        rules = [
            (2 * self.join_ns <= self.consensus_ns, "join_ns must be at most half of consensus_ns"),
            (
                3 * self.token_retransmit_ns <= self.token_loss_ns,
                "token_retransmit_ns must be at most a third of token_loss_ns",
            ),
            (
                3 * (self.rest_ns + self.token_retransmit_ns) <= self.token_loss_ns,
                "rest_ns and token_retransmit_ns together must be at most a third of token_loss_ns",
            ),
            (self.linger_ns <= self.rest_ns, "linger_ns must be at most rest_ns"),
            (2 * self.pause_ns <= self.token_loss_ns, "pause_ns must be at most half of token_loss_ns"),
            (self.visit_max <= self.window, "visit_max must be at most window"),
            (self.window + self.visit_max <= self.backlog_max, "backlog_max must be at least window + visit_max"),
            (
                self.message_size_max + OVERHEAD <= self.queue_size_max,
                f"queue_size_max must exceed message_size_max by at least {OVERHEAD} bytes",
            ),
        ]
        return [text for holds, text in rules if not holds]
