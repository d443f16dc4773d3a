"""Judges what daemons of several sites do: it sees the tape of each, and both ends of each link.

Each rule follows from `docs/internals/sites.md`, and a fault in one of them may cost no user anything for long: a line
that lies drops a message only if a site is lost at that very moment, and a route that loses a unit is mended by a view.
What a rule needs is worked out here from what was said, not asked of the code that is judged.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ordercast.checker.verdict import Verdict
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Deliver, Install
from ordercast.model.ids import MILLISECOND, ConfigurationId, Instant, NodeId, ProcessId
from ordercast.model.promises import SitesPromise
from ordercast.model.service import Service
from ordercast.order.engine import Engine
from ordercast.order.sites.attempt import WideAttempt
from ordercast.order.sites.codec import encode
from ordercast.order.sites.frames import RecoveredFrame, StateFrame, UpdateFrame
from ordercast.order.sites.interest import wants_of
from ordercast.order.sites.node import SitesNode
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.routes import reaches
from ordercast.order.sites.spreading import KeptUnit
from ordercast.order.sites.states import REGULAR
from ordercast.order.sites.tape import Where
from ordercast.order.sites.units import BodyKind, Unit
from ordercast.sim.findings import Findings
from ordercast.sim.sites.economy import SitesEconomy
from ordercast.sim.sites.watched import WatchedTape

LOOK_NS = 20 * MILLISECOND  # between looks for units that a route has lost
_ORDERED = frozenset({Service.AGREED, Service.SAFE, Service.CAUSAL})

ViewStream = tuple[bytes, int]  # the digest of a view, a rank
Place = tuple[bytes, int, int]  # the same, and the stamp of a unit


class SitesWitness:
    """All daemons of one run."""

    def __init__(self) -> None:
        self.findings = Findings()
        self._economy = SitesEconomy(self._find)
        self._engines: dict[ProcessId, SitesNode] = {}
        self._units: defaultdict[ViewStream, list[int]] = defaultdict(list)  # stamps that are on some tape, ascending
        self._had: defaultdict[ProcessId, set[Place]] = defaultdict(set)  # what came on the tape of each
        self._lines: dict[tuple[ProcessId, bytes, int], int] = {}  # that were judged
        self._told_all: set[tuple[ProcessId, bytes, ProcessId]] = set()  # whose interests a tape knows, of a view
        self._arus: dict[ViewStream, int] = {}  # the highest that a site has acknowledged
        self._states: dict[tuple[ConfigurationId, ProcessId], StateFrame] = {}  # as they were said
        self._ready: set[tuple[ConfigurationId, ProcessId]] = set()
        self._trees: dict[tuple[bytes, int], tuple[object, ProcessId]] = {}  # by view and epoch, and who had them first
        self._look_at: dict[ProcessId, int] = {}

    def watched(self, make: Callable[[NodeId], Engine], node: NodeId) -> Engine:
        """Return an engine that is watched."""
        engine = make(node)
        assert isinstance(engine, SitesNode)
        engine.make_tape = partial(WatchedTape, self, engine)
        return engine

    def verdicts(self) -> list[Verdict]:
        return self.findings.broken()

    def _find(self, promise: SitesPromise, what: str, tape: WatchedTape) -> None:
        self.findings.add(promise, what, tape.me, tape.view.id)

    # What the tape brings

    def read(self, tape: WatchedTape) -> None:
        """An entry was taken: units are known from now on, and lines may have moved."""
        order, view = tape.order, tape.view.digest
        had = self._had[tape.me]
        for heard in tape.heard:
            for unit in heard.singles():
                place = view, unit.rank, unit.stamp
                if place in had:
                    continue
                had.add(place)
                self._economy.read(tape, unit)
                if unit.rank == order.rank:
                    self._know(tape, unit)
                if unit.is_interest and wants_of(unit.body).is_complete:
                    self._told_all.add((tape.me, view, unit.originator))
        if tape.attempt is None:
            self._judge_lines(tape)
        key = view, order.rank
        self._arus[key] = max(self._arus.get(key, 0), order.arus[order.rank])

    def recovered(self, tape: WatchedTape, frame: RecoveredFrame) -> None:
        """A companion has sent a unit. The attempt may be cut after its lines were taken over: they hold then."""
        self._had[tape.me].add((frame.view, frame.rank, frame.stamp))

    def _know(self, tape: WatchedTape, unit: Unit) -> None:
        """A unit of the own ring, which its source has just decided on."""
        stamps = self._units[tape.view.digest, unit.rank]
        at = bisect_left(stamps, unit.stamp)
        if at == len(stamps) or stamps[at] != unit.stamp:
            insort(stamps, unit.stamp)
        if unit.body.kind is BodyKind.INTEREST:
            return
        for member, rank in tape.view.proposal.rank_of.items():
            is_told = (tape.me, tape.view.digest, member) in self._told_all
            if not is_told and not unit.needs >> rank & 1:
                what = f"a unit is not for a site of {member}, which has not told all that it wants"
                self._find(SitesPromise.NEEDS, what, tape)

    def _judge_lines(self, tape: WatchedTape) -> None:
        """Everything below a line is here."""
        view, had = tape.view.digest, self._had[tape.me]
        for rank, stream in enumerate(tape.order.streams):
            key = tape.me, view, rank
            judged = self._lines.get(key, 0)
            if stream.line <= judged:
                continue
            self._lines[key] = stream.line
            stamps = self._units[view, rank]
            for stamp in stamps[bisect_left(stamps, judged) : bisect_left(stamps, stream.line)]:
                if (view, rank, stamp) not in had:
                    what = f"the line of stream {rank} is {stream.line}, and unit {stamp} has not come"
                    self._find(SitesPromise.LINES, what, tape)

    def ended(self, tape: WatchedTape, before: list[int], stamp: int, where: Where) -> None:
        """An entry came in the transitional configuration of the ring."""
        lines = [stream.line for stream in tape.order.streams]
        if where is Where.BEYOND and lines != before:
            self._find(SitesPromise.GAP, f"a line moved at entry {stamp}, which lies beyond a gap", tape)
        if where is Where.TRANSITIONAL and lines[tape.rank] <= stamp:
            self._find(SitesPromise.GAP, f"entry {stamp} lies before any gap, and the own line is below it", tape)

    def updated(self, tape: WatchedTape, newest: UpdateFrame) -> None:
        """The later one of two updates is the one with the higher promise."""
        if (newest.rank in tape.behind) is not newest.is_behind:
            what = f"site {newest.rank} is behind or not by an update that is not its last"
            self._find(SitesPromise.UPDATES, what, tape)

    # Delivery and routes

    def went_on(self, tape: WatchedTape, now: Instant) -> None:
        """Everything that may be delivered was."""
        if not tape.is_begun or tape.state != REGULAR:
            return
        order = tape.order
        stamp, source, _ = order.place
        for rank, stream in enumerate(order.streams):
            if stamp and rank != source and (stream.line, rank) < (stamp, source):
                what = f"unit {stamp} of stream {source} was passed, and stream {rank} may still bring {stream.line}"
                self._find(SitesPromise.PAST, what, tape)
        self._engines[tape.me] = tape.engine
        if tape.engine.speaker.is_open:
            self._judge_trees(tape)
            self._economy.went_on(tape)
            if now >= self._look_at.get(tape.me, 0):
                self._look_at[tape.me] = now + LOOK_NS
                self._judge_routes(tape)
                self._economy.judge_window(tape)

    def _judge_trees(self, tape: WatchedTape) -> None:
        spreading = tape.engine.speaker.spreading
        if not spreading.trees or spreading.order is not tape.order:
            return
        key = tape.view.digest, spreading.epoch
        trees, whose = self._trees.setdefault(key, (spreading.trees, tape.me))
        if trees != spreading.trees:
            self._find(SitesPromise.TREES, f"the trees of epoch {spreading.epoch} are not those of {whose}", tape)

    def _judge_routes(self, tape: WatchedTape) -> None:
        """What a parent has is here, or on its way: on a link that is not quiet."""
        spreading = tape.engine.speaker.spreading
        for source, tree in enumerate(spreading.trees):
            parent = tree[tape.rank]
            if parent is None:
                continue
            other = self._engines.get(tape.view.fragments[parent].representative)
            if other is None or not self._is_quiet(tape, other) or other.speaker.spreading.epoch != spreading.epoch:
                continue
            beyond = reaches(tree, tape.rank)
            stable = max(tape.order.stable, other.tape.order.stable)
            lost = sorted(_lost(other.speaker.spreading.kept_of(source), spreading.kept_of(source), beyond, stable))
            if lost:
                what = f"unit {lost[0]} of stream {source} is at its parent and is not on its way"
                self._find(SitesPromise.ROUTES, what, tape)

    def _is_quiet(self, tape: WatchedTape, other: SitesNode) -> bool:
        """Whether two have the same view, a link that both have up and routes use, and nothing on it."""
        if not other.tape.is_begun or other.tape.view.id != tape.view.id or other.tape.state != REGULAR:
            return False
        link = tape.engine.speaker.neighbours.link_to(other.process)
        back = other.speaker.neighbours.link_to(tape.me)
        if link is None or back is None or link.tags != (back.tags.theirs, back.tags.mine):
            return False
        low, high = sorted((tape.rank, other.tape.rank))
        tags = tuple(link.tags if low == tape.rank else back.tags)
        ends = {(edge.low, edge.high): edge.tags for edge in tape.engine.speaker.spreading.edges}
        return (
            ends.get((low, high)) == tags
            and link.is_quiet
            and back.is_quiet
            and link.failure is None
            and back.failure is None
        )

    # Attempts

    def delivered_after_begin(self, tape: WatchedTape) -> None:
        self._find(SitesPromise.HELD, "something was delivered in order between BEGIN and the view", tape)

    def stated(self, tape: WatchedTape, frame: StateFrame) -> None:
        self._states[frame.attempt, frame.process] = frame
        acknowledged = self._arus.get((tape.view.digest, tape.order.rank), 0)
        if min(frame.lines) < acknowledged:
            what = f"its site has acknowledged everything below {acknowledged}, and its line is {min(frame.lines)}"
            self._find(SitesPromise.ACKNOWLEDGED, what, tape)

    def _said(self, attempt: WideAttempt) -> dict[ProcessId, StateFrame]:
        said = {one: self._states.get((attempt.id, one)) for one in attempt.proposal.members}
        return {one: frame for one, frame in said.items() if frame is not None}

    def took_over(self, tape: WatchedTape, attempt: WideAttempt) -> None:
        """All STATEs are here, and all that companions had: so are their commits."""
        said = self._said(attempt)
        for process, frame in attempt.states.items():
            if process not in said or encode(said[process]) != encode(frame):
                self._find(SitesPromise.ATTEMPTS, f"the STATE of {process} counts, which it did not say so", tape)
        if attempt.plan is None or attempt.plan.is_orphan:
            return
        for process in attempt.plan.companions:
            if process in said and not set(said[process].commits) <= tape.order.commits:
                self._find(SitesPromise.COMMITS, f"commits of {process} are not kept", tape)

    def said_ready(self, tape: WatchedTape, attempt: WideAttempt) -> None:
        self._ready.add((attempt.id, tape.me))

    def installed(
        self, tape: WatchedTape, attempt: WideAttempt, ended: WideOrder, passed: Sequence[Deliver | Install]
    ) -> None:
        """A view has begun: everybody was ready, and the old one ended as the STATEs demand."""
        for member in attempt.proposal.members:
            if (attempt.id, member) not in self._ready:
                self._find(SitesPromise.ATTEMPTS, f"the view is installed, and {member} was not ready", tape)
        if tape.order.commits != {tape.me}:
            self._find(SitesPromise.COMMITS, "commits outlive the view that ended", tape)
        self._judge_end(tape, self._said(attempt), ended, passed)

    def _judge_end(
        self,
        tape: WatchedTape,
        states: dict[ProcessId, StateFrame],
        ended: WideOrder,
        passed: Sequence[Deliver | Install],
    ) -> None:
        companions: list[StateFrame] = []
        for effect in passed:
            if isinstance(effect, Install):
                if effect.configuration.kind is ConfigurationKind.REGULAR:
                    return
                companions = [states[one] for one in effect.configuration.members if one in states]
                self._judge_companions(tape, companions)
            elif companions:
                line = min(max(lines) for lines in zip(*(one.lines for one in companions), strict=True))
                commits = {process for one in companions for process in one.commits}
                for number, originator, _, asked, *_ in effect.parcels:
                    is_beyond = number + ended.base >= line and originator not in commits
                    if is_beyond and Service(asked[0]) in _ORDERED:
                        what = f"a message of {originator} beyond the line {line} was delivered"
                        self._find(SitesPromise.BEYOND, what, tape)

    def _judge_companions(self, tape: WatchedTape, companions: Sequence[StateFrame]) -> None:
        """Nobody comes along who is owed what only hollow copies are left of."""
        whole = {(rank, stamp) for one in companions for rank, held in enumerate(one.held) for stamp in held}
        for other in companions:
            for rank, hollow in enumerate(other.hollow):
                for stamp, needs in hollow:
                    for one in companions:
                        lacks = stamp >= one.lines[rank] and stamp not in dict(one.hollow[rank])
                        if lacks and needs >> one.rank & 1 and (rank, stamp) not in whole:
                            what = f"{one.process} comes along, and nobody has unit {stamp} that it is owed"
                            self._find(SitesPromise.ORPHANS, what, tape)


def _lost(there: dict[int, KeptUnit], here: dict[int, KeptUnit], beyond: int, stable: int) -> Iterator[int]:
    """Iterate over the stamps of units that a parent ought to have sent: all that it has, whole to whoever needs them
    or leads on to whoever does. What is needed here, and what the parent itself has hollow, is not on its way."""
    for stamp, unit in there.items():
        is_needed = bool(unit.needs & beyond)
        if stamp < stable or (is_needed and unit.is_hollow):
            continue
        if stamp not in here or (is_needed and here[stamp].is_hollow):
            yield stamp
