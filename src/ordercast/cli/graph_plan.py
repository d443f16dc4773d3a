"""Groups on paper, and the graphs that builders make of them: what `ordercast graph plan` says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from ordercast.checker.orders import circle, inversion, multiple_group
from ordercast.cli.tables import new_table
from ordercast.model.errors import UsageError
from ordercast.model.ids import ProcessId
from ordercast.order.tree.builders import BUILDERS, build
from ordercast.order.tree.builders.bypass import bypassed, removed
from ordercast.order.tree.given import Given
from ordercast.order.tree.graph import Graph, Memberships
from ordercast.order.tree.survey import Survey, survey
from ordercast.sim.propagation.traffic import propagated, workload

COMMENT = "#"
GROUPS_MAX, HOSTS_MAX = 20_000, 10_000
HEURISTIC_MAX = 2_000  # groups; with more the thesis' heuristics take minutes
BYPASSED, BYPASS_RUNS, BYPASS_MESSAGES = "heuristic-1", 100, 24
OF_THE_THESIS = ("heuristic-1", "heuristic-2", "heuristic-3", "random")
COLUMNS = ("trees", "hops", "most", "copies", "extra", "busiest", "average", "µs")


class PlannedGroups(NamedTuple):
    """Groups by their names, with the names of hosts and the messages a second that were given."""

    members: Memberships
    hosts: Sequence[str]  # of process 1 on
    rates: dict[str, float]

    def name(self, process: ProcessId) -> str:
        return self.hosts[process - 1]


def groups_from(path: Path) -> PlannedGroups:
    """Read groups from a file; UsageError names the line that cannot be."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; give a file of groups") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    named, rates = _json_groups(path, text) if text.lstrip().startswith("{") else _line_groups(path, text)
    if not named:
        raise UsageError(f"{path} has no groups: write a line `orders: a b c` for each")
    hosts = sorted({host for members in named.values() for host in members})
    if len(named) > GROUPS_MAX or len(hosts) > HOSTS_MAX:
        raise UsageError(f"{path} has {len(named):,} groups on {len(hosts):,} hosts: at most 20,000 on 10,000")
    numbers = {host: ProcessId(place + 1) for place, host in enumerate(hosts)}
    members = {name: frozenset(map(numbers.__getitem__, members)) for name, members in named.items()}
    return PlannedGroups(members, hosts, rates)


def _line_groups(path: Path, text: str) -> tuple[dict[str, list[str]], dict[str, float]]:
    groups: dict[str, list[str]] = {}
    rates: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.split(COMMENT)[0].strip()
        if not plain:
            continue
        head, colon, tail = plain.partition(":")
        words, hosts = head.split(), tail.replace(",", " ").split()
        if not colon or len(words) not in (1, 2) or not hosts:
            raise UsageError(f"{path}, line {number}: {plain!r} is no group: write `NAME: HOST HOST …`")
        if words[0] in groups:
            raise UsageError(f"{path}, line {number}: group {words[0]!r} was there before: each has one line")
        groups[words[0]] = hosts
        if len(words) == 2:
            rates[words[0]] = _rate(path, number, words[1])
    return groups, rates


def _rate(path: Path, number: int, word: str) -> float:
    try:
        rate = float(word.removesuffix("/s"))
    except ValueError:
        rate = -1.0
    if not 0 < rate < 1e9:
        raise UsageError(
            f"{path}, line {number}: {word!r} is no rate: write messages a second, as in `orders 200: a b`"
        )
    return rate


