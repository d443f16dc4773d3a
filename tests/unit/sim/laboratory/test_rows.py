"""Protocols of the thesis keep what it proves of them, give no more, and the judge notices when one is spoilt."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from ordercast.checker.reliability.properties import GUARANTEES
from ordercast.sim.laboratory import atomic, fan, rebuilt
from ordercast.sim.laboratory.fan import Protocol2, Protocol3, fan_world
from ordercast.sim.laboratory.rows import ROWS, Row, judged
from ordercast.sim.laboratory.world import Copy

SEEDS = {"Protocol 5": (41,)}  # where it shows that it does not give R1


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_protocol_meets_its_row_and_fails_the_next_stronger_guarantee(row: Row) -> None:
    found = judged(row, SEEDS.get(row.name, range(3)))
    assert [one for one in found if not one.is_as_said] == []


def test_a_run_depends_on_its_seed_alone() -> None:
    for row in ROWS:
        first, second, other = (row.case(seed).history.events for seed in (1, 1, 2))
        assert first == second != other


class _AsksNobody(Protocol2):
    def send(self, *words: object, **options: object) -> None:
        """Ask for nothing."""


class _Skips(Protocol3):
    def _skip_to(self, number: int) -> None:
        Protocol2._skip_to(self, number)


class _Forgets(Protocol3):
    def on_fail(self) -> None:
        super().on_fail()
        self.stable["last"] = max(0, self.stable["last"] - 3)


@pytest.mark.parametrize(
    ("place", "spoilt", "guarantee"), [(2, _AsksNobody, "P2"), (3, _Skips, "Q2"), (3, _Forgets, "R1")]
)
def test_a_spoilt_fan_is_noticed(place: int, spoilt: type[Protocol2], guarantee: str) -> None:
    row = replace(ROWS[place], make=partial(fan_world, protocol=spoilt))
    assert _is_broken(row, guarantee, range(6))


def test_a_tree_that_loses_its_log_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: atomic.Protocol4) -> None:
        self.stable["last"] = dict.fromkeys(self.stable["last"], 0)

    monkeypatch.setattr(atomic.Protocol4, "on_fail", forget)
    assert _is_broken(ROWS[4], "R1", range(6))


def test_a_tree_without_nulls_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic.Protocol4, "_speak_if_silent", lambda self: None)
    assert _is_broken(ROWS[4], "Q3", range(6))


def test_a_new_root_that_collects_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def adopt(self: rebuilt.Protocol5, copy: Copy) -> None:
        self._move(copy.body[0])
        self.send(copy.sender, rebuilt.ANSWER, None, len(self._log))

    monkeypatch.setattr(rebuilt.Protocol5, "_adopt", adopt)
    assert _is_broken(ROWS[5], "R2", range(25))


def test_sources_that_send_nothing_anew_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def learn(self: rebuilt.RebuiltSource, copy: Copy) -> None:
        self.root = copy.sender

    monkeypatch.setattr(rebuilt.RebuiltSource, "on_copy", learn)
    assert _is_broken(ROWS[5], "P2", range(3))


def test_without_order_nothing_is_ordered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan.Protocol1, "_take", fan.Protocol0.on_copy)
    assert _is_broken(ROWS[1], "R1", range(3))


def _is_broken(row: Row, guarantee: str, seeds: range) -> bool:
    return any(not GUARANTEES[guarantee](row.case(seed), row.meets[guarantee]).is_kept for seed in seeds)
