"""Delivery to the layer above: agreed and safe in the regular configuration, the rest in the transitional one.

The cursor walks over packets in seq order and never turns back. A packet is deliverable as a whole: its messages ask
for one delivery class. (Paper, sections 4.1 and 4.3; the gap rule is the one of Theorems 4.10 and 4.12: see
deviations, E11)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Deliver, Effect, Install, Parcel, noted
from ordercast.model.ids import NO_SEQ, ConfigurationId, ProcessId, Seq
from ordercast.model.notes import Occurrence
from ordercast.order.large import LargeMessages
from ordercast.order.membership.configurations import regular_configuration, transitional_configuration
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.membership.ring import Ring
from ordercast.wire.header import unwrapped
from ordercast.wire.run import PacketRun, parse_packet


@dataclass(slots=True)
class Delivery:
    """The delivery of one ring's messages, from its installation to its end: the ring's `Past`."""

    ring: Ring
    view: ConfigurationId  # the configuration we deliver in
    delivered: Seq = NO_SEQ  # the cursor: everything up to here was delivered, or was not for us (`my_high_delivered`)
    large: LargeMessages = field(default_factory=LargeMessages)
    # Packets above the last token's seq that companions may hold. What one of them holds all must be able to keep:
    # they promise to deliver what was exchanged, all of it.
    reach: int = field(kw_only=True)
    is_stamped: bool = False  # an enclosing engine wants the Lamport timestamps of packets

    @property
    def aru(self) -> Seq:
        return self.ring.store.aru

    @property
    def tick(self) -> int:
        high = self.ring.store.high
        run = self.ring.store.get(high)
        return run.timestamp(high) if run is not None else 0

    def held_after(self, seq: Seq) -> Iterable[tuple[Seq, PacketRun]]:
        return self.ring.store.held_after(seq)

    def keep(self, seq: Seq, packet: bytes) -> bool:
        store = self.ring.store
        if seq > self.ring.memory.forwarded_seq + self.reach or store.has(seq):
            return False
        heading = self.ring.heading
        return store.add(seq, parse_packet(unwrapped(packet, heading), heading))

    def advance(self, effects: list[Effect]) -> None:
        self.deliver(self.ring.memory.safe_seq, effects)

    def deliver(self, safe: Seq, effects: list[Effect]) -> None:
        """Deliver what has become deliverable, up to the first hole or the first packet that is not yet safe."""
        store = self.ring.store
        at, aru = self.delivered, store.aru
        if at == aru:
            return
        base, slots = store.base, store.slots
        parcels: list[Parcel] = []
        while at < aru:
            run = slots[at - base]
            assert run is not None
            last = run.last
            end = last if last <= aru else aru
            if run.is_safe and end > safe:
                end = safe
                if end <= at:
                    break
            if run.parcel is not None:
                if run.parts:
                    parts = run.parts[at + 1 - run.seq : end + 1 - run.seq]
                    self.large.take(run.parcel_of(at + 1, end), parts, parcels)
                else:
                    parcels.append(run.parcel_of(at + 1, end))
                if end == last:
                    run.parcel = None  # whoever still needs the packet takes it from the bytes
            at = Seq(end)
        self.delivered = at
        if parcels:
            self._pass_up(parcels, effects)

    def _pass_up_rest(self, contiguous: list[Parcel], parted: list[Parcel], effects: list[Effect]) -> None:
        """Pass up what lies before a gap and beyond it; an enclosing engine is told which is which."""
        if not self.is_stamped:
            contiguous, parted = contiguous + parted, []
        if contiguous:
            self._pass_up(contiguous, effects)
        if parted:
            self._pass_up(parted, effects, ordered=False)

    def _pass_up(self, parcels: list[Parcel], effects: list[Effect], *, ordered: bool = True) -> None:
        stamps = [self._stamps(parcel) for parcel in parcels] if self.is_stamped else None
        effects.append(Deliver(self.view, self.ring.id, parcels, ordered, stamps))

    def _stamps(self, parcel: Parcel) -> list[int]:
        """Return the timestamp of each packet of a parcel; of the last one only, if it is a message in parts."""
        first, payloads, each = parcel[0], parcel[4], parcel[5]
        run = self.ring.store.get(Seq(first))
        assert run is not None, "what is being delivered is not discarded yet"
        return list(run.timestamps(first, first + len(payloads) // each - 1))

    def finish(self, plan: RecoveryPlan, ring: Ring, reason: ChangeReason, effects: list[Effect]) -> None:
        """Steps 2 to 5 of recovery: the rest of the old ring, and both views. One atomic action."""
        self.deliver(plan.high_delivered, effects)
        transitional = transitional_configuration(self.ring.id, self.delivered, plan, ring, reason)
        effects.append(Install(transitional))
        self.view = transitional.id
        beyond = self._deliver_rest(plan.obligation, effects)
        effects.extend(noted({Occurrence.GAP_AMONG_COMPANIONS: bool(beyond) and len(plan.transitional) > 1}))
        effects.append(Install(regular_configuration(ring, transitional.id, plan.transitional, reason)))

    def _held_with_gaps(self) -> Iterator[tuple[Seq, PacketRun, bool]]:
        """Return what is held and not delivered, and of each packet whether a gap lies before it: up to the first gap
        everything is owed, beyond it only what members of the obligation set sent."""
        gap, expected = False, self.delivered + 1
        for seq, run in self.ring.store.held_after(self.delivered):
            gap = gap or seq != expected
            expected = seq + 1
            yield seq, run, gap

    def _deliver_rest(self, obligation: Collection[ProcessId], effects: list[Effect]) -> int:
        """Deliver what is owed; return how many messages lay beyond a gap."""
        contiguous: list[Parcel] = []
        parted: list[Parcel] = []
        safe = gone = beyond = 0
        for seq, run, gap in self._held_with_gaps():
            if run.parcel is None:
                continue
            parcel = run.parcel_of(seq, seq)
            if gap and run.originator not in obligation:
                gone += len(parcel[4])
                continue
            parcels = parted if gap else contiguous
            before = len(parcels)
            parts = run.parts[seq - run.seq : seq - run.seq + 1]
            self.large.take(parcel, parts, parcels) if parts else parcels.append(parcel)
            delivered = sum(len(parcel[4]) for parcel in parcels[before:])
            beyond += delivered if gap else 0
            safe += delivered if run.is_safe else 0
        self._pass_up_rest(contiguous, parted, effects)
        counts = {
            Occurrence.SAFE_IN_TRANSITIONAL: safe,
            Occurrence.GAP_DROPPED: gone,
            Occurrence.BEYOND_GAP_DELIVERED: beyond,
            Occurrence.LARGE_CUT: len(self.large),
        }
        effects.extend(noted(counts))
        return beyond
