"""Random schedules for the cores of replicas. More: `python -m tests.simulation.test_schedules majority 0 10000`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import pytest

from ordercast.replicated import core, uniting
from ordercast.replicated.core import Core
from ordercast.replicated.effects import Effect
from ordercast.replicated.quorum import Electorate, EverySide, LastMajority, Life, Majority, Rule

from .planted_silence import excluded_alone, excluded_believes, excluded_counts
from .schedule_ledger import Broken, Ledger
from .schedules import Schedule

STEPS = 150


class Setting(NamedTuple):
    rule: Rule
    names: str


SETTINGS = {
    "majority": Setting(Majority(dict.fromkeys("abc", 1)), "abc"),
    "weights": Setting(Majority({"a": 2, "b": 1, "c": 1, "d": 1}), "abcd"),
    "voiceless": Setting(Majority(dict.fromkeys("abc", 1)), "abcd"),
    "last majority": Setting(LastMajority(frozenset("abc")), "abcd"),
    "one founder": Setting(LastMajority(frozenset("b")), "abcd"),
    "every side": Setting(EverySide(lambda sides: sides[0].state), "abcd"),
}
REGRESSIONS = [
    ("majority", 1286, False),  # votes that came back made a primary component of one
    ("every side", 3882, True),  # one who was excluded, and then excluded the others, decided in their term
]


def run(name: str, seed: int, *, hangs: bool = True) -> Schedule:
    schedule = Schedule(seed, *SETTINGS[name], hangs=hangs)
    schedule.run(STEPS)
    return schedule


@pytest.mark.parametrize("name", SETTINGS)
def test_no_schedule_breaks_a_promise(name: str) -> None:
    happened = {what for seed in range(25) for what in run(name, seed).counts}
    must = {"SIDES", "UNITED", "ONE_SIDE", "WITHOUT"} if name == "every side" else {"QUORUM", "NO_QUORUM", "JOINED"}
    assert must | {"BOOTSTRAP", "ERA", "CUT_OFF", "SIGNAL", "hung", "EXCLUDED", "SPOKEN"} <= happened


@pytest.mark.parametrize(("name", "seed", "hangs"), REGRESSIONS)
def test_what_was_broken_once_is_not(name: str, seed: int, hangs: bool) -> None:
    run(name, seed, hangs=hangs)


def test_without_a_quorum_promises_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def always(self: Majority, voters: Collection[Life], electorates: Sequence[Electorate]) -> bool:
        return True

    monkeypatch.setattr(Majority, "is_quorum", always)
    with pytest.raises(Broken):
        for seed in range(50):
            run("majority", seed)


@pytest.mark.parametrize("seed", [145, 437])  # two primary components at a time; a state that was lost
def test_who_need_not_be_there_for_a_beginning_must_not_begin(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run("one founder", seed, hangs=False)
    right = LastMajority.beginners

    def all_of_them(self: LastMajority, fresh: Mapping[str, bool]) -> Collection[str]:
        return fresh.keys() if right(self, fresh) else ()

    monkeypatch.setattr(LastMajority, "beginners", all_of_them)
    with pytest.raises(Broken, match=r"two primary|replaced"):
        run("one founder", seed, hangs=False)


@pytest.mark.parametrize("name", ["majority", "weights"])
def test_without_eras_a_state_of_long_ago_is_the_latest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "era_to_take_up", lambda states: None)
    with pytest.raises(Broken, match="after a later one"):
        for seed in (82, 10):
            run(name, seed, hangs=False)
    monkeypatch.setattr(Ledger, "changed", lambda self, core, changed: None)  # what comes of it
    with pytest.raises(Broken, match=r"replaced|was confirmed before"):
        for seed in (82, 10):
            run(name, seed, hangs=False)


def test_a_side_that_is_passed_over_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniting, "covers", lambda one, other: True)
    with pytest.raises(Broken, match="without"):
        for seed in range(50):
            run("every side", seed, hangs=False)


@pytest.mark.parametrize(
    "plant", [excluded_alone, excluded_believes, excluded_counts], ids=["alone", "believed", "counted"]
)
@pytest.mark.parametrize("name", ["majority", "weights"])
def test_a_wrong_exclusion_breaks_a_promise(
    name: str, plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Core, "check_invariants", lambda self: None)
    plant(monkeypatch)
    with pytest.raises(AssertionError):  # a promise, or what the core takes for certain
        for seed in range(100):
            run(name, seed)


def test_who_hangs_while_sides_are_united_stops_all_if_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Core.lose_patience

    def wrong(self: Core) -> list[Effect]:
        return [] if self.round is not None and not self.is_deciding else right(self)

    monkeypatch.setattr(Core, "lose_patience", wrong)
    with pytest.raises(Broken, match="nobody says anything more"):
        for seed in range(100):
            run("every side", seed)


def main() -> None:
    name, first, last = sys.argv[1:]
    for seed in range(int(first), int(last)):
        try:
            run(name, seed)
        except Broken as error:
            sys.stdout.write(f"{name} {seed}: {error}\n")


if __name__ == "__main__":
    main()
