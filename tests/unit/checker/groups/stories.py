"""Histories of clients, written as a story: who joined, who sent what, who got it, who saw which view.

    story = Story("a", "b")               # a@n0 and b@n1 connect
    story.join("g", "a"); story.join("g", "b")
    hello = story.send("a", "g")
    story.get(hello, "a", "b")            # at one position
    story.signal("g", "a", remaining="a")
    story.view("g", "a", along="a")       # a alone goes on
    events = story.finished()

A story told this way is valid as long as the teller gives everybody what is due.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.checker.groups import GroupCheckers
from ordercast.checker.verdict import Outcome, Verdict
from ordercast.model.events import Reason, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Incarnation, Instant, NodeId, Position, ProcessId, Seq, process_id_from
from ordercast.model.promises import GroupPromise
from ordercast.model.service import Service
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
    GotLeft,
    GotMessage,
    GotTransition,
    GotView,
    KnownGroups,
    Sent,
)
from ordercast.trace.records import Ended, Healed, MessageId

RING = ConfigurationId(8, process_id_from(NodeId(0), Incarnation(1)))


class Story:
    def __init__(self, *names: str) -> None:
        self.events: list[ClientEvent] = []
        self.ids: dict[str, ClientId] = {}
        self.full: dict[str, str] = {}
        self.members: dict[str, list[str]] = {}  # by group: names as the story calls them
        self.sent: dict[MessageId, Sent] = {}
        self.places: dict[MessageId, Position] = {}
        self.clock = 0
        self.views: dict[str, ViewId] = {}
        for number, name in enumerate(names):
            self.connect(name, number)

    @property
    def now(self) -> Instant:
        return Instant(len(self.events))

    def _next(self) -> int:
        self.clock += 1
        return self.clock

    # Clients

    def connect(self, name: str, node: int, session: int = 1, full: str = "") -> None:
        process = process_id_from(NodeId(node), Incarnation(1))
        self.ids[name] = ClientId(process, session)
        self.full[name] = full or f"{name}@n{node}"
        self.events.append(Connected(self.now, self.ids[name], self.full[name]))

    def end(self, name: str, how: End = End.CRASHED) -> None:
        self.events.append(Disconnected(self.now, self.ids[name], how))
        for group, members in self.members.items():
            if name in members:
                members.remove(name)
                self.view(group, *members, along=members, reason=Reason.DISCONNECT, who=(self.full[name],))

    # Groups

    def join(self, group: str, name: str, *, along: Iterable[str] | None = None) -> None:
        self.events.append(AskedJoin(self.now, self.ids[name], (group,)))
        before = self.members.setdefault(group, [])
        after, at = [*before, name], self._id()
        who = (self.full[name],)
        for other in before:
            self.show(other, self._view(group, after, before, Reason.JOIN, who, at))
        self.show(name, self._view(group, after, (name,) if along is None else along, Reason.JOIN, who, at))
        self.members[group] = after

    def leave(self, group: str, name: str) -> None:
        self.events.append(AskedLeave(self.now, self.ids[name], (group,)))
        self.events.append(GotLeft(self.now, self.ids[name], group))
        self.members[group].remove(name)
        members = self.members[group]
        self.view(group, *members, along=members, reason=Reason.LEAVE, who=(self.full[name],))

    def view(
        self,
        group: str,
        *names: str,
        along: Iterable[str],
        members: Iterable[str] | None = None,
        at: ViewId | None = None,
        reason: Reason = Reason.NETWORK,
        who: tuple[str, ...] = (),
    ) -> ViewId:
        """All of these install one view; its members are they themselves unless others are named."""
        identity = at or self._id()
        view = self._view(group, names if members is None else members, along, reason, who, identity)
        for name in names:
            self.show(name, view)
        return identity

    def show(self, name: str, view: View) -> None:
        self.events.append(GotView(self.now, self.ids[name], view))
        self.views[name + view.group] = view.id

    def _id(self) -> ViewId:
        return ViewId(RING, Position(RING, self._next(), 0))

    def _view(
        self, group: str, members: Iterable[str], along: Iterable[str], reason: Reason, who: tuple[str, ...], at: ViewId
    ) -> View:
        return View(group, self._names(members), self._names(along), reason, who, at)

    def _names(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(self.full[name] for name in names))

    def signal(self, group: str, *names: str, remaining: Iterable[str]) -> None:
        for name in names:
            transition = Transition(group, self._names(remaining), self.views[name + group])
            self.events.append(GotTransition(self.now, self.ids[name], transition))

    # Messages

    def send(
        self,
        name: str,
        *groups: str,
        service: Service = Service.AGREED,
        self_discard: bool = False,
        confirm: bool = False,
    ) -> MessageId:
        client = self.ids[name]
        counter = 1 + sum(sent.client == client for sent in self.sent.values())
        message = MessageId(client.process, client.session, counter)
        digest = hash((client.process, client.session, counter))
        sent = Sent(self.now, client, message, groups, int(service), digest, self_discard, confirm)
        self.sent[message] = sent
        self.events.append(sent)
        return message

    def get(self, message: MessageId, *names: str, place: Position | None = None) -> None:
        sent = self.sent[message]
        position = place or self.place(message)
        sender = next(self.full[name] for name, client in self.ids.items() if client == sent.client)
        for name in names:
            self.events.append(
                GotMessage(self.now, self.ids[name], message, sender, sent.groups, sent.service, sent.digest, position)
            )

    def place(self, message: MessageId) -> Position:
        if message not in self.places:
            self.places[message] = Position(RING, Seq(self._next()), 0)
        return self.places[message]

    def confirm(self, message: MessageId, name: str, place: Position | None = None) -> None:
        self.events.append(GotConfirmation(self.now, self.ids[name], message, place or self.place(message)))

    # The end

    def calm(self) -> None:
        self.events.append(Calm(self.now))

    def know(self, process: ProcessId, **groups: str) -> None:
        known = tuple((group, self._names(members)) for group, members in sorted(groups.items()))
        self.events.append(KnownGroups(self.now, process, known))

    def finished(self) -> list[ClientEvent]:
        self.events.append(Healed(self.now, ()))
        self.events.append(Ended(self.now))
        return self.events


def verdicts_on(events: Iterable[ClientEvent]) -> dict[GroupPromise, Verdict]:
    checkers = GroupCheckers()
    for event in events:
        checkers.observe(event)
    return {GroupPromise(verdict.promise): verdict for verdict in checkers.verdicts()}


def assert_valid(events: Iterable[ClientEvent]) -> None:
    for verdict in verdicts_on(events).values():
        assert verdict.outcome in (Outcome.VALID, Outcome.NOT_EXERCISED), str(verdict)


def assert_invalid(promise: GroupPromise, events: Iterable[ClientEvent], *words: str) -> None:
    verdict = verdicts_on(events)[promise]
    assert verdict.outcome is Outcome.INVALID, str(verdict)
    text = " ".join(str(witness) for witness in verdict.witnesses)
    for word in words:
        assert word in text
