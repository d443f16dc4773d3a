"""Forged numbers: nothing breaks while they come, and one ring forms when they stop. What heals them is needed, each
part of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ordercast.model.ids import SECOND, Instant
from ordercast.order.clock import Clock
from ordercast.order.membership.bounds import Horizon, Numbering
from ordercast.order.membership.past import Source
from ordercast.order.membership.ring import Ring
from ordercast.order.membership.states import commit
from ordercast.order.ring import ordering
from ordercast.order.ring.ordering import Visit
from ordercast.order.ring.states import operational, token_visit
from ordercast.sim.options import SimOptions
from ordercast.sim.ring import poison
from ordercast.sim.ring.poison import ON_ANNOUNCEMENT, ON_COMMIT, ON_JOIN, ON_TOKEN, Poison
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_options
from ordercast.wire.messages import Token

from .catches import first_catch


def _poisoned(seed: int, chance: float, *, is_calm: bool = False) -> SimOptions:
    options = replace(hostile_options(seed), poison=chance, saturation=0, large_messages=0, settle_ns=4 * SECOND)
    return replace(options, random_faults=0, ambushes=0, loss=0.0, ghost=0.0, links=()) if is_calm else options


@pytest.mark.parametrize("chance", [0.01, 0.05, 0.2])
def test_poisoned_runs_are_valid(chance: float) -> None:
    for seed in range(5):
        result = simulate(_poisoned(seed, chance), seed)
        assert result.is_valid, f"seed {seed}: {result.verdict.sentence}"


def test_poison_is_drawn_apart_and_counted() -> None:
    with_poison, without = simulate(_poisoned(3, 0.2), 3), simulate(_poisoned(3, 0.0), 3)
    forged = {poison.value for poison in Poison}
    assert forged & with_poison.counts.keys() and not forged & without.counts.keys()
    assert simulate(_poisoned(3, 0.2), 3).digest == with_poison.digest != without.digest


def test_every_kind_of_poison_is_forged_somewhere() -> None:
    assert {*ON_TOKEN, *ON_COMMIT, *ON_JOIN, *ON_ANNOUNCEMENT} == set(Poison)


# Planted faults


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Callable[[pytest.MonkeyPatch], None]
    kinds: tuple[Poison, ...]  # the only ones that are forged
    runs: int  # caught within this many
    chance: float
    is_calm: bool = False  # seen when no new ring comes after it


def _everything_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Horizon, "believes", lambda self, *_: True)
    patch.setattr(Horizon, "believes_ring", lambda self, *_: True)


def _numbers_do_not_heal(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Numbering, number: int, now: Instant, patience: int) -> bool:
        if number < self._newest:
            return False
        self._newest = number
        return True

    patch.setattr(Numbering, "believes", wrong)


def _sums_are_never_counted_anew(patch: pytest.MonkeyPatch) -> None:
    right = ordering.visit

    def wrong(ring: Ring, token: Token, wanted: int, source: Source, config: Any, **rest: bool) -> Visit:
        token.counted = (token.retransmitted, token.waiting, token.behind)
        return right(ring, token, wanted, source, config, **rest)

    patch.setattr(token_visit, "visit", wrong)


def _clock_is_not_bounded(patch: pytest.MonkeyPatch) -> None:
    for module in (commit, token_visit):
        patch.setattr(module, "believed_clock", lambda mine, told, *, is_new: told)
    patch.setattr(Clock, "hear", lambda clock, tick: setattr(clock, "tick", max(clock.tick, tick)))


def _taken_numbers_are_given_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operational, "has_intruder", lambda *_: False)


SUMS = (Poison.BEHIND, Poison.WAITING, Poison.RETRANSMITTED)
PLANTED = (
    PlantedFault("every ring seq is believed", _everything_is_believed, (Poison.RING_SEQ,), 5, 0.1),
    PlantedFault("Join numbers do not heal", _numbers_do_not_heal, (Poison.JOIN_NUMBER,), 5, 0.2),
    PlantedFault("sums are never counted anew", _sums_are_never_counted_anew, SUMS, 5, 0.05, is_calm=True),
    PlantedFault("the clock is not bounded", _clock_is_not_bounded, (Poison.CLOCK,), 5, 0.1),
    PlantedFault("taken numbers are given again", _taken_numbers_are_given_again, (Poison.SEQ_BELOW,), 5, 0.5),
)


def _is_caught(fault: PlantedFault, seed: int) -> bool:
    try:
        return not simulate(_poisoned(seed, fault.chance, is_calm=fault.is_calm), seed).is_valid
    except Exception:
        return True


def _forge_only(kinds: tuple[Poison, ...], patch: pytest.MonkeyPatch) -> None:
    for name in ("ON_TOKEN", "ON_COMMIT", "ON_JOIN", "ON_ANNOUNCEMENT"):
        patch.setattr(poison, name, tuple(kind for kind in getattr(poison, name) if kind in kinds))


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    _forge_only(fault.kinds, monkeypatch)
    with monkeypatch.context() as patch:
        fault.plant(patch)
        caught = first_catch("poison", fault.name, range(fault.runs), lambda seed: _is_caught(fault, seed))
    assert caught is not None, f"not caught in {fault.runs} runs"
    assert not _is_caught(fault, caught), "without the fault all is well"
