"""The alarms of a node: what a person should know, kept so that much of one kind hides nothing of another.

The same alarm about the same process or network is one entry for a minute, with a count. A kind that is raised about
many (a stranger can invent processes) has a few entries in a minute; the rest is counted in the last of them. When
there are too many entries, the kind with the most of them gives up one, and never its first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import SECOND, Instant, ProcessId, process_text

ALARMS_KEPT = 32
REPEAT_NS = 60 * SECOND
ENTRIES_OF_KIND_MAX = 8  # in a minute


def text_of(alarm: Alarm, name_of: Callable[[ProcessId], str]) -> str:
    """Return its sentence, with the name of a node in the place of its process."""
    if alarm.process is None:
        return alarm.text
    name = name_of(alarm.process)
    return re.sub(rf"\b{re.escape(process_text(alarm.process))}(?![\w'])", lambda _: name, alarm.text)


@dataclass(slots=True)
class KeptAlarm:
    number: int  # rises: who has seen one knows which are new
    first_at: Instant
    at: Instant  # of the last
    alarm: Alarm  # the last
    count: int = 1
    before: int = 0  # how many were counted in the entry before it, about the same, beside the first


class Alarms:
    def __init__(self) -> None:
        self._kept: list[KeptAlarm] = []  # the latest last
        self._firsts: dict[AlarmKind, int] = {}  # number of the first of each kind
        self._numbers = 0

    def append(self, raised: tuple[Instant, Alarm]) -> None:
        at, alarm = raised
        entry = self._entry_for(at, alarm)
        if entry is None:
            self._add(at, alarm)
        else:
            if entry.alarm.about == alarm.about:
                entry.alarm = alarm
            entry.at = at
            entry.count += 1
            self._kept.remove(entry)
            self._kept.append(entry)

    def __iter__(self) -> Iterator[tuple[Instant, Alarm]]:
        return iter([(entry.at, entry.alarm) for entry in self._kept])

    def __len__(self) -> int:
        return len(self._kept)

    def entries(self) -> tuple[KeptAlarm, ...]:
        return tuple(self._kept)

    def after(self, number: int) -> list[KeptAlarm]:
        """Return the alarms that are new since this number."""
        return sorted((entry for entry in self._kept if entry.number > number), key=lambda entry: entry.number)

    def _entry_for(self, at: Instant, alarm: Alarm) -> KeptAlarm | None:
        """The entry in which this one is counted."""
        recent = [entry for entry in self._kept if entry.alarm.kind is alarm.kind and at - entry.first_at < REPEAT_NS]
        same = next((entry for entry in reversed(recent) if entry.alarm.about == alarm.about), None)
        return same or (recent[-1] if len(recent) >= ENTRIES_OF_KIND_MAX else None)

    def _add(self, at: Instant, alarm: Alarm) -> None:
        before = next((entry.count - 1 for entry in reversed(self._kept) if entry.alarm.about == alarm.about), 0)
        self._numbers += 1
        self._kept.append(KeptAlarm(self._numbers, at, at, alarm, before=before))
        self._firsts.setdefault(alarm.kind, self._numbers)
        if len(self._kept) > ALARMS_KEPT:
            self._give_up_one()

    def _give_up_one(self) -> None:
        kinds = Counter(entry.alarm.kind for entry in self._kept)
        most = max(kinds.values())
        gone = next(
            entry
            for entry in self._kept
            if kinds[entry.alarm.kind] == most and entry.number != self._firsts[entry.alarm.kind]
        )
        self._kept.remove(gone)
