"""`ordercast up`: a cluster on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import socket
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from ordercast.cli.circle import Placed, circle, circle_file
from ordercast.cli.daemons import Cluster, Daemon
from ordercast.cli.event_text import counted, listed, verb
from ordercast.cli.log_lines import LogStream
from ordercast.cli.quantities import duration_from
from ordercast.cli.terminal import note, output, write_json
from ordercast.cli.wide_area import WideArea, sites_file, sites_from, wide_ports
from ordercast.daemon.config.file import STATUS_PORT, read_cluster
from ordercast.daemon.config.node import PORT
from ordercast.model.errors import UsageError
from ordercast.order.catalogue import DEFAULT, live_entry_of
from ordercast.order.gateways.promised import ENGINE as GATEWAYS
from ordercast.order.sites.promised import ENGINE as SITES
from ordercast.order.tree.promised import ENGINE as TREE
from ordercast.session.addresses import CHOSEN

COUNT, EACH = 3, 2  # daemons; and of each of several rings
SHOWN = {  # by the engine: what shows it, and what is to be seen there
    GATEWAYS: ("topology", "the rings, who joins them, and what delivery waits for"),
    SITES: ("sites", "the sites, their links, and what delivery waits for"),
    TREE: ("graph show", "the trees over which messages travel, and why they changed"),
}
Beside = AbstractAsyncContextManager[Any]  # what runs while daemons do


class More(NamedTuple):
    """What every daemon is told."""

    tcp: int | None  # the first port of clients
    key: Path | None
    trace: Path | None

    def arguments(self, number: int) -> list[str]:
        arguments: list[str] = []
        if self.tcp is not None:
            arguments += ["--clients-port", str(self.tcp + number)]
        if self.key is not None:
            arguments += ["--key", str(self.key)]
        if self.trace is not None:
            arguments += ["--trace", str(self.trace), "--trace-level", "full"]
        return arguments


def up(
    count: int | None,
    rings: int | None,
    sites: str | None,
    delay: str | None,
    tcp: int | None,
    key: Path | None,
    engine: str | None,
    trace: Path | None,
    port: int,
    as_json: bool,
) -> int:
    more = More(tcp, key, trace)
    if trace is not None and trace.exists() and any(trace.iterdir()):
        raise UsageError(f"{trace} is not empty: give --trace a new folder, so that it holds one run")
    if delay is not None and sites is None:
        raise UsageError("--delay is the way between sites: give --sites too, such as --sites east=2,west=2")
    if sites is not None:
        if rings is not None or engine not in (None, SITES):
            raise UsageError(f"--sites needs the engine {SITES}, which joins them: leave out --rings and --engine")
        live_entry_of(SITES)
        delay_ns = 0 if delay is None else duration_from(delay, default_unit="ms")
        return _on_sites(sites_from(sites, count), delay_ns, more, port, as_json)
    if rings is not None:
        return _on_rings(circle(rings, count or EACH), more, port, engine, as_json)
    live_entry_of(engine or DEFAULT)
    shared = _own_arguments(port, engine or DEFAULT)
    own = [[*shared, *more.arguments(number)] for number in range(count or COUNT)]
    return _run(own, {}, more, as_json, engine=engine or DEFAULT)


def _on_rings(placed: list[Placed], more: More, port: int, engine: str | None, as_json: bool) -> int:
    """Run the daemons of a network of rings."""
    if engine not in (None, GATEWAYS):
        raise UsageError(f"--rings needs the engine {GATEWAYS}, which joins them: leave out --engine {engine}")
    text = circle_file(placed, port, port + STATUS_PORT - PORT)
    return _on_file(text, placed, more, as_json, GATEWAYS)


def _on_sites(placed: list[Placed], delay_ns: int, more: More, port: int, as_json: bool) -> int:
    """Run the daemons of several sites, and the wide area between them."""
    text = sites_file(placed, port, port + STATUS_PORT - PORT)
    return _on_file(text, placed, more, as_json, SITES, WideArea(wide_ports(placed, port), delay_ns))


def _on_file(
    text: str, placed: list[Placed], more: More, as_json: bool, engine: str, area: WideArea | None = None
) -> int:
    """Run those daemons of a file that do not run yet; the file is there as long as they are. Whoever started others
    has opened the area between all of them."""
    with TemporaryDirectory(prefix=f"ordercast-{engine}-") as folder:
        file = Path(folder) / "cluster.toml"
        file.write_text(text, encoding="utf-8")
        taken = running_of(file)
        running = [one.name for one in placed if one.name in taken]
        if len(running) == len(placed):
            raise UsageError(
                f"all of {listed(running)} run already, and nothing is to be added: choose another --port for a second "
                "cluster"
            )
        if running:
            note(f"{listed(running)} {verb(running, 'runs', 'run')} already: only the others are started")
        own = [
            ["--config", str(file), "--name", one.name, *more.arguments(number)]
            for number, one in enumerate(placed)
            if one.name not in running
        ]
        return _run(own, {one.name: one for one in placed}, more, as_json, None if running else area, engine=engine)


def running_of(file: Path) -> set[str]:
    """Return the nodes of a file that run on this machine: their token ports are taken."""
    peers = (peer for ring in read_cluster(file).common.rings for peer in ring.peers)
    return {peer.name for peer in peers if _is_taken(peer.address, peer.token_port)}


def _is_taken(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _run(
    own: list[list[str]],
    rings: dict[str, Placed],
    more: More,
    as_json: bool,
    beside: Beside | None = None,
    *,
    engine: str,
) -> int:
    """`own`: the arguments of each daemon; `rings`: on which each is, by name."""
    note(f"starting {counted(len(own), 'daemon')} …")
    banner = (
        (lambda daemons: _print_json(daemons, rings))
        if as_json
        else (lambda daemons: _print_banner(output(), daemons, rings, engine))
    )
    log = LogStream(Console(stderr=True, highlight=False, emoji=False))
    cluster = Cluster(log, banner)
    one_by_one = more.tcp is not None and not rings  # so that n1 has the first port

    async def run() -> int:
        async with beside or nullcontext():
            return await cluster.run(own, one_by_one=one_by_one)

    return asyncio.run(run()) if more.trace is None else _run_traced(cluster, run, more.trace)


def _run_traced(cluster: Cluster, run: Callable[[], Coroutine[Any, Any, int]], folder: Path) -> int:
    """Adds to the trace what only we know: who was killed, and that nobody runs any more, nor is owed anything."""
    from ordercast.trace.cluster import append_cluster_event  # slow to load, and seldom needed

    cluster.on_killed = lambda daemon: append_cluster_event(folder, "crashed", process=daemon.name)
    status = asyncio.run(run())
    append_cluster_event(folder, "healed", alive=[])
    append_cluster_event(folder, "ended")
    cluster.log.say(f"what happened is in {folder}: ordercast check {folder}")
    return status


def _own_arguments(port: int, engine: str) -> list[str]:
    arguments = ["--port", str(port)] if port != PORT else []
    return [*arguments, "--engine", engine] if engine != DEFAULT else arguments


def _print_json(daemons: list[Daemon], rings: dict[str, Placed]) -> None:
    documents = [
        {
            "name": daemon.name,
            "pid": daemon.process.pid,
            "clients": daemon.clients,
            "status": daemon.status,
            "rings": list(rings[daemon.name].rings) if daemon.name in rings else [],
        }
        for daemon in daemons
    ]
    write_json({"daemons": documents})
    sys.stdout.flush()


def _print_banner(console: Console, daemons: list[Daemon], rings: dict[str, Placed], engine: str) -> None:
    """What runs, where clients connect, what to type next."""
    names = [daemon.name for daemon in daemons]
    strangers = sorted(frozenset[str]().union(*(daemon.members for daemon in daemons)).difference(names))
    title = f"{counted(len(names), 'daemon')} {verb(names, 'runs', 'run')} on this machine: {listed(names)}"
    if strangers:
        title += f", together with {listed(strangers)}"
    gateways = [name for name in names if name in rings and rings[name].is_gateway]
    if gateways:
        title += f"; {listed(gateways)} {verb(gateways, 'joins its', 'join their')} rings to one network"
    console.print(Text(title, "bold green"), soft_wrap=True)
    width = max(map(len, names))
    for daemon in daemons:
        on = f"  on {' and '.join(rings[daemon.name].rings)}".ljust(15) if rings else ""
        where = f"{on}  clients at {' and '.join(daemon.clients)}"
        line = Text.assemble((f"  {daemon.name:{width}}", "bold"), where)
        console.print(line.append(f"  (process {daemon.process.pid})", "dim"), soft_wrap=True)
    console.print(Text("\nType this in other terminals:", "bold"))
    hints = hints_for(daemons, rings, engine)
    width = max(len(command) for command, _ in hints)
    for command, meaning in hints:
        console.print(Text.assemble((f"  {command:{width}}", "cyan"), f"   {meaning}"), soft_wrap=True)
    console.print(Text("\nCtrl-C ends the cluster. Its log follows.\n"))
    console.file.flush()


def hints_for(daemons: list[Daemon], rings: dict[str, Placed], engine: str) -> list[tuple[str, str]]:
    """Return commands that a person may type next, and what each does."""
    gateways = [daemon for daemon in daemons if daemon.name in rings and rings[daemon.name].is_gateway]
    first, *others = [daemon for daemon in daemons if daemon not in gateways] or daemons
    elsewhere = [other for other in others if rings and rings[other.name].rings != rings[first.name].rings]
    last = [first, *others, *gateways][-1]
    where = "at another site" if engine == SITES else "on another ring"
    hints = [
        (f"ordercast chat --at {first.name}", "talk to everybody who does the same, at any daemon"),
        *((f"ordercast chat --at {other.name}", f"the same, {where}") for other in elsewhere[:1]),
        ("ordercast listen news", "see what is sent to a group, and who is in it"),
        ("ordercast send news hello", "send something to it"),
        ("ordercast groups", "which groups there are"),
    ]
    if folder := os.environ.get(CHOSEN):
        hints.insert(0, (f"export {CHOSEN}={shlex.quote(folder)}", "so that the others find these daemons"))
    port = "" if first.status is None else first.status.removesuffix("/status").rpartition(":")[2]
    if port:
        hints.append((f"ordercast status :{port} --all", "how each of them is doing"))
    if port and engine in SHOWN:
        command, meaning = SHOWN[engine]
        hints.append((f"ordercast {command} :{port}", meaning))
    if last is not first:
        hints.append((f"kill -9 {last.process.pid}", f"crash {last.name}, and see what the others say"))
    return hints
