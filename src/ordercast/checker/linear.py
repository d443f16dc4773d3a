"""One order of what was delivered in each configuration, found from the deliveries alone, whatever an engine says of
places: a linear extension of the sequences of all processes, regular and transitional part together. There is none if
they contradict each other, pair by pair or around a circle of several processes. With causes, a message also comes
after all that its submitter had delivered or sent there before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from ordercast.model.ids import ConfigurationId

if TYPE_CHECKING:
    from ordercast.checker.history import History


@dataclass(slots=True)
class Extension:
    """The order of one configuration; what lies on a contradiction has no place."""

    places: dict[int, int] = field(default_factory=dict)  # by message
    contradicted: list[int] = field(default_factory=list)  # messages, in the order of submission


def extension_of(sequences: Iterable[list[int]], also: Iterable[tuple[int, int]] = ()) -> Extension:
    """Return the order in which each sequence rises, and the first of each pair comes before the second."""
    following: dict[int, set[int]] = {}
    before: dict[int, int] = {}
    pairs = [pair for sequence in sequences for pair in pairwise(sequence)]
    for sequence in sequences:
        before.update(dict.fromkeys(sequence, 0))
    pairs += (pair for pair in also if pair[0] in before and pair[1] in before)
    for one, other in pairs:
        if other not in following.setdefault(one, set()):
            following[one].add(other)
            before[other] += 1
    ready = [number for number, count in before.items() if not count]
    heapq.heapify(ready)
    found = Extension()
    while ready:
        number = heapq.heappop(ready)
        found.places[number] = len(found.places) + 1
        for other in following.get(number, ()):
            before[other] -= 1
            if not before[other]:
                heapq.heappush(ready, other)
    found.contradicted = sorted(number for number, count in before.items() if count)
    return found


def extensions_of(history: History, *, with_causes: bool = False) -> Mapping[ConfigurationId, Extension]:
    """Return the order of each configuration."""
    sequences: dict[ConfigurationId, list[list[int]]] = {}
    delivered: dict[tuple[int, ConfigurationId], list[int]] = {}
    for life in history.lives():
        for home, numbers in life.numbers_of_homes().items():
            sequences.setdefault(home, []).append(numbers)
            delivered[life.process, home] = numbers
    columns = history.columns
    causes: dict[ConfigurationId, list[tuple[int, int]]] = {}
    for number, (seen, count) in enumerate(zip(columns.seen_homes, columns.seen_counts, strict=True)):
        if not with_causes:
            break
        mine = delivered.get((history.identity(number).process, seen), [])
        if count and mine:
            causes.setdefault(seen, []).append((mine[count - 1], number))
        for home in sequences:
            causes.setdefault(home, []).append((columns.previous[number], number))
    return {home: extension_of(each, causes.get(home, ())) for home, each in sequences.items()}
