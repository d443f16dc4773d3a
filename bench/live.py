"""Live nodes on real sockets: throughput, latency, CPU, view changes, beside the machine's own limit and Corosync.

Every node is a process in a network namespace of its own; the namespaces are joined by a bridge. One thing is varied at
a time. Corosync and the raw limit are measured in the same run, because these machines differ from hour to hour: read
ratios, not numbers.

    python -m bench.live [--quick | --latency] [--seconds S] [--json FILE] [--plot FILE] [--only WORD] [--python PATH]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rig.cluster import rings_of
from rig.hosts import Host, Hosts, why_not
from rig.programs import cpu_seconds, kill

from bench import corosync_peer, raw_udp
from ordercast.daemon.key_file import new_key_file
from ordercast.model import kernel

ROOT = Path(__file__).resolve().parent.parent
SIZES = (100, 1350, 8192, 65536)
LATENCY_SIZES = (100, 1350)
MTU, JUMBO = 1500, 9000
CROWD = 32  # nodes
LOW_RATE = 100.0  # messages a second of all senders together
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Case:
    """One row. The defaults are the row that all others differ from in one thing."""

    size: int = 1350
    senders: int = 0  # 0: everybody
    first: int = 1  # the node that sends, or the first of those that do; 1 is the representative
    nodes: int = 4
    service: str = "agreed"
    delivery: str = "batches"
    trace: str = "off"
    segmentation: bool = True  # of the node: many packets per system call
    wire: bool = True  # of the network: a large send crosses it in one piece
    accelerated: bool = False
    rate: float = 0.0  # messages a second of all senders together, in turns; 0: as many as flow control lets through
    in_step: bool = False  # all senders at the same time, instead of in turns
    mtu: int = MTU  # of the hosts' links, and of the packets
    ring: tuple[tuple[str, int], ...] = ()
    engine: str = "ring"
    share: float = 0.0  # of gateways; 0: as usual
    sealed: bool = False  # with a key
    kernel: str = ""  # of the nodes; "": the one they find
    spread: float = 1.0  # of the messages so many go to everybody, the others to the sender's own ring

    @property
    def name(self) -> str:
        default = Case()
        words = [f"{self.size} B", f"{self.nodes} nodes" if self.nodes != default.nodes else ""]
        one = f"node {self.first} sends" if self.first != default.first else "one sends"
        words.append({0: "all send", 1: one}.get(self.senders, f"{self.senders} send"))
        words += [self.service if self.service != default.service else ""]
        words += ["one by one" if self.delivery != default.delivery else ""]
        words += [f"trace {self.trace}" if self.trace != default.trace else ""]
        words += ["" if self.segmentation else "no offload", "" if self.wire else "single datagrams on the wire"]
        words += ["accelerated" if self.accelerated else "", f"{self.rate:,.0f}/s" if self.rate else ""]
        words += ["in step" if self.in_step else "", f"MTU {self.mtu:,}" if self.mtu != MTU else ""]
        words += [f"{key}={value}" for key, value in self.ring]
        words += ["sealed" if self.sealed else "", f"{self.kernel} kernel" if self.kernel else ""]
        words += [f"{self.spread:g} to all" if self.spread < 1 else ""]
        words += [self.engine if self.engine != default.engine else "", f"share {self.share:g}" if self.share else ""]
        return ", ".join(word for word in words if word)


@dataclass
class Outcome:
    case: Case
    per_s: float = 0.0  # messages delivered at the slowest node
    mbit: float = 0.0
    cpu_us: float = 0.0  # of one node, for each message it delivered
    cores: float = 0.0  # of all nodes together
    p50_us: float = 0.0
    p90_us: float = 0.0
    p99_us: float = 0.0
    same_order: bool = False
    retransmitted: int = 0
    views: int = 0  # that came during the run
    rotation_us: float = 0.0
    refused: dict[str, int] = field(default_factory=dict)
    rss_mib: float = 0.0


class Nodes:
    """The processes of one case, told what to do line by line."""

    def __init__(
        self, hosts: Hosts, case: Case, seconds: float, python: str, folder: Path, script: str = "live_node.py"
    ) -> None:
        self.programs: list[subprocess.Popen[str]] = []
        senders = range(case.first, case.first + (case.senders or case.nodes))
        if case.sealed:
            new_key_file(folder / "key")
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        environment |= {kernel.VARIABLE: case.kernel} if case.kernel else {}
        for host in hosts[: case.nodes]:
            task = {
                "node": host.number,
                "members": case.nodes,
                "addresses": [other.address() for other in hosts[: case.nodes]],
                "size": case.size,
                "service": case.service,
                "delivery": case.delivery,
                "rate": case.rate / len(senders),
                "phase": 0.0 if case.in_step else corosync_peer.phase(host.number, len(senders)),
                "mtu": case.mtu,
                "sends": host.number in senders,
                "accelerated": case.accelerated,
                "segmentation": case.segmentation,
                "seconds": seconds,
                "trace": case.trace,
                "trace_folder": str(folder / f"n{host.number}") if case.trace != "off" else "",
                "ring": dict(case.ring),
                "engine": case.engine,
                "rings": rings_of(hosts),
                **({"key": str(folder / "key")} if case.sealed else {}),
                **({"share": case.share} if case.share else {}),
                **(_local_task(host, hosts, case) if case.spread < 1 else {}),
            }
            program = host.run(
                [python, str(ROOT / "bench" / script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            self.programs.append(program)
            self.say(json.dumps(task), [program])

    def say(self, line: str, to: Sequence[subprocess.Popen[str]] | None = None) -> None:
        for program in self.programs if to is None else to:
            assert program.stdin is not None
            program.stdin.write(line + "\n")
            program.stdin.flush()

    def hear(self, who: Sequence[subprocess.Popen[str]] | None = None) -> list[dict[str, Any]]:
        return [self.line(program) for program in (self.programs if who is None else who)]

    @staticmethod
    def line(program: subprocess.Popen[str]) -> dict[str, Any]:
        assert program.stdout is not None
        text = program.stdout.readline()
        if not text:
            sys.exit("a node has ended before its time; its complaint is above")
        document: dict[str, Any] = json.loads(text)
        return document

    def end(self) -> None:
        kill(self.programs)


@contextmanager
def nodes_of(hosts: Hosts, case: Case, seconds: float, python: str, script: str = "live_node.py") -> Iterator[Nodes]:
    folder = Path(tempfile.mkdtemp(prefix="ordercast-bench-"))
    nodes = Nodes(hosts, case, seconds, python, folder, script)
    try:
        yield nodes
    finally:
        nodes.end()
        shutil.rmtree(folder)


def measure(hosts: Hosts, case: Case, seconds: float, python: str) -> Outcome:
    return outcome_of(case, answers_of(hosts, case, seconds, python))


def answers_of(hosts: Hosts, case: Case, seconds: float, python: str) -> list[dict[str, Any]]:
    """Run a case, and return what its nodes tell."""
    hosts.segmentation(case.wire)
    if case.mtu != MTU:
        hosts.mtu(case.mtu)
    try:
        return _answers(hosts, case, seconds, python)
    finally:
        if case.mtu != MTU:
            hosts.mtu(MTU)


def _answers(hosts: Hosts, case: Case, seconds: float, python: str) -> list[dict[str, Any]]:
    with nodes_of(hosts, case, seconds, python) as nodes:
        nodes.hear()
        nodes.say("go")
        nodes.hear()
        nodes.say("stop")
        stopped = nodes.hear()
        for host, program in zip(hosts, nodes.programs, strict=False):
            nodes.say(str(_owed(host, hosts, case, stopped)), [program])
        answers = nodes.hear()
        nodes.say("end")
        for program in nodes.programs:
            program.wait(PATIENCE_S)
    return answers


def local_ring(host: Host) -> str:
    """Return the group of those on a host's ring; that of a gateway is its own."""
    return "ring " + " and ".join(str(segment + 1) for segment in host.segments)


