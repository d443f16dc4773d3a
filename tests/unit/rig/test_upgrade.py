"""The judge of upgrades: what it lets pass, and what it does not."""

from __future__ import annotations

from typing import Any

from rig.upgrade import problems


def _told(read: str, sure: str = "", unsure: str = "") -> dict[str, Any]:
    """`read`: letters, which stand for messages at places of their own; a dot is a gap, `A` is `a` at another place."""
    stream = [None if letter == "." else [letter, letter.lower()] for letter in read]
    return {"read": stream, "sure": list(sure), "unsure": list(unsure)}


def test_readers_that_missed_something_are_no_problem_where_they_said_so() -> None:
    assert problems([_told("abc.f", "ace"), _told("bcdef", "bdf"), _told("a.de")]) == []


def test_an_unsure_message_may_be_missing() -> None:
    assert problems([_told("ab", "a", "bc")]) == []


def test_what_was_confirmed_is_read_once() -> None:
    assert problems([_told("ab", "abc")]) == ["c was confirmed, and was read 0 times"]
    assert problems([_told("abA", "ab")]) == ["a was confirmed, and was read 2 times"]


def test_what_is_unsure_is_read_once_at_most() -> None:
    assert problems([_told("abA", "b", "a")]) == ["a was unsure, and was read 2 times"]


def test_nothing_is_read_that_nobody_sent() -> None:
    assert problems([_told("ab", "a")]) == ["b was never sent"]


def test_readers_agree_on_the_order_and_leave_nothing_out() -> None:
    assert problems([_told("abc", "abc"), _told("acb")]) != []
    assert problems([_told("abc", "abc"), _told("ac")]) != []
