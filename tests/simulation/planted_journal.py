"""Faults planted in the journals of replicas: what an implementer might get wrong between a replica and its disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from ordercast.model.ids import MILLISECOND
from ordercast.model.promises import ReplicaPromise as Promise
from ordercast.replicated import decision as decision_module
from ordercast.replicated import journal as journal_module
from ordercast.replicated.book import Book
from ordercast.replicated.component import Component
from ordercast.replicated.core import Core
from ordercast.replicated.decision import Knowledge, States, voice_of
from ordercast.replicated.effects import Note
from ordercast.replicated.journal import FRAME, MAGIC, Journal, JournalFrame
from ordercast.replicated.quorum import Life, Rule
from ordercast.replicated.stance import Remembered
from ordercast.replicated.track import Rank
from ordercast.sim import replicas as replicas_module
from ordercast.sim.options import SimOptions
from ordercast.sim.swarm import DURABLE_FIRST, hostile_replica_options

LOST = frozenset({Promise.DURABILITY, Promise.SAME_COMMANDS, Promise.ONE_PRIMARY, Promise.LINEARISABLE})
TWICE = frozenset({Promise.ONCE, Promise.SAME_COMMANDS, Promise.CONFIRMATIONS})


@dataclass(frozen=True)
class PlantedInJournal:
    name: str
    plant: Callable[[pytest.MonkeyPatch], None]
    broken: frozenset[Promise] = LOST
    first: int = DURABLE_FIRST
    runs: int = 25
    options: Callable[[int], SimOptions] = hostile_replica_options


def dark(seed: int) -> SimOptions:
    """Nothing happens but power cuts."""
    return SimOptions(
        nodes=3,
        messages=150,
        replicas=1,
        replica_weights=(1, 1, 1),
        journals=True,
        power_cuts=4,
        fault_time_ns=1_200 * MILLISECOND,
    )


def _not_synced(patch: pytest.MonkeyPatch) -> None:
    """What was appended is called safe, and is not."""

    def wrong(self: Journal) -> None:
        self._safe, self._last_safe = self._size, self._last
        if self._old is not None:
            self._folder.sync_names()
            self._folder.remove(self._old)
            self._old = None

    patch.setattr(Journal, "sync", wrong)


def _torn_is_taken(patch: pytest.MonkeyPatch) -> None:
    """Whatever its checksum is, and though its end is missing."""

    def wrong(data: bytes, at: int) -> JournalFrame | None:
        if len(data) - at < FRAME.size:
            return None
        magic, size, _, kind, number, safe = FRAME.unpack_from(data, at)
        end = min(at + FRAME.size + size, len(data))
        return JournalFrame(kind, number, safe, data[at + FRAME.size : end], end) if magic == MAGIC else None

    patch.setattr(journal_module, "frame_at", wrong)


def _picture_before_it_is_safe(patch: pytest.MonkeyPatch) -> None:
    """A picture takes the place of the journal before it is on the disk."""
    right = Journal.finish

    def wrong(self: Journal, number: int = 0) -> int:
        folder = self._folder
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(type(folder), "sync", lambda self, name: None)
            return right(self, number)

    patch.setattr(Journal, "finish", wrong)


def _picture_without_what_came_since(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Journal, "_copy_tail", lambda self, tail: None)


def _one_disk_is_enough(patch: pytest.MonkeyPatch) -> None:
    """It is safe on the fastest one, and the others are far slower."""
    right = Component.lift
    patch.setattr(replicas_module, "_SLOWNESS", (1, 12, 12))

    def wrong(self: Component, rule: Rule) -> bool:
        before = self.limit
        right(self, rule)
        self.limit = max(self.limit, *self.safe.values(), 0) if self.safe else self.limit
        return self.limit > before

    patch.setattr(Component, "lift", wrong)


def _safe_when_it_is_handed_over(patch: pytest.MonkeyPatch) -> None:
    """Spoken of before the disk has it, which takes its time."""
    right = Book.note
    patch.setattr(replicas_module, "_SLOWNESS", (12,))

    def wrong(self: Book, notes: Sequence[Note]) -> None:
        right(self, notes)
        self.safe = self.noted + 1

    patch.setattr(Book, "note", wrong)


def _every_journal_votes(patch: pytest.MonkeyPatch) -> None:
    """Whatever it has, a new one too, after a disk was lost."""
    right = decision_module._votes
    patch.setattr(replicas_module, "_DISK_LOSS_PROBABILITY", 0.5)
    patch.setattr(replicas_module, "_SLOWNESS", (1, 12))

    def wrong(best: Rank, states: States, knowledge: Knowledge) -> dict[str, tuple[Life, ...]]:
        voices = {name: (voice_of(name, state),) for name, state in states.items() if state.memory}
        return right(best, states, knowledge) | voices

    patch.setattr(decision_module, "_votes", wrong)


def _sessions_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Who comes back does not know what was applied of whom."""
    right = Core._remember

    def wrong(self: Core, remembered: Remembered) -> None:
        right(self, remembered)
        self._copy.sessions.by_life.clear()

    patch.setattr(Core, "_remember", wrong)


PLANTED_IN_JOURNALS = (
    PlantedInJournal("nothing is synced", _not_synced),
    PlantedInJournal("a torn record is taken", _torn_is_taken, first=2_000_050),
    PlantedInJournal("a picture counts before it is safe", _picture_before_it_is_safe),
    PlantedInJournal("a picture without what came since", _picture_without_what_came_since),
    PlantedInJournal("one disk is enough", _one_disk_is_enough, options=dark),
    PlantedInJournal("spoken of before it is safe", _safe_when_it_is_handed_over, options=dark),
    PlantedInJournal("every journal votes", _every_journal_votes, first=2_000_080, options=dark),
    PlantedInJournal("who comes back has forgotten the sessions", _sessions_forgotten, LOST | TWICE),
)
