"""Fairness: while all have something to send, each member gets its share.

Judged at every process, for each regular view and each time of saturation: of the messages that it delivered from the
saturated members of that view, every one of them has at least half of an equal share. With fewer than MESSAGES_MIN
messages per sender there is nothing to judge: the first and last rotation would decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.history import Window
from ordercast.checker.life import Life, Stay
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness
from ordercast.model.ids import process_text
from ordercast.model.promises import Promise

MESSAGES_MIN = 40  # per sender
SHARE_MIN = 0.5  # of an equal share


class Fairness(Checker):
    promise = Promise.FAIRNESS
    rule = "under saturation each sender had at least half of an equal share"
    matter = Matter.SATURATION

    _judged_count: int = 0  # views with enough messages to judge

    def violations(self) -> Iterator[Witness]:
        self._judged_count = 0
        for window in self.history.windows:
            for life in self.history.lives():
                for stay, numbers in _delivered_during(window, life):
                    yield from self._unfair(window, life, stay, numbers)

    def is_exercised(self) -> bool:
        return bool(self._judged_count) or super().is_exercised()

    def _unfair(self, window: Window, life: Life, stay: Stay, numbers: list[int]) -> Iterator[Witness]:
        members = () if stay.view is None else stay.view.members
        senders = [process for process in window.senders if process in members]
        counts = Counter(self.history.identity(number).process for number in numbers)
        total = sum(counts[process] for process in senders)
        if len(senders) < 2 or total < MESSAGES_MIN * len(senders):
            return
        self._judged_count += 1
        for process in senders:
            if counts[process] * len(senders) < SHARE_MIN * total:
                what = f"delivered {counts[process]} messages of {process_text(process)}, of {total} by {len(senders)}"
                yield self.witness(what, life.process, view=stay.id)


def _delivered_during(window: Window, life: Life) -> Iterator[tuple[Stay, list[int]]]:
    first, skipped = window.begins.get(life.process, (0, 0))
    last, limit = (len(life.stays), 0) if window.ends is None else window.ends.get(life.process, (0, 0))
    for index in range(first, min(last + 1, len(life.stays))):
        stay = life.stays[index]
        if stay.is_regular:
            begin = skipped if index == first else 0
            end = limit if index == last else stay.length
            yield stay, stay.numbers[begin:end]
