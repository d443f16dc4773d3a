"""The rings of one process in a network of rings: one, or, at a gateway, several, with one clock for all of them.

Here is what a driver asks that the rings alone can answer; the engine (`node.py`) adds the order over them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from ordercast.model.effects import Alarm, AlarmKind, Deliver, Effect, Install, LeaveDone, Room
from ordercast.model.errors import UsageError
from ordercast.model.ids import MAIN, Attachment, ConfigurationId, Instant, NodeId, Seq
from ordercast.model.inputs import Lane
from ordercast.model.roster import Roster
from ordercast.order.attached import Attached, RingChange, RingPackets
from ordercast.order.clock import StoredClock
from ordercast.order.engine import EngineStats
from ordercast.order.gateways.attachment import RingAttachment
from ordercast.order.layered import InnerRing
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.order.setup import Domain
from ordercast.order.traffic import Traffic

HandedUp = RingPackets | RingChange | LeaveDone  # what a ring brings that is for the order


class OwnRings:
    def __init__(
        self,
        node: NodeId,
        config: RingConfig,
        domains: Sequence[Domain],  # by attachment
        names: Mapping[int, str],  # of all domains that are known, by number
        block_of: Callable[[tuple[str, ...]], bytes],
        share: float,  # of a gateway
        *,
        verbose: bool,
        other_engines: Mapping[bytes, str],
    ) -> None:
        if not domains or len({domain.number for domain in domains}) < len(domains):
            raise UsageError("a process is attached to at least one domain, and to each once")
        self._node = node
        self._clock = StoredClock()
        share = share if len(domains) > 1 else 1.0
        self._rings = [
            RingNode(
                node,
                config,
                verbose=verbose,
                beneath=domain.beneath,
                other_engines=other_engines,
                attached=Attached(
                    domain.number,
                    domain.name,
                    self._clock,
                    share,
                    others=tuple(name for number, name in names.items() if number != domain.number),
                    block_of=block_of,
                ),
            )
            for domain in domains
        ]
        self._attachments = [
            RingAttachment(InnerRing(domain.over_networks(ring), Attachment(number), domain.name, ring), domain.number)
            for number, (ring, domain) in enumerate(zip(self._rings, domains, strict=True))
        ]
        self._came: deque[tuple[RingAttachment, HandedUp]] = deque()  # the order has not taken it in
        self._by_domain = {attachment.domain: attachment for attachment in self._attachments}
        self.rings = {domain.number: ring for domain, ring in zip(domains, self._rings, strict=True)}  # users' first

    @property
    def traffic(self) -> Traffic:
        return RING_TRAFFIC

    @property
    def freight_sizes(self) -> list[int]:
        """Bytes that wait to be carried, by attachment."""
        return [attachment.inner.freight_size for attachment in self._attachments]

    @property
    def state_name(self) -> str:
        """The state of the ring that is furthest from normal operation."""
        return next((ring.state_name for ring in self._rings if not ring.is_ready), self._rings[0].state_name)

    @property
    def is_gone(self) -> bool:
        return all(attachment.is_gone for attachment in self._attachments)

    @property
    def stats(self) -> EngineStats:
        stats = [ring.stats for ring in self._rings]
        return EngineStats(
            sum(one.packets_sent for one in stats),
            sum(one.packets_retransmitted for one in stats),
            sum(one.packets_requested for one in stats),
        )

    @property
    def roster(self) -> Roster | None:
        return self._rings[0].roster

    def roster_differences(self, now: Instant) -> list[str]:
        return [text for ring in self._rings for text in ring.roster_differences(now)]

    @property
    def is_without_storage(self) -> bool:
        return self._clock.is_without or any(ring.is_without_storage for ring in self._rings)

    def next_deadline(self) -> Instant | None:
        deadlines = (attachment.inner.next_deadline() for attachment in self._attachments)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def room(self) -> int:
        return self._attachments[0].inner.room()

    def want_room(self, size: int) -> None:
        self._attachments[0].inner.want_room(size)

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return self._attachments[attachment].inner.first_lane()

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        return True  # several networks are below the rings, not below this engine

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        found = (ring.deniable(configuration) for ring in self._rings)
        return next((numbers for numbers in found if numbers is not None), None)

    def check_invariants(self, *, thorough: bool = True) -> None:
        for attachment in self._attachments:
            attachment.inner.check_invariants(thorough=thorough)

    def _set_aside(self, attachment: RingAttachment, effects: list[Effect]) -> list[Effect]:
        """Keep what a ring hands up until the order goes on; return the rest, which is the driver's."""
        onward: list[Effect] = []
        for effect in effects:
            if isinstance(effect, HandedUp):
                self._came.append((attachment, effect))
            elif isinstance(effect, Alarm) and effect.kind is AlarmKind.STORAGE_REPAIRED and self.is_without_storage:
                continue  # another ring, or the clock, still waits for the disk, and will say so
            elif not isinstance(effect, Room) or attachment is self._attachments[0]:
                assert not isinstance(effect, Deliver | Install), "a ring in a network hands up packets"
                onward.append(effect)
        return onward
