"""What a ring in a network of rings hands up: packets as they travelled, when all members have them.

The messages in them are delivered by the network, in its own order; a large one is put together there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Effect, Record, noted
from ordercast.model.ids import Seq
from ordercast.model.notes import Occurrence, PacketDropped
from ordercast.order.attached import RingChange, RingPackets
from ordercast.order.clock import Clock
from ordercast.order.membership.bounds import CLOCK_LEAP
from ordercast.order.membership.configurations import regular_configuration, transitional_configuration
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.membership.ring import Ring
from ordercast.order.ring.delivery import Delivery
from ordercast.wire.header import FLAGS_AT, RECOVERED
from ordercast.wire.run import PacketRun


@dataclass(slots=True)
class HandingUp(Delivery):
    """The packets of one ring, from its installation to its end; every tick in them is heard."""

    clock: Clock = field(kw_only=True)
    tick_handed: int = 0  # the last that was handed up

    def deliver(self, safe: Seq, effects: list[Effect]) -> None:
        """Hand up what all members have, whatever its messages ask for."""
        self._hand_up(safe, self.clock.tick + CLOCK_LEAP, effects)

    def _hand_up(self, safe: Seq, tick_max: int, effects: list[Effect]) -> None:
        store, at = self.ring.store, self.delivered
        through = min(safe, store.aru)
        if through <= at:
            return
        base, slots = store.base, store.slots
        runs: list[PacketRun] = []
        while at < through:
            run = slots[at - base]
            assert run is not None
            last = run.seq + run.count - 1
            end = last if last <= through else through
            if not run.data[run.at + FLAGS_AT] & RECOVERED:
                runs += _credible(run if end - at == run.count else run.piece(at + 1, end), tick_max, effects)
            at = Seq(end)
        self.delivered = at
        if runs:
            self.tick_handed = runs[-1].timestamp(runs[-1].last)
            self.clock.hear(self.tick_handed)
            effects.append(RingPackets(self.view, self.ring.id, [], runs=runs))

    def finish(self, plan: RecoveryPlan, ring: Ring, reason: ChangeReason, effects: list[Effect]) -> None:
        """Hand up the rest. Whatever members hold lies below the birth of the new ring, for their clocks went into it;
        what leapt beyond that was forged, and its tick was not believed."""
        tick_max = max(ring.birth - 1, self.ring.birth + CLOCK_LEAP, self.tick_handed + CLOCK_LEAP)
        self._hand_up(plan.high_delivered, tick_max, effects)
        transitional = transitional_configuration(self.ring.id, self.delivered, plan, ring, reason)
        regular = regular_configuration(ring, transitional.id, plan.transitional, reason)
        residual = self._residual(plan, effects)
        owed = [one for run in residual for one in _credible(run, tick_max, effects)]
        effects.append(RingChange(regular, owed, ring.birth))

    def _residual(self, plan: RecoveryPlan, effects: list[Effect]) -> list[PacketRun]:
        """Return what is owed, packet by packet."""
        left = [each for each in self._held_with_gaps() if not each[1].flags & RECOVERED]
        owed = [(seq, run, gap) for seq, run, gap in left if not gap or run.originator in plan.obligation]
        beyond = sum(gap for _, _, gap in owed)
        counts = {
            Occurrence.GAP_DROPPED: len(left) - len(owed),
            Occurrence.BEYOND_GAP_DELIVERED: beyond,
            Occurrence.GAP_AMONG_COMPANIONS: beyond > 0 and len(plan.transitional) > 1,
        }
        effects += noted(counts)
        return [run.piece(seq, seq) for seq, run, _ in owed]


def _credible(run: PacketRun, tick_max: int, effects: list[Effect]) -> list[PacketRun]:
    """Return the packets whose ticks do not leap. Ticks make the order here, and are stored: one that was forged and
    believed would never heal."""
    if run.latest() <= tick_max:
        return [run]
    sound = [seq for seq, stamp in enumerate(run.timestamps(run.seq, run.last), run.seq) if stamp <= tick_max]
    effects += [Record(PacketDropped("a packet from a time that cannot be"))] * (run.count - len(sound))
    return [run.piece(seq, seq) for seq in sound]
