"""Faults planted in the adaptive engine: what is easily forgotten, and what the chapter's rules are there for.

`test_planted.py` demands that each is caught in the first runs. To look for others:
`python -m tests.simulation.adaptive.planted NAME 0 60`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from ordercast.model.ids import Instant, ProcessId, Seq, node_of
from ordercast.model.promises import AnyPromise, GroupPromise, Promise, SlotPromise
from ordercast.order.adaptive import ending, merge, node, office, repair, slots
from ordercast.order.adaptive.codec import (
    CONTROL,
    MARK_BODY,
    RESTS,
    AdaptiveKind,
    Arrived,
    Mark,
    known_in,
    packed_known,
    parse_direct,
)
from ordercast.order.adaptive.marks import Voice
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.node import AdaptiveNode
from ordercast.order.adaptive.policy import Policy
from ordercast.order.adaptive.slots import RANK_MAX, Distribution, Line
from ordercast.order.adaptive.states.operational import Direct
from ordercast.order.adaptive.stream import MemberStream
from ordercast.order.membership.states import commit
from ordercast.order.membership.states.commit import Commit
from ordercast.order.membership.states.recovery import Recovery
from ordercast.order.membership.step import Facts, Step
from ordercast.sim.aimed_swarm import AIMED_FIRST
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import options_of
from ordercast.wire.head import KIND_AT, transmitter_of
from ordercast.wire.header import HEADER, HEADER_SIZE, Heading, unwrapped
from ordercast.wire.messages import CommitEntry
from ordercast.wire.run import Load, PacketRun, build_runs

Plant = Callable[[pytest.MonkeyPatch], None]
ANY_ORDER = frozenset(Promise) | frozenset(SlotPromise)


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Plant
    runs: int  # caught within this many
    broken: frozenset[AnyPromise | None]  # any of these must be found INVALID; None: the engine stops by an assertion
    first: int = 0  # the seed of the first of them; from AIMED_FIRST on runs have plots that aim at recovery


def _forgotten_void(patch: pytest.MonkeyPatch) -> None:
    """A later mark takes the place of what an earlier one proved."""

    def apply_mark(stream: MemberStream) -> bool:
        assert stream.mark is None or stream.next
        if stream.mark is not None:
            stream.next = stream.mark.next if stream.mark.last <= stream.last else 1
        return True

    def raise_aru(self: Merge) -> None:
        self.aru = Seq(min(self.frontiers) - 1)
        self.arus[self.me] = self.aru
        self._raise_safe()

    patch.setattr(Merge, "_apply_mark", staticmethod(apply_mark))
    patch.setattr(Merge, "_raise_aru", raise_aru)
    patch.setattr(Merge, "_frontier", lambda self, member: self.line.next_owned(member, self.known(member)))
    patch.setattr(Line, "forget", lambda self, place: None)
    patch.setattr(AdaptiveNode, "check_invariants", lambda self, thorough=True: None)


def _taken_after_entry(patch: pytest.MonkeyPatch) -> None:
    """R1: what comes after the entry on the Commit token is taken and delivered."""
    right = AdaptiveNode._takes

    def takes(self: AdaptiveNode, step: Step) -> bool:
        is_late = isinstance(self._state, Commit | Recovery) and not step.facts.is_frozen
        return is_late or right(self, step)

    def settle(self: AdaptiveNode, step: Step) -> None:
        before(self, step)
        if isinstance(self._state, Commit | Recovery) and not step.facts.is_frozen:
            step.facts.past.advance(step.effects)

    before = AdaptiveNode._settle
    patch.setattr(AdaptiveNode, "_takes", takes)
    patch.setattr(AdaptiveNode, "_settle", settle)


def _marks_in_recovery(patch: pytest.MonkeyPatch) -> None:
    """R3: what only some have heard of voids decides what is delivered."""

    def first_gap(self: Merge, obligation: frozenset[ProcessId], high_aru: int) -> int:
        gone = [member for member, process in enumerate(self.ring.members) if process not in obligation]
        return min(
            (self.line.next_owned(member, max(high_aru + 1, self.known(member))) for member in gone),
            default=ending.NO_GAP,
        )

    patch.setattr(ending, "first_gap", first_gap)


def _no_gap(patch: pytest.MonkeyPatch) -> None:
    """R4: everything received is delivered, as the paper has it."""
    patch.setattr(ending, "first_gap", lambda *_: ending.NO_GAP)


def _base_without_reach(patch: pytest.MonkeyPatch) -> None:
    def base_after(announced: int, base: int, reach: int) -> int:
        return max(announced, base) + 1

    for module in (merge, office):
        patch.setattr(module, "base_after", base_after)


def _no_reach_rule(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Merge, "limit", property(lambda self: 1 << 60))


def _reach_too_short(patch: pytest.MonkeyPatch) -> None:
    def limit(self: Merge) -> int:
        return max(self.aru, self.line.newest.base) + self.config.block // 2

    patch.setattr(Merge, "limit", property(limit))


def _exchanged_acknowledgement(patch: pytest.MonkeyPatch) -> None:
    right = Merge.keep

    def keep(self: Merge, seq: Seq, packet: bytes) -> bool:
        old = unwrapped(packet, self.heading)
        run, *_ = parse_direct(old, 0, len(old), self.heading)
        self.hear_aru(self.heading.places[run.originator], known_in(run)[0])
        return right(self, seq, packet)

    patch.setattr(Merge, "keep", keep)


def _safe_by_data_alone(patch: pytest.MonkeyPatch) -> None:
    """A member's last packet counts as its word."""

    def raise_safe(self: Merge) -> None:
        said = [max(aru, stream.place) for aru, stream in zip(self.arus, self.streams, strict=True)]
        self.safe = max(self.safe, min([self.aru, *said]))

    patch.setattr(Merge, "_raise_safe", raise_safe)


