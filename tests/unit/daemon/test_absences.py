"""Who is away, and what is said of whom is back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ordercast.daemon.status.absences import Absences, returns_text
from ordercast.daemon.status.counters import Counters
from ordercast.daemon.status.places import everybody
from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import (
    SECOND,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    node_of,
    process_id_from,
)

ALPHA, BETA = (process_id_from(NodeId(n), Incarnation(1)) for n in (1, 2))
NEW_BETA = process_id_from(NodeId(2), Incarnation(2))
NAMES = {1: "alpha", 2: "beta"}


def view(seq: int, reason: ChangeReason, *members: ProcessId) -> Configuration:
    id = ConfigurationId(seq, members[0])
    return Configuration(ConfigurationKind.REGULAR, id, members, id, members, reason, Position(id, Seq(0), 0))


def said(back: ProcessId, why: ChangeReason, own_pause_ns: int | None = None) -> str:
    absences = Absences()
    assert absences.observe(view(4, ChangeReason.MERGE, ALPHA, BETA), Instant(0)) == []
    assert absences.observe(view(8, why, ALPHA), Instant(SECOND)) == []
    assert absences.away[NodeId(2)].since == SECOND
    found = absences.observe(view(12, ChangeReason.MERGE, *sorted((ALPHA, back))), Instant(4 * SECOND))
    assert not absences.away
    return returns_text(found, lambda process: NAMES[node_of(process)], own_pause_ns)


def test_who_comes_back_as_the_same_process_had_not_crashed() -> None:
    assert said(BETA, ChangeReason.TOKEN_LOST) == (
        "beta is back after 3.0 s: it had not crashed, it was paused or cut off"
    )


def test_who_comes_back_as_another_process_had_ended() -> None:
    assert said(NEW_BETA, ChangeReason.TOKEN_LOST) == (
        "beta is back in a new life after 3.0 s: it had ended, and was started again"
    )
    assert said(NEW_BETA, ChangeReason.LEFT) == "beta is back in a new life after 3.0 s: it had left"


def test_who_did_not_run_itself_says_so_and_blames_nobody() -> None:
    assert said(BETA, ChangeReason.TOKEN_LOST, 3 * SECOND) == "this node did not run for 3.0 s"


def test_a_pause_is_told_by_one_view_soon_after_it() -> None:
    absences = Absences()
    assert absences.pause_told(None, 0, Instant(SECOND)) is None
    assert absences.pause_told(Instant(SECOND), 7, Instant(2 * SECOND)) == 7
    assert absences.pause_told(Instant(SECOND), 7, Instant(3 * SECOND)) is None
    assert absences.pause_told(Instant(4 * SECOND), 9, Instant(20 * SECOND)) is None


def test_who_did_not_run_blames_nobody_in_the_view_after_that_either() -> None:
    absences = Absences()
    absences.observe(view(4, ChangeReason.MERGE, ALPHA, BETA), Instant(0))
    absences.observe(view(8, ChangeReason.TOKEN_LOST, ALPHA), Instant(20 * SECOND), Instant(19 * SECOND))
    found = absences.observe(view(12, ChangeReason.MERGE, ALPHA, BETA), Instant(21 * SECOND), Instant(19 * SECOND))
    assert [back.process for back in found] == [BETA]
    assert returns_text(found, lambda process: NAMES[node_of(process)], None) == ""


def test_who_was_taken_off_the_list_is_not_away() -> None:
    """Where there is no list, whoever was a member and is not now is."""
    counters = Counters()
    counters.absences.observe(view(4, ChangeReason.MERGE, ALPHA, BETA), Instant(0))
    counters.absences.observe(view(8, ChangeReason.LEFT, ALPHA), Instant(SECOND))
    status = SimpleNamespace(port=None, ports=(), address="127.0.0.1")
    for is_local, names in ((True, ["alpha", "beta"]), (False, ["alpha"])):
        config = SimpleNamespace(is_local=is_local, rings=(), peers=(), node=1, status=status, engine="ring")
        config.network = SimpleNamespace(port=4700)
        roster = SimpleNamespace(entries=[SimpleNamespace(node=1, name="alpha")])
        engine = SimpleNamespace(configuration=SimpleNamespace(members=(ALPHA,)), roster=roster)
        node: Any = SimpleNamespace(config=config, engine=engine, counters=counters)
        node.name_of = lambda process: NAMES[node_of(process)]
        assert [place.name for place in everybody(node, Instant(2 * SECOND))] == names
