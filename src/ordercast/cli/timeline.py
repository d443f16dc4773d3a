"""A history as a person would tell it: who did what when, alike things told once, deliveries counted. Pure.

`Timeline` is fed events and faults in the order in which they happen. Processes that do the same within a short time
share an entry, unless that would turn the order of one process around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.effects import Alarm
from ordercast.model.ids import MILLISECOND, NO_CONFIGURATION, ConfigurationId, ProcessId, node_of, process_text
from ordercast.model.notes import Moved, Visited
from ordercast.model.service import Service
from ordercast.sim.faults import Fault, FaultKind
from ordercast.trace.records import (
    Crashed,
    DeliveredBatch,
    DeliveredMessage,
    Departed,
    Ended,
    Event,
    Healed,
    Installed,
    Noted,
    Saturated,
    Started,
    StorageTurned,
    Submitted,
    Wanted,
)

ALIKE_NS = 25 * MILLISECOND  # how far apart two processes may do the same and share an entry


class EntryKind(Enum):
    LIFE = "life"  # started, crashed, left
    FAULT = "fault"  # what the simulation inflicts
    REPAIR = "repair"  # what it gives back
    STATE = "state"  # a move of the membership algorithm
    VIEW = "view"  # a regular configuration
    TRANSITIONAL = "transitional"
    DELIVERED = "delivered"
    ALARM = "alarm"
    CLUSTER = "cluster"  # healed, saturated, ended


@dataclass(slots=True)
class Entry:
    at: int
    kind: EntryKind
    text: str
    processes: list[ProcessId] = field(default_factory=list)


@dataclass(slots=True)
class ProcessTally:
    """What one process did in its life."""

    views: int = 0
    submitted: int = 0
    delivered: int = 0
    retransmitted: int = 0
    requested: int = 0


@dataclass(slots=True)
class Stay:
    """What one process delivered in one view."""

    view: ConfigurationId
    services: Counter[int] = field(default_factory=Counter)
    streams: dict[tuple[ProcessId, int], list[tuple[int, int]]] = field(default_factory=dict)  # counters, first to last

    def add(self, messages: Iterable[DeliveredMessage]) -> None:
        for delivered in messages:
            self.services[delivered.service] += 1
            if delivered.message is not None:
                process, sender, counter = delivered.message
                ranges = self.streams.setdefault((process, sender), [])
                if ranges and ranges[-1][1] + 1 == counter:
                    ranges[-1] = ranges[-1][0], counter
                else:
                    ranges.append((counter, counter))

    def sentence(self, *, with_messages: bool) -> str:
        services = ", ".join(
            f"{count} {Service(number).name.lower()}" for number, count in sorted(self.services.items())
        )
        text = f"delivered {self.services.total()} in view {self.view}: {services}"
        return f"{text}; {self._messages()}" if with_messages and self.streams else text

    def _messages(self) -> str:
        """Return what was delivered of each stream, as witnesses name messages: `n0/0#1..5 n1/0#1`."""
        told = []
        for (process, sender), ranges in sorted(self.streams.items()):
            spans = ",".join(f"{first}" if first == last else f"{first}..{last}" for first, last in ranges)
            told.append(f"{process_text(process)}/{sender}#{spans}")
        return " ".join(told)


@dataclass(slots=True)
class Timeline:
    entries: list[Entry] = field(default_factory=list)
    tallies: dict[ProcessId, ProcessTally] = field(default_factory=dict)
    with_messages: bool = False  # deliveries name messages
    is_live: bool = False  # nobody saw when a process crashed, or when a network was whole again
    _stays: dict[ProcessId, Stay] = field(default_factory=dict)  # deliveries in the current view
    _last: dict[ProcessId, int] = field(default_factory=dict)  # index of a process's last entry
    _struck: tuple[int, int] = (-1, -1)  # time and node of the last fault that kills at once

    def strike(self, at: int, fault: Fault) -> None:
        later = ", at its next write to stable storage" if fault.kind.value.endswith("write") else ""
        is_repair = fault.kind in (FaultKind.HEAL, FaultKind.RESTART, FaultKind.MEND_DISK)
        self.entries.append(Entry(at, EntryKind.REPAIR if is_repair else EntryKind.FAULT, f"{fault}{later}"))
        if fault.kind in (FaultKind.CRASH, FaultKind.LOSE_DISK):
            self._struck = (at, fault.node)

    def alarm(self, at: int, process: ProcessId, alarm: Alarm) -> None:
        """Alarms are told after the run: each goes to its place by time."""
        place = len(self.entries)
        while place > 0 and self.entries[place - 1].at > at:
            place -= 1
        self.entries.insert(place, Entry(at, EntryKind.ALARM, f"{alarm.kind.value}: {alarm.text}", [process]))

    def observe(self, event: Event) -> None:
        match event:
            case Started(kept_storage=kept):
                fresh = "" if kept or event.process not in self.tallies else ", its storage lost"
                self._add(event.at, EntryKind.LIFE, f"started{fresh}", event.process)
            case Crashed():
                self._close_stay(event.at, event.process)
                if self._struck != (event.at, node_of(event.process)):
                    text = "its last record: it crashed" if self.is_live else "crashed"
                    self._add(event.at, EntryKind.LIFE, text, event.process)
            case Departed():
                self._close_stay(event.at, event.process)
                self._add(event.at, EntryKind.LIFE, "left in order", event.process)
            case Submitted():
                self.tally(event.process).submitted += len(event.messages)
            case DeliveredBatch():
                self._deliver(event)
            case Installed():
                self._install(event)
            case Noted():
                self._note(event)
            case StorageTurned(in_use=in_use):
                text = "uses stable storage again" if in_use else "goes on without stable storage"
                self._add(event.at, EntryKind.LIFE, text, event.process)
            case Wanted(destinations=wanted, begins=begins):
                text = f"{'gets' if begins else 'may lack'} what is sent to {', '.join(wanted)}"
                self._add(event.at, EntryKind.LIFE, text, event.process)
            case Healed() | Saturated() | Ended():
                self._cluster(event)

    def tally(self, process: ProcessId) -> ProcessTally:
        return self.tallies.setdefault(process, ProcessTally())

    def _deliver(self, event: DeliveredBatch) -> None:
        stay = self._stays.get(event.process)
        if stay is None or stay.view != event.configuration:
            self._close_stay(event.at, event.process)
            stay = self._stays[event.process] = Stay(event.configuration)
        stay.add(event.messages)
        self.tally(event.process).delivered += len(event.messages)

    def _install(self, event: Installed) -> None:
        self._close_stay(event.at, event.process)
        self.tally(event.process).views += event.configuration.kind is ConfigurationKind.REGULAR
        kind = EntryKind.VIEW if event.configuration.kind is ConfigurationKind.REGULAR else EntryKind.TRANSITIONAL
        self._add(event.at, kind, view_sentence(event.configuration), event.process)

    def _note(self, event: Noted) -> None:
        note = event.note
        if isinstance(note, Visited):
            tally = self.tally(event.process)
            tally.retransmitted += note.retransmitted
            tally.requested += note.requested
        elif isinstance(note, Moved):
            reason = "" if note.reason is None else f"{note.reason.text}; "
            self._add(event.at, EntryKind.STATE, f"{note.origin} → {note.target}: {reason}{note.text}", event.process)

    def _cluster(self, event: Healed | Saturated | Ended) -> None:
        match event:
            case Healed():
                whole = "the network is known to be whole" if self.is_live else "the network heals for good"
                text = f"{whole}; alive: {names(event.alive)}"
            case Saturated(begins=begins):
                text = f"{names(event.senders)} {'begin' if begins else 'cease'} to send without pause"
            case Ended(complete=complete):
                for process in sorted(self._stays):
                    self._close_stay(event.at, process)
                text = "the run ends" if complete else "the record is cut short"
        self.entries.append(Entry(event.at, EntryKind.CLUSTER, text))

    def _close_stay(self, at: int, process: ProcessId) -> None:
        stay = self._stays.pop(process, None)
        if stay is not None and stay.services:
            self._add(at, EntryKind.DELIVERED, stay.sentence(with_messages=self.with_messages), process)

    def _add(self, at: int, kind: EntryKind, text: str, process: ProcessId) -> None:
        self.tally(process)
        for index in range(len(self.entries) - 1, self._last.get(process, -1), -1):
            entry = self.entries[index]
            if at - entry.at > ALIKE_NS:
                break
            if (entry.kind, entry.text) == (kind, text):
                entry.processes.append(process)
                self._last[process] = index
                return
        self._last[process] = len(self.entries)
        self.entries.append(Entry(at, kind, text, [process]))


def names(processes: Iterable[ProcessId]) -> str:
    return " ".join(process_text(process) for process in processes) or "nobody"


def view_sentence(view: Configuration) -> str:
    if view.kind is ConfigurationKind.TRANSITIONAL:
        return f"transitional view {view.id} of {names(view.members)}, ends view {view.previous}: {view.reason.text}"
    came = names(view.transitional)
    along = "all came along together" if view.transitional == view.members else f"transitional set {came}"
    if view.previous == NO_CONFIGURATION:
        along = "the first of this life"
    return f"view {view.id} of {names(view.members)}, {along}: {view.reason.text}"
