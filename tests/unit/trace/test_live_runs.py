"""A run recorded by live nodes is judged as the same run recorded by the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.checker import Outcome
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.model.promises import Promise
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import SATURATED_FIRST, hostile_options
from ordercast.trace.folder import compact, read_live
from ordercast.trace.parquet import read_run
from ordercast.trace.records import DeliveredBatch, Event, Noted, Submitted
from tests.simulation.catches import first_catch
from tests.simulation.planted import PLANTED, PlantedFault

from .live_traces import KEPT, VIEW_PROMISES, outcomes_on, verdicts_on, write_history

LARGE = 60  # a seed with large messages
ALIKE, UNLIKE, BEHIND = (0,), (0, 70 * MILLISECOND, 300 * MILLISECOND), (2 * SECOND, 0)  # clocks of nodes, by turns


def _result(seed: int) -> Result:
    return simulate(hostile_options(seed), seed, keep_events=True)


def _by_process(events: list[Event]) -> dict[int, list[object]]:
    """What each process did, without the times."""
    result: dict[int, list[object]] = {}
    for event in events:
        if isinstance(event, Submitted | DeliveredBatch):
            result.setdefault(event.process, []).append(event.messages)
        elif isinstance(event, Noted):
            result.setdefault(event.process, []).append(event.note)
    return result


@pytest.mark.parametrize(
    ("seed", "skews"),
    [
        (1, ALIKE),
        (1, UNLIKE),
        (LARGE, UNLIKE),
        (SATURATED_FIRST, BEHIND),
        pytest.param(1, BEHIND, marks=pytest.mark.long),
        pytest.param(SATURATED_FIRST, ALIKE, marks=pytest.mark.long),
    ],
)
def test_a_hostile_run_has_the_same_verdicts(
    seed: int, skews: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _result(seed)
    write_history(tmp_path, result.events, monkeypatch, skews=skews, flush_every=7 if seed == 1 else 40)
    events = list(read_live(tmp_path).events())
    outcomes, expected = outcomes_on(events), {verdict.promise: verdict.outcome for verdict in result.verdicts}
    if len(skews) > 1 and outcomes[Promise.FAIRNESS] is Outcome.NOT_EXERCISED:
        outcomes[Promise.FAIRNESS] = expected[Promise.FAIRNESS]  # saturation is told by a clock that no node has
    assert outcomes == expected
    assert _by_process(events) == _by_process(result.events)


@pytest.mark.parametrize("seed", [1, LARGE])
def test_at_level_control_views_are_judged_and_messages_are_not(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(tmp_path, _result(seed).events, monkeypatch, full=False)
    for promise, verdict in verdicts_on(read_live(tmp_path).events()).items():
        if promise in VIEW_PROMISES:
            assert verdict.outcome in KEPT
        else:
            assert verdict.outcome is Outcome.UNKNOWN
            assert "recorded at level control" in verdict.sentence


CAUGHT = {
    "safe is delivered as agreed",
    "everybody counts as a companion",
    "old-ring packets are not exchanged",
    "anyone raises the aru",
    "E10: the ring seq is not stored",
}


@pytest.mark.parametrize("fault", [fault for fault in PLANTED if fault.name in CAUGHT], ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_in_live_traces_too(
    fault: PlantedFault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fault.plant(patch)
        found: list[Result] = []

        def is_caught(seed: int) -> bool:
            found[:] = [_result(seed)]
            return found[0].verdict.outcome is Outcome.INVALID

        assert first_catch("plain", fault.name, range(fault.runs), is_caught) is not None
    (result,) = found
    write_history(tmp_path, result.events, monkeypatch, skews=(0, 50 * MILLISECOND), flush_every=40)
    # What the simulator alone can judge is not in a trace.
    expected = {one.promise: one.outcome for one in result.verdicts if isinstance(one.promise, Promise)}
    assert outcomes_on(read_live(tmp_path).events()) == expected


def test_a_compacted_run_is_the_same_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_history(tmp_path, _result(2).events, monkeypatch, flush_every=40)
    live = read_live(tmp_path)
    path = compact(live, tmp_path / "runs")
    assert path.name == "run-1.parquet"
    assert read_run(path).events == list(live.events())
    assert compact(live, tmp_path / "runs") == path  # again: replaced
    other = tmp_path / "other"
    write_history(other, _result(3).events, monkeypatch, flush_every=40)
    assert compact(read_live(other), tmp_path / "runs").name == "run-2.parquet"
