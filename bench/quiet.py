"""Eight quiet hours of three nodes, and how long `ordercast check` takes to judge them.

The nodes are the engine itself, with a clock that is turned forward instead of waited for, and each records at level
full as a daemon does: so a trace of hours is made in a minute or two, and is the one that a quiet cluster leaves.

    python -m bench.quiet [--hours 8] [--nodes 3] [--json FILE] [--keep DIR]
"""

from __future__ import annotations

import argparse
import heapq
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from ordercast.cli.daemons import ordercast_command
from ordercast.model.effects import Broadcast, Effect, Install, Persist, Record, SendTo
from ordercast.model.ids import MICROSECOND, SECOND, Incarnation, Instant, NodeId, ProcessId, process_id_from
from ordercast.model.inputs import Lane, Packet
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.trace.live import LiveTrace
from ordercast.trace.records import Departed, Installed, Noted, Started

HOP_NS = 100 * MICROSECOND
FLUSH_NS = SECOND // 5  # as often as a daemon hands over what it has gathered
FILE_SIZE = 64 << 20
WAITING_SIZE_MAX = 8 << 20


class Node:
    """One process with its trace."""

    def __init__(self, number: int, folder: Path, now: Instant) -> None:
        self.engine = RingNode(NodeId(number), RingConfig(), verbose=True)
        self.process: ProcessId = process_id_from(NodeId(number), Incarnation(1))
        self.trace = LiveTrace(folder, f"n{number}", self.process, full=True, file_size_max=FILE_SIZE, files_max=1000)
        self.trace.record(Started(now, self.process, self.engine.promises))


class Cluster:
    def __init__(self, count: int, folder: Path) -> None:
        self.now = Instant(time.monotonic_ns())
        self.nodes = [Node(number, folder, self.now) for number in range(1, count + 1)]
        self.flights: list[tuple[Instant, int, Node, Packet]] = []
        self.sent = 0
        for node in self.nodes:
            self.carry_out(node, node.engine.start({}, Incarnation(1), self.now))

    def carry_out(self, node: Node, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Broadcast():
                    for other in self.nodes:
                        if other is not node:
                            for data, size in effect.bursts:
                                self.send(other, Packet(data, size))
                case SendTo():
                    (target,) = (other for other in self.nodes if other.process == effect.process)
                    self.send(target, Packet(effect.packet, len(effect.packet), Lane.TOKEN))
                case Persist():
                    self.carry_out(node, node.engine.persisted(effect.key, self.now))
                case Install():
                    node.trace.record(Installed(self.now, node.process, effect.configuration))
                case Record():
                    node.trace.record(Noted(self.now, node.process, effect.note))
                case _:
                    pass

    def send(self, target: Node, packet: Packet) -> None:
        self.sent += 1
        heapq.heappush(self.flights, (Instant(self.now + HOP_NS), self.sent, target, packet))

    def leave(self) -> None:
        """All of them, in order, as daemons that are told to end."""
        for node in self.nodes:
            self.carry_out(node, node.engine.leave(self.now))
        staying = self.nodes
        while staying:
            for node in staying:
                if node.engine.is_gone:
                    node.trace.record(Departed(self.now, node.process))
            staying = [node for node in staying if not node.engine.is_gone]
            self.run(Instant(self.now + HOP_NS))

    def run(self, until: Instant) -> None:
        flush_at = self.now
        while True:
            running = [node for node in self.nodes if not node.engine.is_gone]
            deadlines = [(due, node) for node in running if (due := node.engine.next_deadline()) is not None]
            due = min((due for due, _ in deadlines), default=until)
            if self.flights and self.flights[0][0] <= due:
                self.now, _, node, packet = heapq.heappop(self.flights)
                self.carry_out(node, node.engine.receive([packet], self.now))
            else:
                self.now = max(self.now, due)
                for at, node in deadlines:
                    if at <= self.now:
                        self.carry_out(node, node.engine.wake(self.now))
            if self.now >= flush_at:
                flush_at = Instant(self.now + FLUSH_NS)
                for node in self.nodes:
                    node.trace.flush()
                    while node.trace.waiting_size > WAITING_SIZE_MAX and node.trace.error is None:
                        time.sleep(0.001)  # hours go by faster than the disk is used to
            if self.now >= until:
                return

    def close(self) -> None:
        with patch("ordercast.trace.live_writer.time.monotonic_ns", return_value=self.now):
            for node in self.nodes:
                node.trace.close()
                if node.trace.error is not None:
                    sys.exit(node.trace.error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the result there too")
    parser.add_argument("--keep", type=Path, help="make the traces in this folder, and leave them there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ordercast-quiet-") as name:
        folder = arguments.keep or Path(name)
        start = time.perf_counter()
        cluster = Cluster(arguments.nodes, folder)
        cluster.run(Instant(cluster.now + round(arguments.hours * 3600 * SECOND)))
        cluster.leave()
        cluster.close()
        made_s, size = time.perf_counter() - start, sum(file.stat().st_size for file in folder.rglob("*"))
        start = time.perf_counter()
        done = subprocess.run(ordercast_command("check", str(folder)), capture_output=True, text=True, check=False)
        check_s = time.perf_counter() - start
    said = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1].strip()
    result = {
        "hours": arguments.hours,
        "nodes": arguments.nodes,
        "packets": cluster.sent,
        "bytes": size,
        "made_s": made_s,
        "check_s": check_s,
        "said": said,
    }
    print(f"{arguments.hours:g} quiet hours of {arguments.nodes} nodes: {cluster.sent:,} packets, {size:,} bytes")
    print(f"made in {made_s:.1f} s, judged in {check_s:.1f} s: {said}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
