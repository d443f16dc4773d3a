"""What each process is owed of the messages of a part, by columns: the rule of `checker/owed.py`, for many at once."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.verify.facts import FOREVER, Facts
from ordercast.pipeline.verify.rows import Flags, Ints, Rows

_NOBODY_YET = FOREVER - 1  # of a message that nobody has delivered: later than all, but not than the end of time


def owed_in(facts: Facts, sent: Rows, delivered_n: Ints, number: Ints) -> Flags | None:
    """Return by life and number whether the message is owed; None where nothing is pruned, so that everything is.
    `sent` are the submissions by number, `delivered_n` the events of deliveries, `number` the messages delivered."""
    if not facts.prunes:
        return None
    last = np.full(len(sent), -1, np.int64)
    np.maximum.at(last, number, delivered_n)
    last[last < 0] = _NOBODY_YET
    owed = np.ones((len(facts.lives), len(sent)), np.bool_)
    for goal in np.unique(sent["goal"]).tolist():
        if goal:
            chosen = np.flatnonzero(sent["goal"] == goal)
            times = sent["n"][chosen], last[chosen]
            for index, life in enumerate(facts.lives):
                wanted = [span for name in sent.goals[goal] for span in life.wanted.get(name, ())]
                owed[index, chosen] = _within(wanted, *times)
    return owed


def _within(wanted: list[tuple[int, int]], sent: Ints, last: Ints) -> Flags:
    """Whether one of the spans lasts from before the submission until after the last delivery."""
    result = np.zeros(len(sent), np.bool_)
    for begin, end in wanted:
        result |= (begin < sent) & (last < end)
    return result
