"""Delivery to the layer above: agreed and safe in the regular configuration, the rest in the transitional one.

The cursor walks over packets in seq order and never turns back. A packet is deliverable as a whole: its messages ask
for one delivery class. (Paper, sections 4.1 and 4.3; the gap rule is the one of Theorems 4.10 and 4.12: see
deviations, E11)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ordercast.model.effects import Deliver, Delivered, Effect, InstallView, Record
from ordercast.model.ids import NO_RING, NO_SEQ, VIEW_SLOT, Position, ProcessId, RingId, Seq
from ordercast.model.notes import Occurred, Occurrence
from ordercast.model.view import ChangeReason, View, ViewKind
from ordercast.order.ring.recovery_plan import RecoveryPlan
from ordercast.order.ring.ring import Ring
from ordercast.wire.header import SAFE, Parsed, Part


@dataclass(slots=True)
class Delivery:
    """The delivery of one ring's messages, from its installation to its end."""

    ring: Ring
    view: RingId  # the configuration we deliver in
    delivered: Seq = NO_SEQ  # the cursor: everything up to here was delivered, or was not for us (`my_high_delivered`)
    partial: dict[tuple[ProcessId, int], list[bytes]] = field(default_factory=dict)  # (originator, sender): its parts

    def advance(self, safe: Seq, effects: list[Effect]) -> None:
        """Deliver what has become deliverable, up to the first hole or the first packet that is not yet safe."""
        store = self.ring.store
        if self.delivered == store.aru:
            return
        messages: list[Delivered] = []
        index = self.delivered - store.base
        slots = store.slots
        last = store.aru - store.base
        while index < last:
            packet = slots[index]
            assert packet is not None
            if packet[1] & SAFE and store.base + index >= safe:
                break
            if packet[3] is None:
                messages += packet[2]
            else:
                self._assemble(packet, messages)
            index += 1
        self.delivered = Seq(store.base + index)
        if messages:
            effects.append(Deliver(self.view, self.ring.id, messages))

    def finish(self, plan: RecoveryPlan, ring: Ring, reason: ChangeReason, effects: list[Effect]) -> None:
        """Steps 2 to 5 of recovery: the rest of the old ring, and both views. One atomic action."""
        self.advance(plan.high_delivered, effects)
        old = self.ring.id
        transitional = View(
            ViewKind.TRANSITIONAL,
            RingId(ring.id.seq - 2, min(plan.transitional)),
            plan.transitional,
            old,
            plan.transitional,
            reason,
            Position(old, self.delivered, VIEW_SLOT),
        )
        effects.append(InstallView(transitional))
        self.view = transitional.id
        self._deliver_rest(plan.obligation, effects)
        effects.append(InstallView(regular_view(ring, transitional.id, plan.transitional, reason)))

    def _deliver_rest(self, obligation: Collection[ProcessId], effects: list[Effect]) -> None:
        """Up to the first gap everything; beyond it only what members of the obligation set sent."""
        messages: list[Delivered] = []
        safe = gone = beyond = 0
        gap = False
        expected = self.delivered + 1
        for seq, packet in self.ring.store.held_after(self.delivered):
            gap = gap or seq != expected
            expected = seq + 1
            if gap and packet[2] and packet[2][0][2] not in obligation:
                gone += len(packet[2])
                continue
            beyond += gap and len(packet[2])
            before = len(messages)
            self._assemble(packet, messages)
            safe += len(messages) - before if packet[1] & SAFE else 0
        if messages:
            effects.append(Deliver(self.view, self.ring.id, messages))
        counts = (
            (Occurrence.SAFE_IN_TRANSITIONAL, safe),
            (Occurrence.GAP_DROPPED, gone),
            (Occurrence.BEYOND_GAP_DELIVERED, beyond),
            (Occurrence.LARGE_CUT, len(self.partial)),
        )
        effects.extend(Record(Occurred(what, count)) for what, count in counts if count)

    def _assemble(self, packet: Parsed, messages: list[Delivered]) -> None:
        """Whole messages pass; parts are kept until the last one comes."""
        _, _, entries, parts = packet
        if parts is None:
            messages += entries
            return
        for entry, part in zip(entries, parts, strict=True):
            if part == Part.WHOLE:
                messages.append(entry)
                continue
            seq, slot, originator, sender, service, data = entry
            key = originator, sender
            if part == Part.FIRST:
                self.partial[key] = [data]
            elif key not in self.partial:
                continue  # its beginning lay beyond a gap that everybody skipped alike
            else:
                self.partial[key].append(data)
                if part == Part.LAST:
                    messages.append((seq, slot, originator, sender, service, b"".join(self.partial.pop(key))))


def regular_view(ring: Ring, previous: RingId, transitional: tuple[ProcessId, ...], reason: ChangeReason) -> View:
    return View(ViewKind.REGULAR, ring.id, ring.members, previous, transitional, reason, Position(ring.id, NO_SEQ, 0))


def first_view(ring: Ring) -> View:
    """The singleton in which every life begins."""
    return regular_view(ring, NO_RING, ring.members, ChangeReason.STARTED)
