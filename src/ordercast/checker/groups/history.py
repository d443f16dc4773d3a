"""What clients did and were told, indexed once for all checkers of the groups.

A client is one connection. In each group it goes through stays, one per view: what was delivered to it there, before
and after the transitional signal. Messages are numbers, in the order in which they were sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ordercast.checker.groups.matters import GroupMatter
from ordercast.model.configuration import Configuration
from ordercast.model.events import View, ViewId
from ordercast.model.ids import ConfigurationId, Position
from ordercast.model.promises import GroupPromise, ReplicaPromise
from ordercast.trace.client_records import (
    AskedJoin,
    AskedLeave,
    Calm,
    ClientEvent,
    ClientId,
    Connected,
    Disconnected,
    End,
    GotConfirmation,
    GotDropped,
    GotLeft,
    GotMessage,
    GotRefusal,
    GotTransition,
    GotView,
    KnownGroups,
    Sent,
)
from ordercast.trace.records import Ended, Healed, Installed, MessageId, Started, Unrecorded


@dataclass(slots=True, eq=False)
class Stay:
    """One client in one view of one group."""

    view: View
    before: ViewId | None  # the view that it came from; None when it came from outside
    numbers: list[int] = field(default_factory=list)  # delivered before a signal
    late: list[int] = field(default_factory=list)  # and after it
    signals: int = 0
    remaining: tuple[str, ...] = ()  # by the last signal
    was_signalled: bool = False  # in the view before
    next: Stay | None = None
    has_left: bool = False

    def delivered(self) -> list[int]:
        return self.numbers + self.late


@dataclass(slots=True, eq=False)
class Sending:
    """One message, with the views that its sender had then, by group."""

    sent: Sent
    sender: JudgedClient
    views: dict[str, Stay]
    owed: list[str]  # groups that its sender is in, or will be before the message comes
    is_calm: bool  # all daemons were in one configuration, and stayed so
    leaving: frozenset[str]  # groups that its sender had asked to leave, and did not yet know to have left


@dataclass(slots=True)
class Gap:
    """Messages that a client lost, as it was told, between two that it got in order. One that came early says nothing
    of the place at which others were lost."""

    after: Position | None  # None: before all that it got
    before: Position | None = None  # None: after all that it got

    def covers(self, position: Position | None, *, by_configuration: bool = False) -> bool:
        """Return whether a message at this place may be one of them. `by_configuration`: the message need not have come
        at its place, and all of one configuration may be."""
        if position is None:
            return True
        if by_configuration:
            after, before = (None if one is None else one.origin.seq for one in (self.after, self.before))
            here = position.origin.seq
            return (after is None or after <= here) and (before is None or here <= before)
        return (self.after is None or self.after < position) and (self.before is None or position < self.before)


@dataclass(slots=True, eq=False)
class JudgedClient:
    id: ClientId
    name: str
    stays: dict[str, list[Stay]] = field(default_factory=dict)  # by group
    current: dict[str, Stay] = field(default_factory=dict)  # the groups that it is in
    wanted: dict[str, bool] = field(default_factory=dict)  # by group: it asked last to be in it, or out of it
    leaving: Counter[str] = field(default_factory=Counter)  # by group: leaves that it asked for, and has not read of
    asked: dict[str, int] = field(
        default_factory=dict
    )  # by group: how many messages were sent when it last asked to join
    got: list[int] = field(default_factory=list)
    places: list[Position] = field(default_factory=list)  # of what it got
    sent: list[int] = field(default_factory=list)
    has: set[int] = field(default_factory=set)  # what it got
    end: End | None = None
    first: int = 0  # the number of the first message sent after it had connected
    gaps: list[Gap] = field(default_factory=list)  # messages that it was told it lost
    ordered_at: Position | None = None  # the place of the last message that it got in order

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something that has no place in the index: judged by the checker whose promise it breaks."""

    kind: str  # "outside", "unknown", "left"
    client: JudgedClient
    what: str
    message: MessageId | None = None


