"""Histories written as a story: who sent what, who delivered it, who moved to which view.

    story = Story(3)                      # n0, n1, n2 start, each in a view of its own
    story.change(0, 1, 2)                 # all three come together: transitional views, then one regular view
    first = story.send(0)                 # n0 submits
    story.deliver(first, at=(0, 1, 2))    # in one order, at one position
    events = story.finished()             # healed and ended

A story told this way is valid as long as the teller delivers what is due. To break it, change the list of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from ordercast.checker import Checkers, Outcome, Verdict
from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import (
    NO_CONFIGURATION,
    SLOT_MAX,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    process_id_from,
)
from ordercast.model.promises import Promise, Promises
from ordercast.model.service import Service
from ordercast.trace.records import (
    Crashed,
    DeliveredBatch,
    DeliveredMessage,
    Departed,
    Ended,
    Event,
    Healed,
    Installed,
    MessageId,
    Saturated,
    Started,
    StorageTurned,
    Submitted,
    SubmittedMessage,
    Wanted,
)

ALL = Promises("story", frozenset(Promise), frozenset(Service), 1 << 24)
PRUNING = replace(ALL, prunes=True)
EARLY = replace(ALL, early=frozenset({Service.RELIABLE, Service.FIFO}))


def process(node: int, life: int = 1) -> ProcessId:
    return process_id_from(NodeId(node), Incarnation(life))


@dataclass
class Member:
    """A process as the story knows it."""

    view: Configuration
    ring: ConfigurationId
    last_seq: int = 0
    counters: dict[int, int] = field(default_factory=dict)


class Story:
    def __init__(self, count: int = 3, promises: Promises = ALL) -> None:
        self.events: list[Event] = []
        self.promises = promises
        self.members: dict[int, Member] = {}
        self.lives: dict[int, int] = {}
        self.submissions: dict[MessageId, SubmittedMessage] = {}
        self.positions: dict[MessageId, tuple[ConfigurationId, int, int]] = {}
        self.seqs: dict[ConfigurationId, int] = {}
        self.ring_seq = 0
        for node in range(count):
            self.start(node)

    @property
    def now(self) -> Instant:
        return Instant(len(self.events))

    def id(self, node: int) -> ProcessId:
        return process(node, self.lives[node])

    # Lives.

    def start(self, node: int, *, kept_storage: bool = True, ring_seq: int | None = None) -> None:
        self.lives[node] = self.lives.get(node, 0) + 1
        me = self.id(node)
        self.events.append(Started(self.now, me, self.promises, kept_storage))
        if ring_seq is None:
            self.ring_seq += 4
            ring_seq = self.ring_seq
        ring = ConfigurationId(ring_seq, me)
        position = Position(ring, Seq(0), 0)
        view = Configuration(
            ConfigurationKind.REGULAR, ring, (me,), NO_CONFIGURATION, (me,), ChangeReason.STARTED, position
        )
        self.members[node] = Member(view, ring)
        self.events.append(Installed(self.now, me, view))

    def crash(self, node: int) -> None:
        self.events.append(Crashed(self.now, self.id(node)))
        del self.members[node]

    def leave(self, node: int) -> None:
        self.events.append(Departed(self.now, self.id(node)))
        del self.members[node]

    def turn_storage(self, node: int, *, in_use: bool) -> None:
        self.events.append(StorageTurned(self.now, self.id(node), in_use))

    # Views.

    def change(self, *nodes: int, installers: Iterable[int] | None = None) -> None:
        """These nodes form a ring; `installers` are those who come so far as to install it."""
        coming = tuple(nodes if installers is None else installers)
        self.transitional(*nodes, installers=coming)
        self.regular(*nodes, installers=coming)

    def transitional(self, *nodes: int, installers: Iterable[int] | None = None) -> None:
        self.ring_seq += 4
        for node in nodes if installers is None else installers:
            member = self.members[node]
            along = self._along(node, nodes)
            ring = ConfigurationId(self.ring_seq - 2, along[0])
            last = member.last_seq
            if self.promises != ALL:  # not everybody delivers everything, or in one order
                last = max(other.last_seq for other in self.members.values() if other.ring == member.ring)
            position = Position(member.ring, Seq(last), SLOT_MAX)
            reason = ChangeReason.TOKEN_LOST
            view = Configuration(ConfigurationKind.TRANSITIONAL, ring, along, member.ring, along, reason, position)
            self.events.append(Installed(self.now, self.id(node), view))
            member.view = view

    def _along(self, node: int, nodes: tuple[int, ...]) -> tuple[ProcessId, ...]:
        """Who comes along with this node: those whose ring was the same."""
        return tuple(sorted(self.id(other) for other in nodes if self.members[other].ring == self.members[node].ring))

    def regular(self, *nodes: int, installers: Iterable[int] | None = None) -> None:
        ids = tuple(sorted(self.id(node) for node in nodes))
        ring = ConfigurationId(self.ring_seq, ids[0])
        for node in nodes if installers is None else installers:
            member = self.members[node]
            reason, position = ChangeReason.TOKEN_LOST, Position(ring, Seq(0), 0)
            view = Configuration(
                ConfigurationKind.REGULAR, ring, ids, member.view.id, member.view.members, reason, position
            )
            self.events.append(Installed(self.now, self.id(node), view))
            self.members[node] = Member(view, ring, 0, member.counters)

    # Messages.

    def want(self, node: int, *destinations: str, begins: bool = True) -> None:
        self.events.append(Wanted(self.now, self.id(node), destinations, begins))

    def send(
        self, node: int, *to: str, service: Service = Service.AGREED, size: int = 100, sender: int = 0
    ) -> MessageId:
        counters = self.members[node].counters
        counters[sender] = counters.get(sender, 0) + 1
        message = MessageId(self.id(node), sender, counters[sender])
        submission = SubmittedMessage(message, hash(message) & 0xFFFFFFFF, int(service), size)
        self.submissions[message] = submission
        self.events.append(Submitted(self.now, self.id(node), (submission,), to))
        return message

    def number(self, message: MessageId, node: int) -> None:
        """Originates the message on the ring of this node: gives it its position."""
        ring = self.members[node].ring
        self.seqs[ring] = self.seqs.get(ring, 0) + 1
        self.positions[message] = (ring, self.seqs[ring], 0)

    def deliver(self, *messages: MessageId, at: Iterable[int]) -> None:
        for node in at:
            for message in messages:
                if message not in self.positions:
                    self.number(message, node)
            member = self.members[node]
            batch = DeliveredBatch(
                self.now,
                self.id(node),
                member.view.id,
                self.positions[messages[0]][0],
                tuple(self._delivered(message) for message in messages),
            )
            member.last_seq = max(member.last_seq, batch.messages[-1].number)
            self.events.append(batch)

    def _delivered(self, message: MessageId) -> DeliveredMessage:
        submission = self.submissions[message]
        _, seq, slot = self.positions[message]
        return DeliveredMessage(message, submission.digest, submission.service, submission.size, seq, slot)

    def round(self, *nodes: int, count: int = 1, service: Service = Service.AGREED) -> list[MessageId]:
        """Each of these nodes sends, and all of them deliver."""
        sent = [self.send(node, service=service) for _ in range(count) for node in nodes]
        for message in sent:
            self.deliver(message, at=nodes)
        return sent

    # The end.

    def saturate(self, *nodes: int, begins: bool) -> None:
        self.events.append(Saturated(self.now, tuple(self.id(node) for node in nodes), begins))

    def heal(self) -> None:
        self.events.append(Healed(self.now, tuple(self.id(node) for node in sorted(self.members))))

    def finished(self) -> list[Event]:
        self.heal()
        self.events.append(Ended(self.now))
        return self.events


# Breaking a story.


def edited(events: list[Event], change: Callable[[Event], Event | None]) -> list[Event]:
    """Each event as `change` returns it; None leaves it out."""
    return [result for event in events if (result := change(event)) is not None]


def with_view(events: list[Event], node: int, index: int, **fields: object) -> list[Event]:
    """The `index`-th view of this node, altered."""
    mine = [event for event in events if isinstance(event, Installed) and event.process == process(node)]
    chosen = mine[index]
    altered = replace(chosen, configuration=replace(chosen.configuration, **fields))  # type: ignore[arg-type]
    return [altered if event is chosen else event for event in events]


def with_delivery(events: list[Event], node: int, message: MessageId, /, **fields: object) -> list[Event]:
    """The delivery of one message at one node, altered."""

    def change(event: Event) -> Event:
        if not isinstance(event, DeliveredBatch) or event.process != process(node):
            return event
        messages = [d._replace(**fields) if d.message == message else d for d in event.messages]  # type: ignore[arg-type]
        return replace(event, messages=tuple(messages))

    return edited(events, change)


def without_delivery(events: list[Event], node: int, message: MessageId) -> list[Event]:
    def change(event: Event) -> Event | None:
        if not isinstance(event, DeliveredBatch) or event.process != process(node):
            return event
        kept = tuple(delivered for delivered in event.messages if delivered.message != message)
        return replace(event, messages=kept) if kept else None

    return edited(events, change)


def swapped(events: list[Event], first: int, second: int) -> list[Event]:
    result = list(events)
    result[first], result[second] = result[second], result[first]
    return result


def delivery_index(events: list[Event], node: int, message: MessageId) -> int:
    """Where in the history this node delivers this message."""
    return next(
        index
        for index, event in enumerate(events)
        if isinstance(event, DeliveredBatch)
        and event.process == process(node)
        and any(delivered.message == message for delivered in event.messages)
    )


# Judging.


def panel_of(events: Iterable[Event], checkers: Checkers | None = None) -> Checkers:
    panel = Checkers() if checkers is None else checkers
    for event in events:
        panel.observe(event)
    return panel


def judge(promise: Promise, events: Iterable[Event]) -> Verdict:
    return panel_of(events, Checkers([promise])).verdicts()[0]


def assert_valid(events: Iterable[Event]) -> None:
    for verdict in panel_of(events).verdicts():
        assert verdict.outcome in (Outcome.VALID, Outcome.NOT_EXERCISED), str(verdict)


def assert_invalid(promise: Promise, events: Iterable[Event], *texts: str) -> None:
    """The verdict is INVALID, and its sentence and witnesses say these things."""
    verdict = judge(promise, events)
    assert verdict.outcome is Outcome.INVALID, str(verdict)
    assert verdict.witnesses
    said = "\n".join([verdict.sentence, *map(str, verdict.witnesses)])
    for text in texts:
        assert text in said, said


def assert_unknown(promise: Promise, events: Iterable[Event], *texts: str) -> None:
    verdict = judge(promise, events)
    assert verdict.outcome is Outcome.UNKNOWN, str(verdict)
    for text in texts:
        assert text in verdict.sentence, verdict.sentence
