"""The tree engine beside the ring: many small groups on many hosts, in network namespaces. Needs root.

    python -m bench.tree --nodes 16 32 64
    python -m bench.tree --nodes 16 --seconds 3 --members racks

Groups have three to five members, in racks of eight hosts with a twentieth of the members elsewhere, or anywhere
(`uniform`). Latency is that of members other than the sender, at 200 messages a second of all together; then everybody
sends all that is accepted. CPU is that of all nodes. The order of every group is compared among its members.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from statistics import median
from typing import Any

from rig.hosts import Hosts, why_not
from rig.programs import Program

from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.model.ids import ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.tree.builders import build
from ordercast.order.tree.given import Given
from ordercast.order.tree.survey import survey

ENGINES = ("ring", "tree")
RATE = 200.0  # messages a second of all together
LOADS = (("200/s", RATE, 200), ("all they can, 1,350 B", None, 1350), ("all they can, 100 B", None, 100))
RECONCILED = Occurrence.TREE_RECONCILED.value
RACK, ELSEWHERE = 8, 0.05
GROUPS_PER_HOST = 300 / 64
# A machine that has more nodes than cores lets each of them wait.
PATIENT = {"token_loss_ns": 8_000_000_000, "token_retransmit_ns": 400_000_000}


@dataclass
class TreeRow:
    nodes: int
    members: str
    load: str
    per_s: dict[str, float] = field(default_factory=dict)  # messages, by engine
    latency_us: dict[str, float] = field(default_factory=dict)  # median
    cores: dict[str, float] = field(default_factory=dict)  # of all nodes
    packets: dict[str, float] = field(default_factory=dict)  # sent and taken by all nodes, for each message
    is_same_order: bool = True
    unfinished: list[str] = field(default_factory=list)  # engines that had not delivered all after a minute
    reconciled: int = 0  # times that all trees ended at once, so far

    def told(self, engine: str) -> str:
        """Return what came of one engine, in words."""
        ending = ", and a minute later not everything was delivered" if engine in self.unfinished else ""
        median_ms, cores = self.latency_us[engine] / 1000, self.cores[engine]
        return f"{self.per_s[engine]:,.0f} messages/s, median {median_ms:.2f} ms, {cores:.2f} cores{ending}"

    def ratio(self, values: dict[str, float]) -> float:
        """Return what the tree has of what the ring has."""
        return values["tree"] / values["ring"] if values.get("ring") and "tree" in values else 0.0


def memberships(nodes: int, groups: int, members: str, seed: int = 7) -> dict[int, list[int]]:
    """Draw groups and their hosts, numbered from 1; the first of each counts its messages."""
    rng, found = Random(seed), {}
    for group in range(groups):
        rack = rng.randrange(0, max(1, nodes // RACK)) * RACK
        near = range(rack + 1, min(rack + RACK, nodes) + 1) if members == "racks" else range(1, nodes + 1)
        chosen = rng.sample(near, min(len(near), rng.randint(3, 5)))
        drawn = {rng.randint(1, nodes) if rng.random() < ELSEWHERE else node for node in chosen}
        found[group] = sorted(drawn)
    return found


def measured(hosts: Hosts, members: str, engine: str, rows: Sequence[TreeRow], seconds: float) -> None:
    """Run all loads on one engine, and add what came of each to its row."""
    nodes = len(hosts)
    topics = memberships(nodes, max(1, round(nodes * GROUPS_PER_HOST)), members)
    addresses = [host.address() for host in hosts]
    ring = {**PATIENT, "members_max": nodes}
    programs = [
        host.fork(
            "bench.tree_node",
            json.dumps(
                {"node": number, "addresses": addresses, "topics": topics, "engine": engine, "ring": ring},
            ),
        )
        for number, host in enumerate(hosts, 1)
    ]
    try:
        began = time.monotonic()
        _told(programs)
        sys.stderr.write(f"{engine}, {nodes} nodes, {members}: together after {time.monotonic() - began:.1f} s\n")
        for row, (_, rate, size) in zip(rows, LOADS, strict=True):
            each = None if rate is None else rate / nodes
            _say(programs, {"seconds": seconds, "rate": each, "size": size})
            answers = _told(programs)
            time.sleep(0.5)  # what is delivered is taken by the application, too
            _say(programs, {"hashes": True})
            _add(row, engine, answers, _told(programs), topics, seconds)
            sys.stderr.write(f"  {row.load}: {row.told(engine)}\n")
            if engine in row.unfinished:
                break
    finally:
        for program in programs:
            program.kill()
            program.wait()


def _add(
    row: TreeRow,
    engine: str,
    answers: list[dict[str, Any]],
    ends: list[dict[str, Any]],
    topics: dict[int, list[int]],
    seconds: float,
) -> None:
    messages = max(1, sum(answer["counted"] for answer in answers))
    row.per_s[engine] = messages / seconds
    took = [one for answer in answers for one in answer["took_ns"]]
    row.latency_us[engine] = median(took) / 1000 if took else 0.0
    row.cores[engine] = sum(answer["cpu_s"] for answer in answers) / seconds
    row.packets[engine] = sum(answer["packets"] for answer in answers) / messages
    row.reconciled = max(row.reconciled, *(end["occurred"].get(RECONCILED, 0) for end in ends))
    if not all(answer["is_idle"] for answer in answers):
        row.unfinished.append(engine)
        return
    for topic, nodes in topics.items():
        hashes = {ends[node - 1]["hashes"].get(str(topic)) for node in nodes}
        row.is_same_order &= len(hashes) == 1


def _say(programs: Sequence[Program], order: dict[str, Any]) -> None:
    for program in programs:
        assert program.stdin is not None
        program.stdin.write(json.dumps(order).encode() + b"\n")
        program.stdin.flush()


def _told(programs: Sequence[Program]) -> list[dict[str, Any]]:
    answers = []
    for program in programs:
        assert program.stdout is not None
        line = program.stdout.readline()
        if not line:
            raise SystemExit("a node has ended: run it alone, with fewer nodes")
        answers.append(json.loads(line))
    return answers


def surveyed(nodes: int, members: str) -> dict[str, float]:
    """Return what the forest costs on paper: copies that the busiest and the average host handle for each message."""
    topics = memberships(nodes, max(1, round(nodes * GROUPS_PER_HOST)), members)
    groups = {f"t{topic}": frozenset(map(ProcessId, on)) for topic, on in topics.items()}
    found = survey(build("auto", groups), Given())
    return {"trees": found.trees, "busiest": found.busiest, "average": found.average, "copies": found.copies}


def measured_all(sizes: Sequence[int], kinds: Sequence[str], seconds: float) -> Iterator[TreeRow]:
    for nodes in sizes:
        for members in kinds:
            rows = [TreeRow(nodes, members, name) for name, _, _ in LOADS]
            with Hosts(nodes) as hosts:
                for engine in ENGINES:
                    measured(hosts, members, engine, rows, seconds)
            yield from rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tree", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[16])
    parser.add_argument("--members", choices=("racks", "uniform"), nargs="+", default=["racks", "uniform"])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if (problem := why_not()) is not None:
        sys.stderr.write(f"this needs hosts of its own, and {problem}\n")
        return 2
    rows = list(measured_all(options.nodes, options.members, options.seconds))
    paper = {(nodes, kind): surveyed(nodes, kind) for nodes in options.nodes for kind in options.members}
    if options.json:
        write_json(
            {
                "rows": [asdict(row) for row in rows],
                "paper": [{"nodes": nodes, "members": kind, **found} for (nodes, kind), found in paper.items()],
            }
        )
    else:
        _draw(rows, paper)
    return 0 if all(row.is_same_order for row in rows) else 1


def _shown(values: dict[str, float], engine: str, form: str) -> str:
    return form.format(values[engine]) if engine in values else "-"


def _draw(rows: Sequence[TreeRow], paper: dict[tuple[int, str], dict[str, float]]) -> None:
    numbers = (
        "nodes",
        "ring/s",
        "tree/s",
        "ratio",
        "ring p50",
        "tree p50",
        "of it",
        "ring cores",
        "tree cores",
        "of them",
    )
    table = new_table("members", "load", *numbers, "packets", "order", right=numbers)
    for row in rows:
        table.add_row(
            row.members,
            row.load,
            str(row.nodes),
            *(_shown(row.per_s, engine, "{:,.0f}") for engine in ENGINES),
            f"{row.ratio(row.per_s):.2f}",
            *(_shown(row.latency_us, engine, "{:,.0f} µs") for engine in ENGINES),
            f"{row.ratio(row.latency_us):.2f}",
            *(_shown(row.cores, engine, "{:.2f}") for engine in ENGINES),
            f"{row.ratio(row.cores):.2f}",
            " / ".join(_shown(row.packets, engine, "{:.1f}") for engine in ENGINES),
            "not at rest" if row.unfinished else "same" if row.is_same_order else "NOT THE SAME",
        )
    console = output()
    console.print(table)
    for row in rows:
        if row.reconciled:
            console.print(
                f"{row.nodes} nodes, {row.members}, {row.load}: all trees had ended at once {row.reconciled} times"
            )
    for (nodes, kind), found in paper.items():
        console.print(
            f"{nodes} nodes, {kind}: {found['trees']} trees, {found['copies']:.1f} copies of a message; for each "
            f"message the busiest host handles {found['busiest']:.2f}, the average {found['average']:.2f} (a ring's: 1)"
        )


if __name__ == "__main__":
    sys.exit(main())
