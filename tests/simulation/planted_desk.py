"""Faults planted in the desk of replicas, and in how they fetch states: what live and simulated ones have alike."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import pytest

from ordercast.model.events import View
from ordercast.model.ids import Instant
from ordercast.replicated.arrival import Arrival
from ordercast.replicated.batching import Batches, CommandBatch, encode_batch
from ordercast.replicated.copy import Arriving, Copy
from ordercast.replicated.desk import Desk
from ordercast.replicated.effects import DeskEffect, Fetch
from ordercast.replicated.frames import END, PIECE, TransferFrame, key_of
from ordercast.replicated.wire import decode_preface


def batch_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A batch that is submitted while the replica is not in the group is dropped, instead of waiting for a view."""
    right = Desk._submit

    def wrong(self: Desk, now: Instant, effects: list[DeskEffect]) -> None:
        if self.core.is_in_group:
            right(self, now, effects)
        else:
            list(self._batches.take())

    patch.setattr(Desk, "_submit", wrong)


def batch_resubmitted(patch: pytest.MonkeyPatch) -> None:
    """At a view what has no answer is submitted once more, under other numbers."""
    right = Desk.on_view

    def wrong(self: Desk, now: Instant, view: View) -> list[DeskEffect]:
        effects = right(self, now, view)
        for batch in list(self._batches.underway.values()):
            _, found = self.core.submit(encode_batch(batch.commands))
            self._take(now, found, effects)
        return effects

    patch.setattr(Desk, "on_view", wrong)


def given_up_sent(patch: pytest.MonkeyPatch) -> None:
    """When there is room, what waited for it is submitted, whoever still waits."""
    right = Batches.settle

    class Ever:
        def done(self) -> bool:
            return False

    def wrong(self: Batches, number: int) -> tuple[CommandBatch | None, bool]:
        gone = {id(ticket): ticket for _, ticket in self._queue if ticket.done()}
        queue = [(command, Ever() if id(ticket) in gone else ticket) for command, ticket in self._queue]
        self._queue.clear()
        self._queue.extend(queue)
        found = right(self, number)
        self.next.tickets[:] = [None if isinstance(ticket, Ever) else ticket for ticket in self.next.tickets]
        return found

    patch.setattr(Batches, "settle", wrong)


def departure_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Nobody says that an owner is gone."""
    patch.setattr(Desk, "_departed", lambda self: None)


def back_unsaid(patch: pytest.MonkeyPatch) -> None:
    """Who begins, or was cut off, does not say that what it had is lost."""
    patch.setattr(Desk, "_say_back", lambda self, effects: None)


def _taking(patch: pytest.MonkeyPatch, kinds: Iterable[str]) -> None:
    """Take frames as they come. `kinds` says which of its checks a fetcher leaves out."""
    right = Arrival.on_frame

    def wrong(self: Arrival[Any], now: Instant, frame: TransferFrame) -> list[DeskEffect]:
        if frame.kind == PIECE:
            number = self.pieces if "number" in kinds else frame.number
            checksum = zlib.crc32(frame.body) if "checksum" in kinds else frame.checksum
            frame = frame._replace(number=number, checksum=checksum)
        elif frame.kind == END and "end" in kinds:
            frame = frame._replace(number=self.pieces, checksum=self._chain)
        return right(self, now, frame)

    patch.setattr(Arrival, "on_frame", wrong)


def gap_taken(patch: pytest.MonkeyPatch) -> None:
    """A piece that is missing is not noticed."""
    _taking(patch, ("number", "end"))


def damage_taken(patch: pytest.MonkeyPatch) -> None:
    """A checksum that is wrong is not noticed."""
    _taking(patch, ("checksum", "end"))


def pictures_mixed(patch: pytest.MonkeyPatch) -> None:
    """Pieces are not checked as a whole, and donors give what they have now."""
    _taking(patch, ("end",))


def wrong_point(patch: pytest.MonkeyPatch) -> None:
    """A transfer goes on with what has come for another state, and nobody looks whether it is the one wanted."""
    right = Desk._fetch

    def fetch(self: Desk, now: Instant, fetch: Fetch, effects: list[DeskEffect]) -> None:
        self._point = fetch.point
        if self._arrival is not None:
            self._arrival.key = key_of(fetch.point)
        right(self, now, fetch, effects)

    def load(self: Copy, arriving: Arriving, preface: bytes, pieces: Iterable[bytes]) -> None:
        _, digest, sessions, held = decode_preface(preface)
        self.machine.load(pieces)
        self.track, self.sessions, self.applied_digest = arriving.track, sessions, digest
        self.track.held.prepend(held)

    patch.setattr(Desk, "_fetch", fetch)
    patch.setattr(Copy, "load", load)
    _taking(patch, ("end",))