def _local_task(host: Host, hosts: Hosts, case: Case) -> dict[str, Any]:
    near = [other.number for other in hosts if local_ring(other) == local_ring(host)]
    return {"spread": case.spread, "local_ring": local_ring(host), "near": near}


def _owed(host: Host, hosts: Hosts, case: Case, stopped: list[dict[str, Any]]) -> int:
    """Return how many messages a node has in the end: what goes to one ring is for those who are on no other."""
    elsewhere = sum(
        int(told["local"])
        for other, told in zip(hosts, stopped, strict=False)
        if case.spread < 1 and local_ring(other) != local_ring(host)
    )
    return sum(int(told["stopped"]) for told in stopped) - elsewhere


def outcome_of(case: Case, answers: list[dict[str, Any]]) -> Outcome:
    per_s = min(answer["delivered"] / answer["seconds"] for answer in answers)
    delivered = sum(answer["delivered"] for answer in answers)
    cpu = sum(answer["cpu"] for answer in answers)
    latencies = sorted(value for answer in answers for value in answer["latencies"])

    def percentile(share: float) -> float:
        return latencies[min(len(latencies) - 1, int(share * len(latencies)))] / 1e3 if latencies else 0.0

    return Outcome(
        case,
        per_s,
        per_s * case.size * 8 / 1e6,
        cpu * 1e6 / delivered if delivered else 0.0,
        cpu / answers[0]["seconds"],
        percentile(0.5),
        percentile(0.9),
        percentile(0.99),
        len({(answer["ring"], answer["hash"], answer["total"]) for answer in answers})
        == len({answer["ring"] for answer in answers}),
        sum(answer["retransmitted"] for answer in answers),
        sum(answer["new_views"] for answer in answers),
        answers[0]["rotation_ns"] / 1e3,
        dict(sum((Counter(answer["refused"]) for answer in answers), Counter())),
        max(answer["rss_kib"] for answer in answers) / 1024,
    )


