"""Sealed runs: every promise holds with an adversary on the network; and parts of the seal are needed: without them
some run goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ordercast.model.inputs import Lane
from ordercast.sealing import layer, opener
from ordercast.sealing.keys import KeyRing
from ordercast.sealing.layer import Sealing
from ordercast.sealing.lives import HeardLife, Lives
from ordercast.sealing.opener import Opener
from ordercast.sealing.own import OwnLife
from ordercast.sealing.packet import LIFE_SIZE, SEALED_AT, Presence
from ordercast.sealing.window import Window
from ordercast.sim.run import Result, simulate
from ordercast.sim.sealed.cipher import PlainTag
from ordercast.sim.sealed.keeper import Keeper
from ordercast.sim.swarm import SwarmKind, options_of
from ordercast.wire.head import OPENING

from .catches import first_catch

RUNS = 500


def _run(seed: int, engine: str = "ring") -> Result:
    return simulate(options_of(seed, SwarmKind.SEALED, engine), seed, verbose=False)


@pytest.mark.parametrize("seed", range(6))
def test_attacked_runs_are_valid(seed: int) -> None:
    result = _run(seed)
    assert result.is_valid, result.verdict.sentence


@pytest.mark.parametrize("engine", ["adaptive"])
def test_attacked_runs_of_other_engines_are_valid(engine: str) -> None:
    for seed in (1, 2):
        result = _run(seed, engine)
        assert result.is_valid, f"seed {seed}: {result.verdict.sentence}"


def test_two_lives_of_one_number_that_do_not_hear_each_other_draw_others() -> None:
    """Seed 10: processes on two rings drew one number, and the gateway between them opened the packets of one alone."""
    result = _run(10, "gateways")
    assert result.is_valid, result.verdict.sentence


def test_a_retired_key_in_the_hands_of_a_process_that_leaves_is_no_fault_of_the_seal() -> None:
    """Seed 607: a process that leaves reads no file any more, so it accepts the key that a thief has."""
    result = _run(607)
    assert result.is_valid, result.verdict.sentence


def test_recordings_that_name_an_earlier_life_of_the_same_number_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 853: a life is born with the number of an earlier one, and presences that name that one are repeated."""
    result = _run(853)
    assert result.is_valid, result.verdict.sentence
    _named_by_number(monkeypatch)
    assert not _run(853).is_valid


def test_a_kept_copy_of_an_earlier_life_of_the_same_number_does_not_count() -> None:
    """Seed 1059: a life is born with the number of an earlier one, whose packets the opener keeps for their copies."""
    result = _run(1059)
    assert result.is_valid, result.verdict.sentence


def _named_by_number(patch: pytest.MonkeyPatch) -> None:
    true = Lives.hear

    def hear(self: Lives, life: HeardLife, presence: Presence, counter: int, mine: bytes, now: Any) -> bool:
        is_named = any(name[:LIFE_SIZE] == mine[:LIFE_SIZE] for name in presence.heard)
        return true(self, life, presence._replace(heard=(mine,) if is_named else ()), counter, mine, now)

    patch.setattr(Lives, "hear", hear)


