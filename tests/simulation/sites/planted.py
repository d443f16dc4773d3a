"""Faults planted in the sites engine: the paper's own rules where ours differ, and what is easily forgotten.

`test_planted.py` demands that each is caught in the runs named with it. To look for others:
`python -m tests.simulation.sites.planted NAME 0 60`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from ordercast.checker.verdict import Outcome
from ordercast.model.effects import Effect
from ordercast.model.ids import Instant, ProcessId
from ordercast.model.promises import AnyPromise, Promise, SitesPromise
from ordercast.order.layered import InnerRing
from ordercast.order.outbox import lots_from
from ordercast.order.sites import attempt, order, plan, routes, speaker, spreading, stream
from ordercast.order.sites.attempt import WideAttempt
from ordercast.order.sites.codec import decode, encode
from ordercast.order.sites.frames import (
    DataEntry,
    ReadyFrame,
    RoutesFrame,
    SpreadFrame,
    StateFrame,
    UnitFrame,
    UpdateFrame,
    VectorFrame,
)
from ordercast.order.sites.interest import InterestTable, Wishes
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.outbox import WideOutbox
from ordercast.order.sites.plan import States, WidePlan, plan_of
from ordercast.order.sites.sending import Sending
from ordercast.order.sites.sessions import Sessions, WideSession
from ordercast.order.sites.speaker import Speaker
from ordercast.order.sites.spreading import Spreading
from ordercast.order.sites.stream import UnitStream
from ordercast.order.sites.tape import Tape, Where
from ordercast.order.sites.units import DeliveryClass, Unit
from ordercast.order.sites.update import Owing, SitePressure
from ordercast.order.sites.views import WideProposal, WideView
from ordercast.order.stamped.lanes import lowest
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.swarm import options_of

from .scenes import crowded, cut_and_mended, joining, killed_in_turns

Plant = Callable[[pytest.MonkeyPatch], None]
ANY_ORDER = frozenset(Promise)


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Plant
    broken: frozenset[AnyPromise]  # any of these must be found INVALID
    runs: int = 40  # caught within this many
    first: int = 0
    scene: Callable[[], SimOptions] | None = None  # the runs are of this, with other seeds; None: hostile ones


def _promise_before_units(patch: pytest.MonkeyPatch) -> None:
    """An UPDATE counts before what it speaks of is here."""
    patch.setattr(UnitStream, "promise", lambda self, through, line: self._raise(line))


def _ties(patch: pytest.MonkeyPatch) -> None:
    """Of two units with one stamp the first that is there goes first."""
    patch.setattr(stream, "front_of", lambda line, rank: (line, 1 << 20, 0))


def _past_safe(patch: pytest.MonkeyPatch) -> None:
    """Agreed units pass a safe one that waits."""

    def walk(self: WideOrder) -> None:
        if self.is_held:
            return
        lanes = [one.lane for one in self.streams]
        while (found := lowest(lanes)) is not None:
            lane, bound = found
            while lane.runs and lane.runs[0].first <= bound:
                unit = lane.runs.popleft().content
                if unit.delivery_class is DeliveryClass.SAFE and unit.stamp >= self.stable:
                    self.__dict__.setdefault("late", []).append(unit)
                else:
                    self._pass(unit)
        late = self.__dict__.get("late", [])
        self.__dict__["late"] = [unit for unit in late if unit.stamp >= self.stable]
        for unit in late:
            if unit.stamp < self.stable:
                self._pass(unit)

    patch.setattr(WideOrder, "walk", walk)


def _unsafe(patch: pytest.MonkeyPatch) -> None:
    """A site acknowledges the last entry of its tape instead of the safe one."""

    def note(self: WideOrder, seq: int) -> None:
        self.acknowledge(self.rank, min(one.line for one in self.streams))

    patch.setattr(WideOrder, "note", note)


def _private_clock(patch: pytest.MonkeyPatch) -> None:
    """A promise is read off a private clock, ahead of the tape."""

    right = Spreading.spread

    def spread(self: Spreading, frame: UnitFrame | UpdateFrame, data: bytes) -> None:
        if isinstance(frame, UpdateFrame) and frame.rank == self.order.rank:
            data = encode(frame._replace(line=frame.line + 20))
        right(self, frame, data)

    patch.setattr(Spreading, "spread", spread)


def _deaf_clock(patch: pytest.MonkeyPatch) -> None:
    """Stamps of other sites are not fed to the ring's clock."""

    def hear(self: InnerRing, stamp: int, now: Instant) -> list[Effect]:
        return []

    patch.setattr(InnerRing, "hear", hear)


