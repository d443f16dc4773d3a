"""Turns: one of each session, changes a few at a time, and nothing lost or counted twice."""

from __future__ import annotations

import pytest

from ordercast.groups import turns
from ordercast.groups.turns import Turn, Turns, portions
from ordercast.model.service import Service


def turn_of(session: int, text: bytes, changes: int = 0) -> Turn:
    return Turn(session, (text,), Service.AGREED, len(text), changes)


def ready(groups: tuple[str, ...]) -> bool:
    """The engine brings what is sent to every group but g."""
    return "g" not in groups


def taken(waiting: Turns) -> list[bytes]:
    texts = []
    while waiting.first(ready) is not None:
        texts.append(waiting.take().payloads[0])
    return texts


def test_sessions_have_turns_one_of_each() -> None:
    waiting = Turns()
    for session, text in ((1, b"a1"), (1, b"a2"), (1, b"a3"), (2, b"b1"), (3, b"c1"), (3, b"c2")):
        waiting.add(turn_of(session, text))
    assert len(waiting) == 6 and waiting.size == 12 and waiting.size_of(1) == 6
    assert taken(waiting) == [b"a1", b"b1", b"c1", b"a2", b"c2", b"a3"]
    assert len(waiting) == waiting.size == waiting.size_of(1) == 0


def test_a_change_too_many_is_held_up_and_messages_pass_it_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CHANGING_MAX", 10)
    waiting = Turns()
    for session, text, changes in ((1, b"join", 8), (2, b"join too", 3), (2, b"after it", 0), (3, b"hello", 0)):
        waiting.add(turn_of(session, text, changes))
    assert taken(waiting) == [b"join", b"hello"] and waiting.changing == 8
    assert not waiting.are_ready and len(waiting) == 2
    waiting.came_back(1)
    assert taken(waiting) == [b"join too", b"after it"] and waiting.changing == 3


def test_a_change_larger_than_the_bound_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CHANGING_MAX", 10)
    waiting = Turns()
    waiting.add(turn_of(1, b"many", 100))
    waiting.add(turn_of(2, b"one", 1))
    waiting.add(turn_of(3, b"hello"))
    assert taken(waiting) == [b"many", b"hello"]
    waiting.begin_again()  # nobody knows what became of it
    assert taken(waiting) == [b"one"]


def test_changes_come_back_one_by_one_and_messages_are_none() -> None:
    waiting = Turns()
    for session, text, changes in ((1, b"hello", 0), (2, b"join", 8), (3, b"leave", 1)):
        waiting.add(turn_of(session, text, changes))
    assert taken(waiting) == [b"hello", b"join", b"leave"] and waiting.changing == 9
    waiting.came_back(1)
    assert waiting.changing == 1


def test_a_session_that_is_held_up_can_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CHANGING_MAX", 10)
    waiting = Turns()
    for session in (1, 2):
        waiting.add(turn_of(session, b"join", 8))
    assert taken(waiting) == [b"join"]
    assert waiting.drop(2) == [turn_of(2, b"join", 8)]
    waiting.came_back(1)
    assert not waiting.are_ready and len(waiting) == 0


def test_a_join_that_the_engine_is_not_ready_for_is_held_up_and_others_pass_it_by() -> None:
    waiting = Turns()
    for session, text, joins in ((1, b"join g", ("h", "g")), (1, b"after it", ()), (2, b"join h", ("h",))):
        waiting.add(turn_of(session, text, len(joins))._replace(joins=joins))
    assert taken(waiting) == [b"join h"]
    assert waiting.look_again() and not waiting.look_again()
    assert waiting.first(lambda groups: True) == turn_of(1, b"join g", 2)._replace(joins=("h", "g"))


def test_what_is_dropped_takes_no_turn_and_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "CHANGING_MAX", 10)
    waiting = Turns()
    for session, text, changes in ((1, b"join", 8), (2, b"x", 8), (2, b"bye", 1), (3, b"y", 0), (3, b"z", 0)):
        waiting.add(turn_of(session, text, changes))
    assert waiting.first(ready) is not None and waiting.take().payloads == (b"join",)
    assert waiting.first(ready) == turn_of(3, b"y")  # session 2 is held up
    assert waiting.drop(2, keep=1) == [turn_of(2, b"x", 8)]
    assert waiting.drop(3) == [turn_of(3, b"y"), turn_of(3, b"z")]
    assert waiting.drop(4) == []
    assert waiting.size == waiting.size_of(2) == 3 and waiting.size_of(3) == 0
    waiting.came_back(1)
    assert taken(waiting) == [b"bye"]


def test_portions_fit_and_lose_nothing() -> None:
    assert list(portions([b"12", b"34"], 10, 24)) == [(2, 24)]
    assert list(portions([], 10, 24)) == []
    assert list(portions([b"123456789"] * 4, 1, 39)) == [(1, 10), (2, 10), (3, 10), (4, 10)]
    assert list(portions([bytes(100)], 1, 20)) == [(1, 101)]
    assert list(portions([b"1"] * 10, 1, 16)) == [(4, 8), (8, 8), (10, 4)]
