"""The same load on Corosync: what an established group communication system does on this machine.

One daemon for each network namespace, in a mount namespace of its own, so that daemons share neither sockets nor shared
memory with each other or with an installation. The load is `corosync/client.c`, compiled when needed. Three
configurations, since none is best at everything; what we compare with is the best of them for each load.

    python -m bench.corosync_peer [--nodes 4] [--seconds 5] [--configs knet-tuned,udp-tuned,knet-default] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rig import Host, Hosts
from rig import why_not as why_no_hosts

SOURCE = Path(__file__).parent / "corosync" / "client.c"
CLIENT_PATIENCE_S = 100.0  # beyond the load: joining and draining have limits of their own in the client
SIZES = (100, 1350, 8192, 65536)
LATENCY_SIZES = (100, 1350)
LATENCY_RATE = 100.0  # messages a second of all senders together
BURST = 64
KEY_SIZE = 256  # bytes of a key of Corosync
FORM_TRIES = 3
FORM_SECONDS = 0.2

_SCRIPT = """
mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib/corosync &&
mount --bind "$0" /etc/corosync && exec corosync -f
"""


class CorosyncError(Exception):
    """A daemon or a client did not do its part."""


@dataclass(frozen=True)
class Config:
    """What differs from the defaults."""

    name: str
    transport: str
    is_tuned: bool  # window 150, 50 messages for each visit; the defaults are 50 and 17
    is_real_time: bool  # daemons run before everything else; this is the default
    is_sealed: bool = False  # aes256 and sha256


CONFIGS = (
    Config("knet-tuned", "knet", is_tuned=True, is_real_time=False),
    Config("udp-tuned", "udp", is_tuned=True, is_real_time=True),
    Config("knet-default", "knet", is_tuned=False, is_real_time=True),
)
SEALED = (
    Config("knet-sealed", "knet", is_tuned=True, is_real_time=False, is_sealed=True),
    Config("knet-sealed-default", "knet", is_tuned=False, is_real_time=True, is_sealed=True),
)


@dataclass(frozen=True)
class Load:
    size: int
    senders: int
    rate: float = 0.0  # messages a second of each sender, who take turns; 0: as many as are taken
    first: int = 1  # the node that sends, or the first of those that do
    burst: int = 0  # messages after which a sender delivers; 0: when the daemon refuses one, which is faster


@dataclass(frozen=True)
class Result:
    config: str
    nodes: int
    load: Load
    delivered_per_s: float = 0.0  # at the slowest node
    mbit_per_s: float = 0.0
    p50_us: float = 0.0  # mean over nodes
    p90_us: float = 0.0  # mean over nodes
    p99_us: float = 0.0  # of the worst node
    daemon_cores: float = 0.0
    client_cores: float = 0.0
    is_same_order: bool | None = None  # None: somebody had not delivered everything in the end, so nobody can tell
    problem: str | None = None


def why_not() -> str | None:
    """Why Corosync cannot be measured here, in words; None if it can."""
    if reason := why_no_hosts():
        return reason
    for tool in ("corosync", "gcc", "unshare", "mount"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    try:
        with tempfile.TemporaryDirectory() as folder:
            compile_client(Path(folder))
    except CorosyncError as error:
        return f"the client does not compile, are the headers of libcpg installed? {error}"
    return None


def compile_client(folder: Path) -> Path:
    program = folder / "client"
    argv = ["gcc", "-D_GNU_SOURCE", "-O2", "-o", str(program), str(SOURCE), "-lcpg"]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise CorosyncError(done.stderr.strip().splitlines()[0])
    return program


def config_text(config: Config, hosts: Sequence[Host], log: Path, key: Path) -> str:
    tuned = "window_size: 150\n max_messages: 50\n" if config.is_tuned else ""
    interface = (
        "interface {\n linknumber: 0\n bindnetaddr: 10.77.0.0\n mcastaddr: 239.77.1.1\n mcastport: 5405\n ttl: 1\n}\n"
        if config.transport == "udp"
        else ""
    )
    nodes = "".join(
        f"node {{\n nodeid: {host.number}\n name: n{host.number}\n ring0_addr: {host.address()}\n}}\n" for host in hosts
    )
    crypto = (
        f" crypto_cipher: aes256\n crypto_hash: sha256\n keyfile: {key}\n"
        if config.is_sealed
        else " crypto_cipher: none\n crypto_hash: none\n"
    )
    return (
        f"totem {{\n version: 2\n cluster_name: bench\n transport: {config.transport}\n{crypto} {tuned}{interface}}}\n"
        f"nodelist {{\n{nodes}}}\n"
        "quorum {\n provider: corosync_votequorum\n}\n"
        f"system {{\n sched_rr: {'yes' if config.is_real_time else 'no'}\n}}\n"
        f"logging {{\n to_syslog: no\n to_stderr: no\n to_logfile: yes\n logfile: {log}\n}}\n"
    )


@dataclass
class Cluster:
    """Daemons that run, one on each host."""

    config: Config
    hosts: Hosts
    folder: Path
    client: Path
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def start(self) -> None:
        key = self.folder / "authkey"
        key.write_bytes(os.urandom(KEY_SIZE))
        for host in self.hosts:
            folder = self.folder / f"n{host.number}"
            folder.mkdir(exist_ok=True)
            text = config_text(self.config, self.hosts, self.folder / f"n{host.number}.log", key)
            (folder / "corosync.conf").write_text(text, encoding="utf-8")
            with (self.folder / f"n{host.number}.err").open("wb") as errors:
                argv = ["unshare", "-m", "bash", "-c", _SCRIPT, str(folder)]
                self.daemons.append(host.run(argv, stdin=subprocess.DEVNULL, stderr=errors))

    def form(self) -> None:
        """Until a small load passes. A client that joins while daemons still find each other may not be seen by all."""
        for _ in range(FORM_TRIES):
            if (problem := self.run(Load(100, 1, LATENCY_RATE), FORM_SECONDS).problem) is None:
                return
            if not self.is_alive():
                self.stop()
                self.start()
        raise CorosyncError(f"{self.config.name} with {len(self.hosts)} nodes does not form: {problem}")

    def stop(self) -> None:
        for host in self.hosts:
            host.end_programs()
        self.daemons.clear()

    def run(self, load: Load, seconds: float) -> Result:
        """One load; what goes wrong is in the result."""
        nodes = len(self.hosts)
        group = f"load{next(self.numbers)}"
        clients = []
        senders = range(load.first, load.first + load.senders)
        for host, daemon in zip(self.hosts, self.daemons, strict=True):
            task = [group, nodes, load.senders, int(host.number in senders), load.size, seconds, load.rate]
            task += [phase(host.number, load.senders), load.burst]
            argv = ["nsenter", "-t", str(daemon.pid), "-m", str(self.client), *(str(value) for value in task)]
            clients.append(host.run(argv, stdout=subprocess.PIPE, text=True))
        before = self._daemon_cpu_s()
        try:
            answers = [_answer(client, seconds) for client in clients]
            daemon_cpu_s = self._daemon_cpu_s() - before
        except CorosyncError as error:
            return Result(self.config.name, nodes, load, problem=f"{error}{self._last_words()}")
        finally:
            for client in clients:
                client.kill()
                client.wait()
        return _result(self.config.name, load, answers, daemon_cpu_s)

    def is_alive(self) -> bool:
        return all(daemon.poll() is None for daemon in self.daemons)

    def _daemon_cpu_s(self) -> float:
        ticks = 0
        for daemon in self.daemons:
            stat = Path(f"/proc/{daemon.pid}/stat")
            if not stat.exists():
                raise CorosyncError("a daemon died")
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _last_words(self) -> str:
        """Of a daemon that died: what it complained of, or the end of its log."""
        for number, daemon in enumerate(self.daemons, 1):
            if daemon.poll() is not None:
                files = [self.folder / f"n{number}.err", self.folder / f"n{number}.log"]
                texts = [file.read_text(errors="replace").strip() for file in files if file.exists()]
                said = next((text.splitlines()[-1] for text in texts if text), "nothing")
                return f"; daemon {number} ended with {daemon.returncode}, saying {said}"
        return ""


def _answer(client: subprocess.Popen[str], seconds: float) -> dict[str, float | str | bool]:
    try:
        output, _ = client.communicate(timeout=seconds + CLIENT_PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise CorosyncError("a client did not end") from None
    if not output:
        raise CorosyncError(f"a client ended with {client.returncode}")
    answer: dict[str, float | str | bool] = json.loads(output)
    if "error" in answer:
        raise CorosyncError(str(answer["error"]))
    return answer


def _result(config: str, load: Load, answers: Sequence[dict[str, float | str | bool]], daemon_cpu_s: float) -> Result:
    def values(name: str) -> list[float]:
        return [float(answer[name]) for answer in answers]

    nodes = len(answers)
    spans = values("seconds")
    rate = min(n / span if span else 0.0 for n, span in zip(values("delivered"), spans, strict=True))
    longest = max(spans) or 1.0
    is_drained = all(answer["is_drained"] for answer in answers)
    is_same = len({answer["hash"] for answer in answers}) == 1 and not any(values("gaps"))
    return Result(
        config,
        nodes,
        load,
        rate,
        rate * load.size * 8 / 1e6,
        sum(values("p50_us")) / nodes,
        sum(values("p90_us")) / nodes,
        max(values("p99_us")),
        daemon_cpu_s / longest,
        sum(values("cpu_s")) / longest,
        is_same if is_drained else None,
        None if is_drained else "not drained in time",
    )


@contextmanager
def running(config: Config, hosts: Hosts) -> Iterator[Cluster]:
    """Daemons on these hosts; they are ended, whatever happens."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cluster = Cluster(config, hosts, folder, compile_client(folder))
        try:
            cluster.start()
            cluster.form()
            yield cluster
        finally:
            cluster.stop()


