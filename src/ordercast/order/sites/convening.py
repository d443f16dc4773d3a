"""When a new view is proposed, and who is asked into it: the part of a representative that may coordinate.

It proposes when its component is not that of its view, at everybody, and has been still for a while. An attempt that is
not carried out in time is followed by another one, with a higher number. The same fragments twice in vain: those that
said nothing are held down for a while, each time for longer, so that it ends. So is whoever is stuck, or comes and goes
again and again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import Instant, ProcessId
from ordercast.order.sites.config import FRAGMENTS_MAX, SitesConfig
from ordercast.order.sites.routes import total_cost, trees_of
from ordercast.order.sites.states import REGULAR
from ordercast.order.sites.tape import Tape
from ordercast.order.sites.topology import (
    Component,
    Records,
    attempt_id,
    carries,
    edges_of,
    fragments_of,
    is_view_of,
    shape_of,
)
from ordercast.order.sites.views import Fragment, SiteEdge, WideProposal, WideView

NEVER = Instant((1 << 63) - 1)
IN_VAIN = 2  # attempts with the same fragments, after which somebody is held down
DOUBLINGS_MAX = 3  # a healed network is one again soon
FLAPS = 3  # times that somebody may go and come back, in a short time
FLAPPING_TIME = 16  # that time, in times for which somebody is held down first
ATTEMPT_ROUND_TRIPS = 8
GATHER_ROUND_TRIPS = 2
BETTER = 6, 5  # other routes are taken when they cost less than 5/6 of what those in use do


class Convener:
    def __init__(self, me: ProcessId, config: SitesConfig, records: Records, tape: Tape) -> None:
        self._me = me
        self._config = config
        self._records = records
        self._tape = tape
        self._shape: tuple[object, ...] = ()
        self._still_since = Instant(0)
        self._proposed: WideProposal | None = None
        self._proposed_at = Instant(0)
        self._failures = 0  # of attempts with these fragments
        self._failed: tuple[Fragment, ...] = ()
        self._held: dict[ProcessId, Instant] = {}  # until when somebody is not asked
        self._holds: dict[ProcessId, tuple[int, Instant]] = {}  # how often that was so in a row, and until when
        self.highest = 0  # seq of an attempt that was seen
        self.deadline = NEVER
        self._better_since: Instant | None = None  # other routes would cost less
        self.routes: tuple[SiteEdge, ...] | None = None  # links for the view to use; whoever takes them resets it
        self._stuck: set[ProcessId] = set()  # of those in `_held`: all others waited for them
        self._present: frozenset[ProcessId] = frozenset()  # who was in reach when this looked last
        self._losses: dict[ProcessId, tuple[int, Instant]] = {}  # how often somebody went, and when first
        self.held_down = 0  # fragments, since somebody took the number

    def hold_down(self, representative: ProcessId, now: Instant) -> None:
        """Ask this one into no view for a while."""
        first = self._config.hold_down_ns
        times, until = self._holds.get(representative, (-1, now))
        times = 0 if now - until > FLAPPING_TIME * first else min(times + 1, DOUBLINGS_MAX)
        until = self._held[representative] = Instant(now + (first << times))
        self._holds[representative] = times, until
        self.held_down += 1

    def leave_out(self, representative: ProcessId, now: Instant) -> bool:
        """Have the next view without one for which all others wait; return whether that is news."""
        if representative in self._held:
            return False
        self.hold_down(representative, now)
        self._stuck.add(representative)
        return True

    def _watch_flapping(self, component: Component, now: Instant) -> None:
        """Hold down whoever comes back once more after it has gone too often in a short time."""
        present = frozenset(component)
        short = self._config.hold_down_ns * FLAPPING_TIME
        self._losses = {one: lost for one, lost in self._losses.items() if now - lost[1] <= short}
        for one in self._present - present - self._held.keys():
            times, since = self._losses.get(one, (0, now))
            self._losses[one] = times + 1, since
        for one in sorted(present - self._present - {self._me}):
            if self._losses.get(one, (0, now))[0] >= FLAPS:
                del self._losses[one]
                self.hold_down(one, now)
        self._present = present

    def forgive(self, now: Instant) -> None:
        """Give an attempt its time anew: this process itself did nothing for a while."""
        self._proposed_at = now

    def look(
        self, round_trip: int, edges: Sequence[SiteEdge], left: Collection[ProcessId], now: Instant
    ) -> WideProposal | None:
        """Return what to propose now; `deadline` tells when to look again. `edges` are those that the view uses, `left`
        those who have said farewell here."""
        self._held = {one: until for one, until in self._held.items() if until > now}
        self.deadline = min(self._held.values(), default=NEVER)
        self._stuck &= self._held.keys()
        self._watch_flapping(self._records.component(self._me, self._held), now)
        self.deadline = min(self._held.values(), default=NEVER)
        component = self._records.component(self._me, self._held)
        if (shape := shape_of(component)) != self._shape:
            self._shape, self._still_since = shape, now
        if not component or min(component) != self._me:
            self._proposed = None
            return None
        gather = max(self._config.gather_ns, GATHER_ROUND_TRIPS * round_trip)
        is_still = now >= self._still_since + gather
        if self._tape.state == REGULAR and is_view_of(component, self._tape.view):
            self._proposed, self._failures = None, 0
            self._reroute(component, edges, Instant(self._still_since + gather), now)
            return None
        if self._is_under_way(component, round_trip, now):
            return None
        fragments = fragments_of(component)
        if not is_still or fragments is None or len(fragments) > FRAGMENTS_MAX:
            self._wait(Instant((now if is_still else self._still_since) + gather))
            return None
        return self._propose(component, fragments, left, now)

    def _reroute(self, component: Component, edges: Sequence[SiteEdge], still_at: Instant, now: Instant) -> None:
        """Have other links used: soon, where one of the view has failed or was set up again; later, where others have
        been better for a while."""
        due = still_at
        if carries(component, self._tape.view.fragments, edges):
            if not is_better(edges_of(component), edges, len(component)):
                self._better_since = None
                return
            self._better_since = now if self._better_since is None else self._better_since
            due = max(due, Instant(self._better_since + self._config.better_ns))
        if now >= due:
            self.routes, self._better_since = edges_of(component), None
        else:
            self._wait(due)

    def _wait(self, until: Instant) -> None:
        self.deadline = min(self.deadline, until)

    def _is_under_way(self, component: Component, round_trip: int, now: Instant) -> bool:
        proposed = self._proposed
        if proposed is None:
            return False
        if self._is_carried_out(component, proposed):
            self._proposed, self._failures = None, 0
            return False
        until = Instant(self._proposed_at + self._config.attempt_ns + ATTEMPT_ROUND_TRIPS * round_trip)
        if now < until and carries(component, proposed.fragments, proposed.edges):
            self._wait(until)
            return True
        if now >= until:
            self._fail(proposed, now)
        self._proposed = None
        return False

    def _is_carried_out(self, component: Component, proposed: WideProposal) -> bool:
        """Whether everybody says that it has installed the proposed view."""
        view = self._tape.view
        return (
            self._tape.state == REGULAR
            and view.proposal == proposed
            and all(
                one.representative in component and component[one.representative].view == view.id
                for one in proposed.fragments
            )
        )

    def _fail(self, proposed: WideProposal, now: Instant) -> None:
        self._failures = self._failures + 1 if proposed.fragments == self._failed else 1
        self._failed = proposed.fragments
        attempt = self._tape.attempt
        if self._failures < IN_VAIN or attempt is None or attempt.proposal != proposed:
            return
        self._failures = 0
        for rank in attempt.missing():
            representative = proposed.fragments[rank].representative
            if representative != self._me:
                self.hold_down(representative, now)

    def _propose(
        self, component: Component, fragments: tuple[Fragment, ...], left: Collection[ProcessId], now: Instant
    ) -> WideProposal:
        attempt = attempt_id(component, self._me, max(self.highest, self._tape.known_seq))
        reason = ChangeReason.ATTEMPT_LOST if self._failures else reason_of(self._tape.view, fragments, left)
        if self._stuck & {fragment.representative for fragment in self._tape.view.fragments}:
            reason = ChangeReason.SITE_STUCK
        self._proposed = WideProposal(attempt, fragments, edges_of(component), int(reason))
        self._proposed_at = now
        self.highest = attempt.seq
        return self._proposed


def is_better(fresh: Sequence[SiteEdge], used: Sequence[SiteEdge], count: int) -> bool:
    """Whether all edges that there are would cost a good deal less than those that are used, as both are now."""
    ends = {(edge.low, edge.high) for edge in used}
    now = [edge for edge in fresh if (edge.low, edge.high) in ends]
    cost, best = total_cost(trees_of(count, used), now), total_cost(trees_of(count, fresh), fresh)
    return best * BETTER[0] < cost * BETTER[1]


def reason_of(view: WideView, fragments: tuple[Fragment, ...], left: Collection[ProcessId]) -> ChangeReason:
    """Return why a view of these fragments follows this one. `left`: representatives that have said farewell."""
    old, new = set(view.fragments), set(fragments)
    before = {member for fragment in old for member in fragment.members}
    after = {member for fragment in new for member in fragment.members}
    sites = {fragment.site for fragment in old}
    rings = [fragment for fragment in new - old if fragment.site in sites]
    if after - before and not rings:
        return ChangeReason.SITE_HEARD
    if rings and all(fragment.reason is ChangeReason.LEFT for fragment in rings):
        return ChangeReason.LEFT
    if rings:
        return ChangeReason.SITE_RING_CHANGED
    if before - after:
        gone = {fragment.representative for fragment in old if not after.intersection(fragment.members)}
        return ChangeReason.LEFT if gone and gone.issubset(left) else ChangeReason.SITE_LOST
    return ChangeReason.ATTEMPT_LOST  # somebody else did not take part in the last one
