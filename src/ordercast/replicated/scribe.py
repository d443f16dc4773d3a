"""Scribe: the part of a desk that keeps the journal. Pure.

What the core notes goes into the book, what has waited for the disk goes out when it is safe, and the disk is told what
to write next. Without a journal it does nothing.
"""

from __future__ import annotations

from ordercast.model.ids import Instant
from ordercast.replicated.book import PENDING_MAX, Book
from ordercast.replicated.core import Core
from ordercast.replicated.effects import DeskEffect, Snapshot
from ordercast.replicated.stance import encode_stance
from ordercast.replicated.wire import Durable, encode_durable


class Scribe:
    def __init__(self, core: Core, book: Book | None) -> None:
        self.core = core
        self.outgoing: list[bytes] = []  # to be sent to the group, in order, with service SAFE
        self.asides: list[bytes] = []  # likewise, with service AGREED: what they say is true already
        self._book = book

    def _drop_outgoing(self) -> None:
        self.outgoing.clear()
        self.asides.clear()
        if self._book is not None:
            self._book.drop()

    def written(self, now: Instant, number: int) -> list[DeskEffect]:
        """The write with this number is safe, and all before it."""
        effects: list[DeskEffect] = []
        if self._book is not None:
            self._book.written(number)
            self._release(self._book, effects)
        return effects

    def pictured(self, now: Instant, size: int) -> list[DeskEffect]:
        """The journal begins with the last Snapshot, which has this size."""
        if self._book is not None:
            self._book.pictured(size)
        return []

    def _note(self, book: Book, effects: list[DeskEffect]) -> None:
        """What has just happened is to be remembered before it is spoken of."""
        notes = self.core.notes()
        if self.core.was_replaced():
            self._snapshot(book.replace(), effects)
        elif notes:
            book.note(notes)
        book.claim(self.core.claim)

    def _snapshot(self, number: int, effects: list[DeskEffect]) -> None:
        picture = self.core.picture()
        assert picture is not None, "there is nothing to take a picture of"
        effects.append(Snapshot(encode_stance(picture[0]), picture[1], number))

    def _release(self, book: Book, effects: list[DeskEffect]) -> None:
        """Send what has waited for the journal, and give it what it is to write next."""
        self.outgoing += book.sent()
        claim, now = book.said(), self.core.claim
        if claim is not None and now is not None and claim[:2] == now[:2]:
            self.asides = [encode_durable(Durable(*claim))]
        if book.wants_picture and self.core.lineage is not None:
            if book.pending_size > PENDING_MAX:
                self._snapshot(book.replace(), effects)
            else:
                effects += [write] if (write := book.flush()) is not None else []
                book.picture()
                self._snapshot(0, effects)
        if (write := book.write()) is not None:
            effects.append(write)
