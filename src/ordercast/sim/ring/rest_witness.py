"""Judges where and when an idle ring's token rests, from the histories of all members, which only the simulator has.

Nothing that an application sees is promised here, so nobody is told of it while it holds. What breaks it costs time: a
message waits at some members until the rest is over, or the token rests where nobody looks for it.
"""

from __future__ import annotations

from ordercast.checker.verdict import Verdict
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import NO_SEQ, ConfigurationId, ProcessId, process_text
from ordercast.model.notes import Note, Occurred, Occurrence, Visited
from ordercast.model.promises import RestPromise
from ordercast.sim.findings import Findings
from ordercast.trace.records import Crashed, DeliveredBatch, Departed, Event, Installed, Noted


class RestWitness:
    def __init__(self) -> None:
        self._views: dict[ProcessId, Configuration] = {}  # the regular view that each is in
        self._rested: dict[tuple[ProcessId, ConfigurationId], int] = {}  # the seq with which the token rested last
        self._sent: dict[ConfigurationId, tuple[int, ProcessId]] = {}  # the highest seq since installation, by whom
        self._resting: set[ProcessId] = set()  # whose next visit is one with a token that rests
        self._findings = Findings()

    def observe(self, event: Event) -> None:
        if isinstance(event, Noted):
            self._note(event.process, event.note)
        elif isinstance(event, DeliveredBatch):
            self._deliver(event)
        elif isinstance(event, Installed):
            if event.configuration.kind is ConfigurationKind.REGULAR:
                self._views[event.process] = event.configuration
        elif isinstance(event, Crashed | Departed):
            self._views.pop(event.process, None)

    def _note(self, process: ProcessId, note: Note) -> None:
        if isinstance(note, Occurred):
            if note.what is Occurrence.TOKEN_RESTED:
                self._resting.add(process)
        elif isinstance(note, Visited):
            view = self._views.get(process)
            if view is None or view.id != note.ring:
                return  # the ring is being formed: its packets carry no messages
            if note.sent:
                self._sent[note.ring] = note.seq, process
            if process in self._resting:
                self._resting.discard(process)
                self._judge(process, view)

    def _judge(self, process: ProcessId, view: Configuration) -> None:
        """A visit is made and the token is kept."""
        seq, sender = self._sent.get(view.id, (NO_SEQ, process))
        if sender != process:
            what = f"the token rested here, not with {process_text(sender)}, who sent last"
            self._findings.add(RestPromise.PLACE, what, process, view.id)
        for member in view.members:
            its_view = self._views.get(member)
            if its_view is not None and its_view.id == view.id:  # otherwise it has gone, or gone on
                self._rested[member, view.id] = seq

    def _deliver(self, event: DeliveredBatch) -> None:
        """What comes now from below the seq of a rest had not been delivered then. Packets of a message that was not
        whole then have their message above it."""
        number = event.messages[0].number
        if number <= self._rested.get((event.process, event.origin), NO_SEQ):
            what = f"the token rested before {process_text(event.process)} had delivered packet {number}"
            self._findings.add(RestPromise.COMPLETE, what, event.process, event.origin)

    def verdicts(self) -> list[Verdict]:
        """Return a verdict on what was broken."""
        return self._findings.broken()