def _jumping_counter(patch: pytest.MonkeyPatch) -> None:
    """FIFO units go up at once."""

    def lacks(self: Sessions, unit: Unit) -> tuple[WideSession, int] | None:
        return None

    patch.setattr(Sessions, "lacks", lacks)


def _frozen(patch: pytest.MonkeyPatch) -> None:
    """Lines stand still in the ring's transitional configuration."""
    right = Tape.take

    def take(self: Tape, data: bytes, originator: ProcessId, seq: int, stamp: int, where: Where) -> None:
        right(self, data, originator, seq, stamp, Where.BEYOND if where is not Where.REGULAR else where)

    patch.setattr(Tape, "take", take)


def _beyond(patch: pytest.MonkeyPatch) -> None:
    """Lines move beyond the first gap of the ring's transitional configuration."""
    right = Tape.take

    def take(self: Tape, data: bytes, originator: ProcessId, seq: int, stamp: int, where: Where) -> None:
        right(self, data, originator, seq, stamp, Where.TRANSITIONAL if where is Where.BEYOND else where)

    patch.setattr(Tape, "take", take)


def _void_lost(patch: pytest.MonkeyPatch) -> None:
    """What is void is not sent again."""
    right = WideOutbox.seen

    def seen(self: WideOutbox, count: int = 1, *, is_void: bool) -> None:
        right(self, count, is_void=False)

    patch.setattr(WideOutbox, "seen", seen)


def _sent_twice(patch: pytest.MonkeyPatch) -> None:
    """What was under way when a view ended is sent again, void or not."""
    right = Tape._take_data

    def take_data(self: Tape, entry: DataEntry, originator: ProcessId, stamp: int, where: Where) -> None:
        right(self, entry, originator, stamp, where)
        if originator == self.me and where is not Where.REGULAR:
            body = entry.body
            self.outbox._void += lots_from(body.payloads, body.runs[0].service, body.runs[0].sender)

    patch.setattr(Tape, "_take_data", take_data)


def _planned(patch: pytest.MonkeyPatch, change: Callable[[WidePlan, StateFrame], WidePlan]) -> None:
    def planned(proposal: WideProposal, states: States, me: int) -> WidePlan:
        return change(plan_of(proposal, states, me), states[me])  # type: ignore[arg-type, index]

    patch.setattr(attempt, "plan_of", planned)


def _own_signal(patch: pytest.MonkeyPatch) -> None:
    """The transitional view lies where each daemon happened to be."""
    _planned(patch, lambda made, mine: replace(made, signal=(*mine.place, 0)))


def _no_line(patch: pytest.MonkeyPatch) -> None:
    """What shows no gap is no hole: everything that is held is delivered."""
    right = WideOrder.rest
    patch.setattr(WideOrder, "rest", lambda self, line, commits: right(self, 1 << 62, commits))


def _no_commits(patch: pytest.MonkeyPatch) -> None:
    """Only the messages of those who come along are owed beyond the line."""
    _planned(patch, lambda made, mine: replace(made, commits=frozenset(made.companions)))


def _kept_commits(patch: pytest.MonkeyPatch) -> None:
    """Commits live on in the next view."""
    right = Tape._install

    def install(self: Tape, one: WideAttempt) -> None:
        commits = self.order.commits
        right(self, one)
        self.order.commits |= commits

    patch.setattr(Tape, "_install", install)


def _hasty(patch: pytest.MonkeyPatch) -> None:
    """A view is installed when the own site is ready."""

    def take_ready(self: WideAttempt, ready: ReadyFrame) -> bool:
        self.ready.add(ready.process)
        own = set(self.proposal.fragments[self.rank].members)
        return self.plan is not None and not self.lacking and own <= self.ready

    patch.setattr(WideAttempt, "take_ready", take_ready)


