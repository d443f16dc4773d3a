"""Trees of up to thousands of hosts, simulated: what a message costs does not grow with those whom it does not concern.

    python -m bench.tree_scale [--nodes 64 500 1000 4000] [--each 5]

Twice as many groups as hosts, of three to five members in racks of eight, one member of a hundred elsewhere. Each host
sends to groups of its own. An oracle takes the place of the control ring; everything else is the engine, watched by its
witness and, up to `--judged` hosts, by all judges, whose time grows with hosts times messages. For one message: the
processes that handle it, the delay to its last receiver, the inputs of all engines; then how long the simulation took
from the first message on, and what came before and after it.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import asdict, dataclass, replace
from random import Random
from statistics import mean

from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output
from ordercast.model.ids import SECOND
from ordercast.model.service import Service
from ordercast.sim.options import ORACLE, SIM_TREE, SimOptions
from ordercast.sim.run import simulate
from ordercast.sim.world import World
from ordercast.trace.records import STAMP_SIZE, DeliveredBatch, Ended, Event, MessageId, Submitted

RACK, ELSEWHERE = 8, 0.01
FIRST_NS, LAST_NS = 1 * SECOND, 2 * SECOND  # when messages are sent
SIZE = 100
NEVER_NS = 3_600 * SECOND
GROWTH_MAX = 1.10


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """One size of cluster."""

    nodes: int
    groups: int
    trees: int
    messages: int
    copies: float
    delay_us: float
    inputs: float
    setup_s: float
    seconds: float
    judging_s: float
    memory_mib: int
    verdict: str


def racks(nodes: int, groups: int, rng: Random) -> tuple[tuple[int, ...], ...]:
    """Return the members of each group."""
    drawn = []
    for _ in range(groups):
        first, size = RACK * rng.randrange(-(-nodes // RACK)), rng.randint(3, 5)
        members: set[int] = set()
        while len(members) < size:
            near = first + rng.randrange(RACK)
            members.add(rng.randrange(nodes) if rng.random() < ELSEWHERE or near >= nodes else near)
        drawn.append(tuple(sorted(members)))
    return tuple(drawn)


class Scale:
    """One run, and what is measured in it."""

    def __init__(self, nodes: int, each: int, seed: int) -> None:
        self.rng = Random(f"scale {nodes} {seed}")
        self.topics = racks(nodes, 2 * nodes, self.rng)
        self.count = nodes * each
        quiet = replace(SIM_TREE, builder="auto", load_gap_ns=NEVER_NS, rebuild_gap_ns=NEVER_NS)
        self.options = SimOptions(
            *(nodes, "tree"),
            control=ORACLE,
            tree=quiet,
            topics=self.topics,
            messages=0,
            services=(Service.AGREED,),
            all_at_once=True,
            fault_time_ns=LAST_NS,
        )
        self.wants: dict[int, list[int]] = {}
        for topic, members in enumerate(self.topics):
            for member in members:
                self.wants.setdefault(member, []).append(topic)
        self.senders = sorted(self.wants)
        self.world: World | None = None
        self.began_at = self.ended_at = time.perf_counter()
        self.inputs_before = 0
        self.submitted: dict[MessageId, int] = {}
        self.delivered: dict[MessageId, int] = {}

    def script(self, world: World) -> None:
        self.world = world
        world.schedule(FIRST_NS, self._begin)
        for _ in range(self.count):
            world.plan(FIRST_NS + 1 + self.rng.randrange(LAST_NS - FIRST_NS - 1), self._send)

    def _begin(self) -> None:
        assert self.world is not None
        self.began_at, self.inputs_before = time.perf_counter(), self.world.inputs

    def _send(self) -> None:
        assert self.world is not None
        host = self.rng.choice(self.senders)
        topic = self.rng.choice(self.wants[host])
        self.world.hosts[host].submit(0, Service.AGREED, SIZE, bytes(SIZE - STAMP_SIZE), (f"t{topic}",))

    def observe(self, event: Event) -> None:
        if isinstance(event, Submitted):
            self.submitted.update((one.message, event.at) for one in event.messages)
        elif isinstance(event, DeliveredBatch):
            for one in event.messages:
                if one.message is not None:
                    self.delivered[one.message] = event.at
        elif isinstance(event, Ended):
            self.ended_at = time.perf_counter()


def measured(nodes: int, each: int, seed: int, *, judged: bool) -> ScaleRow:
    began, run = time.perf_counter(), Scale(nodes, each, seed)
    result = simulate(run.options, seed, script=run.script, observer=run.observe, judged=judged)
    over = time.perf_counter()
    assert run.world is not None and run.world.trees_witness is not None
    if not result.settled or len(run.delivered) != len(run.submitted):
        sys.exit(f"{nodes} hosts: {len(run.delivered):,} of {len(run.submitted):,} messages came")
    cargoes, copies = run.world.trees_witness.copies
    return ScaleRow(
        nodes,
        len(run.topics),
        run.world.trees_witness.trees,
        len(run.submitted),
        copies / cargoes,
        mean(run.delivered[one] - at for one, at in run.submitted.items()) / 1e3,
        (run.world.inputs - run.inputs_before) / len(run.submitted),
        run.began_at - began,
        run.ended_at - run.began_at,
        over - run.ended_at,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        result.verdict.outcome.value if judged or result.verdicts else "watched",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[64, 500, 1_000, 4_000])
    parser.add_argument("--each", type=int, default=5, help="messages of each host")
    parser.add_argument("--judged", type=int, default=1_000, help="hosts up to which all judges look on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for nodes in arguments.nodes:
        rows.append(measured(nodes, arguments.each, arguments.seed, judged=nodes <= arguments.judged))
        if not arguments.json:
            print(f"{nodes} hosts: {rows[-1].seconds:.0f} s", file=sys.stderr)
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    numbers = ("hosts", "groups", "trees", "messages", "copies", "delay", "inputs", "set-up", "run", "judges", "memory")
    table = new_table(*numbers, "verdict", right=numbers)
    for row in rows:
        table.add_row(
            *(f"{number:,}" for number in (row.nodes, row.groups, row.trees, row.messages)),
            *(f"{row.copies:.2f}", f"{row.delay_us:,.0f} µs", f"{row.inputs:.1f}"),
            *(f"{seconds:,.0f} s" for seconds in (row.setup_s, row.seconds, row.judging_s)),
            *(f"{row.memory_mib:,} MiB", row.verdict),
        )
    output().print(table)
    for name in ("copies", "delay_us", "inputs"):
        growth = max(getattr(row, name) for row in rows) / getattr(rows[0], name)
        is_flat = "at most" if growth <= GROWTH_MAX else "MORE than"
        print(f"{name}: {growth:.2f} times that of {rows[0].nodes} hosts, {is_flat} {GROWTH_MAX:.2f}")


if __name__ == "__main__":
    main()
