"""The sequencer proves the mould: nobody could mistake it for a ring, and it runs with nothing but its entry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ordercast.checker import Outcome, combined
from ordercast.model.errors import UsageError
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.order.baselines.sequencer import Sequencer
from ordercast.order.catalogue import entry_of
from ordercast.order.ring.promised import PROMISED as RING_PROMISES
from ordercast.pipeline.verify.judging import judge
from ordercast.sim.calm_swarm import SATURATED_FIRST, usual_options
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.run import simulate
from ordercast.sim.swarm import SwarmKind, expected_rows, options_of, outline, swarm
from ordercast.sim.topology import Link
from ordercast.trace.parquet import RunInfo, write_run
from tests.unit.pipeline.agreement import assert_agreement

ENTRY = entry_of("sequencer")


def test_it_keeps_what_it_promises_and_nothing_else_is_asked_of_it() -> None:
    result = simulate(usual_options("sequencer"), 1)
    assert result.is_valid, result.verdict.sentence
    outcomes = {verdict.promise: verdict.outcome for verdict in result.verdicts}
    expected = {
        promise: Outcome.VALID if promise in ENTRY.promises else Outcome.NOT_PROMISED for promise in RING_PROMISES
    }
    assert outcomes == expected
    assert result.verdict.sentence == "9 promises kept, 7 not promised"


def test_its_swarm_is_valid() -> None:
    outlines = list(swarm(range(0, SATURATED_FIRST + 13), 1, engine="sequencer"))
    assert [one.sentence for one in outlines if not one.is_valid] == []
    for row in expected_rows(engine="sequencer"):
        assert sum(one.counts[row] for one in outlines)
    assert outline(3, engine="sequencer").digest == outlines[3].digest != outlines[4].digest


def test_the_pipeline_judges_it_too(tmp_path: Path) -> None:
    result = simulate(usual_options("sequencer"), 2, keep_events=True)
    judged = judge(str(write_run(tmp_path, RunInfo(2), result.events)))
    assert (judged.how, judged.verdicts) == ("columns", result.verdicts)
    assert_agreement(result.events)


@pytest.mark.parametrize(
    "changes",
    [
        {"random_faults": 1},
        {"loss": 0.1},
        {"links": (Link(0, 1, loss=0.5),)},
        {"is_fifo": False},
        {"all_at_once": False},
        {"faults": (Fault(1, FaultKind.CRASH, 0),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_it_cannot_bear_is_refused_in_a_sentence(changes: dict[str, Any]) -> None:
    options = replace(usual_options("sequencer"), **changes)
    with pytest.raises(UsageError, match=f"never change and nothing is repaired: leave out {next(iter(changes))}"):
        options.validate()


def test_services_groups_and_replicas_that_it_has_not_are_refused() -> None:
    usual = usual_options("sequencer")
    with pytest.raises(UsageError, match="the engine 'sequencer' does not serve safe messages"):
        replace(usual, services=(Service.SAFE,)).validate()
    with pytest.raises(UsageError, match="the engine 'sequencer' has no groups: leave out clients"):
        replace(usual, clients=1).validate()
    with pytest.raises(UsageError, match="leave out the option"):
        options_of(1, SwarmKind.GROUPS, "sequencer")


def test_a_member_that_delivers_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Sequencer._deliver

    def wrong(self: Sequencer, number: int, letter: Any) -> None:
        right(self, number, letter)
        self._effects.append(self._effects[-1])

    monkeypatch.setattr(Sequencer, "_deliver", wrong)
    broken = {
        verdict.promise
        for verdict in simulate(usual_options("sequencer"), 1).verdicts
        if verdict.outcome is Outcome.INVALID
    }
    assert Promise.NO_DUPLICATES in broken


def test_a_member_that_delivers_its_own_before_they_are_numbered_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Sequencer._send

    def wrong(self: Sequencer, letter: Any) -> None:
        if not self._is_first:
            self._deliver(self._number + 1, letter)
            self._own += 1
        right(self, letter)

    monkeypatch.setattr(Sequencer, "_send", wrong)
    verdicts = simulate(usual_options("sequencer"), 1).verdicts
    assert combined(verdicts).outcome is Outcome.INVALID
    assert Promise.TOTAL_ORDER in {verdict.promise for verdict in verdicts if verdict.outcome is Outcome.INVALID}
