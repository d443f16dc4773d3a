"""Sites on hosts of their own, live: a daemon in each namespace, the rig's switch between them (root).

    python -m bench.sites_live                    all rows
    python -m bench.sites_live --only hop,idle    some of them, by name
    python -m bench.sites_live --json             one JSON document

Rows, each with what is asked of it (issue "Sites", What will be looked at):

    hop        round trips of 1,024 B at 104 ms and 1 % loss: links beside ping
    beside     the same at 5 % with 25 messages a second: Hop beside TCP
    chain      six sites in a row, 2 % loss, 400 kbit/s: Hop beside TCP, and beside no load
    full       50 ms, 50 Mbit/s, 1,200 B: how much of the link is used, without loss and with 1 %
    fair       the same path beside one TCP flow (cubic)
    overload   ten times what a link carries, for a minute
    idle       packets of a link, from both ends, in a second without messages
    reroute    one of three links cut and mended again and again under load: no view
    views      seconds to the new view after kill -9, a cut and healing
    nats       three sites of two daemons, 40 ms, 100 messages/s of 1,024 B: reliable beside NATS and its gateways

TCP is cubic. A busy machine shows in every figure: read ratios, and what is measured beside.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

from rig.cluster import rings_of
from rig.hosts import Host, Hosts, why_not
from rig.programs import kill
from rig.switch import Link

from bench import nats_peer
from bench.tcp_flow import drain, fill
from ordercast.cli.terminal import complain, write_json

ROOT = Path(__file__).resolve().parent.parent
QUEUE_MS = 100  # of bottlenecks
TCP_PORT = 9_000
NATS_PATH = Link(delay_ms=40)
NATS_RATE = 100  # messages a second
LINE = "10mbit"  # of links that are compared with TCP: losses tell nothing of the line, as in the paper


@dataclass(frozen=True)
class LiveRow:
    row: str
    what: str
    value: float
    asked: str
    is_reached: bool | None  # None: nothing is asked of it


class Programs:
    """A program on each host, and what it is told."""

    def __init__(self) -> None:
        self.programs: list[subprocess.Popen[str]] = []

    def start(self, host: Host, script: str, task: dict[str, Any]) -> None:
        """Start the next one."""
        program = host.run(
            [sys.executable, str(ROOT / "bench" / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        self.programs.append(program)
        self.tell(host, task)

    def tell(self, host: Host, order: dict[str, Any]) -> None:
        pipe = self.programs[host.number - 1].stdin
        assert pipe is not None
        pipe.write(json.dumps(order) + "\n")
        pipe.flush()

    def hear(self, host: Host) -> dict[str, Any]:
        pipe = self.programs[host.number - 1].stdout
        assert pipe is not None
        line = pipe.readline()
        if not line:
            sys.exit("a program has ended before its time; its complaint is above")
        document: dict[str, Any] = json.loads(line)
        return document

    def ask(self, host: Host, **order: Any) -> dict[str, Any]:
        self.tell(host, order)
        return self.hear(host)

    def report(self, host: Host) -> dict[str, Any]:
        return self.ask(host, do="report")


class SiteHosts(Programs):
    """Daemons of sites."""

    def __init__(self, hosts: Hosts, links: Sequence[tuple[int, int]], rate: str, protocol: str, echo: int) -> None:
        super().__init__()
        self.hosts = hosts
        rings = rings_of(hosts)
        wide = [host.address(segment=hosts.segments - 1) for host in hosts]
        for host in hosts:
            task = {
                "node": host.number,
                "addresses": [other.address() for other in hosts],
                "rings": rings[:-1],
                "wide": wide,
                "links": links,
                "rate": rate,
                "protocol": protocol,
                "echoes": host.number == echo,
                "members": len(hosts),
            }
            self.start(host, "sites_node.py", task)
        for host in hosts:
            self.hear(host)


@contextmanager
def wide_area(sites: int, link: Link, each: int = 1) -> Iterator[Hosts]:
    """Sites of some hosts on bridges, and a switch between all of them."""
    count = sites * each
    segments = [range(at, at + each) for at in range(1, count + 1, each)] + [range(1, count + 1)]
    with Hosts(count, segments=segments, switch=[sites], seed=7) as hosts:
        hosts.disturb(link, segment=sites)
        for host in hosts:
            path = f"10.77.{sites}.0/24 dev eth{sites} scope link src {host.address(segment=sites)} congctl cubic"
            host.command("ip", "route", "replace", *path.split())
        yield hosts


@contextmanager
def daemons(
    hosts: Hosts,
    links: Sequence[tuple[int, int]],
    *,
    rate: str = "fair",
    protocol: str = "udp",
    echo: int = 0,
) -> Iterator[SiteHosts]:
    made = SiteHosts(hosts, links, rate, protocol, echo)
    try:
        yield made
    finally:
        kill(made.programs)


def share(values: Sequence[float], part: float) -> float:
    """Return the value below which this part of the values lies."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def pinged(host: Host, target: str, count: int, gap_s: float) -> list[float]:
    """Return round trips as the kernel has them, in milliseconds."""
    done = subprocess.run(
        ["ip", "netns", "exec", host.namespace, "ping", "-n", "-c", str(count), "-i", str(gap_s), "-s", "996", target],
        capture_output=True,
        text=True,
        check=False,
    )
    return [float(found) for found in re.findall(r"time=([\d.]+)", done.stdout)]