def _other_attempt(patch: pytest.MonkeyPatch) -> None:
    """STATEs and READYs count for whatever attempt is under way."""
    right, taking = Tape._take_control, Speaker._take_control

    def take_control(self: Tape, spread: SpreadFrame) -> None:
        frame = decode(spread.frame)
        if self.attempt is not None and isinstance(frame, StateFrame | ReadyFrame):
            counted = encode(frame._replace(attempt=self.attempt.id))
            spread = spread._replace(attempt=self.attempt.id, frame=counted)
        right(self, spread)

    def take(self: Speaker, spread: SpreadFrame, data: bytes) -> None:
        if self._taken is not None and spread.attempt != self._taken.id:
            spread = spread._replace(attempt=self._taken.id)
        taking(self, spread, data)

    patch.setattr(Tape, "_take_control", take_control)
    patch.setattr(Speaker, "_take_control", take)


def _unequal_trees(patch: pytest.MonkeyPatch) -> None:
    """Ties between paths are decided by whoever asks."""
    right = routes.tree_of

    def trees_of(count: int, edges: object) -> tuple[routes.SourceTree, ...]:
        trees_of.calls += 1  # type: ignore[attr-defined]
        skewed = [edge._replace(forth=1 + (edge.low + trees_of.calls) % 3, back=1) for edge in edges]  # type: ignore[attr-defined]
        return tuple(right(source, count, skewed) for source in range(count))

    trees_of.calls = 0  # type: ignore[attr-defined]
    patch.setattr(speaker, "trees_of", trees_of)
    patch.setattr(spreading, "trees_of", trees_of)


def _no_hold(patch: pytest.MonkeyPatch) -> None:
    """Delivery goes on after BEGIN."""
    right = order.WideOrder.walk

    def walk(self: WideOrder) -> None:
        held, self.is_held = self.is_held, False
        right(self)
        self.is_held = held

    patch.setattr(WideOrder, "walk", walk)


def _no_vector(patch: pytest.MonkeyPatch) -> None:
    """New parents are not told what is here."""
    right = Spreading.take_routes

    def take_routes(self: Spreading, frame: RoutesFrame) -> list[tuple[ProcessId, VectorFrame]]:
        right(self, frame)
        return []

    patch.setattr(Spreading, "take_routes", take_routes)


def _stale_behind(patch: pytest.MonkeyPatch) -> None:
    """The update that comes last says who is behind."""
    right = Tape._take_update

    def take_update(self: Tape, frame: UpdateFrame) -> None:
        self._updated.clear()
        right(self, frame)

    patch.setattr(Tape, "_take_update", take_update)


def _no_orphans(patch: pytest.MonkeyPatch) -> None:
    """Whoever lacks what only hollow copies are left of comes along."""

    def companions(view: object, states: States) -> tuple[ProcessId, ...]:
        return tuple(sorted(process for process, state in states.items() if state.view == view))

    patch.setattr(plan, "_companions", companions)


def _hasty_join(patch: pytest.MonkeyPatch) -> None:
    """A join does not wait until everybody knows what is wanted."""

    def is_known(self: Wishes, digest: int, stable: int) -> bool:
        return True

    patch.setattr(Wishes, "_is_known", is_known)


def _unlearnt(patch: pytest.MonkeyPatch) -> None:
    """A view begins with nobody wanting anything."""
    right = InterestTable.__init__

    def init(self: InterestTable, view: WideView) -> None:
        right(self, view)
        self._everything = 0

    patch.setattr(InterestTable, "__init__", init)


def _chatter(patch: pytest.MonkeyPatch) -> None:
    """Rising stamps alone make a site owe an update."""
    right = Owing.due

    def due(self: Owing, line: int, aru: int, pressure: SitePressure, now: Instant) -> Instant:
        return self._soon(now) if line > self._told_line else right(self, line, aru, pressure, now)

    patch.setattr(Owing, "due", due)


def _sent_double(patch: pytest.MonkeyPatch) -> None:
    """Each unit is given to a link twice."""
    right = Spreading._send

    def send(self: Spreading, rank: int, data: bytes, *, is_urgent: bool = False) -> None:
        right(self, rank, data, is_urgent=is_urgent)
        right(self, rank, data, is_urgent=is_urgent)

    patch.setattr(Spreading, "_send", send)


def _no_window(patch: pytest.MonkeyPatch) -> None:
    """Messages go to the ring as it takes them, whether others have the former or not."""

    def may_send(self: Sending, tape: Tape) -> int:
        return 360 - self.outbox.under_way

    patch.setattr(Sending, "_may_send", may_send)


