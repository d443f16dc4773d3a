"""Take out every rule of some modules in turn, and list what no hostile run, and no test, has missed.

    python -m tests.mutation                                       # all modules of MODULES
    python -m tests.mutation order/membership/consensus.py --tests --log consensus.jsonl
    python -m tests.mutation GATEWAYS --shipped 20                 # the order of several rings

Each mutant lives in a process of its own, in which one function has changed, and runs some seeds, aimed ones and
others; for the groups with clients; for the order of several rings scenes and runs over ideal rings, which are quicker,
and with `--shipped` on the shipped engine too. A run that is not valid has missed the rule; so has a failing test, with
`--tests`: tests that take seconds are asked before the runs, all others after them. What is left is a rule that no
schedule reaches, a rule that nobody needs, or one that is the same either way. `same runs` says that not even a digest
has changed. A log is gone on with where it ends. What is known to be the same either way is in `equivalent.txt`, with
the reason, and not tried.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from ordercast.order.catalogue import DEFAULT
from ordercast.sim.ring_episodes import EPISODES_FIRST
from ordercast.sim.swarm import SwarmKind, outline
from tests.simulation.gateways.episodes import Episodes
from tests.simulation.gateways.hostile import Filtering, Run
from tests.simulation.gateways.scenes import SCENES, judged

from .mutants import Mutant, mutants_of

SOURCE = Path(__file__).parents[2] / "src" / "ordercast"
EQUIVALENT = Path(__file__).parent / "equivalent.txt"
MEMBERSHIP = (
    "consensus.py",
    "packet_reader.py",
    "recovery_plan.py",
    *(f"states/{name}.py" for name in ("commit", "gather", "recovery")),
)
STATES = ("changing", "gone", "starting", "working")
MODULES = (
    *(f"order/membership/{name}" for name in MEMBERSHIP),
    *(f"order/membership/states/{name}.py" for name in STATES),
    *(f"order/ring/{name}.py" for name in ("delivery", "ordering", "states/operational", "states/token_visit")),
    *(
        f"groups/{name}.py"
        for name in ("table", "layer", "desk", "turns", "snapshot", "interests", "envelope", "names")
    ),
)
# Which tests are asked of a module, by its folder: first those that take seconds, last those that take more.
NEAR = {
    "order/gateways/": (
        "tests/unit/order/gateways",
        *(f"tests/conformance/test_{name}.py" for name in ("network_figures", "network_bad_input", "several_rings")),
    ),
    "order/membership/": (
        "tests/unit/order/membership",
        *(f"tests/conformance/test_{name}.py" for name in ("rules_of_states", "membership", "recovery", "numbers")),
        *(f"tests/conformance/test_{name}.py" for name in ("failure_to_receive", "storage", "leave", "attached_ring")),
        *(f"tests/conformance/test_{name}.py" for name in ("rules_of_operation", "rules_of_reading", "many_members")),
        *(f"tests/conformance/test_{name}.py" for name in ("node_lists", "lists_of_others")),
    ),
    "order/ring/": (
        "tests/unit/order/ring",
        *(f"tests/conformance/test_{name}.py" for name in ("rules_of_states", "ordering", "flow_control", "numbers")),
        *(f"tests/conformance/test_{name}.py" for name in ("acceleration", "rest_and_wake", "recovery")),
        *(f"tests/conformance/test_{name}.py" for name in ("failure_to_receive", "attached_ring", "inner_ring")),
        *(f"tests/conformance/test_{name}.py" for name in ("rules_of_operation", "leave")),
    ),
    "groups/": ("tests/unit/groups", "tests/conformance/groups"),
}
FAR = {
    "order/gateways/": ("tests/simulation/gateways/test_hostile.py",),
    "order/": ("tests/unit/order", "tests/conformance", "tests/playbooks", "tests/simulation/test_scenes.py"),
    "groups/": ("tests/properties/test_groups_table.py", "tests/properties/test_groups_layer.py"),
}
NETWORK = (
    *("births", "coverage", "ends", "forgetting", "forwarding", "graph", "holds", "interest"),
    *("known", "merging", "network", "streams", "timeline", "views"),
)
BESIDE = ("attachment", "node", "packets", "passing", "reading")  # judged by the shipped engine alone
GATEWAYS = tuple(f"order/gateways/{name}.py" for name in (*NETWORK, *BESIDE))
RUN_SECONDS = 6  # of processor time: a run that takes longer does not end
NEAR_SECONDS, FAR_SECONDS = 30, 120
AIMED_FIRST = 10_000
STEPS = 350
# Runs of the order of several rings over ideal rings.
IDEAL: dict[str, Callable[[int], Run]] = {
    "episodes": Episodes,
    "hostile": lambda seed: Run(seed, steps=STEPS),
    "filtering": lambda seed: Run(seed, Filtering, steps=STEPS),
}

# The seeds of a hunt, by kind of swarm.
Seeds = list[tuple[str, int]]


@dataclass
class Fate:
    """What became of one mutant."""

    module: str
    line: int
    what: str
    caught: str = ""  # by what; empty: it survived
    differs: bool = False  # the digest of some run has changed


def _change(module: ModuleType, tree: ast.Module) -> None:
    """Give every function and method of a module the code that it has in a changed tree, wherever it is known."""
    namespace = dict(module.__dict__)
    exec(compile(tree, module.__file__ or "", "exec"), namespace)
    for name, new in namespace.items():
        _change_one(module.__dict__.get(name), new)


def _change_one(old: object, new: object) -> None:
    if hasattr(old, "__wrapped__") and hasattr(new, "__wrapped__"):  # behind a cache, or a decorator
        _change_one(old.__wrapped__, new.__wrapped__)
        return
    match old, new:
        case FunctionType(), FunctionType():
            old.__code__ = new.__code__
        case ((classmethod() | staticmethod()), (classmethod() | staticmethod())):
            _change_one(old.__func__, new.__func__)
        case property(), property():
            _change_one(old.fget, new.fget)
        case type(), type() if old is not new and old.__module__ == new.__module__:
            for name, value in vars(new).items():
                _change_one(vars(old).get(name), value)


def _in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do it in a process of its own, and return what it says of itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.signal(signal.SIGPROF, _give_up)
        try:
            told = work()
        except BaseException:
            told = {"caught": traceback.format_exc(limit=-1).strip().splitlines()[-1]}
        os.write(writing, json.dumps(told).encode()[:60_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else {"caught": "the process died"}


def _seeds_of(module: str, count: int, shipped: int) -> Seeds:
    if module in GATEWAYS:
        is_beside = module.removesuffix(".py").rpartition("/")[2] in BESIDE
        shipped = max(shipped, count) if is_beside else shipped
        ideal = [(kind, seed) for seed in range(count) for kind in IDEAL]
        scenes = [("scene", number) for number in range(len(SCENES))]
        return ([] if is_beside else scenes + ideal) + [
            ("gateways", first + seed) for seed in range(shipped) for first in (EPISODES_FIRST, 0)
        ]
    kind = "groups" if module.startswith("groups/") else "plain"
    return [(kind, first + number) for number in range(count) for first in (AIMED_FIRST, 0)]


def _run_seeds(seeds: Seeds, expected: dict[str, str]) -> dict[str, Any]:
    differs = False
    digests = {}
    for kind, seed in seeds:
        signal.setitimer(signal.ITIMER_PROF, RUN_SECONDS)
        digest, complaint = _judged(kind, seed)
        if complaint is not None:
            return {"caught": f"{kind} {seed}: {complaint[:200]}"}
        digests[f"{kind} {seed}"] = digest
        differs = differs or expected.get(f"{kind} {seed}", digest) != digest
    return {"differs": differs, "digests": digests}


def _judged(kind: str, seed: int) -> tuple[str, str | None]:
    """Run a seed; return its digest, and what is wrong with it, if anything is."""
    if kind == "scene":
        errors = judged(SCENES[seed])
        return "", errors[0] if errors else None
    if kind in IDEAL:
        run = IDEAL[kind](seed)
        errors = run.judge()
        return run.digest(), errors[0] if errors else None
    engine = "gateways" if kind == "gateways" else DEFAULT
    ran = outline(seed, SwarmKind.GROUPS if kind == "groups" else SwarmKind.PLAIN, engine)
    return ran.digest, None if ran.is_valid else (ran.sentence.strip() or "?").splitlines()[-1]


def _run_tests(module: str, tests: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    import pytest

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    signal.setitimer(signal.ITIMER_PROF, NEAR_SECONDS if tests is NEAR else FAR_SECONDS)
    files = next(files for folder, files in tests.items() if module.startswith(folder))
    status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files])
    return {"caught": "tests" if status else ""}


def _alone(module: str, mutant: Mutant, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    def changed() -> dict[str, Any]:
        _change(import_module("ordercast." + module.removesuffix(".py").replace("/", ".")), mutant.tree)
        return work()

    return _in_child(changed)


def _give_up(*_: object) -> None:
    raise TimeoutError("it does not end")


def equivalents() -> dict[tuple[str, str], str]:
    """Return why some mutants change nothing, by module and what they take out."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines()
    return {(module, what): why for module, what, why in (line.split(" | ") for line in lines)}


