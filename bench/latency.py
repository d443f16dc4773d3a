"""The engines beside each other in network namespaces: latency of few and of many senders, throughput, what a message
costs in packets and CPU time, as ratios to the ring; Corosync too, where it is installed.

    python -m bench.latency [--nodes 4 8] [--seconds S] [--rounds N] [--loss P] [--sweep] [--only PATTERN] [--json FILE]

Engines take turns, since machines differ from hour to hour: each ratio is one of medians. Run it alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median

from rig.hosts import Hosts, why_not

from bench import corosync_peer
from bench.live import Case, Nodes, answers_of, failure_and_heal, idle_cores, nodes_of, outcome_of
from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output

ENGINES = ("ring", "adaptive")
LOW_RATE = 100.0
SWEEP = (100.0, 1_000.0, 3_000.0, 10_000.0, 20_000.0)
REPLICA = "a replica's confirmed command"


@dataclass
class Figures:
    """What the rounds of one row brought with one engine."""

    p50_us: list[float] = field(default_factory=list)
    p99_us: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)  # of all nodes, for each message
    packets: list[float] = field(default_factory=list)  # that all nodes sent, for each message
    views: int = 0
    is_same_order: bool = True


@dataclass
class Row:
    name: str
    case: Case
    is_replica: bool = False
    by_engine: dict[str, Figures] = field(default_factory=lambda: {engine: Figures() for engine in ENGINES})

    def run(self, engine: str, hosts: Hosts, seconds: float) -> None:
        case, figures = replace(self.case, engine=engine), self.by_engine[engine]
        if self.is_replica:
            _run_replicas(case, hosts, seconds, figures)
            return
        answers = answers_of(hosts, case, seconds, sys.executable)
        outcome = outcome_of(case, answers)
        messages = max(1, max(answer["delivered"] for answer in answers))
        figures.per_s.append(outcome.per_s)
        figures.p50_us += [outcome.p50_us] if outcome.p50_us else []
        figures.p99_us += [outcome.p99_us] if outcome.p99_us else []
        figures.cpu_us.append(sum(answer["cpu"] for answer in answers) * 1e6 / messages)
        figures.packets.append(sum(answer["sent"] for answer in answers) / messages)
        figures.views += outcome.views
        figures.is_same_order &= outcome.same_order


def _run_replicas(case: Case, hosts: Hosts, seconds: float, figures: Figures) -> None:
    with nodes_of(hosts, case, seconds, sys.executable, "latency_replica.py") as nodes:
        nodes.hear()
        nodes.say("go")
        told = nodes.hear()
        nodes.say("end")
        _ended(nodes)
    times = sorted(time for answer in told for time in answer["times_us"])
    figures.p50_us.append(times[len(times) // 2])
    figures.p99_us.append(times[int(len(times) * 0.99)])
    figures.cpu_us.append(sum(answer["cpu"] for answer in told) * 1e6 / len(times))


def _ended(nodes: Nodes) -> None:
    for program in nodes.programs:
        program.wait(60)


def rows(nodes: int) -> Iterator[Row]:
    """The senders of the issue's table, then throughput."""
    slow = Case(100, 1, nodes=nodes, rate=LOW_RATE, delivery="messages")
    yield Row("one sends, the representative", slow)
    yield Row("one sends, the last but one", replace(slow, first=nodes - 1))
    yield Row("two send", replace(slow, senders=2))
    yield Row("all send", replace(slow, senders=0))
    yield Row("one sends, safe", replace(slow, service="safe"))
    yield Row("the last but one sends, safe", replace(slow, service="safe", first=nodes - 1))
    yield Row("all send, safe", replace(slow, service="safe", senders=0))
    yield Row(REPLICA, replace(slow, first=nodes - 1), is_replica=True)
    for size in (100, 1350):
        for senders, who in ((1, "one sends"), (0, "all send")):
            yield Row(f"{who} all it can, {size} B", Case(size, senders, nodes=nodes))


