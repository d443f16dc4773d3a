"""`ordercast trace show`: what became of a message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ordercast.checker.verdict import message_text
from ordercast.cli.main import run
from ordercast.cli.trace_show import MISSING, Lives, rows_around
from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import (
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    process_id_from,
    process_text,
)
from ordercast.trace.parquet import read_events
from ordercast.trace.records import (
    DeliveredBatch,
    DeliveredMessage,
    Ended,
    Event,
    Installed,
    MessageId,
    Submitted,
    SubmittedMessage,
)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    assert run(["sim", "--nodes", "3", "--messages", "5", "--seed", "7", "--trace", str(folder)]) == 0
    return next(folder.glob("run-*.parquet"))


def test_a_message_is_drawn_from_its_sending_to_its_last_delivery(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", "show", str(trace), "--message", "nobody"]) == 2
    said = capsys.readouterr().err
    assert "there is no message 'nobody' in this run: name one as witnesses do, such as n" in said
    name = said.split("such as ")[1].split()[0].rstrip(".")
    assert run(["trace", "show", str(trace), "--message", name, "--around", "1ms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["n0", "n1", "n2"]
    assert sum("●" in line and f"sends {name}" in line for line in lines) == 1
    assert sum("▼" in line and f"delivers {name} in view" in line for line in lines) == 3
    assert run(["trace", "show", str(trace), "--message", name, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["message"] == name and len(document["rows"]) >= 4


def test_without_a_message_the_timeline_is_told(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "show", str(trace)]) == 0
    assert "view" in capsys.readouterr().out
    assert run(["trace", "show", str(trace), "--around", "5ms"]) == 2
    assert "--around is for the time around one message: name it with --message" in capsys.readouterr().err
    assert run(["trace", "show", str(trace.parent / "nothing")]) == 2
    assert "is not there: name a run-" in capsys.readouterr().err


def test_who_went_on_without_a_message_is_drawn_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faults = ["--fault", "0.2s partition n0 n1 | n2 n3", "--fault", "0.6s heal"]
    assert run(["sim", "--nodes", "4", "--messages", "200", "--seed", "3", *faults, "--trace", str(tmp_path)]) == 0
    (trace,) = tmp_path.glob("run-*.parquet")
    delivered: dict[str, set[int]] = {}
    for event in read_events(trace):
        if isinstance(event, DeliveredBatch):
            for each in event.messages:
                if each.message is not None:
                    delivered.setdefault(message_text(each.message), set()).add(event.process >> 48)
    message = next(name for name, nodes in delivered.items() if nodes == {0, 1})
    capsys.readouterr()
    assert run(["trace", "show", str(trace), "--message", message]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["n0", "n1", "n2", "n3"]
    assert sum("✗" in line and f"without having delivered {message}" in line for line in lines) == 2
    assert run(["trace", "show", str(tmp_path)]) == 2
    assert "is a folder of runs: name one of them, such as " in capsys.readouterr().err


def test_lives_of_live_nodes_are_numbered() -> None:
    first, second, other = (process_id_from(NodeId(n), Incarnation(at)) for n, at in ((1, 1700), (1, 1800), (2, 1750)))
    lives = Lives([second, other, first])
    said = f"view 8.{process_text(second)} of {process_text(first)} {process_text(other)}"
    assert lives.text(f"{said}, n9'123 and n1'{10**20}") == f"view 8.n1'2 of n1 n2, n9'123 and n1'{10**20}"


def test_who_was_in_the_view_of_its_delivery_is_owed_it() -> None:
    """It was sent in a view of one, and delivered in the next, by its sender alone."""
    one, two, three = (process_id_from(NodeId(n), Incarnation(1)) for n in (0, 1, 2))
    sent = MessageId(one, 0, 1)

    def view(seq: int, *members: ProcessId) -> Configuration:
        id = ConfigurationId(seq, members[0])
        return Configuration(
            ConfigurationKind.REGULAR, id, members, id, members, ChangeReason.MERGE, Position(id, Seq(0), 0)
        )

    together, later = view(8, one, two, three), view(12, one, two)
    events: list[Event] = [
        Installed(Instant(0), one, view(4, one)),
        Submitted(Instant(1), one, (SubmittedMessage(sent, 0, 4, 10),)),
        *(Installed(Instant(2), process, together) for process in (one, two, three)),
        DeliveredBatch(Instant(3), one, together.id, together.id, (DeliveredMessage(sent, 0, 4, 10, 1, 0),)),
        *(Installed(Instant(4), process, later) for process in (one, two)),
        Ended(Instant(9)),
    ]
    rows = rows_around(events, [], message_text(sent), 1, Lives(()))
    told = [(row.at, row.processes, row.text) for row in rows if row.mark == MISSING]
    assert told == [
        (4, [two], f"goes on to view {later.id} without having delivered n0/0#1"),
        (9, [three], "has not delivered n0/0#1 by the end"),
    ]