def phase(number: int, senders: int) -> float:
    """When in its period a sender sends, from 0 to 1, so that senders take turns: odd numbers first, so that a token
    that goes round four nodes has two hops to go from one sender to the next, on average, as from one to any other."""
    turn = (number - 1) // 2 if number % 2 else (senders + 1) // 2 + number // 2 - 1
    return turn % senders / senders


def latency_loads(nodes: int, sizes: Iterable[int] = LATENCY_SIZES) -> list[Load]:
    """One sender; one elsewhere; all in turns."""
    whose = (1, 1), (1, nodes), (nodes, 1)
    return [Load(size, senders, LATENCY_RATE / senders, first) for size in sizes for senders, first in whose]


def all_loads(nodes: int) -> list[Load]:
    many = (1, nodes)
    fast = [Load(size, senders) for size in SIZES for senders in many]
    attentive = [Load(size, senders, burst=BURST) for size in LATENCY_SIZES for senders in many]
    return [*fast, *attentive, *latency_loads(nodes)]


def measure(
    nodes: int, seconds: float, configs: Iterable[Config] = CONFIGS, loads: Sequence[Load] | None = None
) -> Iterator[Result]:
    """Every load on every configuration, as they are ready. What does not work is a result with a problem."""
    for config in configs:
        todo = list(loads or all_loads(nodes))
        try:
            with Hosts(nodes) as hosts, running(config, hosts) as cluster:
                while todo:
                    yield cluster.run(todo.pop(0), seconds)
                    if not cluster.is_alive():
                        cluster.stop()
                        cluster.start()
                        cluster.form()
        except CorosyncError as error:
            yield from (Result(config.name, nodes, load, problem=str(error)) for load in todo)