# View changes


def failure_and_heal(hosts: Hosts, python: str, engine: str = "ring") -> dict[str, float]:
    """Seconds from kill -9 to the new view at the last of the others, and from heal to the merged view."""
    hosts.segmentation(True)
    case = Case(nodes=4, rate=400.0, engine=engine)
    with nodes_of(hosts, case, 3600.0, python) as nodes:
        nodes.hear()
        nodes.say("watch")
        time.sleep(1.0)
        victim, others = nodes.programs[3], nodes.programs[:3]
        began = time.monotonic()
        victim.send_signal(signal.SIGKILL)
        failure = max(_until_members(program, 3, began) for program in others) - began
        time.sleep(1.0)
        began = time.monotonic()
        hosts.cut(hosts[0], hosts[1:3])
        for program, members in zip(others, (1, 2, 2), strict=True):
            _until_members(program, members, began)
        time.sleep(3.0)  # longer than a flapping member is held down
        began = time.monotonic()
        hosts.heal()
        heal = max(_until_members(program, 3, began) for program in others) - began
    return {"kill_to_view_s": failure, "heal_to_view_s": heal}


def _until_members(program: subprocess.Popen[str], members: int, since: float) -> float:
    while True:
        told = Nodes.line(program)
        if told.get("members") == members and told["regular"] and told["at"] >= since:
            return float(told["at"])


def false_alarms(hosts: Hosts, python: str, minutes: float) -> list[str]:
    """View changes of four nodes with some traffic that nothing happens to. Keep the cores busy meanwhile."""
    with nodes_of(hosts, Case(rate=200.0), 3600.0 * 24, python) as nodes:
        nodes.hear()
        nodes.say("watch")
        start = time.monotonic()
        time.sleep(60 * minutes)
        for program in nodes.programs:
            program.terminate()
        told = [
            (json.loads(line), number)
            for number, program in enumerate(nodes.programs, 1)
            for line in program.communicate()[0].splitlines()
        ]
    return [
        f"after {view['at'] - start:,.1f} s: node {number} installed a view of {view['members']}"
        for view, number in sorted(told, key=lambda item: (item[0]["at"], item[1]))
        if view["regular"]
    ]


def idle_cores(hosts: Hosts, python: str, seconds: float = 5.0, engine: str = "ring") -> float:
    with nodes_of(hosts, Case(engine=engine), 3600.0, python) as nodes:
        nodes.hear()
        time.sleep(1.0)
        before = sum(cpu_seconds(program.pid) for program in nodes.programs)
        time.sleep(seconds)
        return (sum(cpu_seconds(program.pid) for program in nodes.programs) - before) / seconds


GARBAGE = """
import os, socket, sys
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[1]))
targets = [(address, int(port)) for address, port in (word.split(":") for word in sys.argv[2:])]
lengths = [0, 1, 71, 72, 100, 500, 1472]
number = 0
while True:
    for target in targets:
        number += 1
        data = os.urandom(lengths[number % len(lengths)])
        udp.sendto(data if number % 3 else b"oC\\x01" + data, target)
"""


def garbage(hosts: Hosts, seconds: float, python: str) -> Outcome:
    """The usual load while a stranger floods every open port."""
    targets = [f"{host.address()}:4701" for host in hosts[:4]] + ["239.192.79.67:4700"]
    stranger = hosts[4].run([python, "-c", GARBAGE, hosts[4].address(), *targets])
    try:
        return measure(hosts, Case(), seconds, python)
    finally:
        stranger.kill()
        stranger.wait()


# The whole


