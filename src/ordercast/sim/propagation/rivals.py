"""Other methods to order messages of groups, in the shortest form that orders as they do. (Thesis, 2.2)

Links keep no order here, but where a method asks for it. Chang and Maxemchuk's method and publishing order like the
sequencer: somebody numbers the messages of a group. Total needs a broadcast network whose losses it makes good; it has
no model here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders import build
from ordercast.order.tree.builders.bypass import ways_of
from ordercast.order.tree.graph import Memberships
from ordercast.sim.propagation.schedule import Schedule
from ordercast.sim.propagation.traffic import Method, Sent, Sequences, propagated

Act = Callable[[Sent], None]


def _nothing() -> Sequences:
    return defaultdict(list)


def _started(schedule: Schedule, messages: Sequence[Sent], act: Act) -> None:
    for message in messages:
        schedule.at(message.time, partial(act, message))
    schedule.run()


def plain(groups: Memberships, messages: Sequence[Sent], rng: Random) -> Sequences:
    """Deliver what comes."""
    schedule, delivered = Schedule(rng), _nothing()

    def send(message: Sent) -> None:
        for member in sorted(groups[message.group]):
            schedule.send(message.source, member, partial(delivered[member].append, message), in_order=False)

    _started(schedule, messages, send)
    return delivered


def sequence_numbers(groups: Memberships, messages: Sequence[Sent], rng: Random) -> Sequences:
    """Deliver messages of one source to one group by their numbers."""
    schedule, delivered = Schedule(rng), _nothing()
    early: dict[tuple[ProcessId, ProcessId, str], dict[int, Sent]] = defaultdict(dict)
    expected: dict[tuple[ProcessId, ProcessId, str], int] = defaultdict(lambda: 1)

    def arrive(member: ProcessId, message: Sent) -> None:
        stream = (member, message.source, message.group)
        early[stream][message.number] = message
        while expected[stream] in early[stream]:
            delivered[member].append(early[stream].pop(expected[stream]))
            expected[stream] += 1

    def send(message: Sent) -> None:
        for member in sorted(groups[message.group]):
            schedule.send(message.source, member, partial(arrive, member, message), in_order=False)

    _started(schedule, messages, send)
    return delivered


class _Stamped:
    """Timestamps: a member delivers by time and source, what no source can be before any more. All hear all times."""

    def __init__(self, groups: Memberships, sources: Sequence[ProcessId], rng: Random) -> None:
        self.schedule, self.delivered = Schedule(rng), _nothing()
        self._groups, self._members = groups, sorted(set().union(*groups.values()))
        self._heard = {member: dict.fromkeys(sources, -1) for member in self._members}
        self._waiting: dict[ProcessId, list[Sent]] = defaultdict(list)

    def send(self, message: Sent) -> None:
        self.say(message.source, message.time, message)

    def say(self, source: ProcessId, time: int, message: Sent | None) -> None:
        """Tell a time to all, and a message to its members; a null has none."""
        for member in self._members:
            mine = message if message is not None and member in self._groups[message.group] else None
            self.schedule.send(source, member, partial(self._hear, member, source, time, mine))

    def _hear(self, member: ProcessId, source: ProcessId, time: int, message: Sent | None) -> None:
        self._heard[member][source] = time
        waiting = self._waiting[member]
        if message is not None:
            waiting.append(message)
            waiting.sort(key=lambda one: (one.time, one.source, one.group, one.number))
        while waiting and waiting[0].time < min(self._heard[member].values()):
            self.delivered[member].append(waiting.pop(0))


def timestamps(groups: Memberships, messages: Sequence[Sent], rng: Random) -> Sequences:
    """Order by timestamps; nulls at the end say that all is said. (Lamport; Schneider)"""
    sources = sorted({message.source for message in messages})
    stamped = _Stamped(groups, sources, rng)
    end = 1 + max((message.time for message in messages), default=0)
    for source in sources:
        stamped.schedule.at(end, partial(stamped.say, source, end, None))
    _started(stamped.schedule, messages, stamped.send)
    return stamped.delivered


def _numbered(
    groups: Memberships, messages: Sequence[Sent], rng: Random, orderer: Callable[[str], object]
) -> Sequences:
    """Let somebody number messages, one for each group or one for all: links from there keep their order."""
    schedule, delivered = Schedule(rng), _nothing()

    def order(message: Sent) -> None:
        for member in sorted(groups[message.group]):
            schedule.send(orderer(message.group), member, partial(delivered[member].append, message))

    def send(message: Sent) -> None:
        schedule.send(message.source, orderer(message.group), partial(order, message))

    _started(schedule, messages, send)
    return delivered


def sequencer_of_each_group(groups: Memberships, messages: Sequence[Sent], rng: Random) -> Sequences:
    """Let each group have its own sequencer."""
    return _numbered(groups, messages, rng, lambda group: f"sequencer of {group}")


def one_sequencer(groups: Memberships, messages: Sequence[Sent], rng: Random) -> Sequences:
    """Let all groups have one sequencer: what the thesis calls modified."""
    return _numbered(groups, messages, rng, lambda group: "sequencer")


class _Skeen:
    """The two-phase method. Each member gives a message a priority above all that it has given or heard; the highest
    of all members is final. A message is delivered when no other one can come before it."""

    def __init__(self, groups: Memberships, rng: Random) -> None:
        self.schedule, self._groups = Schedule(rng), groups
        self.delivered: Sequences = defaultdict(list)
        self._clocks: dict[ProcessId, int] = defaultdict(int)
        self._waiting: dict[ProcessId, dict[Sent, tuple[int, ProcessId, bool]]] = defaultdict(dict)
        self._answers: dict[Sent, list[tuple[int, ProcessId]]] = defaultdict(list)

    def send(self, message: Sent) -> None:
        for member in sorted(self._groups[message.group]):
            self.schedule.send(message.source, member, partial(self._ask, member, message))

    def _ask(self, member: ProcessId, message: Sent) -> None:
        self._clocks[member] += 1
        priority = (self._clocks[member], member)
        self._waiting[member][message] = (*priority, False)
        self.schedule.send(member, message.source, partial(self._answer, message, priority))

    def _answer(self, message: Sent, priority: tuple[int, ProcessId]) -> None:
        answers, members = self._answers[message], self._groups[message.group]
        answers.append(priority)
        if len(answers) == len(members):
            for member in sorted(members):
                self.schedule.send(message.source, member, partial(self._decide, member, message, max(answers)))

    def _decide(self, member: ProcessId, message: Sent, final: tuple[int, ProcessId]) -> None:
        waiting = self._waiting[member]
        self._clocks[member] = max(self._clocks[member], final[0])
        waiting[message] = (*final, True)
        while waiting:
            first = min(waiting, key=lambda one: waiting[one][:2])
            if not waiting[first][2]:
                return
            del waiting[first]
            self.delivered[member].append(first)


def two_phase(groups: Memberships, messages: Sequence[Sent], rng: Random) -> Sequences:
    """Order by priorities that all members give. (Skeen; ABCAST of ISIS)"""
    skeen = _Skeen(groups, rng)
    _started(skeen.schedule, messages, skeen.send)
    return skeen.delivered


def propagation(groups: Memberships, messages: Sequence[Sent], rng: Random) -> Sequences:
    """Order over the graph of Heuristic I."""
    return propagated(ways_of(build("heuristic-1", groups)), messages, rng)


METHODS: Mapping[str, Method] = {
    "nothing": plain,
    "sequence numbers": sequence_numbers,
    "timestamps": timestamps,
    "sequencer of each group": sequencer_of_each_group,
    "one sequencer": one_sequencer,
    "two-phase": two_phase,
    "propagation": propagation,
}
