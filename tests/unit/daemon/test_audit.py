"""The audit log: one line a minute for what repeats, a bound for what does not, and nothing that moves a terminal."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ordercast.daemon.audit import MATTERS_MAX, Audit, Audited


def _told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, Any]]:
    return [(record.getMessage(), record.__dict__["fields"]) for record in caplog.records]


def test_what_repeats_within_a_minute_is_one_line_and_its_number_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = [0.0]
    audit = Audit(clock=lambda: now[0])
    for _ in range(5):
        audit.tell(Audited.DENIED, "no", who="user:a", group="orders", why="send")
    audit.tell(Audited.DENIED, "no", who="user:b", group="orders", why="send")
    now[0] = 59.0
    audit.look()
    assert [(text, fields["who"]) for text, fields in _told(caplog)] == [("no", "user:a"), ("no", "user:b")]
    now[0] = 61.0
    audit.look()
    text, fields = _told(caplog)[-1]
    assert text == "no (4 times more in the last minute)"
    assert fields == {"what": "denied", "who": "user:a", "from": "", "group": "orders", "why": "send", "count": 4}
    audit.tell(Audited.DENIED, "no", who="user:a", group="orders", why="send")
    assert len(caplog.records) == 4


def test_who_connects_again_is_not_called_by_the_name_of_its_first_client(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = [0.0]
    audit = Audit(clock=lambda: now[0])
    for name in ("ann", "bob"):
        audit.tell(Audited.CONNECTED, f"{name}@n1 connected: user:a, from user 0", who="user:a", place="user 0")
    now[0] = 61.0
    audit.look()
    texts = [text for text, _ in _told(caplog)]
    assert texts == [
        "ann@n1 connected: user:a, from user 0",
        "user:a connected once more in the last minute, from user 0",
    ]


def test_matters_are_bounded_and_shown_safely(caplog: pytest.LogCaptureFixture) -> None:
    audit = Audit(clock=lambda: 0.0)
    for number in range(3 * MATTERS_MAX):
        audit.tell(Audited.REFUSED, f"\x1b[31m{number}", place=str(number))
    assert len(caplog.records) == MATTERS_MAX + 1
    assert not any("\x1b" in text for text, _ in _told(caplog))