def cases(quick: bool) -> list[Case]:
    rows = [Case(size, senders) for size in SIZES for senders in (0, 1)]
    if quick:
        return [row for row in rows if row.size <= 1350]
    for size in (1350, 100):
        base = Case(size)
        rows += [
            replace(base, delivery="messages"),
            replace(base, service="safe"),
            replace(base, accelerated=True),
            replace(base, wire=False),
            replace(base, segmentation=False),
            replace(base, trace="control"),
            replace(base, trace="full"),
            replace(base, sealed=True),
            replace(base, nodes=8),
        ]
    return rows + [Case(size, mtu=JUMBO) for size in SIZES if size > MTU]


def crowded() -> list[Case]:
    """Many members on few cores: what a message costs each node."""
    return [Case(nodes=nodes) for nodes in (4, 16, CROWD)]


def interpreter(python: str) -> str:
    program = (
        "import platform, sysconfig; from ordercast.model import kernel; "
        "flags = sysconfig.get_config_var('CONFIG_ARGS') or ''; "
        "print(platform.python_implementation(), platform.python_version(), "
        "'built with' if 'enable-optimizations' in flags else 'not known to be built with', "
        "'profile-guided optimisation,', kernel.NAME, 'kernel')"
    )
    return subprocess.run([python, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def line(outcome: Outcome) -> str:
    words = f"{outcome.case.name:58} {outcome.per_s:10,.0f} msg/s {outcome.mbit:7,.0f} Mbit/s {outcome.cpu_us:7.2f} us"
    words += f" {outcome.cores:5.2f} cores"
    if outcome.p50_us:
        words += f"  p50 {outcome.p50_us:,.0f} p90 {outcome.p90_us:,.0f} p99 {outcome.p99_us:,.0f} us"
    if outcome.retransmitted:
        words += f"  {outcome.retransmitted} sent again"
    if outcome.views:
        words += f"  {outcome.views} VIEW CHANGES"
    return words + ("" if outcome.same_order else "  ORDER DIFFERS")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two sizes, a minute in all")
    parser.add_argument("--latency", action="store_true", help="the rows at a low rate and Corosync's, nothing else")
    parser.add_argument("--many", action="store_true", help=f"4, 16 and {CROWD} nodes, nothing else")
    parser.add_argument("--sealed", action="store_true", help="sealed rows beside a sealed Corosync, nothing else")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each row")
    parser.add_argument("--json", type=Path, help="write the results here too")
    parser.add_argument("--plot", type=Path, help="draw the comparison here (needs matplotlib)")
    parser.add_argument("--only", default="", help="rows whose name has this in it; no peers, no view changes")
    parser.add_argument("--python", default=sys.executable, help="another interpreter for the nodes")
    parser.add_argument("--false-alarms", type=float, metavar="MINUTES", help="watch an undisturbed ring, nothing else")
    arguments = parser.parse_args()
    problem = why_not()
    if problem:
        sys.exit(f"the benchmark needs hosts of its own: {problem}")
    document: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count()}
    document["interpreter"] = interpreter(arguments.python)
    print(f"{document['interpreter']}, {platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}")
    if arguments.many:
        with Hosts(CROWD) as hosts:
            outcomes = _rows(hosts, crowded(), arguments)
        document["outcomes"] = [asdict(outcome) for outcome in outcomes]
        if arguments.json:
            arguments.json.write_text(json.dumps(document, indent=1))
        return
    if arguments.sealed:
        _sealed(arguments)
        return
    with Hosts(8) as hosts:
        if arguments.false_alarms:
            alarms = false_alarms(hosts, arguments.python, arguments.false_alarms)
            print("\n".join([*alarms, f"{len(alarms)} views in {arguments.false_alarms:g} minutes"]))
            sys.exit(bool(alarms))
        outcomes = [] if arguments.latency else _throughput(hosts, arguments)
        outcomes += _latency(hosts, arguments, outcomes)
        if not (arguments.only or arguments.latency):
            document |= _rest(hosts, arguments)
    document["outcomes"] = [asdict(outcome) for outcome in outcomes]
    if not arguments.only:
        document["corosync"] = _corosync(arguments)
        _compare(document, outcomes)
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=1))
    if arguments.plot:
        from bench.live_plot import draw

        draw(document, arguments.plot)


def _throughput(hosts: Hosts, arguments: argparse.Namespace) -> list[Outcome]:
    return _rows(hosts, cases(arguments.quick), arguments)


def _rows(hosts: Hosts, rows: list[Case], arguments: argparse.Namespace) -> list[Outcome]:
    outcomes = []
    for case in rows:
        if arguments.only in case.name:
            outcomes.append(measure(hosts, case, arguments.seconds, arguments.python))
            print(line(outcomes[-1]), flush=True)
    return outcomes