def _json_groups(path: Path, text: str) -> tuple[dict[str, list[str]], dict[str, float]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from error
    for name, hosts in document.items():
        if not isinstance(hosts, list) or not hosts or not all(isinstance(host, str) for host in hosts):
            raise UsageError(f'{path}: {name!r} is no group: write {{"orders": ["a", "b"]}}')
    return document, {}


@dataclass(slots=True)
class Bypassed:
    """What edges past extra hosts would do."""

    extra: int  # hosts, of all groups
    removed: int  # of these
    runs: int
    inverted: int = 0  # runs with two messages in two orders
    in_circles: int = 0  # runs in which no single order of all messages is everybody's


@dataclass(frozen=True, slots=True)
class PlannedGraphs:
    groups: PlannedGroups
    builders: Sequence[str]
    forest: str | None  # whose forest is drawn
    with_bypass: bool = False  # what edges past extra hosts would do to the graph of Heuristic I, simulated

    def __post_init__(self) -> None:
        for name in (*self.builders, *([self.forest] if self.forest else [])):
            if name not in BUILDERS:
                raise UsageError(f"there is no builder {name!r}: choose among {', '.join(BUILDERS)}")

    @property
    def tried(self) -> list[str]:
        """Builders that are quick enough for so many groups."""
        many = len(self.groups.members) > HEURISTIC_MAX
        return [name for name in self.builders if not (many and name in OF_THE_THESIS)]

    def graph(self, name: str) -> Graph:
        return build(name, self.groups.members, Given(rng=Random(0), rates=self.groups.rates))

    def surveys(self) -> dict[str, Survey]:
        given = Given(rates=self.groups.rates)
        return {name: survey(self.graph(name), given) for name in self.tried}

    def document(self) -> dict[str, Any]:
        found = {
            "hosts": len(self.groups.hosts),
            "groups": len(self.groups.members),
            "builders": {name: asdict(one) for name, one in self.surveys().items()},
        }
        found |= {"bypass": asdict(self.bypassed())} if self.with_bypass else {}
        return found | ({"forest": self._parents(self.forest)} if self.forest else {})

    def bypassed(self) -> Bypassed:
        """Lead messages past extra hosts of Heuristic I's graph, and look for circles."""
        graph = self.graph(BYPASSED)
        ways = bypassed(graph)
        found = Bypassed(sum(len(graph.extra(group)) for group in graph.groups), len(list(removed(ways))), BYPASS_RUNS)
        for seed in range(BYPASS_RUNS):
            rng = Random(seed)
            delivered = propagated(ways, workload(graph.groups, rng, BYPASS_MESSAGES), rng)
            found.inverted += inversion(delivered, multiple_group) is not None
            found.in_circles += bool(circle(delivered))
        return found

    def _parents(self, builder: str) -> dict[str, str | None]:
        name = self.groups.name
        parents = self.graph(builder).parents
        return {name(node): None if above is None else name(above) for node, above in sorted(parents.items())}


def plan_lines(planned: PlannedGraphs) -> Iterator[RenderableType]:
    """Return what a person reads."""
    groups, surveys = planned.groups, planned.surveys()
    sizes = [len(members) for members in groups.members.values()]
    yield Text(
        f"{len(sizes):,} groups of {min(sizes)} to {max(sizes)} on {len(groups.hosts):,} hosts, "
        f"{sum(sizes) / len(sizes):.1f} members on average",
        "bold",
    )
    yield _table(surveys)
    yield Text(
        "hops: to the furthest member, mean and most; copies: hosts that have a message; extra: those of them that are "
        "no members; busiest, average: copies received and sent by a host, for each message (on a ring every host has "
        "1); cost: what auto chooses by",
        "dim",
    )
    yield from _advice(surveys, planned)
    if planned.with_bypass:
        yield _bypass_line(planned.bypassed())
    if planned.forest:
        yield from _drawn(planned.graph(planned.forest), groups)


def _table(surveys: dict[str, Survey]) -> RenderableType:
    table = new_table("builder", *COLUMNS, right=COLUMNS)
    cheapest = min(one.score for one in surveys.values()) if surveys else 0
    for name, one in surveys.items():
        cells = [f"{one.depth:.2f}", str(one.depth_max), f"{one.copies:.1f}", f"{one.extra:.1f}"]
        cells += [f"{one.busiest:.2f}", f"{one.average:.3f}", f"{one.score / 1_000:.0f}"]
        table.add_row(Text(name, "bold" if one.score == cheapest else ""), str(one.trees), *cells)
    return table


def _advice(surveys: dict[str, Survey], planned: PlannedGraphs) -> Iterator[Text]:
    if len(planned.tried) < len(planned.builders):
        yield Text(f"! the thesis' heuristics are left out: more than {HEURISTIC_MAX:,} groups", "yellow")
    best = surveys.get("auto")
    if best is not None and best.busiest > 1:
        yield Text(
            f"! the busiest host handles {best.busiest:.1f} copies of each message, a host of a ring 1: these groups "
            "meet everywhere, and a tree saves hops and copies, but not at that host",
            "yellow",
        )


def _bypass_line(found: Bypassed) -> Text:
    return Text(
        f"bypass edges in the graph of Heuristic I: past {found.removed} of {found.extra} extra hosts; in {found.runs} "
        f"simulated runs two messages were in two orders {found.inverted} times, and messages in a circle "
        f"{found.in_circles} times: nothing uses them",
        "yellow" if found.in_circles else "",
    )


def _drawn(graph: Graph, groups: PlannedGroups) -> Iterator[Tree]:
    entered: dict[ProcessId, int] = {}
    for group in graph.groups:
        entered[graph.entry(group)] = entered.get(graph.entry(group), 0) + 1

    def label(node: ProcessId) -> str:
        count = entered.get(node, 0)
        return groups.name(node) + (f" ({count} group{' enters' if count == 1 else 's enter'} here)" if count else "")

    for root in graph.trees():
        top = Tree(label(root))
        todo = [(root, top)]
        while todo:
            node, drawn = todo.pop()
            todo.extend((child, drawn.add(label(child))) for child in graph.children(node))
        yield top