def best(results: Iterable[Result]) -> list[Result]:
    """For each load the configuration that did best: most messages, or where the rate was given, least latency."""
    chosen: dict[Load, Result] = {}
    for result in results:
        if result.problem is None or result.delivered_per_s:
            rival = chosen.get(result.load)
            if rival is None or _merit(result) > _merit(rival):
                chosen[result.load] = result
    return list(chosen.values())


def _merit(result: Result) -> float:
    return -result.p50_us if result.load.rate else result.delivered_per_s


HEAD = (
    f"{'config':<13} {'bytes':>6} {'senders':>7} {'first':>5} {'rate':>5} {'burst':>5} {'msgs/s':>8} {'Mbit/s':>7} "
    f"{'p50 us':>8} {'p90 us':>8} {'p99 us':>8} {'daemons':>7} {'clients':>7}  order"
)


def line(result: Result) -> str:
    order = {True: "same", False: "DIFFERS", None: "unknown"}[result.is_same_order]
    load = result.load
    problem = f": {result.problem}" if result.problem else ""
    return (
        f"{result.config:<13} {load.size:6} {load.senders:7} {load.first:5} {load.rate or 'max':>5} {load.burst:5} "
        f"{result.delivered_per_s:8.0f} {result.mbit_per_s:7.1f} "
        f"{result.p50_us:8.0f} {result.p90_us:8.0f} {result.p99_us:8.0f} "
        f"{result.daemon_cores:7.2f} {result.client_cores:7.2f}  {order}{problem}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each load")
    parser.add_argument("--configs", default=",".join(config.name for config in CONFIGS))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if reason := why_not():
        sys.exit(f"Corosync skipped: {reason}")
    wanted = str(arguments.configs).split(",")
    results = []
    if not arguments.json:
        print(f"Corosync, {arguments.nodes} nodes; cores used by all daemons and all clients\n{HEAD}")
    for result in measure(arguments.nodes, arguments.seconds, [c for c in (*CONFIGS, *SEALED) if c.name in wanted]):
        results.append(result)
        if not arguments.json:
            print(line(result), flush=True)
    if arguments.json:
        print(json.dumps({"results": [asdict(r) for r in results], "best": [asdict(r) for r in best(results)]}))
        return
    print(f"\nBest of them for each load\n{HEAD}")
    for result in best(results):
        print(line(result))


if __name__ == "__main__":
    main()
