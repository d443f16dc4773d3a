"""The loop: what is next in the order of the network, and whether it may be done.

Candidates are the packets of the parts, births of their successors, removals of parts that are complete and empty, and
pending merges. The lowest is done once no part that is still open can bring anything below it. While nothing changes
there are only regular packets: they pass in runs, as far as the fronts of the other rings allow.

Every decision waits until its ring is complete or its front is high enough, and rests on nothing but the content of
streams. So all who stay together decide the same, in the same order. Each may have to wait for its own disk besides:
nothing is done above a limit, so that no place and no view is above the number at which the next life begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.births import bear
from ordercast.order.gateways.coverage import Coverage
from ordercast.order.gateways.items import CAP, NOBODY_ELSE, LogicalRing, Processes, Stretch, domain_of
from ordercast.order.gateways.known import Known
from ordercast.order.gateways.streams import RingStream
from ordercast.order.gateways.views import NetworkView, Views
from ordercast.order.stamped.lanes import NEVER, Stamp, StampedRun, lowest

Passed = StampedRun[Stretch] | NetworkView  # what goes up, in the order of the network

FROM_THE_PAST = "packets from the past of the order"

ORDERLY = frozenset((ChangeReason.LEFT, ChangeReason.REMOVED))


class _Kind(IntEnum):
    """Candidates at one place are taken in this order."""

    BIRTH = 0
    MERGE = 1  # pending: it waits for what its halves have to say
    LOSS = 2  # members in no half known leave, where the regular packets of their ring end
    RESIDUAL = 3
    REMOVAL = 4


class _Event(NamedTuple):
    stamp: Stamp
    kind: _Kind
    ring: ConfigurationId


ChangeKind = _Kind  # both for whoever observes
NextChange = _Event


class PendingMerge(NamedTuple):
    """A merge of the logical rings on one of the own physical rings, whose place is known."""

    stamp: Stamp
    ring: ConfigurationId  # the merged one
    domain: int


class Timeline:
    """One process's walk through the order."""

    def __init__(
        self,
        known: Known,
        coverage: Coverage,
        views: Views,
        pending_merges: Callable[[], Iterable[PendingMerge]],
        on_turn: Callable[[int], None],
        on_birth: Callable[[LogicalRing], None],
    ) -> None:
        """`on_turn` hears that the pending merge on a domain is next; `on_birth` that a ring was born."""
        self._known = known
        self._coverage = coverage
        self._views = views
        self._pending_merges = pending_merges
        self._on_turn = on_turn
        self._on_birth = on_birth
        self._version = -1
        self._is_quiet = False
        self._lanes: list[RingStream] = []
        self._complete: list[ConfigurationId] = []  # parts of which nothing more can come, sorted
        self.limit: Stamp = NEVER  # nothing above it is done
        self.passed: list[Passed] = []  # whoever takes it empties it

    def next_change(self) -> _Event | None:
        """Return the lowest candidate beside regular packets, if there is one; for whoever observes."""
        self._look()
        return self._next_event()

    def advance(self) -> None:
        """Do everything that may be done now."""
        while self._step():
            pass
        self._settle()

    def _step(self) -> bool:
        self._look()
        if self._is_quiet:
            return self._pass_runs(self.limit)
        event = self._next_event()
        if self._pass_runs(self.limit if event is None else min(event.stamp, self.limit)):
            return True
        return event is not None and not self._is_blocked(event) and self._do(event)

    def _look(self) -> None:
        """Work out which parts are complete, after a change."""
        known = self._known
        if self._version == known.version:
            return
        self._version = known.version
        self._complete = sorted(ring for ring in known.parts if known.is_complete(ring))
        self._lanes = [known.streams[ring] for ring in known.parts]
        for lane in self._lanes:
            lane.is_open = True
        for ring in self._complete:
            known.streams[ring].is_open = False
        self._is_quiet = not (self._complete or any(self._unborn()) or any(self._pending_merges()))

    def _unborn(self) -> Iterable[LogicalRing]:
        known = self._known
        for part in known.parts:
            for successor in known.successors(part):
                if successor.id not in known.born:
                    yield successor

    def _next_event(self) -> _Event | None:
        events = [_Event(ring.birth, _Kind.BIRTH, ring.id) for ring in self._unborn()]
        events += [_Event(merge.stamp, _Kind.MERGE, merge.ring) for merge in self._pending_merges()]
        for ring in self._complete:
            stream = self._known.streams[ring]
            if stream.runs:
                continue  # regular packets come first
            packet = stream.residual()
            stamp = stream.stamp(packet.tick, packet.seqs[0]) if packet is not None else NEVER
            if stamp > stream.front and self._known.missing(ring):  # up to the front others have them as regular ones
                events.append(_Event(self._end_of(stream), _Kind.LOSS, ring))
            elif packet is not None:
                events.append(_Event(stamp, _Kind.RESIDUAL, ring))
            elif all(after.id in self._known.born for after in self._known.successors(ring)):
                events.append(_Event(self._known.place, _Kind.REMOVAL, ring))
        return min(events, default=None)

    def _end_of(self, stream: RingStream) -> Stamp:
        """Return where the regular packets of a part end of which nothing more can come: at its front; just after the
        merge, if the front is a merge's cap."""
        tick, tag, seq = stream.front
        return max(self._known.place, (tick, tag, 1) if seq == CAP else stream.front)

    def _is_blocked(self, event: _Event) -> bool:
        """Whether an event lies above the limit, or a part may still bring something below it, or has something below
        it that waits."""
        stamp = event.stamp
        if stamp > self.limit or any(lane.runs and lane.runs[0].first < stamp for lane in self._lanes):
            return True
        fronts = (lane.front for lane in self._lanes if lane.is_open)
        if event.kind <= _Kind.MERGE:  # not held up by a cap that is its own
            return any(stamp[:2] > front[:2] for front in fronts)
        return any(stamp > front for front in fronts)

    def _do(self, event: _Event) -> bool:
        match event.kind:
            case _Kind.REMOVAL:
                self._remove(event.ring)
                return True
            case _Kind.LOSS:
                self._lose(event)
                return True
            case _Kind.RESIDUAL:
                return self._pass_residual(event.ring)
            case _Kind.MERGE:
                self._settle()
                self._on_turn(next(merge.domain for merge in self._pending_merges() if merge.ring == event.ring))
                return False
            case _Kind.BIRTH:
                return self._bear(next(ring for ring in self._unborn() if ring.id == event.ring))

    # Packets

    def _pass_runs(self, limit: Stamp) -> bool:
        """Pass regular packets below a limit, as long as there are any that need not wait."""
        has_moved = False
        while (found := lowest(self._lanes, limit)) is not None:
            lane, bound = found
            assert isinstance(lane, RingStream)
            runs = lane.runs
            while runs and runs[0].first <= bound:
                run = runs[0]
                if run.content.is_safe and not self._coverage.covers(run):
                    return self._pass_safe(runs[0].content, lane) or has_moved
                self._pass(lane.runs.popleft())
                has_moved = True
            if not lane.is_open and not runs:
                return True  # it may have to be removed before anything else is passed
        return has_moved

    def _pass(self, run: StampedRun[Stretch]) -> None:
        known = self._known
        is_late = run.first <= known.place  # ticks rise along a ring, so somebody has forged one
        known.streams[run.content.ring].passed(run.content)
        if known.refuse(FROM_THE_PAST if is_late else None):
            return
        if self._views.is_pending:
            self._settle()
        known.place = run.last
        if run.content.bodies:
            self.passed.append(run)
        if run.content.interest is not None and run.content.interest.is_return:
            self._views.come_back(run.content.originator, run.last)
            self._settle()

    def _pass_safe(self, stretch: Stretch, stream: RingStream) -> bool:
        """Pass the first packet of a run that not all rings are known to have, if all members have it or those who
        lack it cannot be heard. In quiet times the statements of all rings are on their way."""
        if self._is_quiet:
            return False
        packet = stretch.between(0, 1)
        stamp = stream.stamp(packet.tick, packet.seqs[0])
        if not self._give_up(packet, stamp):
            return False
        self._split_first(stream)
        self._pass(stream.runs.popleft())
        return True

    @staticmethod
    def _split_first(stream: RingStream) -> None:
        """Cut the first packet off the first run."""
        first, last, stretch = stream.runs.popleft()
        if len(stretch.seqs) > 1:
            rest = stretch.between(1, len(stretch.seqs))
            stream.runs.appendleft(StampedRun(stream.stamp(rest.tick, rest.seqs[0]), last, rest))
        stream.runs.appendleft(StampedRun(first, first, stretch.between(0, 1)))

    def _pass_residual(self, ring: ConfigurationId) -> bool:
        """Pass the lowest residual packet of an ended ring."""
        stream = self._known.streams[ring]
        packet = stream.residual()
        assert packet is not None
        stamp = stream.stamp(packet.tick, packet.seqs[0])
        if packet.is_safe and not self._give_up(packet, stamp):
            return False
        self._known.occurred[Occurrence.NETWORK_RESIDUAL] += 1
        self._known.occurred[Occurrence.NETWORK_RESIDUAL_IN_HALVES] += stream.is_disputed(packet.seqs[0])
        stream.pass_residual(packet.seqs[0])
        self._pass(StampedRun(stamp, stamp, packet))
        return True

    def _give_up(self, packet: Stretch, stamp: Stamp) -> bool:
        """Let members leave that are not known to have a safe packet and can no longer be heard. Return whether it may
        be delivered then; if one of those who lack it can be heard it waits."""
        lacking = self._coverage.lacking(packet)
        if not self._known.heard.isdisjoint(lacking):
            return False
        self._drop(lacking, stamp)
        self._known.occurred[Occurrence.NETWORK_LEFT_BEFORE_SAFE] += bool(lacking)
        return True

    # Changes

    def _drop(self, leaving: Processes, stamp: Stamp) -> None:
        """Let processes leave all parts, at a place just before a safe packet."""
        if leaving:
            self._settle()
            self._strike(leaving)
            self._leave(stamp, ChangeReason.GIVEN_UP)

    def _strike(self, leaving: Processes) -> None:
        """Let processes count on no ring any more."""
        assert self._known.me not in leaving, "nobody leaves its own view"
        for ring in self._known.parts:
            self._known.parts[ring] -= leaving

    def _lose(self, event: _Event) -> None:
        """Let the members of an ended ring leave that are in no half known: others may know of packets that these had
        beyond its front. If nothing later is known of them either they leave all rings, and so does whoever can hear
        them, for such a packet may have come to all of these. A ring of which no half is known is cut off with all of
        its members."""
        known, ring = self._known, event.ring
        missing, before = known.missing(ring), known.parts[ring]
        self._settle()
        known.place = max(known.place, event.stamp)
        known.lost[ring] = known.lost.get(ring, NOBODY_ELSE) | missing
        stay = known.parts[ring] = before - missing
        gone = known.around(self._silent(ring, before & missing))
        if known.me not in gone:  # else what parts them is a ring behind a merge, and they come to that merge together
            self._strike(gone)
        known.occurred[Occurrence.NETWORK_LEFT_AT_FRONT] += bool(before - stay and stay)
        if not stay:
            known.occurred[Occurrence.NETWORK_DELETED] += 1
            known.deleted.append(ring)
        reason = self._why_lost(ring) if stay else ChangeReason.RING_CUT_OFF
        if reason in ORDERLY and len(missing.difference(known.departed)) == 1:  # of several some may have failed
            known.departed.extend(missing.difference(known.departed))
        self._leave(known.place, reason, missing)

    def _silent(self, ring: ConfigurationId, missing: Processes) -> Processes:
        """Return those of the missing members of a ring who are not known to have gone on without it."""
        domain = domain_of(ring)
        later = (
            end for end in self._known.ends_in_order() if domain_of(end.ring) == domain and end.successor.id > ring
        )
        return missing - NOBODY_ELSE.union(*(end.half for end in later))

    def _why_lost(self, ring: ConfigurationId) -> ChangeReason:
        """Return why members left a ring that goes on: in order, if all halves of it that are known say so."""
        reasons = {end.reason for end in self._known.ends.of(ring)}
        return min(reasons) if reasons <= ORDERLY else ChangeReason.RING_SPLIT

    def _leave(self, stamp: Stamp, reason: ChangeReason, lost: Processes = NOBODY_ELSE) -> None:
        """Make the view without those who have left. A ring that ended without them is still to be born: up to there
        they may be in the view before and deliver what is safe in it."""
        assert any(self._unborn()), "nobody leaves but for a ring that forms anew"
        self._views.leave(stamp, reason, lost)
        self._settle()

    def _remove(self, ring: ConfigurationId) -> None:
        """Remove a part of which nothing is left: a birth that took its place and this make one view."""
        known = self._known
        halves = sum(bool(known.parts.get(after.id)) for after in known.successors(ring))
        known.occurred[Occurrence.NETWORK_BOTH_HALVES] += halves > 1
        del known.parts[ring]
        known.lost.pop(ring, None)
        known.changed()
        self._views.remove(known.place)

    def _bear(self, ring: LogicalRing) -> bool:
        if self.disputing(ring):
            return False
        self._settle()
        if ring.is_merge:
            self._views.merge(ring)
        bear(self._known, ring)
        if not ring.is_merge:
            self._views.bear(ring.birth)
        self._on_birth(ring)
        return True

    def disputing(self, ring: LogicalRing) -> Processes:
        """Return who may still say that a merge was given up: gateways of it that can be heard, and this process."""
        known = self._known
        sure = known.ends.sure_of(ring.id)
        halves = [half for half in ring.halves if half.ring in known.parts]
        mine = {known.me} if any(half.ring in known.own.values() for half in halves) else set()
        return frozenset(mine).union(
            gateway
            for half in halves
            for gateway in half.members & ring.gateways
            if gateway in known.heard and gateway not in sure and not known.ends.is_past(gateway, half.ring)
        )

    def _settle(self) -> None:
        view = self._views.settle()
        if view is not None:
            self.passed.append(view)