def _acknowledged_before_known(patch: pytest.MonkeyPatch) -> None:
    right = Voice.mark

    def mark(self: Voice, order: Merge, waiting: int, *, is_behind: bool) -> Mark:
        return right(self, order, waiting, is_behind=is_behind)._replace(aru=max(order.aru, order.highest))

    patch.setattr(Voice, "mark", mark)


def _plans_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What the companions of an attempt that failed had delivered is not known any more."""

    def entry(facts: Facts) -> CommitEntry:
        past = facts.past
        return CommitEntry(facts.me, True, facts.installed.id, past.aru, past.delivered, facts.is_frozen)

    patch.setattr(commit, "_my_entry", entry)


def _safe_unsaid(patch: pytest.MonkeyPatch) -> None:
    """Packets do not say what their sender knows to be safe."""
    right = parse_direct

    def parsed(data: bytes, start: int, size: int, heading: Heading) -> Arrived:
        run, number, (aru, _), flags, transmitter = right(data, start, size, heading)
        return run, number, (aru, 0), flags, transmitter

    patch.setattr(node, "parse_direct", parsed)


def _adopted_out_of_order(patch: pytest.MonkeyPatch) -> None:
    right = Merge._add

    def add(self: Merge, member: int, run: PacketRun, number: int) -> bool:
        if run.flags & CONTROL and number > self.streams[member].last + 1:
            self._learn(member, run)
        return right(self, member, run, number)

    patch.setattr(Merge, "_add", add)


def _rests_on_a_run(patch: pytest.MonkeyPatch) -> None:
    def built(self: Direct, order: Merge, loads: list[Load], place: Seq, facts: Facts, step: Step) -> list[PacketRun]:
        loads = [(load[0] | RESTS, *load[1:]) for load in loads]
        known = packed_known(order.aru, order.safe)
        return build_runs(order.heading, loads, facts.me, place, known, order.streams[order.me].last + 1)

    patch.setattr(Direct, "_built", built)


def _token_dropped(patch: pytest.MonkeyPatch) -> None:
    """R7: whoever has installed does not serve the token any more."""
    patch.setattr(Direct, "on_token", lambda self, token, step: self)
    patch.setattr(Direct, "_all_installed", lambda self: True)


def _third_never_answers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(repair.Repair, "asked", lambda self, asker, wish, order, now: None)


def _nothing_given_up(patch: pytest.MonkeyPatch) -> None:
    """Nobody answers others' packets: whoever has nothing to send blocks them until its next sign of life."""
    patch.setattr(Direct, "_give_up", lambda self, order, step: None)