# Hostile runs seldom show these; a rule does.
SELDOM = (
    PlantedFault("void sent twice", _sent_twice, frozenset({Promise.NO_DUPLICATES})),
    PlantedFault("lines frozen", _frozen, ANY_ORDER),
    PlantedFault("no commits", _no_commits, frozenset({Promise.SAFE_DELIVERY})),
    PlantedFault("behind out of order", _stale_behind, ANY_ORDER),
)

FAULTS = (
    PlantedFault("promise before its units", _promise_before_units, frozenset({Promise.AGREED_DELIVERY})),
    PlantedFault("agreed past a safe one", _past_safe, frozenset({Promise.AGREED_DELIVERY})),
    PlantedFault(
        "acknowledged at the last entry",
        _unsafe,
        frozenset({Promise.SAFE_DELIVERY, Promise.VIRTUAL_SYNCHRONY}),
        runs=1,
        first=92,
    ),
    PlantedFault("promise of a private clock", _private_clock, frozenset({Promise.AGREED_DELIVERY})),
    PlantedFault("stamps not fed", _deaf_clock, ANY_ORDER),
    PlantedFault("fifo counter jumps", _jumping_counter, frozenset({Promise.FIFO})),
    PlantedFault(
        "join before its wish is known", _hasty_join, frozenset({Promise.FIFO, Promise.CAUSAL}), runs=1, scene=joining
    ),
    PlantedFault("void lost", _void_lost, frozenset({Promise.SELF_DELIVERY})),
    PlantedFault("own signal", _own_signal, frozenset({Promise.VIRTUAL_SYNCHRONY})),
    PlantedFault("installed before all are ready", _hasty, frozenset({Promise.SAFE_DELIVERY})),
    # The witness names the rule; a promise to users would be broken in few of these runs.
    PlantedFault(
        "delivery after begin", _no_hold, frozenset({SitesPromise.HELD}), runs=1, first=4, scene=killed_in_turns
    ),
    PlantedFault("no orphans", _no_orphans, frozenset({SitesPromise.ORPHANS}), runs=1, first=15),
    PlantedFault("updates that nobody waits for", _chatter, frozenset({SitesPromise.SILENCE}), runs=2),
    PlantedFault("units sent twice", _sent_double, frozenset({SitesPromise.COPIES}), runs=2),
    PlantedFault("no window", _no_window, frozenset({SitesPromise.WINDOW}), runs=1, scene=crowded),
    PlantedFault("ties by arrival", _ties, frozenset({SitesPromise.PAST}), runs=3),
    PlantedFault("no line", _no_line, frozenset({SitesPromise.BEYOND}), runs=9),
    PlantedFault("lines beyond a gap", _beyond, frozenset({SitesPromise.GAP}), runs=1, first=33, scene=killed_in_turns),
    PlantedFault("commits not reset", _kept_commits, frozenset({SitesPromise.COMMITS}), runs=1),
    PlantedFault("another attempt counted", _other_attempt, frozenset({SitesPromise.ATTEMPTS}), runs=16),
    PlantedFault("unequal trees", _unequal_trees, frozenset({SitesPromise.TREES}), runs=4),
    PlantedFault("view begins without interests", _unlearnt, frozenset({SitesPromise.NEEDS}), runs=1),
    PlantedFault(
        "routes without vectors", _no_vector, frozenset({SitesPromise.ROUTES}), runs=1, first=3, scene=cut_and_mended
    ),
)


def findings(fault: PlantedFault, seed: int) -> set[AnyPromise]:
    """Return the promises that a run with the fault breaks; an engine that falls over breaks all that name it."""
    with pytest.MonkeyPatch.context() as patch:
        fault.plant(patch)
        try:
            options = options_of(seed, engine="sites") if fault.scene is None else fault.scene()
            result = simulate(options, seed)
        except (AssertionError, KeyError, IndexError):
            return set(fault.broken)
    return {one.promise for one in result.verdicts if one.outcome is Outcome.INVALID and one.promise}


if __name__ == "__main__":
    wanted, begin, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for one in (*FAULTS, *SELDOM):
        if wanted in ("all", one.name):
            found = next(((seed, broken) for seed in range(begin, end) if (broken := findings(one, seed))), None)
            text = f"seed {found[0]}: {sorted(each.name for each in found[1])}" if found else "not caught"
            sys.stdout.write(f"{one.name}: {text}\n")
            sys.stdout.flush()
