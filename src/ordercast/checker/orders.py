"""The thesis' ordering properties, of plain sequences of deliveries. (2.1, 6.3) Pure.

All three are asked of pairs of messages that two processes both deliver: the same order at both. *Single source*: pairs
of one source to one group. *Multiple source*: pairs to one group. *Multiple group*: all pairs. Beyond the thesis,
*acyclic*: there is one order of all messages that no process contradicts, which pairs alone do not grant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol


class Addressed(Hashable, Protocol):
    """A message that has a source and a group."""

    @property
    def source(self) -> Hashable: ...
    @property
    def group(self) -> Hashable: ...


Concern = Callable[[Addressed, Addressed], bool]
Delivered = Mapping[Any, Sequence[Addressed]]  # process -> its messages


def single_source(one: Addressed, other: Addressed) -> bool:
    return one.source == other.source and one.group == other.group


def multiple_source(one: Addressed, other: Addressed) -> bool:
    return one.group == other.group


def multiple_group(one: Addressed, other: Addressed) -> bool:
    return True


PROPERTIES: Mapping[str, Concern] = {
    "single source": single_source,
    "multiple source": multiple_source,
    "multiple group": multiple_group,
}


def inversion(delivered: Delivered, concerns: Concern) -> tuple[Hashable, Hashable] | None:
    """Return two messages that two processes deliver in different orders though they are of concern; None if none."""
    places = {
        process: {message: place for place, message in enumerate(all_of)} for process, all_of in delivered.items()
    }
    processes = list(places)
    for number, one in enumerate(processes):
        for other in processes[number + 1 :]:
            common = [message for message in delivered[one] if message in places[other]]
            for place, first in enumerate(common):
                for second in common[place + 1 :]:
                    if places[other][first] > places[other][second] and concerns(first, second):
                        return first, second
    return None


def circle(delivered: Delivered) -> list[Hashable]:
    """Return messages that no single order of all has in every process's order; none if there is such an order."""
    after: dict[Hashable, set[Hashable]] = defaultdict(set)
    before: dict[Hashable, int] = defaultdict(int)
    for sequence in delivered.values():
        for first, second in pairwise(sequence):
            if second not in after[first]:
                after[first].add(second)
                before[second] += 1
    messages: set[Hashable] = {message for sequence in delivered.values() for message in sequence}
    todo = [message for message in messages if not before[message]]
    for message in todo:
        for later in after[message]:
            before[later] -= 1
            if not before[later]:
                todo.append(later)
    done = set(todo)
    return [message for sequence in delivered.values() for message in sequence if message not in done]