def _places_by_floats(patch: pytest.MonkeyPatch) -> None:
    """Weights are shares of one: what should be a tie is not."""

    def sequence(weights: Sequence[int]) -> tuple[int, ...]:
        credits, shares, owners = [0.0] * len(weights), [weight / sum(weights) for weight in weights], []
        for _ in range(sum(weights)):
            credits = [credit + share for credit, share in zip(credits, shares, strict=True)]
            owners.append(credits.index(max(credits)))
            credits[owners[-1]] -= 1.0
        return tuple(owners)

    patch.setattr(slots, "even_sequence", sequence)


def _acknowledged_in_turn(patch: pytest.MonkeyPatch) -> None:
    """A safe packet is acknowledged only when those before it are delivered."""
    patch.setattr(Merge, "_ask_behind", lambda self, through: None)


def _ranks_by_place(patch: pytest.MonkeyPatch) -> None:
    """Members give up places ahead by their place in the ring, not by what they send."""

    def beyond(self: Distribution, member: int) -> int:
        return min(member, RANK_MAX) * self.ahead

    patch.setattr(Distribution, "_rest_of", beyond)
    patch.setattr(Distribution, "beyond_now", lambda self, member, heard: beyond(self, member))


def _nobody_asks(patch: pytest.MonkeyPatch) -> None:
    right = repair.Repair.due_wishes
    patch.setattr(repair.Repair, "due_wishes", lambda self, order, now: right(self, order, now) and [])


def _given_up_place_used(patch: pytest.MonkeyPatch) -> None:
    """A mark gives up more than its sender does."""
    right = Voice.mark

    def mark(self: Voice, order: Merge, waiting: int, *, is_behind: bool) -> Mark:
        said = right(self, order, waiting, is_behind=is_behind)
        return said._replace(next=said.next + order.config.block)

    patch.setattr(Voice, "mark", mark)


def _former_life(patch: pytest.MonkeyPatch) -> None:
    """R8: a mark is a node's, whichever life and configuration it is of."""
    right = AdaptiveNode._foreign

    def foreign(self: AdaptiveNode, packet: bytes, step: Step) -> None:
        right(self, packet, step)
        order = step.facts.past
        if not isinstance(self._state, Direct) or not isinstance(order, Merge) or packet[KIND_AT] != AdaptiveKind.MARK:
            return
        head, node = HEADER.unpack_from(packet), node_of(transmitter_of(packet))
        for member, process in enumerate(order.ring.members):
            if node_of(process) == node and member != order.me:
                tick, stable, *_ = MARK_BODY.unpack_from(packet, HEADER_SIZE)
                order.hear(Mark(member, tick, 0, head[8], head[9], stable, 0, False))

    patch.setattr(AdaptiveNode, "_foreign", foreign)
    patch.setattr(AdaptiveNode, "check_invariants", lambda self, thorough=True: None)


def _sent_alone(patch: pytest.MonkeyPatch) -> None:
    """D6: what waits is not looked at, so that weights confirm themselves."""
    right = Policy.wanted

    def wanted(
        self: Policy, members: Sequence[ProcessId], waiting: Sequence[int], weights: Sequence[int], now: Instant
    ) -> tuple[int, ...] | None:
        return right(self, members, [0] * len(waiting), weights, now)

    patch.setattr(Policy, "wanted", wanted)