def swept(nodes: int) -> Iterator[Row]:
    """Latency over the rate."""
    for senders, who in ((1, "one sends"), (2, "two send"), (0, "all send")):
        for rate in SWEEP:
            yield Row(f"{who}, {rate:,.0f}/s", Case(100, senders, nodes=nodes, rate=rate))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loss", type=float, default=0.0, help="part of the packets that each host loses")
    parser.add_argument("--sweep", action="store_true", help="latency over the rate instead")
    parser.add_argument("--only", default="", help="rows whose names match this pattern: 'one|all send$'")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if (problem := why_not()) is not None:
        sys.stderr.write(f"this needs hosts of its own, and {problem}\n")
        return 2
    document: dict[str, object] = {}
    is_sound = True
    for nodes in options.nodes:
        chosen = [row for row in (swept if options.sweep else rows)(nodes) if re.search(options.only, row.name)]
        _measure(chosen, nodes, options)
        _draw(f"{nodes} hosts", chosen)
        document[str(nodes)] = [asdict(row) for row in chosen]
        is_sound &= all(figures.is_same_order for row in chosen for figures in row.by_engine.values())
        if not options.only and not options.sweep:
            document[f"corosync {nodes}"] = _corosync(nodes, options.seconds)
    if not options.only and not options.sweep and not options.loss:
        document["changes"] = _changes(options.rounds)
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return 0 if is_sound else 1


def _measure(chosen: Sequence[Row], nodes: int, options: argparse.Namespace) -> None:
    with Hosts(nodes) as hosts:
        hosts.loss(list(hosts), options.loss)
        for _ in range(options.rounds):
            for row in chosen:
                for engine in ENGINES:
                    row.run(engine, hosts, options.seconds)
                    _tell(nodes, row.name, engine, row.by_engine[engine])


def _tell(nodes: int, name: str, engine: str, figures: Figures) -> None:
    """Print what a run brought: whoever ends a long measurement early has what came before."""
    found = {"p50 us": figures.p50_us, "p99 us": figures.p99_us, "messages/s": figures.per_s}
    found |= {"packets": figures.packets, "CPU us": figures.cpu_us}
    words = [f"{what} {values[-1]:,.1f}" for what, values in found.items() if values]
    print(f"{nodes} hosts, {name}, {engine}: {', '.join(words)}", flush=True)


def _changes(rounds: int) -> dict[str, dict[str, list[float]]]:
    """Idle nodes, and the time from a death and from a heal to the new view, of four."""
    found: dict[str, dict[str, list[float]]] = {engine: {} for engine in ENGINES}
    with Hosts(4) as hosts:
        for _ in range(rounds):
            for engine in ENGINES:
                told = {"idle_cores": idle_cores(hosts, sys.executable, engine=engine)}
                told |= failure_and_heal(hosts, sys.executable, engine)
                for name, value in told.items():
                    found[engine].setdefault(name, []).append(value)
    for engine, each in found.items():
        print(f"{engine}: {', '.join(f'{name} {median(values):.3f}' for name, values in each.items())}")
    return found


def _corosync(nodes: int, seconds: float) -> list[dict[str, object]]:
    if (problem := corosync_peer.why_not()) is not None:
        print(f"Corosync was not measured: {problem}")
        return []
    results = list(corosync_peer.measure(nodes, seconds, loads=corosync_peer.latency_loads(nodes, (100,))))
    for result in corosync_peer.best(results):
        print(corosync_peer.line(result), flush=True)
    return [asdict(result) for result in results]


def _draw(title: str, chosen: Sequence[Row]) -> None:
    numbers = ("ring p50", "adaptive", "ratio", "p99", "ratio ", "msg/s", "ratio  ", "packets", "CPU us", "ratio   ")
    table = new_table("what", *numbers, right=numbers, title=f"{title}: adaptive beside the ring")
    for row in chosen:
        ring, other = row.by_engine["ring"], row.by_engine["adaptive"]
        name = row.name if ring.is_same_order and other.is_same_order else f"{row.name}: ORDERS DIFFER"
        is_slow = bool(row.case.rate)
        table.add_row(
            name + (f" ({ring.views + other.views} view changes)" if ring.views + other.views else ""),
            _number(ring.p50_us),
            _number(other.p50_us),
            _ratio(other.p50_us, ring.p50_us),
            f"{_number(ring.p99_us)} / {_number(other.p99_us)}" if is_slow else "",
            _ratio(other.p99_us, ring.p99_us),
            "" if is_slow else f"{_number(ring.per_s)} / {_number(other.per_s)}",
            "" if is_slow else _ratio(other.per_s, ring.per_s),
            " / ".join(f"{median(each.packets):.2f}" for each in (ring, other) if each.packets),
            f"{_number(ring.cpu_us)} / {_number(other.cpu_us)}",
            _ratio(other.cpu_us, ring.cpu_us),
        )
    output().print(table)


def _number(values: Sequence[float]) -> str:
    return f"{median(values):,.0f}" if values else ""


def _ratio(values: Sequence[float], others: Sequence[float]) -> str:
    return f"{median(values) / median(others):.2f}" if values and others else ""


if __name__ == "__main__":
    sys.exit(main())
