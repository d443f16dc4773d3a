"""What each protocol guarantees within which bound, and the stronger guarantee that it does not give. (6.4, 7.2)"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from ordercast.checker.reliability.events import Site
from ordercast.checker.reliability.properties import GUARANTEES, Case, Ruling
from ordercast.sim.laboratory.atomic import atomic_world
from ordercast.sim.laboratory.fan import Protocol0, Protocol1, Protocol2, Protocol3, fan_world
from ordercast.sim.laboratory.rebuilt import rebuilt_world
from ordercast.sim.laboratory.world import FRAGMENT, NETWORK, NULLS, Climate, Laboratory

ROUND = 3 * FRAGMENT + 3 * NETWORK
LONG = 8 * NULLS  # a bound that nobody would call one
MEMBERS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """A protocol: its world, what it meets with which bound, what it fails with the longest."""

    name: str
    idea: str
    climate: Climate
    make: Callable[[Laboratory], Mapping[Site, Site | None]]
    meets: Mapping[str, int]
    fails: Mapping[str, int]

    def case(self, seed: int) -> Case:
        """Run the protocol once."""
        world = Laboratory(Random(f"{self.name} {seed}"), self.climate)
        parents = self.make(world)
        world.run()
        members = sorted(name for name in world.sites if name.startswith("m"))
        return Case.of(world.history(members), parents)


CALM = Climate(MEMBERS, doubles=0.1, failures=6)
LOSSY = Climate(MEMBERS, loss=0.4, doubles=0.1, failures=6)
ROOTS = Climate(MEMBERS, messages=90, failures=3)
LAST = MEMBERS - 1
ROWS = (
    Row(
        "Protocol 0",
        "deliver on receipt",
        replace(LOSSY, doubles=0.0),
        partial(fan_world, protocol=Protocol0),
        {"P1": FRAGMENT, "P2": FRAGMENT + NETWORK},
        {"Q2": LONG, "R2": 0},
    ),
    Row(
        "Protocol 1",
        "numbers",
        CALM,
        partial(fan_world, protocol=Protocol1),
        {"P2": FRAGMENT + NETWORK, "R1": 0},
        {"Q2": LONG},
    ),
    Row(
        "Protocol 2",
        "numbers, missing ones asked for",
        LOSSY,
        partial(fan_world, protocol=Protocol2),
        {"P2": ROUND, "R1": 0},
        {"Q2": LONG},
    ),
    Row(
        "Protocol 3",
        "nulls, and all that was missed is asked for",
        LOSSY,
        partial(fan_world, protocol=Protocol3),
        {"P2": ROUND, "Q2": NULLS + ROUND, "R1": 0},
        {"Q1": NULLS + ROUND},
    ),
    Row(
        "Protocol 4",
        "a tree that waits for who has failed",
        LOSSY,
        atomic_world,
        {"P4": NULLS + ROUND, "Q3": NULLS + ROUND, "R1": 0},
        {"P2": NULLS + ROUND, "Q2": NULLS + ROUND},
    ),
    Row(
        "Protocol 5",
        "a tree built anew without its root",
        ROOTS,
        rebuilt_world,
        {
            "P2": LAST * (2 * NULLS + 8 * FRAGMENT + 7 * NETWORK),
            "P4": FRAGMENT + NETWORK,
            "Q1": NULLS + 3 * FRAGMENT + 2 * NETWORK + LAST * (FRAGMENT + NETWORK) + FRAGMENT,
            "R2": 0,
            "R3": 0,
        },
        {"R1": 0},
    ),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one guarantee over some seeds."""

    protocol: str
    guarantee: str
    bound: int
    is_promised: bool
    applied: int
    seed: int | None  # the first at which it was broken
    sentence: str

    @property
    def is_as_said(self) -> bool:
        return self.applied > 0 and (self.seed is None) == self.is_promised


def judged(row: Row, seeds: Iterable[int]) -> list[Found]:
    """Run a protocol with these seeds, and judge what it promises and what it does not."""
    wanted = {**dict.fromkeys(row.meets, True), **dict.fromkeys(row.fails, False)}
    rulings: dict[str, list[tuple[int, Ruling]]] = {name: [] for name in wanted}
    for seed in seeds:
        case = row.case(seed)
        for name, is_promised in wanted.items():
            if is_promised or all(ruling.is_kept for _, ruling in rulings[name]):  # one counterexample is enough
                rulings[name].append((seed, GUARANTEES[name](case, _bound(row, name))))
    return [_found(row, name, is_promised, rulings[name]) for name, is_promised in wanted.items()]


def _bound(row: Row, name: str) -> int:
    return row.meets[name] if name in row.meets else row.fails[name]


def _found(row: Row, name: str, is_promised: bool, rulings: list[tuple[int, Ruling]]) -> Found:
    applied = sum(ruling.applied for _, ruling in rulings)
    broken = next(((seed, ruling.broken[0]) for seed, ruling in rulings if ruling.broken), (None, ""))
    return Found(row.name, name, _bound(row, name), is_promised, applied, *broken)
