"""A live network of rings beside one plain ring, in network namespaces: throughput, CPU, latency, as ratios.

    python -m bench.gateways [--quick] [--seconds S] [--rounds N] [--json FILE] [--only WORD]

What is compared is measured in turns, since machines differ from hour to hour; each ratio is one of medians. Run it
where nothing else runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from rig.hosts import Hosts, why_not

from bench.live import Case, answers_of, outcome_of
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output
from ordercast.model.notes import Occurrence

Segments = tuple[tuple[int, ...], ...]

TWO_RINGS: Segments = ((1, 2, 3), (3, 4, 5))  # node 3 is the gateway
EIGHT_IN_TWO: Segments = ((1, 2, 3, 4, 9), (5, 6, 7, 8, 9))  # a ninth joins them, and sends nothing
EIGHT_IN_THREE: Segments = ((1, 2, 3, 9), (4, 5, 6, 9), (7, 8, 9))
SHARES = (1.0, 1.5, 2.0, 3.0)
USUAL_SHARE = 2.0
LOW_RATE = 100.0


@dataclass
class Row:
    """One kind of network, and what its rounds brought."""

    name: str
    against: str  # the row that it is compared with
    case: Case
    segments: Segments = ()
    per_s: list[float] = field(default_factory=list)  # different messages, of all rings together
    cpu_us: list[float] = field(default_factory=list)  # for each message delivered, at an ordinary node
    gateway_us: list[float] = field(default_factory=list)  # at the gateway
    p50_us: list[float] = field(default_factory=list)
    holds_per_s: list[float] = field(default_factory=list)
    is_same_order: bool = True

    @property
    def gateways(self) -> set[int]:
        """Nodes on several rings."""
        nodes = [node for segment in self.segments for node in segment]
        return {node for node in nodes if nodes.count(node) > 1}

    def run(self, hosts: Hosts, seconds: float) -> None:
        answers = answers_of(hosts, self.case, seconds, sys.executable)
        outcome = outcome_of(self.case, answers)
        costs = {answer["node"]: answer["cpu"] * 1e6 / answer["delivered"] for answer in answers if answer["delivered"]}
        ordinary = [cost for node, cost in costs.items() if node not in self.gateways]
        self.per_s.append(outcome.per_s if self.case.spread == 1 else self._in_sum(answers))
        self.cpu_us += [sum(ordinary) / len(ordinary)] if ordinary else []
        self.gateway_us += [costs[node] for node in self.gateways if node in costs]  # one may be owed nothing
        self.p50_us += [outcome.p50_us] if outcome.p50_us else []
        holds = sum(answer["occurred"].get(Occurrence.NETWORK_HELD.value, 0) for answer in answers)
        self.holds_per_s.append(holds / seconds)
        self.is_same_order &= outcome.same_order

    def _in_sum(self, answers: list[dict[str, Any]]) -> float:
        """Return how many different messages a second all rings deliver: what goes to all is counted on each."""
        slowest: list[float] = [
            min(answer["delivered"] / answer["seconds"] for answer in answers if answer["node"] in ordinary)
            for ordinary in (set(segment) - self.gateways for segment in self.segments)
        ]
        return sum(slowest) / (1 + (len(slowest) - 1) * self.case.spread)


def rows(quick: bool) -> list[Row]:
    return [row for size in ((1350,) if quick else (1350, 100)) for row in _full_rows(size)] + _latency_rows()


def _full_rows(size: int) -> list[Row]:
    """Return rows in which everybody sends what it can; a bad case beside each good one."""
    found: list[Row] = []
    for service in ("agreed", "safe"):
        base = Case(size, service=service)
        plain = Row(f"one ring of 4, {size} B, {service}", "", base)
        found += [plain, Row(f"the same under gateways, {size} B, {service}", plain.name, _gateways(base))]
    base = Case(size, nodes=5)
    plain = Row(f"one ring of 5, {size} B", "", base)
    two = Row(f"two rings of 3 with a gateway, {size} B", plain.name, _gateways(base), TWO_RINGS)
    shares = [
        Row(f"the same, share {share:g}, {size} B", two.name, replace(_gateways(base), share=share), TWO_RINGS)
        for share in SHARES
        if share != USUAL_SHARE
    ]
    return [*found, plain, two, *shares, *_local_rows(size)]


def _local_rows(size: int) -> list[Row]:
    """Return rows in which messages are for the sender's own ring, but for a tenth, and but for all."""
    plain = Row(f"one ring of 8, {size} B", "", Case(size, nodes=8))
    local = replace(_gateways(plain.case), nodes=9, senders=8, spread=0.0)

    def row(name: str, segments: Segments, spread: float) -> Row:
        return Row(f"8 nodes in {name}, {size} B", plain.name, replace(local, spread=spread), segments)

    return [
        plain,
        row("two rings, groups local to a ring", EIGHT_IN_TWO, 0.0),
        row("three rings, groups local to a ring", EIGHT_IN_THREE, 0.0),
        row("two rings, a tenth to all", EIGHT_IN_TWO, 0.1),
        row("two rings, everything to all", EIGHT_IN_TWO, 1.0),
    ]


