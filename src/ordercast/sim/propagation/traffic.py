"""Many messages at a time over the ways of a graph: who delivers what, in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders.bypass import Ways
from ordercast.order.tree.graph import Memberships
from ordercast.sim.propagation.schedule import DELAY_MAX, Schedule


@dataclass(frozen=True, slots=True)
class Sent:
    """A message: who has sent it to which group, and its number among those of this source to this group."""

    source: ProcessId
    group: str
    number: int
    time: int


Sequences = dict[ProcessId, list[Sent]]  # what each process has delivered
Method = Callable[[Memberships, Sequence[Sent], Random], Sequences]


def workload(groups: Memberships, rng: Random, messages: int) -> list[Sent]:
    """Draw messages of any process to any group, in the order of their times."""
    sources = sorted(set().union(*groups.values()))
    names = sorted(groups)
    numbers: dict[tuple[ProcessId, str], int] = defaultdict(int)
    found = []
    for time in sorted(rng.randint(0, 2 * DELAY_MAX) for _ in range(messages)):
        source, group = rng.choice(sources), rng.choice(names)
        numbers[source, group] += 1
        found.append(Sent(source, group, numbers[source, group], time))
    return found


def propagated(ways: Ways, messages: Sequence[Sent], rng: Random) -> Sequences:
    """Send messages over the ways of a graph; links keep their order."""
    schedule, delivered = Schedule(rng), defaultdict(list)

    def process(node: ProcessId, message: Sent) -> None:
        for child in ways.routes[message.group][node]:
            schedule.send(node, child, lambda child=child: process(child, message))  # type: ignore[misc]
        if node in ways.graph.groups[message.group]:
            delivered[node].append(message)

    def enter(message: Sent) -> None:
        entry = ways.entry(message.group)
        schedule.send(("source", message.source), entry, lambda: process(entry, message))

    for message in messages:
        schedule.at(message.time, lambda message=message: enter(message))  # type: ignore[misc]
    schedule.run()
    return dict(delivered)
