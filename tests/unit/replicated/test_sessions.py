"""A command that is sent twice is applied once, also when another one overtook it."""

from __future__ import annotations

import pytest

from ordercast.replicated import sessions as module
from ordercast.replicated.sessions import Outcome, Sessions


def test_a_request_is_admitted_once() -> None:
    sessions = Sessions()
    assert sessions.admits(7, 1, 0)
    sessions.remember(7, 1, Outcome(1, b"x"))
    assert not sessions.admits(7, 1, 0) and sessions.outcome(7, 1) == Outcome(1, b"x")
    assert sessions.admits(8, 1, 0) and sessions.outcome(8, 1) is None


def test_one_that_was_overtaken_is_admitted() -> None:
    sessions = Sessions()
    assert sessions.admits(7, 2, 0)
    sessions.remember(7, 2, Outcome(1, b""))
    assert sessions.admits(7, 1, 0)


def test_what_is_settled_is_forgotten_and_never_admitted_again() -> None:
    sessions = Sessions()
    for request in (1, 2):
        sessions.admits(7, request, 0)
        sessions.remember(7, request, Outcome(request, b""))
    assert sessions.admits(7, 4, 2)
    assert sessions.outcome(7, 2) is None and not sessions.admits(7, 2, 0)
    assert sessions.admits(7, 3, 2)


def test_the_least_recently_used_is_forgotten_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SESSIONS_MAX", 2)
    sessions = Sessions()
    for life in (1, 2, 1, 3):
        sessions.admits(life, 1, 0)
    assert list(sessions.by_life) == [1, 3]
