"""The end of a configuration: the rest of its messages, and both views. (Paper, case V)

What marks said was not exchanged, so it decides nothing: those who go on together hold the same packets, and know the
greatest aru among them (`high_aru`), and that is all. Up to it a place without a packet is void. Beyond it the places
of members of the obligation set are no gaps either, for all that they sent was exchanged. The gap is the first place
that anybody else may have used and nobody here knows of: what lies beyond it is delivered only if a member of the
obligation set sent it. (Deviations, D7)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Deliver, Effect, Install, Parcel, noted
from ordercast.model.ids import ProcessId, Seq
from ordercast.model.notes import Occurrence
from ordercast.order.adaptive.slots import Place
from ordercast.order.membership.configurations import regular_configuration, transitional_configuration
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.membership.ring import Ring
from ordercast.wire.run import PacketRun

if TYPE_CHECKING:
    from ordercast.order.adaptive.merge import Merge

NO_GAP = 1 << 62


def finish(merge: Merge, plan: RecoveryPlan, ring: Ring, reason: ChangeReason, effects: list[Effect]) -> None:
    """Deliver what is owed and install both configurations, in one atomic action."""
    _note(merge, plan, effects)
    gap = first_gap(merge, plan.obligation, plan.high_aru)
    held = list(undelivered(merge))
    top = min(gap - 1, max([plan.high_aru, *(place for place, _ in held)]))
    stop = regular_end(held, plan.high_delivered, top)
    _deliver(merge, [(place, run) for place, run in held if place <= stop], effects)
    transitional = transitional_configuration(merge.ring.id, Seq(stop), plan, ring, reason)
    effects.append(Install(transitional))
    merge.view = transitional.id
    rest = [(place, run) for place, run in held if place > stop]
    _deliver_rest(merge, rest, gap, plan, effects)
    effects.append(Install(regular_configuration(ring, transitional.id, plan.transitional, reason)))


def _note(merge: Merge, plan: RecoveryPlan, effects: list[Effect]) -> None:
    happened = {
        Occurrence.VOID_UNKNOWN: merge.aru < plan.high_aru,
        Occurrence.DISTRIBUTION_RECOVERED: merge.is_recovered,
        Occurrence.DISTRIBUTION_ABANDONED: merge.line.newest.base > plan.high_aru + 1,
    }
    effects.extend(noted(happened))


def first_gap(merge: Merge, obligation: Collection[ProcessId], high_aru: Place) -> Place:
    """Return the first place that a member outside the obligation set may have used, and nobody knows of. Only packets
    count, not marks, which some have heard and others not."""
    gaps = [NO_GAP]
    for member, process in enumerate(merge.ring.members):
        if process not in obligation:
            gaps.append(merge.line.next_owned(member, max(high_aru + 1, merge.after_last(member))))
    return min(gaps)


def undelivered(merge: Merge) -> Iterator[tuple[Place, PacketRun]]:
    """Return the packets that are held and not delivered, ascending by place."""
    for place, run in merge.held_after(merge.delivered):
        if run.parcel is not None:
            yield place, run


def regular_end(held: list[tuple[Place, PacketRun]], high_delivered: Place, top: Place) -> Place:
    """Return where the old regular configuration ends: before the first safe packet that nobody has delivered in it."""
    for place, run in held:
        if run.is_safe and high_delivered < place <= top:
            return place - 1
    return top


def _deliver(merge: Merge, packets: list[tuple[Place, PacketRun]], effects: list[Effect]) -> None:
    """Deliver these packets, one after the other."""
    parcels: list[Parcel] = []
    for place, run in packets:
        parcel = run.parcel_of(place, place)
        parts = run.parts[place - run.seq : place - run.seq + 1]
        merge.large.take(parcel, parts, parcels) if parts else parcels.append(parcel)
    if parcels:
        effects.append(Deliver(merge.view, merge.ring.id, parcels))


def _messages(packets: Iterable[tuple[Place, PacketRun]]) -> int:
    """Return how many messages, or parts of messages, are in these packets."""
    return sum(len(run.parcel_of(place, place)[4]) for place, run in packets)


def _deliver_rest(
    merge: Merge, rest: list[tuple[Place, PacketRun]], gap: Place, plan: RecoveryPlan, effects: list[Effect]
) -> None:
    """Deliver up to the gap what anybody sent, and beyond it what members of the obligation set did."""
    owed = [(place, run) for place, run in rest if place < gap or run.originator in plan.obligation]
    beyond = _messages((place, run) for place, run in owed if place > gap)
    safe = _messages((place, run) for place, run in owed if run.is_safe)
    gone = _messages(rest) - _messages(owed)
    _deliver(merge, owed, effects)
    counts = {
        Occurrence.SAFE_IN_TRANSITIONAL: safe,
        Occurrence.GAP_DROPPED: gone,
        Occurrence.BEYOND_GAP_DELIVERED: beyond,
        Occurrence.LARGE_CUT: len(merge.large),
        Occurrence.GAP_AMONG_COMPANIONS: bool(beyond) and len(plan.transitional) > 1,
    }
    effects.extend(noted(counts))
