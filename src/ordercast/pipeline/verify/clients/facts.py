"""Who was in which view of which group when, by the word of each client: what the events that are no messages say.

Facts are small beside the messages. The reference checkers judge the same events (`said_verdicts`): what they find of
views and of the end is their last word, and what they say of messages holds when the messages are cleared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ordercast.checker import Outcome, Verdict
from ordercast.checker.groups import GROUP_CHECKERS, GroupCheckers
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.verdict import NOT_BROKEN
from ordercast.model.events import View, ViewId
from ordercast.model.promises import GroupPromise
from ordercast.pipeline.verify.clients.rows import Said, Who
from ordercast.pipeline.verify.facts import FOREVER
from ordercast.pipeline.verify.rows import Ints, JudgedWhole, Unsound, text_number
from ordercast.trace.client_records import (
    AskedJoin,
    AskedLeave,
    Calm,
    ClientId,
    Connected,
    Disconnected,
    GotLeft,
    GotRefusal,
    GotTransition,
    GotView,
)
from ordercast.trace.columns import signed
from ordercast.trace.records import Ended, Healed, Installed, Started

NONE = -1


@dataclass(slots=True)
class ClientLife:
    name: str
    name_number: int
    process: int
    connected_n: int
    has_ended: bool = False
    last: dict[str, int] = field(default_factory=dict)  # by group: the stay that it is in
    asked: dict[str, int] = field(default_factory=dict)  # by group: the time for which it wants to be in it


@dataclass(slots=True)
class ClientStay:
    """One client in one view of one group."""

    client: int
    group: int
    view: View
    begins: int  # by numbers of events, as all that follows
    ends: int = FOREVER
    signal: int = FOREVER  # the first that came in it
    next: int = NONE


@dataclass(slots=True)
class Spans:
    """Times of clients in groups, by columns: which of them a moment is in."""

    width: int
    keys: Ints  # of the beginnings, rising
    ends: Ints
    which: Ints

    def at(self, slots: Ints, n: Ints) -> Ints:
        """Return which span of a slot, a client in a group, holds this moment; NONE when none does."""
        if not len(self.keys):
            return np.full(len(n), NONE, np.int64)
        found = np.searchsorted(self.keys, slots * self.width + n, side="right") - 1
        is_in = (found >= 0) & (self.keys[found] // self.width == slots) & (n < self.ends[found])
        return np.where(is_in, self.which[found], NONE)


def spans_of(times: Sequence[tuple[int, int, int]], width: int) -> Spans:
    """`times`: slot, begin and end of each."""
    columns = np.array(times, np.int64).reshape(-1, 3)
    order = np.lexsort((columns[:, 1], columns[:, 0]))
    slots, begins, ends = columns[order].T
    return Spans(width, slots * width + begins, ends, order)


@dataclass(slots=True)
class ClientFacts:
    who: Who
    lives: list[ClientLife] = field(default_factory=list)
    groups: dict[str, int] = field(default_factory=dict)
    stays: list[ClientStay] = field(default_factory=list)
    views: dict[tuple[int, ViewId], list[int]] = field(default_factory=dict)  # by group and id: the stays in it
    wanted: list[tuple[int, str, int, int]] = field(default_factory=list)  # client, group, from when until when
    calm_n: int = FOREVER
    is_settled: bool = False  # the record is complete and the network healed
    early: tuple[int, ...] = ()
    shares_views: bool = True  # all who deliver a message do so in one configuration, or in the one that ends it
    # In columns, of the stays
    in_groups: Spans = field(init=False)
    in_wanted: Spans = field(init=False)
    view: Ints = field(init=False)  # the place of its view among `views`
    rank: Ints = field(init=False)  # of the id of its view among all ids
    signal: Ints = field(init=False)
    is_last: np.ndarray[tuple[int], np.dtype[np.bool_]] = field(init=False)  # no view followed
    client: Ints = field(init=False)
    alive: np.ndarray[tuple[int], np.dtype[np.bool_]] = field(init=False)  # of the lives
    names: Ints = field(init=False)  # of the lives
    connected: Ints = field(init=False)  # of the lives

    def slots(self, clients: Ints, group: int) -> Ints:
        return clients * len(self.groups) + group

    def final(self, client: int, group: int) -> int:
        """Return the stay that a client is in at the end; NONE when it is in none, or has ended."""
        life = self.lives[client]
        return NONE if life.has_ended else life.last.get(self.group_names[group], NONE)

    @property
    def group_names(self) -> list[str]:
        return list(self.groups)


def who_in(said: Iterable[Said]) -> Who:
    ids = sorted(
        (signed(one.event.client.process), one.event.client.session) for one in said if isinstance(one.event, Connected)
    )
    if len(set(ids)) < len(ids):
        raise Unsound("a client connected twice")
    columns = np.array(ids, np.int64).reshape(-1, 2)
    return Who(columns[:, 0].copy(), columns[:, 1].copy())


def client_facts(said: Sequence[Said], daemons: Iterable[Started | Installed], count: int) -> ClientFacts:
    """`Unsound` when a client does something without having connected. `count`: all events, messages among them."""
    facts = ClientFacts(who_in(said))
    places = {
        (process, session): place
        for place, (process, session) in enumerate(
            zip(facts.who.processes.tolist(), facts.who.sessions.tolist(), strict=True)
        )
    }
    lives: dict[int, ClientLife] = {}
    for daemon in daemons:
        if isinstance(daemon, Started):
            if GroupPromise.TOTAL_ORDER not in daemon.promises.groups:
                raise JudgedWhole("its engine promises no total order: judge so large a run by `ordercast check`")
            facts.early = tuple(sorted(daemon.promises.early))
            facts.shares_views = daemon.promises.shares_views
    complete = healed = False
    for one in said:
        event = one.event
        if isinstance(event, Calm):
            facts.calm_n = min(facts.calm_n, one.n)
        elif isinstance(event, Healed):
            healed = True
        elif isinstance(event, Ended):
            complete = event.complete
        elif (id := getattr(event, "client", None)) is not None:
            _add(facts, lives, _place(places, id), one)
    facts.is_settled = complete and healed
    facts.lives = [lives[place] for place in range(len(lives))]
    _fill(facts, count + 1)
    return facts


def _place(places: dict[tuple[int, int], int], client: ClientId) -> int:
    place = places.get((signed(client.process), client.session))
    if place is None:
        raise Unsound(f"{client} never connected")
    return place


def _add(facts: ClientFacts, lives: dict[int, ClientLife], client: int, one: Said) -> None:
    event, n = one.event, one.n
    if isinstance(event, Connected):
        lives[client] = ClientLife(event.name, text_number(event.name), signed(event.client.process), n)
        return
    if client not in lives:
        raise Unsound("a client did something before it had connected")
    life = lives[client]
    if isinstance(event, GotView):
        _add_view(facts, life, client, event.view, n)
    elif isinstance(event, GotTransition):
        stay = life.last.get(event.transition.group)
        if stay is not None:
            facts.stays[stay].signal = min(n, facts.stays[stay].signal)
    elif isinstance(event, GotLeft):
        stay = life.last.pop(event.group, None)
        if stay is not None:
            facts.stays[stay].ends = n
    elif isinstance(event, AskedJoin | AskedLeave | GotRefusal):
        for group in event.groups:
            _add_wish(facts, life, client, group, n, event)
    elif isinstance(event, Disconnected):
        life.has_ended = True


def _add_view(facts: ClientFacts, life: ClientLife, client: int, view: View, n: int) -> None:
    number = len(facts.stays)
    before = life.last.get(view.group)
    if before is not None:
        facts.stays[before].ends, facts.stays[before].next = n, number
    group = facts.groups.setdefault(view.group, len(facts.groups))
    facts.stays.append(ClientStay(client, group, view, n))
    facts.views.setdefault((group, view.id), []).append(number)
    life.last[view.group] = number


def _add_wish(
    facts: ClientFacts, life: ClientLife, client: int, group: str, n: int, event: AskedJoin | AskedLeave | GotRefusal
) -> None:
    """A wish lasts until the client asks for the contrary; what is refused was never wanted since it was asked for."""
    open_ = life.asked.pop(group, None)
    if open_ is not None and not isinstance(event, GotRefusal):
        facts.wanted[open_] = (*facts.wanted[open_][:3], n)
    elif open_ is not None:
        facts.wanted[open_] = (*facts.wanted[open_][:2], n, n)
    if isinstance(event, AskedJoin):
        facts.groups.setdefault(group, len(facts.groups))
        life.asked[group] = len(facts.wanted)
        facts.wanted.append((client, group, n, FOREVER))


def _fill(facts: ClientFacts, width: int) -> None:
    stays, groups = facts.stays, facts.groups
    facts.in_groups = spans_of([(s.client * len(groups) + s.group, s.begins, s.ends) for s in stays], width)
    wished = [(client * len(groups) + groups[group], begin, end) for client, group, begin, end in facts.wanted]
    facts.in_wanted = spans_of(wished, width)
    places = {key: place for place, key in enumerate(facts.views)}
    ranks = {id: rank for rank, id in enumerate(sorted({id for _, id in facts.views}))}
    facts.view = np.array([places[stay.group, stay.view.id] for stay in stays], np.int64)
    facts.rank = np.array([ranks[stay.view.id] for stay in stays], np.int64)
    facts.signal = np.array([stay.signal for stay in stays], np.int64)
    facts.is_last = np.array([stay.next == NONE for stay in stays], np.bool_)
    facts.client = np.array([stay.client for stay in stays], np.int64)
    facts.alive = np.array([not life.has_ended for life in facts.lives], np.bool_)
    facts.names = np.array([life.name_number for life in facts.lives], np.int64)
    facts.connected = np.array([life.connected_n for life in facts.lives], np.int64)


def said_verdicts(
    said: Iterable[Said], daemons: Iterable[Started | Installed], matters: set[GroupMatter]
) -> list[Verdict]:
    """What the reference checkers say of a history without messages, in which these matters were counted."""
    checkers = GroupCheckers(matters=matters)
    for event in daemons:
        checkers.observe(event)
    for one in said:
        checkers.observe(one.event)
    return checkers.verdicts()


def are_sound(facts: ClientFacts, verdicts: Iterable[Verdict]) -> bool:
    """Whether nothing is wrong, so that the messages may be cleared by what the views say. What rests on absence is not
    judged in a record that was cut short, whatever the messages say."""
    return all(
        verdict.outcome in NOT_BROKEN
        or (not facts.is_settled and verdict.outcome is Outcome.UNKNOWN and _is_liveness(verdict))
        for verdict in verdicts
    )


def _is_liveness(verdict: Verdict) -> bool:
    return isinstance(verdict.promise, GroupPromise) and GROUP_CHECKERS[verdict.promise].is_liveness