def _latency(hosts: Hosts, arguments: argparse.Namespace, before: list[Outcome]) -> list[Outcome]:
    """One sender where the token rests at first, one elsewhere, all in turns, all in step; then all with half of the
    full load."""
    outcomes = []
    for size in LATENCY_SIZES:
        lone = Case(size, 1, delivery="messages", rate=LOW_RATE)
        rows = [lone, replace(lone, first=4), replace(lone, senders=0), replace(lone, senders=0, in_step=True)]
        rows += [] if arguments.quick else [replace(lone, sealed=True)]
        rows += [Case(size, rate=outcome.per_s / 2) for outcome in before if outcome.case == Case(size)]
        medians = {}
        for case in rows:
            if arguments.only in case.name:
                outcomes.append(measure(hosts, case, arguments.seconds, arguments.python))
                print(line(outcomes[-1]), flush=True)
                medians[case.first, case.senders] = outcomes[-1].p50_us if not (case.in_step or case.sealed) else 0.0
        if (here := medians.get((1, 1))) and (elsewhere := medians.get((4, 1))):
            print(f"{size} B: the median of a sender elsewhere is {elsewhere / here:.2f} times the representative's")
    return outcomes


def _rest(hosts: Hosts, arguments: argparse.Namespace) -> dict[str, Any]:
    document: dict[str, Any] = {"idle_cores": idle_cores(hosts, arguments.python)}
    print(f"four idle nodes: {document['idle_cores']:.3f} cores")
    document |= failure_and_heal(hosts, arguments.python)
    print(f"kill -9 to the new view: {document['kill_to_view_s']:.3f} s", end="; ")
    print(f"heal to the merged view: {document['heal_to_view_s']:.3f} s")
    flooded = garbage(hosts, arguments.seconds, arguments.python)
    document["garbage"] = asdict(flooded)
    print(f"under a flood of garbage: {line(flooded)}; refused {sum(flooded.refused.values()):,}")
    document["raw"] = []
    for segments in (1, 48):
        raw = raw_udp.measure(hosts, segments=segments, seconds=2.0)
        document["raw"].append(asdict(raw))
        print(
            f"raw UDP multicast, {segments} datagrams a call: {raw.delivered_per_s:,.0f}/s, "
            f"{raw.mbit_per_s:,.0f} Mbit/s"
        )
    return document


def _corosync(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    problem = corosync_peer.why_not()
    if problem:
        print(f"Corosync was not measured: {problem}")
        return []
    loads = [
        corosync_peer.Load(size, senders) for size in ((100, 1350) if arguments.quick else SIZES) for senders in (1, 4)
    ]
    loads = ([] if arguments.latency else loads) + corosync_peer.latency_loads(4, LATENCY_SIZES)
    results = list(corosync_peer.measure(4, arguments.seconds, loads=loads))
    for result in results:
        print(corosync_peer.line(result), flush=True)
    return [asdict(result) for result in results]


def _sealed(arguments: argparse.Namespace) -> None:
    """All send, and one sends, sealed; and the best that Corosync does with aes256 and sha256."""
    with Hosts(4) as hosts:
        ours = _rows(hosts, [Case(size, senders, sealed=True) for size in (100, 1350) for senders in (0, 1)], arguments)
    if problem := corosync_peer.why_not():
        print(f"Corosync was not measured: {problem}")
        return
    loads = [corosync_peer.Load(size, senders) for size in (100, 1350) for senders in (1, 4)]
    theirs = list(corosync_peer.measure(4, arguments.seconds, corosync_peer.SEALED, loads))
    for result in theirs:
        print(corosync_peer.line(result), flush=True)
    for size in (100, 1350):
        mine = max(outcome.per_s for outcome in ours if outcome.case.size == size)
        best = max(result.delivered_per_s for result in theirs if result.load.size == size)
        print(f"{size} B, sealed: {mine / best:.1f} times the best Corosync" if best else f"{size} B: no Corosync")


def _compare(document: dict[str, Any], outcomes: list[Outcome]) -> None:
    """Our everybody-sends against the best that Corosync did in this run."""
    document["ratios"] = {}
    for size in SIZES:
        theirs = [
            result["delivered_per_s"]
            for result in document["corosync"]
            if result["load"]["size"] == size and not result["load"]["rate"] and not result["problem"]
        ]
        ours = [
            outcome for outcome in outcomes if outcome.case.size == size and outcome.case in (Case(size), Case(size, 1))
        ]
        if theirs and ours:
            ratio = max(outcome.per_s for outcome in ours) / max(theirs)
            document["ratios"][str(size)] = ratio
            print(f"{size} B: {ratio:.1f} times the best Corosync of this run ({max(theirs):,.0f} msg/s)")


if __name__ == "__main__":
    main()
