"""Several sequences put into one order, by columns: `trace/merge.py` for any number of events.

Each sequence keeps its order, and between them time decides; but what needs another event (a delivery its submission)
comes after it, and so does everything behind it in its own sequence. Times are raised until that is so. When events
wait for one another in a circle the history contradicts itself: it is given up after some rounds, and the judges will
say so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordercast.pipeline.verify.rows import Ints

ROUNDS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Needs:
    """Events of one sequence, each once, that come after events of another."""

    sequence: int
    events: Ints
    giver: int  # the sequence of what they need
    given: Ints  # the events there


def raised(times: list[Ints], needs: list[Needs]) -> list[Ints]:
    """The times at which the events may happen."""
    result = [np.maximum.accumulate(each) if len(each) else each for each in times]
    for _ in range(ROUNDS_MAX):
        changed: set[int] = set()
        for need in needs:
            own, least = result[need.sequence], result[need.giver][need.given] + 1
            late = own[need.events] < least
            if late.any():
                own[need.events[late]] = least[late]
                changed.add(need.sequence)
        if not changed:
            break
        for sequence in changed:
            result[sequence] = np.maximum.accumulate(result[sequence])
    return result


def numbered(times: list[Ints]) -> list[Ints]:
    """The place of each event in one order: by time, at one time by sequence."""
    lengths = [len(each) for each in times]
    order = np.argsort(np.concatenate([np.zeros(0, np.int64), *times]), kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return np.split(places, np.cumsum(lengths)[:-1]) if lengths else []