def path_of(capacity: int, delay_ms: float) -> Link:
    """Return a path of so many bits a second with a queue of `QUEUE_MS`."""
    return Link(delay_ms=delay_ms, rate=capacity, queue=capacity // 8 * QUEUE_MS // 1000)


def asked_at(row: str, what: str, value: float, asked: str, limit: float, *, least: bool = False) -> LiveRow:
    return LiveRow(row, what, value, asked, value >= limit if least else value <= limit)


# Rows


def hop() -> Iterator[LiveRow]:
    with wide_area(2, Link(delay_ms=52)) as hosts, daemons(hosts, [(1, 2)], echo=2) as sites:
        quiet = median(pinged(hosts[0], hosts[1].address(segment=2), 20, 0.05))
        hosts.disturb(Link(delay_ms=52, loss=0.01), segment=2)
        answers = sites.ask(hosts[0], do="ask", count=600, size=1024, gap_s=0.03, patience_s=2.0)["took_ms"]
        pings = pinged(hosts[0], hosts[1].address(segment=2), 100, 0.03)
        ping = median(pings)
    yield LiveRow("hop", "answered of 600", len(answers), "600", len(answers) == 600)
    for what, value in (("ping, ms", ping), ("ping before, ms", quiet), ("ping, 95 %, ms", share(pings, 0.95))):
        yield LiveRow("hop", what, value, "", None)
    yield asked_at("hop", "median, ms", median(answers), "ping + 5", ping + 5)
    yield asked_at("hop", "95 %, ms", share(answers, 0.95), "ping + 10", ping + 10)
    yield asked_at("hop", "99 %, of ping", share(answers, 0.99) / ping, "2.6", 2.6)


def beside() -> Iterator[LiveRow]:
    found: dict[str, list[float]] = {}
    for protocol in ("udp", "tcp"):
        with (
            wide_area(2, Link(delay_ms=52)) as hosts,
            daemons(hosts, [(1, 2)], rate=LINE, protocol=protocol, echo=2) as sites,
        ):
            hosts.disturb(Link(delay_ms=52, loss=0.05), segment=2)
            order = {"do": "ask", "count": 750, "size": 1024, "gap_s": 0.04, "patience_s": 5.0}
            found[protocol] = sites.ask(hosts[0], **order)["took_ms"]
    hop, tcp = found["udp"], found["tcp"]
    for what, value in (("Hop, mean ms", mean(hop)), ("TCP, mean ms", mean(tcp))):
        yield LiveRow("beside", what, value, "", None)
    yield asked_at("beside", "TCP's mean, of Hop's", mean(tcp) / mean(hop), "1.2 at least", 1.2, least=True)
    yield asked_at("beside", "Hop's 99 %, of TCP's", share(hop, 0.99) / share(tcp, 0.99), "0.6", 0.6)


def chain() -> Iterator[LiveRow]:
    took: dict[str, list[float]] = {}
    links = list(pairwise(range(1, 7)))
    for name, protocol, loss, rate in (("quiet", "udp", 0.02, 5), ("udp", "udp", 0.02, 49), ("tcp", "tcp", 0.02, 49)):
        with wide_area(6, Link(delay_ms=10)) as hosts, daemons(hosts, links, rate=LINE, protocol=protocol) as sites:
            hosts.disturb(Link(delay_ms=10, loss=loss), segment=6)
            sites.ask(hosts[0], do="load", service="RELIABLE", size=1024, seconds=12.0, rate=rate)
            time.sleep(2.0)
            took[name] = sites.report(hosts[5])["took_ms"]
    quiet = median(took["quiet"])
    yield LiveRow("chain", "Hop without load, median ms", quiet, "", None)
    yield asked_at("chain", "Hop's median, of that without load", median(took["udp"]) / quiet, "1.1", 1.1)
    yield asked_at("chain", "Hop's 99 %, of TCP's", share(took["udp"], 0.99) / share(took["tcp"], 0.99), "0.75", 0.75)


def _throughput(loss: float, rate: str, protocol: str, seconds: float = 8.0) -> float:
    """Return the part of a link of 50 Mbit/s that messages fill, as the far site has them."""
    path = path_of(capacity := 50_000_000, 25)
    with wide_area(2, path) as hosts, daemons(hosts, [(1, 2)], rate=rate, protocol=protocol) as sites:
        hosts.disturb(Link(delay_ms=25, rate=capacity, queue=path.queue, loss=loss), hosts[0], hosts[1], segment=2)
        sites.tell(hosts[0], {"do": "load", "service": "RELIABLE", "size": 1200, "seconds": seconds + 4})
        time.sleep(3.0)
        before = sites.report(hosts[1])
        time.sleep(seconds)
        after = sites.report(hosts[1])
    size = after["delivered"].get("1", 0) - before["delivered"].get("1", 0)
    return float(size * 8 / (after["at"] - before["at"]) / capacity)


def full() -> Iterator[LiveRow]:
    yield asked_at("full", "of the link", _throughput(0, "fair", "udp"), "0.85 at least", 0.85, least=True)
    fixed = _throughput(0.01, "50mbit", "udp")
    yield asked_at("full", "of the link, 1 % lost, fixed rate", fixed, "0.75 at least", 0.75, least=True)
    tcp = _throughput(0.01, "fair", "tcp")
    yield LiveRow("full", "TCP's, 1 % lost", tcp, "", None)
    yield asked_at("full", "that of TCP", fixed / tcp if tcp else 99.0, "3 at least", 3, least=True)


def fair() -> Iterator[LiveRow]:
    path = path_of(capacity := 50_000_000, 25)
    with wide_area(2, path) as hosts, daemons(hosts, [(1, 2)]) as sites:
        sites.tell(hosts[0], {"do": "load", "service": "RELIABLE", "size": 1200, "seconds": 24.0})
        with hosts[1].inside():
            listener = socket.create_server((hosts[1].address(segment=2), TCP_PORT))
        with hosts[0].inside():
            sender = socket.create_connection(listener.getsockname(), source_address=(hosts[0].address(segment=2), 0))
        got = [0]
        threads = [
            threading.Thread(target=drain, args=(listener, got), daemon=True),
            threading.Thread(target=fill, args=(sender,), daemon=True),
        ]
        for thread in threads:
            thread.start()
        time.sleep(6.0)
        before, flow = sites.report(hosts[1]), got[0]
        time.sleep(12.0)
        after, flowed = sites.report(hosts[1]), got[0] - flow
        sender.close()
        listener.close()
    ours = after["delivered"].get("1", 0) - before["delivered"].get("1", 0)
    part = ours / (ours + flowed) if ours else 0.0
    yield LiveRow("fair", "both, of the link", (ours + flowed) * 8 / 12.0 / capacity, "", None)
    yield LiveRow("fair", "part beside one TCP flow", part, "0.3 to 0.7", 0.3 <= part <= 0.7)


def overload() -> Iterator[LiveRow]:
    path = path_of(capacity := 2_000_000, 20)
    with wide_area(2, path) as hosts, daemons(hosts, [(1, 2)]) as sites:
        sites.ask(hosts[0], do="load", service="AGREED", size=1200, seconds=5.0, rate=10)
        time.sleep(1.0)
        quiet = median(sites.report(hosts[1])["took_ms"])
        sites.ask(hosts[0], do="load", service="AGREED", size=1200, seconds=60.0, rate=10 * capacity / 8 / 1200)
        loaded = sites.report(hosts[1])
        time.sleep(10.0)
        idle = [sites.report(host) for host in hosts]
    took = median(loaded["took_ms"])
    yield LiveRow("overload", "agreed without load, ms", quiet, "", None)
    yield asked_at("overload", "agreed, ms from the sending of a message", took, "that + 1,000", quiet + 1000)
    yield LiveRow("overload", "empty 10 s later", all(one["is_idle"] for one in idle), "yes", idle[0]["is_idle"])
    yield LiveRow("overload", "memory, MiB", max(one["rss_mib"] for one in idle), "", None)


def idle() -> Iterator[LiveRow]:
    with wide_area(2, Link(delay_ms=20)) as hosts, daemons(hosts, [(1, 2)]) as sites:
        time.sleep(3.0)
        before = [sites.report(host) for host in hosts]
        time.sleep(10.0)
        after = [sites.report(host) for host in hosts]
    seconds = after[0]["at"] - before[0]["at"]
    packets = sum(new["packets"] - old["packets"] for new, old in zip(after, before, strict=True))
    yield asked_at("idle", "packets a second on the link", packets / seconds, "10", 10)


def reroute() -> Iterator[LiveRow]:
    rounds = 20
    with wide_area(3, Link(delay_ms=20)) as hosts, daemons(hosts, list(combinations((1, 2, 3), 2))) as sites:
        before = [sites.report(host) for host in hosts]
        for host in hosts:
            sites.tell(host, {"do": "load", "service": "AGREED", "size": 200, "seconds": rounds * 4.5, "rate": 100})
        for _ in range(rounds):
            hosts.cut(hosts[0], hosts[1], segment=3)
            time.sleep(3.0)
            hosts.heal(segment=3)
            time.sleep(1.5)
        sent = sum(sites.hear(host)["sent"] for host in hosts)
        after = _at_rest(sites)
    views = sum(new["views"] - old["views"] for new, old in zip(after, before, strict=True))
    least = min(sum(one["delivered"].values()) for one in after) / 200
    why = {reason for new, old in zip(after, before, strict=True) for reason in new["reasons"][len(old["reasons"]) :]}
    yield LiveRow("reroute", f"views {', '.join(sorted(why))}".strip(), views, "0", views == 0)
    yield LiveRow("reroute", "messages that somebody lacks", sent - least, "0", sent == least)


def _at_rest(sites: SiteHosts, patience_s: float = 30.0) -> list[dict[str, Any]]:
    """Wait until nothing is under way and nothing more comes, and return what the daemons say then."""
    end, before = time.monotonic() + patience_s, [-1]
    while True:
        reports = [sites.report(host) for host in sites.hosts]
        delivered = [sum(one["delivered"].values()) for one in reports]
        if (delivered == before and all(one["is_idle"] for one in reports)) or time.monotonic() > end:
            return reports
        before = delivered
        time.sleep(1.0)


def views() -> Iterator[LiveRow]:
    """Times are from the fault until the last of those who stay has the view."""
    way_s = 0.04
    links = list(combinations((1, 2, 3), 2))
    with wide_area(3, Link(delay_ms=way_s * 1e3), each=2) as hosts, daemons(hosts, links) as sites:
        victim = hosts[5]
        began = time.monotonic()
        sites.programs[5].kill()
        ring_s = _until(sites, [hosts[4]], 1, of="ring") - began
        killed = _until(sites, [host for host in hosts if host is not victim], 5) - began
        time.sleep(2.0)
        cut_off, others = hosts[2:4], [*hosts[:2], hosts[4]]
        began = time.monotonic()
        hosts.cut(cut_off, others, segment=3)
        cut = _until(sites, others, 3) - began
        _until(sites, cut_off, 2)
        time.sleep(3.0)
        began = time.monotonic()
        hosts.heal(segment=3)
        healed = _until(sites, [*cut_off, *others], 5) - began
    link_s = 2.5  # link_loss, as configured
    yield LiveRow("views", "ring of the killed one, s", ring_s, "", None)
    yield asked_at("views", "after kill -9, s", killed, "the ring's + 6 D + 0.3", ring_s + 6 * way_s + 0.3)
    yield asked_at("views", "after a cut, s", cut, "link_loss + 6 D + 0.3", link_s + 6 * way_s + 0.3)
    yield asked_at("views", "after healing, s", healed, "1.5 + 6 D", 1.5 + 6 * way_s)


def nats() -> Iterator[LiveRow]:
    """Times are those at the daemons, or clients, of the two other sites."""
    for loss in (0.0, 0.01):
        ours, theirs = _reliable(loss), _by_nats(loss)
        lost = f", {loss:.0%} lost" if loss else ""
        for name, took in (("reliable", ours), ("NATS", theirs)):
            yield LiveRow("nats", f"{name}{lost}, median ms", median(took), "", None)
            yield LiveRow("nats", f"{name}{lost}, 99 %, ms", share(took, 0.99), "", None)
        if loss:
            asked = share(ours, 0.99) / share(theirs, 0.99)
            yield asked_at("nats", f"99 %{lost}, of NATS's", asked, "0.8", 0.8)
        else:
            yield asked_at("nats", "median, ms above NATS's", median(ours) - median(theirs), "3", 3.0)


def _reliable(loss: float) -> list[float]:
    links = list(combinations((1, 2, 3), 2))
    with wide_area(3, NATS_PATH, each=2) as hosts, daemons(hosts, links, rate=LINE) as sites:
        return _loaded(hosts, sites, loss)


def _by_nats(loss: float) -> list[float]:
    pairs = [(1, 2), (3, 4), (5, 6)]
    with (
        tempfile.TemporaryDirectory() as folder,
        wide_area(3, NATS_PATH, each=2) as hosts,
        nats_peer.servers(hosts, pairs, 3, Path(folder)),
    ):
        clients = Programs()
        try:
            for host in hosts:
                clients.start(host, "nats_peer.py", {"node": host.number, "address": host.address()})
            for host in hosts:
                clients.hear(host)
            _until_heard(hosts, clients)
            return _loaded(hosts, clients, loss)
        finally:
            kill(clients.programs)


def _until_heard(hosts: Hosts, clients: Programs) -> None:
    """Wait until what the first client says comes to all others: servers have found each other."""
    end = time.monotonic() + 60.0
    missing = set(list(hosts)[1:])
    while missing:
        clients.ask(hosts[0], do="load", size=64, seconds=0.5, rate=10)
        missing -= {host for host in missing if clients.report(host)["took_ms"]}
        if time.monotonic() > end:
            sys.exit("the servers of NATS did not find each other within a minute")


def _loaded(hosts: Hosts, programs: Programs, loss: float) -> list[float]:
    """Return how long the messages of the first host took to those of other sites, in milliseconds."""
    hosts.disturb(replace(NATS_PATH, loss=loss), segment=3)
    programs.ask(hosts[0], do="load", service="RELIABLE", size=1024, seconds=3.0, rate=NATS_RATE)
    time.sleep(1.0)
    for host in hosts[2:]:
        programs.report(host)
    programs.ask(hosts[0], do="load", service="RELIABLE", size=1024, seconds=20.0, rate=NATS_RATE)
    time.sleep(2.0)
    return [took for host in hosts[2:] for took in programs.report(host)["took_ms"]]


def _until(sites: SiteHosts, hosts: Sequence[Host], members: int, of: str = "members") -> float:
    """Wait for so many members of the view, or of the ring, at these hosts; return when that is."""
    while any(sites.report(host)[of] != members for host in hosts):
        time.sleep(0.01)
    return time.monotonic()


ROWS = {row.__name__: row for row in (hop, beside, chain, full, fair, overload, idle, reroute, views, nats)}
NEEDED = {"hop": "ping", "nats": "nats-server"}  # commands that rows compare with


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.sites_live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(ROWS), help="rows, by name")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if (problem := why_not(switch=True)) is not None:
        sys.exit(f"this needs hosts of its own, and {problem}")
    found: list[LiveRow] = []
    for name in options.only.split(","):
        if (command := NEEDED.get(name)) is not None and shutil.which(command) is None:
            complain(f"{name} is not measured: the command {command} is not installed")
            continue
        for row in ROWS[name]():
            found.append(row)
            if not options.json:
                print(f"{row.row:9} {row.what:40} {row.value:9.2f}  {row.asked:24} {_word(row)}", flush=True)
    if options.json:
        write_json([asdict(row) for row in found])
    return 0


def _word(row: LiveRow) -> str:
    return "" if row.is_reached is None else "reached" if row.is_reached else "NOT REACHED"


if __name__ == "__main__":
    sys.exit(main())
