"""Runs are the same under both kernels, and every planted fault takes effect under both.

A patch of compiled code would do nothing, and a test with it would prove nothing. No rule of the protocol is in the
kernel, so no plant reaches into it; one that wants to change what is done with bytes replaces a function of
`wire/kernel.py`, which counts for all callers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import BuiltinFunctionType, BuiltinMethodType
from typing import Any

import pytest

from ordercast.checker import Outcome
from ordercast.model.kernel import COMPILED
from ordercast.model.promises import Promise
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_options
from ordercast.wire import kernel
from ordercast.wire.header import Part
from tests.kernels import KERNELS, running

from . import planted, planted_groups, planted_journal, planted_networks, planted_replicas
from .adaptive import planted as planted_adaptive
from .catches import first_catch
from .digests import recorded, run
from .gateways import planted as planted_gateways
from .gateways import planted_engine
from .test_planted_faults import run_with, seeds_of

SOURCE = Path(__file__).parents[2] / "src" / "ordercast"
DIGESTS = [("plain", seed) for seed in range(100, 106)] + [("groups", 100), ("gateways", 100), ("networks", 1000)]
LISTS: tuple[Any, ...] = (
    *planted.PLANTED,
    *planted_groups.PLANTED,
    *planted_journal.PLANTED_IN_JOURNALS,
    *planted_networks.PLANTED,
    *planted_replicas.PLANTED,
    *planted_adaptive.FAULTS,
    *planted_gateways.PLANTED,
    *planted_engine.PLANTED,
)


@pytest.fixture(params=KERNELS)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of the kernels, while it runs."""
    with running(request.param):
        yield request.param


@pytest.mark.parametrize(("kind", "seed"), DIGESTS)
def test_a_seed_has_one_digest_under_both(kind: str, seed: int, name: str) -> None:
    assert run(kind, seed).digest == recorded()[kind, seed]


def _replaced(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that will have everything that is replaced."""
    replaced: list[object] = []
    right = monkeypatch.setattr

    def noticing(target: Any, name: Any, *rest: Any, **more: Any) -> None:
        owner, _, attribute = target.rpartition(".") if isinstance(target, str) else (target, "", name)
        replaced.append(getattr(import_module(owner) if isinstance(owner, str) else owner, attribute))
        right(target, name, *rest, **more)

    vars(monkeypatch)["setattr"] = noticing
    return replaced


@pytest.mark.parametrize("fault", LISTS, ids=lambda fault: fault.name)
def test_no_planted_fault_replaces_compiled_code(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = _replaced(monkeypatch)
    with running(COMPILED):
        fault.plant(monkeypatch)
        assert replaced, "a fault replaces something"
        assert not [one for one in replaced if isinstance(one, BuiltinFunctionType | BuiltinMethodType)]


@pytest.mark.long
@pytest.mark.parametrize("fault", planted.PLANTED, ids=lambda fault: fault.name)
def test_planted_faults_are_caught_under_the_compiled_kernel(
    fault: planted.PlantedFault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_caught(seed: int) -> bool:
        result, _ = run_with(fault, seed)
        return any(v.promise in fault.broken and v.outcome is Outcome.INVALID for v in result.verdicts)

    with running(COMPILED):
        fault.plant(monkeypatch)
        assert first_catch("plain", fault.name, seeds_of(fault), is_caught) is not None


def _parts_swapped(patch: pytest.MonkeyPatch) -> None:
    """The last part of a message changes places with that of the message before."""
    right, kept = kernel.gather, [b"of no message"]

    def wrong(kinds: bytes, payloads: Any, begun: list[bytes] | None) -> Any:
        if kinds[-1:] == bytes((Part.LAST,)):
            payloads, kept[0] = [*payloads[:-1], kept[0]], payloads[-1]
        return right(kinds, payloads, begun)

    patch.setattr(kernel, "gather", wrong)


def _another_byte(patch: pytest.MonkeyPatch) -> None:
    """The last byte of every message in parts is another one."""
    right = kernel.gather

    def wrong(kinds: bytes, payloads: Any, begun: list[bytes] | None) -> Any:
        ends, whole, rest = right(kinds, payloads, begun)
        return ends, [message[:-1] + bytes((message[-1] ^ 1,)) for message in whole], rest

    patch.setattr(kernel, "gather", wrong)


def _laid_backwards(patch: pytest.MonkeyPatch) -> None:
    """Packets of a run are laid in the wrong order, under the right numbers."""
    right = kernel.lay

    def wrong(fixed: bytes, descriptors: bytes, payloads: Any, *rest: Any) -> bytes:
        return right(fixed, descriptors, payloads[::-1] if len(set(map(len, payloads))) == 1 else payloads, *rest)

    patch.setattr(kernel, "lay", wrong)


@pytest.mark.parametrize(
    "plant", [_parts_swapped, _another_byte, _laid_backwards], ids=lambda plant: plant.__doc__ or ""
)
def test_a_fault_planted_in_the_kernel_is_caught_under_both(
    plant: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    wanted = {Promise.INTEGRITY, Promise.TOTAL_ORDER, Promise.FIFO}
    for seed in range(40):
        verdicts = simulate(hostile_options(seed), seed).verdicts
        if any(verdict.outcome is Outcome.INVALID and verdict.promise in wanted for verdict in verdicts):
            return
    pytest.fail("not caught in 40 runs")


def test_callers_name_functions_of_the_kernel_by_their_module() -> None:
    """A name that was imported would not be replaced with the function."""
    wrong = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "ordercast.wire.kernel"
    ]
    assert wrong == []