class GroupHistory:
    def __init__(self) -> None:
        self.clients: dict[ClientId, JudgedClient] = {}
        self.sendings: list[Sending] = []
        self.numbers: dict[MessageId, int] = {}
        self.receipts: list[tuple[JudgedClient, int, GotMessage]] = []
        self.confirmations: list[tuple[JudgedClient, GotConfirmation]] = []
        self.oddities: list[Oddity] = []
        self.known: list[KnownGroups] = []
        self.configurations: dict[ConfigurationId, Configuration] = {}  # of the daemons
        self.healed: Healed | None = None
        self.promised: frozenset[GroupPromise | ReplicaPromise] | None = None
        self.ended: Ended | None = None
        self.is_calm = False
        self._positions: dict[int, Position] = {}
        self._homes: dict[int, set[int]] = {}  # the configurations in which somebody got a message
        self.faults: list[str] = []
        self.early: frozenset[int] = frozenset()  # services whose messages may come before their place in the order
        self.shares_views = True  # a message is delivered in one configuration, or in the one that ends it
        self.events: list[tuple[JudgedClient, int, bool]] = []  # messages sent (True) and got, as the history has them
        self.matters: set[GroupMatter] = set()  # what others counted in messages that are not here (`matters.py`)

    @property
    def is_by_groups(self) -> bool:
        """The order is one among those who share groups, not of all messages: positions are names that do not
        compare."""
        promised = self.promised
        return promised is not None and (
            GroupPromise.TOTAL_ORDER not in promised and GroupPromise.MULTIPLE_GROUP_ORDER in promised
        )

    @property
    def is_complete(self) -> bool:
        return self.ended is not None and self.ended.complete

    def observe(self, event: ClientEvent) -> None:
        handler = _HANDLERS[type(event)]
        handler(self, event)

    def client(self, client: ClientId) -> JudgedClient:
        return self.clients[client]

    def stays(self) -> Iterator[tuple[JudgedClient, str, Stay]]:
        for client in self.clients.values():
            for group, stays in client.stays.items():
                for stay in stays:
                    yield client, group, stay

    def by_view(self) -> dict[tuple[str, ViewId], list[tuple[JudgedClient, Stay]]]:
        """Who was in each view of each group, by their own word."""
        found: dict[tuple[str, ViewId], list[tuple[JudgedClient, Stay]]] = {}
        for client, group, stay in self.stays():
            found.setdefault((group, stay.view.id), []).append((client, stay))
        return found

    def named(self) -> dict[str, list[JudgedClient]]:
        found: dict[str, list[JudgedClient]] = {}
        for client in self.clients.values():
            found.setdefault(client.name, []).append(client)
        return found

    def positions(self) -> dict[int, Position]:
        """Return the place of each message that anybody got, by the word of the first."""
        return dict(self._positions)

    def is_again(self, number: int) -> bool:
        """Return whether a message was ordered again, in a later configuration, where others could not know of it."""
        return self.is_by_groups and len(self._homes.get(number, ())) > 1

    def is_for(self, number: int, client: JudgedClient) -> bool:
        """False for the sender of a message that it does not want back."""
        sending = self.sendings[number]
        return not (sending.sent.self_discard and sending.sender is client)

    def is_early(self, number: int) -> bool:
        """Return whether the message may come before its place in the order."""
        return self.sendings[number].sent.service in self.early

    def is_owed(self, number: int, client: JudgedClient) -> bool:
        """Return whether a message that is for this client has to come to it: not one that it was told it lost."""
        if not self.is_for(number, client):
            return False
        place, by_configuration = self._positions.get(number), self.is_by_groups or self.is_early(number)
        return not any(gap.covers(place, by_configuration=by_configuration) for gap in client.gaps)

    def is_past(self, client: JudgedClient, stay: Stay, number: int) -> bool:
        """Return whether a client that was in a view can no longer get a message that others got there: it has come to
        another view or, where views are not shared, past the place of the message."""
        if self.shares_views:
            return stay.next is not None
        place = self._positions[number]
        while stay.next is not None:
            stay = stay.next
        return stay.view.id.position > place or (bool(client.places) and client.places[-1] > place)

    # Events

    def _started(self, event: Started) -> None:
        self.early = frozenset(event.promises.early)
        self.shares_views = event.promises.shares_views
        if self.promised is None:
            self.promised = frozenset(event.promises.groups)

    def _connected(self, event: Connected) -> None:
        self.clients[event.client] = JudgedClient(event.client, event.name, first=len(self.sendings))

    def _asked_join(self, event: AskedJoin) -> None:
        client = self.clients[event.client]
        client.wanted.update(dict.fromkeys(event.groups, True))
        client.asked.update(dict.fromkeys(event.groups, len(self.sendings)))

    def _asked_leave(self, event: AskedLeave) -> None:
        client = self.clients[event.client]
        client.wanted.update(dict.fromkeys(event.groups, False))
        client.leaving.update(event.groups)

    def _sent(self, event: Sent) -> None:
        client = self.clients[event.client]
        number = self.numbers[event.message] = len(self.sendings)
        views = {group: client.current[group] for group in event.groups if group in client.current}
        owed = [group for group in event.groups if client.wanted.get(group)]
        leaving = frozenset(group for group in event.groups if client.leaving[group] > 0)
        self.sendings.append(Sending(event, client, views, owed, self.is_calm, leaving))
        client.sent.append(number)
        self.events.append((client, number, True))

    def _got_message(self, event: GotMessage) -> None:
        client = self.clients[event.client]
        number = None if event.message is None else self.numbers.get(event.message)
        if number is None:
            self.oddities.append(Oddity("unknown", client, "got a message that nobody had sent", event.message))
            return
        self.receipts.append((client, number, event))
        self.events.append((client, number, False))
        self._positions.setdefault(number, event.position)
        self._homes.setdefault(number, set()).add(event.position.origin.seq)
        client.got.append(number)
        client.places.append(event.position)
        if not self.is_early(number):
            client.ordered_at = event.position
            for gap in reversed(client.gaps):
                if gap.before is not None:
                    break
                gap.before = event.position
        client.has.add(number)
        stays = [client.current[group] for group in event.groups if group in client.current]
        if not stays and client.name not in event.groups:
            what = f"got a message to {', '.join(event.groups)} without being in any of them"
            self.oddities.append(Oddity("outside", client, what, event.message))
        for stay in stays:
            (stay.late if stay.signals else stay.numbers).append(number)

    def _got_confirmation(self, event: GotConfirmation) -> None:
        self.confirmations.append((self.clients[event.client], event))

    def _got_view(self, event: GotView) -> None:
        client, group = self.clients[event.client], event.view.group
        last = client.current.get(group)
        stay = Stay(event.view, None if last is None else last.view.id)
        if last is not None:
            last.next = stay
            stay.was_signalled = bool(last.signals)
        client.current[group] = stay
        client.stays.setdefault(group, []).append(stay)

    def _got_transition(self, event: GotTransition) -> None:
        client, news = self.clients[event.client], event.transition
        stay = client.current.get(news.group)
        if stay is None:
            what = f"got a signal for {news.group} without being in it"
            self.oddities.append(Oddity("outside", client, what))
            return
        stay.signals += 1
        stay.remaining = news.remaining
        if news.view != stay.view.id:
            what = f"got a signal for a view of {news.group} that it is not in"
            self.oddities.append(Oddity("signal", client, what))

    def _got_left(self, event: GotLeft) -> None:
        client = self.clients[event.client]
        client.leaving[event.group] -= 1
        stay = client.current.pop(event.group, None)
        if stay is None:
            self.oddities.append(Oddity("outside", client, f"left {event.group} without being in it"))
        else:
            stay.has_left = True
            if client.wanted.get(event.group) is None:
                self.oddities.append(Oddity("outside", client, f"left {event.group} without having asked for it"))

    def _got_dropped(self, event: GotDropped) -> None:
        client = self.clients[event.client]
        client.gaps.append(Gap(client.ordered_at))

    def _got_refusal(self, event: GotRefusal) -> None:
        """It was never in these groups since it asked, and what it sent to them meanwhile does not come back."""
        client = self.clients[event.client]
        client.wanted.update(dict.fromkeys(event.groups, False))
        for number in client.sent:
            owed = self.sendings[number].owed
            owed[:] = [group for group in owed if group not in event.groups or number < client.asked[group]]

    def _disconnected(self, event: Disconnected) -> None:
        self.clients[event.client].end = event.how

    def _known_groups(self, event: KnownGroups) -> None:
        self.known.append(event)

    def _installed(self, event: Installed) -> None:
        self.configurations[event.configuration.id] = event.configuration

    def _calm(self, event: Calm) -> None:
        self.is_calm = True

    def _healed(self, event: Healed) -> None:
        self.healed = event

    def _ended(self, event: Ended) -> None:
        self.ended = event

    def _unrecorded(self, event: Unrecorded) -> None:
        self.faults.append(event.why)


_HANDLERS: dict[type, Callable[[GroupHistory, Any], None]] = {
    Started: GroupHistory._started,
    Connected: GroupHistory._connected,
    AskedJoin: GroupHistory._asked_join,
    AskedLeave: GroupHistory._asked_leave,
    Sent: GroupHistory._sent,
    GotMessage: GroupHistory._got_message,
    GotConfirmation: GroupHistory._got_confirmation,
    GotView: GroupHistory._got_view,
    GotTransition: GroupHistory._got_transition,
    GotLeft: GroupHistory._got_left,
    GotDropped: GroupHistory._got_dropped,
    GotRefusal: GroupHistory._got_refusal,
    Disconnected: GroupHistory._disconnected,
    KnownGroups: GroupHistory._known_groups,
    Installed: GroupHistory._installed,
    Calm: GroupHistory._calm,
    Healed: GroupHistory._healed,
    Ended: GroupHistory._ended,
    Unrecorded: GroupHistory._unrecorded,
}
