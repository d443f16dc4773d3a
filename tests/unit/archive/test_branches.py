"""A branch from outside is what its name says, or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ordercast.archive.branches import Cause, branch_bytes, branch_from, branch_of
from ordercast.archive.layout import DESCRIPTION, tree_of
from ordercast.archive.lineage import Lineage
from ordercast.archive.places import NO_VIEW, UNREADABLE, Place
from ordercast.archive.statements import Kind, Statement, statement_bytes, statement_from
from ordercast.model.errors import WireError
from tests.unit.archive.test_lineage import at, joined

PARENT = Place("f" * 16, 40)
BRANCH = branch_of("orders", Cause.FORK, NO_VIEW, ("a@n1", "b@n2"), (PARENT,))
SETTLED = Statement(Kind.SETTLED, NO_VIEW, PARENT, 1)


def changed(**values: Any) -> bytes:
    return json.dumps(json.loads(branch_bytes(BRANCH)) | values).encode()


def test_a_branch_comes_back() -> None:
    assert branch_from(branch_bytes(BRANCH), "orders") == BRANCH


@pytest.mark.parametrize(
    "data",
    [
        changed(name="/tmp/OUTSIDE"),
        changed(name="../" + "0" * 13),
        changed(name="F" * 16),
        changed(name="0" * 16),
        changed(name=None),
        changed(name=BRANCH.name + "\n"),
        changed(cause="root"),
        changed(who=["c@n3"]),
        changed(who=5),
        changed(view="1.1:1.1"),
        changed(view="x"),
        changed(parents=[["f" * 16, 41]]),
        changed(parents=[["../x", 40]]),
        changed(parents=[["f" * 16, float("inf")]]),
        changed(parents=[[]]),
        b"{}",
        b"[" * 100_000,
        b"",
    ],
)
def test_a_branch_whose_name_is_not_that_of_its_content_is_none(data: bytes) -> None:
    with pytest.raises(UNREADABLE):
        branch_from(data, "orders")


def test_a_branch_of_another_group_is_none() -> None:
    with pytest.raises(ValueError, match="its content is that of"):
        branch_from(branch_bytes(BRANCH), "prices")


def test_a_folder_that_is_not_called_as_its_branch_is_none(tmp_path: Path) -> None:
    for name in (BRANCH.name, "0" * 16):
        (tmp_path / "orders" / name).mkdir(parents=True)
        (tmp_path / "orders" / name / DESCRIPTION).write_bytes(branch_bytes(BRANCH))
    assert tree_of(tmp_path / "orders") == {BRANCH.name: BRANCH}


@pytest.mark.parametrize(
    "values",
    [
        {"address": ["h", 0]},
        {"address": ["h", 65536]},
        {"address": ["", 1]},
        {"address": [5, 1]},
        {"address": ["h" * 256, 1]},
        {"address": "h"},
        {"place": "../x:1"},
        {"place": "0" * 16 + ":" + "9" * 30},
        {"branch": {"name": "/etc"}},
        {"sinks": {"s": {"query": "q"}}},
        {"sinks": 5},
        {"number": float("inf")},
    ],
)
def test_a_statement_with_something_wrong_in_it_is_none(values: dict[str, Any]) -> None:
    whole = json.loads(statement_bytes(SETTLED))
    assert statement_from(json.dumps(whole).encode(), "orders") == SETTLED
    with pytest.raises(WireError, match="this is no statement of an archiver"):
        statement_from(json.dumps(whole | values).encode(), "orders")


def test_what_is_said_by_somebody_who_is_no_archiver_changes_nothing() -> None:
    lineage = Lineage("orders", "a@n1")
    lineage.on_statement("b@n2", SETTLED)  # before one has joined
    lineage.on_control(joined(1, "a@n1", "a@n1", "b@n2"))
    assert not lineage.actions
    for kind in Kind:
        lineage.on_statement("mallory@n1", Statement(kind, at(1), PARENT, 1))
    assert not lineage.actions
    lineage.on_statement("b@n2", Statement(Kind.SETTLED, at(1), PARENT, 1))
    assert len(lineage.actions) == 1