def test_a_packet_of_one_link_is_not_opened_at_the_end_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 31 of trees: packets of links are sent to somebody else, who has a link to the same sender."""
    result = _run(31, "tree")
    assert result.is_valid, result.verdict.sentence
    for module in (layer, opener):
        monkeypatch.setattr(module, "names_target", lambda lane, attachment, broadcasts: lane is Lane.TOKEN)
    assert not _run(31, "tree").is_valid


def test_a_sealed_run_depends_on_its_seed_alone() -> None:
    assert _run(2).digest == _run(2).digest != _run(3).digest


# Planted faults


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Callable[[pytest.MonkeyPatch], None]


def _counter_wraps(patch: pytest.MonkeyPatch) -> None:
    true = OwnLife._take

    def take(self: OwnLife, count: int) -> int:
        if self.counter + count >= 1 << 8:
            self.counter = 0
        return true(self, count)

    patch.setattr(OwnLife, "_take", take)


def _counter_at_a_rotation(patch: pytest.MonkeyPatch) -> None:
    true = Sealing._use

    def use(self: Sealing, number: int, effects: Any) -> None:
        if number != self.keys.used:
            self.own.counter = 0
        true(self, number, effects)

    patch.setattr(Sealing, "_use", use)


def _salt_of_the_clock(patch: pytest.MonkeyPatch) -> None:
    def salt(self: Keeper) -> bytes:
        return (self.world.now // 500_000_000 + 1).to_bytes(4, "big") * 4

    patch.setattr(Keeper, "_salt", salt)


def _no_echo(patch: pytest.MonkeyPatch) -> None:
    true = Lives.hear

    def hear(self: Lives, life: HeardLife, presence: Presence, counter: int, mine: bytes, now: Any) -> bool:
        return true(self, life, presence._replace(heard=(*presence.heard, mine)), counter, mine, now)

    patch.setattr(Lives, "hear", hear)


def _any_network(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(opener, "is_sent_on", lambda networks, network: True)


def _copies_by_head(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(opener, "is_copy", lambda one, other: one[:SEALED_AT] == other[:SEALED_AT])


def _counter_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """The salt is that of the life before, and the counter is not."""
    true = Keeper.sealed

    def sealed(self: Keeper, assembly: Any, node: Any, lives: int) -> Sealing:
        patch.setattr(Keeper, "_salt", lambda self: bytes((node,)) * 16)
        return true(self, assembly, node, lives)

    patch.setattr(Keeper, "sealed", sealed)


def _moved_before_opening(patch: pytest.MonkeyPatch) -> None:
    true = Window.is_new

    def is_new(self: Window, counter: int) -> bool:
        found = true(self, counter)
        self.highest = max(self.highest, counter)
        return found

    patch.setattr(Window, "is_new", is_new)


def _tokens_unseen(patch: pytest.MonkeyPatch) -> None:
    true = PlainTag.decrypt

    def decrypt(self: PlainTag, nonce: bytes, data: bytes, clear: bytes | None, /) -> bytes:
        is_token = clear is not None and clear[5] == Lane.TOKEN
        return data[:-16] if is_token else true(self, nonce, data, clear)

    patch.setattr(PlainTag, "decrypt", decrypt)


def _clear_counts(patch: pytest.MonkeyPatch) -> None:
    true = Opener._single

    def single(self: Opener, packet: Any, data: bytes, up: list[Any], now: Any) -> None:
        if data[:4] == OPENING:
            up.append(packet._replace(data=data))
        else:
            true(self, packet, data, up, now)

    patch.setattr(Opener, "_single", single)


def _old_keys_stay(patch: pytest.MonkeyPatch) -> None:
    true = Sealing._take

    def take(self: Sealing, keys: KeyRing) -> None:
        kept = {key.id: key for key in (*self.keys.keys, *keys.keys)}
        true(self, replace(keys, keys=tuple(kept.values())[-8:]))

    patch.setattr(Sealing, "_take", take)


PLANTED = (
    PlantedFault("counter reset at a generation", _counter_wraps),
    PlantedFault("counter reset at a restart", _counter_at_a_restart),
    PlantedFault("counter reset at a rotation", _counter_at_a_rotation),
    PlantedFault("salt from the clock", _salt_of_the_clock),
    PlantedFault("no echo", _no_echo),
    PlantedFault("networks not compared", _any_network),
    PlantedFault("copy compared by its header alone", _copies_by_head),
    PlantedFault("window moved before opening", _moved_before_opening),
    PlantedFault("tag of tokens not looked at", _tokens_unseen),
    PlantedFault("clear accepted", _clear_counts),
    PlantedFault("retired key accepted", _old_keys_stay),
)


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_every_planted_fault_of_the_seal_is_caught(fault: PlantedFault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.plant(monkeypatch)

    def is_caught(seed: int) -> bool:
        try:
            return not _run(seed).is_valid
        except AssertionError:
            return True  # an invariant has caught it

    assert first_catch("sealed", fault.name, range(RUNS), is_caught) is not None