def _latency_rows() -> list[Row]:
    base = Case(100, nodes=5, rate=LOW_RATE)
    plain = Row(f"one ring of 5, {LOW_RATE:.0f}/s, agreed", "", base)
    two = Row(f"two rings of 3, {LOW_RATE:.0f}/s, agreed", plain.name, _gateways(base), TWO_RINGS)
    safe = replace(base, service="safe")
    return [
        plain,
        two,
        Row(f"two rings of 3, {LOW_RATE:.0f}/s, safe", two.name, _gateways(safe), TWO_RINGS),
        Row(f"one ring of 5, {LOW_RATE:.0f}/s, safe", plain.name, safe),
    ]


def _gateways(case: Case) -> Case:
    return replace(case, engine="gateways")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gateways", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="messages of 1,350 bytes alone, one round of 2 s")
    parser.add_argument("--seconds", type=float, help="of each row and round: 5")
    parser.add_argument("--rounds", type=int, help="3")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="rows whose names have these words, and what they are compared with")
    options = parser.parse_args()
    seconds = options.seconds or (2.0 if options.quick else 5.0)
    rounds = options.rounds or (1 if options.quick else 3)
    if (problem := why_not()) is not None:
        sys.stderr.write(f"this needs hosts of its own, and {problem}\n")
        return 2
    chosen = [row for row in rows(options.quick) if options.only in row.name]
    wanted = {row.name for row in chosen} | {row.against for row in chosen}
    chosen = [row for row in rows(options.quick) if row.name in wanted]
    with ExitStack() as stack:
        hosts = {
            segments: stack.enter_context(Hosts(max(map(max, segments)) if segments else 8, segments=segments))
            for segments in {row.segments for row in chosen}
        }
        with suppress(KeyboardInterrupt):  # whoever is in a hurry gets what there is
            for _ in range(rounds):
                for row in chosen:
                    row.run(hosts[row.segments], seconds)
    chosen = [row for row in chosen if row.per_s]
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in chosen], indent=1), encoding="utf-8")
    _draw(chosen)
    return 0 if all(row.is_same_order for row in chosen) else 1


def _draw(chosen: Sequence[Row]) -> None:
    by_name = {row.name: row for row in chosen}
    numbers = ("msg/s", "ratio", "CPU", "ratio ", "gateway", "ratio  ", "median", "ratio   ", "holds/s")
    table = new_table("what", *numbers, right=numbers)
    for row in chosen:
        plain = by_name.get(row.against)
        cells: list[str] = []
        for values, others, unit in (
            (row.per_s, plain.per_s if plain else [], ""),
            (row.cpu_us, plain.cpu_us if plain else [], " us"),
            (row.gateway_us, plain.cpu_us if plain else [], " us"),
            (row.p50_us, plain.p50_us if plain else [], " us"),
        ):
            cells += [_number(median(values)) + unit if values else "", _ratio(values, others)]
        holds = f"{median(row.holds_per_s):.1f}" if row.segments else ""
        table.add_row(row.name if row.is_same_order else f"{row.name}: ORDERS DIFFER", *cells, holds)
    output().print(table)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _ratio(values: list[float], others: list[float]) -> str:
    return f"{median(values) / median(others):.2f}" if values and others else ""


if __name__ == "__main__":
    sys.exit(main())
