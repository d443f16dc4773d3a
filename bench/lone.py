"""What one message costs an idle ring: members in one process, joined by function calls, no sockets.

Reported are CPU microseconds (medians) and calls of functions, for: a submission that finds the token at rest, the one
packet of it at a receiver, and a token's visit that has nothing to do. What a live node adds is the loop, the system
calls and cold caches: `bench.live` and `bench.latency` show those.

    python -m bench.lone [--json] [--nodes 4] [--rounds 200]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from types import FrameType

from bench.core import Cluster
from ordercast.model.effects import Broadcast, Effect, SendTo
from ordercast.model.ids import Instant, node_of
from ordercast.model.inputs import Lane, Packet, Submissions
from ordercast.order.ring.config import RingConfig

SIZE = 100


class Stopwatch:
    """The times of one kind of work, and how many functions one of them calls."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.calls = 0

    def run(self, work: Callable[[], list[Effect]]) -> list[Effect]:
        start = time.perf_counter_ns()
        effects = work()
        self.times.append(time.perf_counter_ns() - start)
        return effects

    def count(self, work: Callable[[], list[Effect]]) -> list[Effect]:
        calls = 0

        def called(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(called)
        try:
            effects = work()
        finally:
            sys.setprofile(None)
        self.calls = max(self.calls, calls)
        return effects


class Lone:
    """A ring on which one member sends a message when everything is at rest, again and again."""

    def __init__(self, nodes: int) -> None:
        self.cluster = Cluster(nodes, SIZE, RingConfig())
        self.cluster.form()
        self.submitting, self.receiving, self.visiting = Stopwatch(), Stopwatch(), Stopwatch()
        self.others = Stopwatch()  # announcements: not looked at
        self.is_sent = False  # a message is on its way
        self.is_counting = False
        self._settle()

    def _settle(self) -> None:
        """Let time pass until the token rests, and for two rests more."""
        cluster, nodes = self.cluster, len(self.cluster.members)
        for _ in range(4 * nodes):
            deadlines = [deadline for member in cluster.members if (deadline := member.next_deadline()) is not None]
            cluster.now = Instant(max(cluster.now, min(deadlines)))
            for node, member in enumerate(cluster.members):
                deadline = member.next_deadline()
                if deadline is not None and deadline <= cluster.now:
                    self._carry_out(node, member.wake(cluster.now))
            self._pass_tokens()

    def _timed(self, watch: Stopwatch, work: Callable[[], list[Effect]]) -> list[Effect]:
        return watch.count(work) if self.is_counting else watch.run(work)

    def _pass_tokens(self) -> None:
        cluster = self.cluster
        while cluster.tokens:
            node, token = cluster.tokens.popleft()
            reads = [Packet(token, len(token), Lane.TOKEN)]
            work = partial(cluster.members[node].receive, reads, cluster.now)
            self._carry_out(node, self._timed(self.visiting, work))

    def _carry_out(self, node: int, effects: list[Effect]) -> None:
        cluster = self.cluster
        for effect in effects:
            if isinstance(effect, Broadcast):
                reads = [Packet(data, size) for data, size in effect.bursts]
                watch = self.receiving if self.is_sent else self.others
                for other in cluster.reached(node):
                    work = partial(cluster.members[other].receive, reads, cluster.now)
                    self._carry_out(other, self._timed(watch, work))
            elif isinstance(effect, SendTo):
                cluster.tokens.append((node_of(effect.process), effect.packet))
            else:
                cluster.carry_out(node, [effect])

    def send(self, node: int) -> None:
        load, cluster = [Submissions([bytes(SIZE)])], self.cluster
        effects = self._timed(self.submitting, partial(cluster.members[node].submit, load, cluster.now))
        self.is_sent = True
        self._carry_out(node, effects)
        self.is_sent = False
        self._settle()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    lone = Lone(arguments.nodes)
    lone.send(1)
    watches = {"submission": lone.submitting, "packet": lone.receiving, "token": lone.visiting}
    for watch in watches.values():
        watch.times.clear()
    for _ in range(arguments.rounds):
        lone.send(1)
    before = lone.cluster.delivered[0]
    lone.is_counting = True
    lone.send(1)
    if lone.cluster.delivered[0] != before + 1:
        sys.exit("a message was not delivered: these figures mean nothing")
    rows = {
        name: {"us": statistics.median(watch.times) / 1e3, "calls": watch.calls, "times": len(watch.times)}
        for name, watch in watches.items()
    }
    if arguments.json:
        print(json.dumps({"python": platform.python_version(), "nodes": arguments.nodes, "rows": rows}))
        return
    print(f"CPython {platform.python_version()}, {arguments.nodes} members, {SIZE} bytes, one message on an idle ring")
    print(f"{'work':>12} {'median us':>10} {'calls':>6} {'times':>7}")
    for name, row in rows.items():
        print(f"{name:>12} {row['us']:10.1f} {row['calls']:6} {row['times']:7}")


if __name__ == "__main__":
    main()
