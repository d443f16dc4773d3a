"""Remembering: what one replica notes for its journal, and what it knows from there when it begins. Pure.

The core (`core.py`) says when something has changed; the desk takes the notes, and lets nothing out before they are
safe (`book.py`). A stance is noted before the commands that came in its component, so that a journal which ends
anywhere never tells of commands in a component that is not theirs.
"""

from __future__ import annotations

from ordercast.replicated.decision import Knowledge
from ordercast.replicated.effects import Freeze, Note, Point
from ordercast.replicated.facts import Facts
from ordercast.replicated.journal import commands_note, stance_note
from ordercast.replicated.machine import StateMachine
from ordercast.replicated.quorum import Life, Rule
from ordercast.replicated.stance import Remembered, Stance
from ordercast.replicated.track import Held, Tails


class Remembering(Facts):
    def __init__(self, me: Life, machine: StateMachine, rule: Rule, outstanding_max: int, tails: Tails) -> None:
        super().__init__(me, machine, rule, outstanding_max, tails)
        self._notes: list[Note] = []  # for the journal
        self._noted: tuple[object, ...] | None = None  # of the last stance in it
        self._is_replaced = False  # the state here is another than the journal's

    def _remember(self, remembered: Remembered) -> None:
        memory, stance, picture, held = remembered
        self._copy.memory = memory
        if stance is None:
            return
        self._calendar.era, self._calendar.last = stance.era, stance.view
        self._knowledge = Knowledge(stance.formed)
        if stance.rank is not None:
            self._copy.remember(stance.rank, None if picture is None else picture[1:], held)
            self._copy.is_voter = stance.voter
        self._noted = stance.matter

    def notes(self) -> list[Note]:
        """What the journal is to remember, since the last call."""
        if self.memory:
            self._note_stance()
        notes, self._notes = self._notes, []
        return notes

    def _note_commands(self, commands: list[Held]) -> None:
        """They have their places, in the component that the journal knows by then."""
        self._note_stance()
        self._notes.append(commands_note(commands))

    def _note_replaced(self) -> None:
        self._is_replaced = True
        self._notes.clear()  # they are of the state that was here

    def _note_stance(self) -> None:
        """A copy that was spoilt is no news: the commands and pictures in the journal are as good as before."""
        stance = self.stance
        if not self._copy.is_spoilt and stance.matter != self._noted:
            self._noted = stance.matter
            self._notes.append(stance_note(stance))

    def was_replaced(self) -> bool:
        """Is the state here another than the journal's? Said once: it is to have a picture of this one."""
        was_replaced, self._is_replaced = self._is_replaced and bool(self.memory), False
        return was_replaced and not self._copy.is_spoilt

    def picture(self) -> tuple[Stance, Freeze] | None:
        """All that a journal must know. None: there is no state."""
        track = self._copy.track
        if track is None:
            return None
        frozen = Freeze(Point(track.term, 0), self._copy.preface(track.count), self._copy.machine.freeze())
        return self.stance, frozen
