"""The book of a desk with a journal: when there is to be a new picture."""

from __future__ import annotations

import pytest

from ordercast.replicated.book import GROWN_MAX, GROWN_MIN, GROWN_RATIO, Book
from ordercast.replicated.effects import Note
from ordercast.replicated.frames import PIECE_SIZE_MAX


@pytest.mark.parametrize(
    ("picture_size", "limit"),
    [(0, GROWN_MIN), (10 << 20, GROWN_RATIO * 10 << 20), (1 << 40, GROWN_MAX)],
)
def test_a_picture_is_wanted_when_too_much_has_come_behind_the_last(picture_size: int, limit: int) -> None:
    """Never more than fits into one piece of a state, however large that is: others get it in one."""
    assert limit <= PIECE_SIZE_MAX // 2
    book = Book(grown=limit, picture_size=picture_size)
    assert not book.wants_picture
    book.note([Note(1, b"x")])
    assert book.wants_picture