def _fates(module: str, arguments: argparse.Namespace, known: set[tuple[str, int, str]]) -> Iterator[Fate]:
    seeds = _seeds_of(module, arguments.seeds, arguments.shipped)
    usual = _in_child(lambda: _run_seeds(seeds, {}))
    if usual.get("caught"):
        raise SystemExit(f"not even the unchanged code is valid: {usual['caught']}")
    for mutant in mutants_of((SOURCE / module).read_text(encoding="utf-8")):
        fate = Fate(module, mutant.line, mutant.what)
        if (module, fate.line, fate.what) in known or (module, fate.what) in equivalents():
            continue
        for judge in _judges(module, seeds, usual["digests"], arguments):
            told = _alone(module, mutant, judge)
            fate.caught, fate.differs = told.get("caught", ""), told.get("differs", fate.differs)
            if fate.caught:
                break
        yield fate


def _judges(
    module: str, seeds: Seeds, digests: dict[str, str], arguments: argparse.Namespace
) -> list[Callable[[], dict[str, Any]]]:
    """Return who is asked, the cheapest first."""
    runs = [lambda: _run_seeds(seeds, digests)] if seeds else []
    if not arguments.tests:
        return runs
    return [lambda: _run_tests(module, NEAR), *runs, *([lambda: _run_tests(module, FAR)] if seeds else [])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="List rules that nobody misses.")
    parser.add_argument(
        "modules", nargs="*", default=MODULES, help="below src/ordercast; GATEWAYS: all of several rings"
    )
    parser.add_argument("--seeds", type=int, default=12, help="of each kind, for each mutant; 0: near tests alone")
    parser.add_argument("--shipped", type=int, default=0, help="of each kind, on the shipped engine of several rings")
    parser.add_argument("--tests", action="store_true", help="ask the tests too, for what no seed has missed")
    parser.add_argument("--log", type=Path, help="one JSON line for each mutant; those in it are not run again")
    arguments = parser.parse_args()
    log: Path | None = arguments.log
    lines = log.read_text(encoding="utf-8").splitlines() if log is not None and log.exists() else []
    fates = [Fate(**json.loads(line)) for line in lines]
    known = {(fate.module, fate.line, fate.what) for fate in fates}
    modules = GATEWAYS if arguments.modules == ["GATEWAYS"] else arguments.modules
    for module in modules:
        for fate in _fates(module, arguments, known):
            fates.append(fate)
            if log is not None:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(fate)) + "\n")
            sys.stdout.write(_line(fate))
            sys.stdout.flush()
    survivors = [fate for fate in fates if not fate.caught]
    sys.stdout.write(f"\n{len(fates)} rules taken out, {len(survivors)} of them not missed:\n")
    sys.stdout.writelines(_line(fate) for fate in survivors)


def _line(fate: Fate) -> str:
    end = fate.caught or ("SURVIVED" if fate.differs else "SURVIVED, same runs")
    return f"{fate.module}:{fate.line}  {fate.what}  --  {end}\n"


if __name__ == "__main__":
    main()
