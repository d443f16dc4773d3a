"""`ordercast graph`: builders compared on groups that a file lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ordercast.cli.main import run
from ordercast.order.tree.builders import BUILDERS

GROUPS = """\
# the example of Figure 3.4
orders: a b d e
prices 20/s: b, c, f   # twenty messages a second
audit: d e f g
"""


@pytest.fixture
def groups(tmp_path: Path) -> str:
    path = tmp_path / "groups.txt"
    path.write_text(GROUPS)
    return str(path)


def test_builders_are_compared_in_a_table(groups: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "plan", groups, "--forest", "heuristic-1"]) == 0
    text = capsys.readouterr().out
    assert "3 groups of 3 to 4 on 7 hosts, 3.7 members on average" in text
    assert all(name in text for name in BUILDERS)
    assert "b (2 groups enter here)\n├── a\n├── c\n└── d (1 group enters here)" in text


def test_the_same_as_a_document(groups: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "plan", groups, "--builder", "heuristic-1", "--forest", "heuristic-1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["hosts"], document["groups"], list(document["builders"])) == (7, 3, ["heuristic-1"])
    assert document["builders"]["heuristic-1"]["extra"] == pytest.approx(20 / 22)
    assert document["forest"] == {"a": "b", "b": None, "c": "b", "d": "b", "e": "d", "f": "d", "g": "d"}


def test_bypass_edges_are_simulated_where_they_are_asked_for(groups: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "plan", groups, "--builder", "heuristic-1", "--bypass", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["bypass"]
    assert (found["extra"], found["removed"], found["inverted"]) == (1, 1, 0)
    assert found["in_circles"] > 0
    assert run(["graph", "plan", groups, "--builder", "heuristic-1", "--bypass"]) == 0
    assert "past 1 of 1 extra hosts" in " ".join(capsys.readouterr().out.split())


def test_groups_may_be_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "groups.json"
    path.write_text('{"orders": ["a", "b"], "prices": ["c", "b"]}')
    assert run(["graph", "plan", str(path), "--builder", "auto", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["builders"]["auto"]["trees"] == 1


def test_many_groups_are_too_many_for_the_thesis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "groups.txt"
    path.write_text("".join(f"g{place}: h{place} h{place + 1}\n" for place in range(0, 4_010, 2)))
    assert run(["graph", "plan", str(path), "--builder", "shallow", "--builder", "heuristic-1"]) == 0
    assert "heuristics are left out: more than 2,000 groups" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("", (), "has no groups: write a line"),
        ("orders a b", (), "line 1: 'orders a b' is no group: write `NAME: HOST HOST …`"),
        ("a: b\n\na: c", (), "line 3: group 'a' was there before"),
        ("a fast: b c", (), "line 1: 'fast' is no rate: write messages a second"),
        ("{", (), "cannot be read as JSON"),
        ('{"a": "b"}', (), "'a' is no group"),
        ("a: b c", ("--builder", "steep"), "there is no builder 'steep': choose among auto, shallow"),
        ("a: b c", ("--forest", "steep"), "there is no builder 'steep'"),
    ],
)
def test_what_cannot_be_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: tuple[str, ...], reason: str
) -> None:
    path = tmp_path / "groups.txt"
    path.write_text(text)
    assert run(["graph", "plan", str(path), *words]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "plan", str(tmp_path / "none.txt")]) == 2
    err = capsys.readouterr().err
    assert "cannot be read" in err and "Errno" not in err


def test_the_laboratory_says_what_each_protocol_keeps_and_where_it_gives_no_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["graph", "laboratory", "--seeds", "40..41"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Protocol 5: a tree built anew without its root" in text
    assert "not promised; broken with seed 41" in text and "BROKEN" not in text
    assert run(["graph", "laboratory", "--seeds", "1..1", "--json"]) == 1  # no inversion there
    document = json.loads(capsys.readouterr().out)
    not_shown = [(one["protocol"], one["guarantee"]) for one in document["guarantees"] if not one["as_said"]]
    assert not_shown == [("Protocol 5", "R1")]