FAULTS = [
    PlantedFault("void forgotten by a later mark", _forgotten_void, 40, frozenset({SlotPromise.FRONTIERS})),
    PlantedFault(
        "taken after the entry",
        _taken_after_entry,
        50,
        frozenset({Promise.VIEW_AGREEMENT, Promise.VIRTUAL_SYNCHRONY}),
        AIMED_FIRST,
    ),
    PlantedFault("no gap of those who are gone", _no_gap, 100, frozenset({Promise.CAUSAL, Promise.FIFO})),
    PlantedFault("base without reach", _base_without_reach, 40, frozenset({SlotPromise.SLOTS})),
    # Members that deliver two packets at one place stop by an assertion of their own, before a run can be judged.
    PlantedFault("no reach rule", _no_reach_rule, 40, frozenset({SlotPromise.SLOTS, None})),
    PlantedFault("reach too short", _reach_too_short, 40, frozenset({Promise.LIVENESS})),
    PlantedFault("safe by data alone", _safe_by_data_alone, 40, frozenset({Promise.SAFE_DELIVERY})),
    PlantedFault("acknowledged before known", _acknowledged_before_known, 40, frozenset({SlotPromise.FRONTIERS})),
    PlantedFault("rests on a run", _rests_on_a_run, 40, frozenset({SlotPromise.STREAMS})),
    PlantedFault("places by floats", _places_by_floats, 40, frozenset({SlotPromise.SLOTS, SlotPromise.FRONTIERS})),
    PlantedFault("given-up place used", _given_up_place_used, 40, frozenset({SlotPromise.STREAMS})),
]

# What hostile runs do not show, or seldom: unit tests and scenes do.
MARKS_DECIDE = PlantedFault("marks decide in recovery", _marks_in_recovery, 0, ANY_ORDER)
GARBAGE = PlantedFault("acknowledgement read from an exchanged packet", _exchanged_acknowledgement, 0, ANY_ORDER)
OUT_OF_ORDER = PlantedFault("distribution adopted out of order", _adopted_out_of_order, 0, ANY_ORDER)
TOKEN_DROPPED = PlantedFault("token dropped at installation", _token_dropped, 0, ANY_ORDER)
THIRDS = PlantedFault("third never answers", _third_never_answers, 0, ANY_ORDER)
SILENT = PlantedFault("nothing given up", _nothing_given_up, 0, ANY_ORDER)
ACKNOWLEDGED_IN_TURN = PlantedFault("acknowledged in turn", _acknowledged_in_turn, 0, frozenset({SlotPromise.HOPS}))
SLOTS_BY_PLACE = PlantedFault("ranks by place", _ranks_by_place, 0, frozenset({SlotPromise.HOPS}))
SENT_ALONE = PlantedFault("policy counts only what was sent", _sent_alone, 0, frozenset({Promise.FAIRNESS}))
FORMER_LIFE = PlantedFault("mark of a former life", _former_life, 0, ANY_ORDER)
PLANS_FORGOTTEN = PlantedFault("plans forgotten", _plans_forgotten, 0, frozenset({GroupPromise.SANE_VIEWS}))
SAFE_UNSAID = PlantedFault("safe unsaid", _safe_unsaid, 0, frozenset({GroupPromise.SANE_VIEWS}))
NOBODY_ASKS = PlantedFault("nobody asks", _nobody_asks, 0, frozenset({SlotPromise.STUCK}))


def findings(fault: PlantedFault, seed: int) -> frozenset[AnyPromise | None]:
    """Return what is broken in a hostile run with the fault; a crash of the engine, or a run that does not settle, is
    named None."""
    options: SimOptions = options_of(seed, engine="adaptive")
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        try:
            result = simulate(options, seed)
        except Exception:  # the engine's own assertions are judges, too
            return frozenset({None})
    broken: set[AnyPromise | None] = {one.promise for one in result.verdicts if one.outcome.value == "INVALID"}
    return frozenset(broken if result.settled else broken | {None})


if __name__ == "__main__":
    name, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for one in FAULTS:
        if name in (one.name, "all"):
            for number in range(first, last):
                found = findings(one, number)
                if found & (one.broken | {None}):
                    sys.stdout.write(f"{one.name} {number} {sorted(map(str, found))}\n")
                    if found & one.broken:
                        break
            else:
                sys.stdout.write(f"{one.name} NOT CAUGHT\n")
