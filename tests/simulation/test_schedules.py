"""Random schedules for the cores of replicas. More: `python -m tests.simulation.test_schedules majority 0 10000`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import pytest

from ordercast.replicated import core, uniting
from ordercast.replicated.component import Component
from ordercast.replicated.core import Core
from ordercast.replicated.effects import Effect
from ordercast.replicated.quorum import Electorate, EverySide, LastMajority, Life, Majority, Rule

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
REGRESSIONS = [("majority", 1286)]  # votes that came back made a primary component of one


def run(name: str, seed: int, *, hangs: bool = True) -> Schedule:
    schedule = Schedule(seed, *SETTINGS[name], hangs=hangs)
    schedule.run(STEPS)
    return schedule


@pytest.mark.parametrize("name", SETTINGS)
def test_no_schedule_breaks_a_promise(name: str) -> None:
    happened = {what for seed in range(25) for what in run(name, seed).counts}
    must = {"SIDES", "UNITED", "ONE_SIDE"} if name == "every side" else {"QUORUM", "NO_QUORUM", "JOINED"}
    assert must | {"BOOTSTRAP", "ERA", "CUT_OFF", "SIGNAL", "hung", "EXCLUDED", "SPOKEN"} <= happened


@pytest.mark.parametrize(("name", "seed"), REGRESSIONS)
def test_what_was_broken_once_is_not(name: str, seed: int) -> None:
    run(name, seed, hangs=False)


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


def _alone(patch: pytest.MonkeyPatch) -> None:
    """Each excludes whom it has not heard when its own patience is over, instead of all at a place in the order."""

    def wrong(self: Core) -> list[Effect]:
        effects: list[Effect] = []
        component = self._component
        if component is not None and not component.is_signalled and self.me.name in component.states:
            awaited = set(component.awaited)
            if awaited:
                self._on_exclude(component, awaited, effects)
        return effects

    patch.setattr(Core, "lose_patience", wrong)


def _believed(patch: pytest.MonkeyPatch) -> None:
    """Who is excluded decides as the others do, and believes that its state is theirs."""

    def wrong(self: Core, component: Component, silent: set[str], effects: list[Effect]) -> None:
        component.exclude(silent)
        if component.is_complete:
            component.excluded.discard(self.me.name)
            self._end_round(component, effects)
            component.has_best = component.has_best or self._copy.track is not None

    patch.setattr(Core, "_on_exclude", wrong)


def _counted(patch: pytest.MonkeyPatch) -> None:
    """Who is excluded has a vote."""
    right = Core._decide

    def wrong(self: Core, component: Component, effects: list[Effect]) -> None:
        rule = self._rule
        assert isinstance(rule, Majority)
        lives = [Life(name, 0, 0) for name in sorted(component.excluded)]
        with patch.context() as patched:
            patched.setattr(
                Majority, "is_quorum", lambda self, voters, known: is_quorum(rule, [*voters, *lives], known)
            )
            right(self, component, effects)

    is_quorum = Majority.is_quorum
    patch.setattr(Core, "_decide", wrong)


@pytest.mark.parametrize("plant", [_alone, _believed, _counted], ids=["alone", "believed", "counted"])
@pytest.mark.parametrize("name", ["majority", "weights"])
def test_a_wrong_exclusion_breaks_a_promise(
    name: str, plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Core, "check_invariants", lambda self: None)
    plant(monkeypatch)
    with pytest.raises(AssertionError):  # a promise, or what the core takes for certain
        for seed in range(100):
            run(name, seed)


def main() -> None:
    name, first, last = sys.argv[1:]
    for seed in range(int(first), int(last)):
        try:
            run(name, seed)
        except Broken as error:
            sys.stdout.write(f"{name} {seed}: {error}\n")


if __name__ == "__main__":
    main()
