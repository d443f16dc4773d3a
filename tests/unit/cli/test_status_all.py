"""`status --all`: whoever answers in another's place is not taken for it."""

from __future__ import annotations

from typing import Any

import pytest

from ordercast.cli import status_all
from ordercast.cli.status import Unanswered


def test_a_node_at_whose_place_another_answers_was_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = [{"node": n, "name": name, "status": ":4790"} for n, name in ((1, "alpha"), (2, "beta"), (4, "delta"))]
    first: dict[str, Any] = {"me": {"node": 1, "name": "alpha"}, "everybody": everybody}

    def fetch(host: str, port: int, timeout_s: float) -> dict[str, Any]:
        return {"me": {"node": 2, "name": "beta"}}

    monkeypatch.setattr(status_all, "fetch", fetch)
    answers = status_all.asked(first)
    assert answers[1] is first
    assert answers[2] == {"me": {"node": 2, "name": "beta"}}
    delta = answers[4]
    assert isinstance(delta, Unanswered)
    assert (delta.kind, "beta answers at :4790" in delta.remark) == ("not asked", True)
