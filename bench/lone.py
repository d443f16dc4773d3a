"""What one message costs an idle engine: members in one process, joined by function calls, no sockets.

Reported are CPU microseconds (medians) and calls of functions, for: a submission that finds nothing under way, the one
packet of it at a receiver, and everything that is read beside: on a ring a token's visit, with adaptive order a mark.
The last row is all that all members do until everybody has delivered the message. What a live node adds is the loop,
the system calls and cold caches: `bench.live` and `bench.latency` show those.

    python -m bench.lone [--json] [--engine ring|adaptive] [--service agreed|safe] [--nodes 4] [--rounds 200]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from types import FrameType

from bench.core import Cluster
from ordercast.model.effects import Broadcast, Effect, SendTo
from ordercast.model.ids import Instant, node_of
from ordercast.model.inputs import Lane, Packet, Submissions
from ordercast.model.service import Service
from ordercast.order.adaptive.codec import AdaptiveKind
from ordercast.order.ring.config import RingConfig
from ordercast.wire.head import KIND_AT
from ordercast.wire.header import MessageKind

SIZE = 100
SETTLE_NS = 400_000_000  # by then everything that the message has caused is over
WARM = 20  # messages until all know who sends
MESSAGES = MessageKind.DATA, AdaptiveKind.DIRECT
WORDS = MessageKind.TOKEN, AdaptiveKind.MARK
ENGINES = "ring", "adaptive"


class Stopwatch:
    """The times of one kind of work, and how many functions one of them calls."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.calls = 0  # the most of one
        self.calls_of_all = 0

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
        self.calls_of_all += calls
        return effects


class Lone:
    """Members of which one sends a message when everything is at rest, again and again."""

    def __init__(self, engine: str, nodes: int, service: Service) -> None:
        self.cluster = Cluster(nodes, SIZE, RingConfig(), engine=engine)
        self.cluster.form()
        self.service = service
        self.submitting, self.receiving, self.hearing, self.others = Stopwatch(), Stopwatch(), Stopwatch(), Stopwatch()
        self.flights: deque[tuple[int, Packet]] = deque()  # to whom
        self.is_counting = False
        self.expected = 0  # messages that each member delivers
        self.calls = self.packets = self.wakes = 0  # until all have
        self._settle()

    def _settle(self) -> None:
        cluster = self.cluster
        end = cluster.now + SETTLE_NS
        while cluster.now < end:
            deadlines = [deadline for member in cluster.members if (deadline := member.next_deadline()) is not None]
            cluster.now = Instant(max(cluster.now, min([end, *deadlines])))
            for node, member in enumerate(cluster.members):
                deadline = member.next_deadline()
                if deadline is not None and deadline <= cluster.now:
                    self._carry_out(node, member.wake(cluster.now))
            self._fly()

    @property
    def is_due(self) -> bool:
        return min(self.cluster.delivered) < self.expected

    def _timed(self, watch: Stopwatch, work: Callable[[], list[Effect]]) -> list[Effect]:
        if not self.is_counting:
            return watch.run(work)
        before = watch.calls_of_all
        effects = watch.count(work)
        self.calls += self.is_due * (watch.calls_of_all - before)
        return effects

    def _fly(self) -> None:
        """Bring what was sent to whom it is for, in the order in which it was sent."""
        cluster = self.cluster
        while self.flights:
            node, read = self.flights.popleft()
            self.wakes += self.is_due
            kind = bytes(read.data)[KIND_AT]
            watch = self.receiving if kind in MESSAGES else self.hearing if kind in WORDS else self.others
            self._carry_out(node, self._timed(watch, partial(cluster.members[node].receive, [read], cluster.now)))

    def _carry_out(self, node: int, effects: list[Effect]) -> None:
        cluster = self.cluster
        for effect in effects:
            if isinstance(effect, Broadcast):
                reads = [Packet(data, size) for data, size in effect.bursts]
                self.flights += [(other, read) for read in reads for other in cluster.reached(node)]
            elif isinstance(effect, SendTo):
                self.flights.append((node_of(effect.process), Packet(effect.packet, len(effect.packet), Lane.TOKEN)))
            else:
                cluster.carry_out(node, [effect])
                continue
            self.packets += self.is_due

    def send(self, node: int) -> None:
        load, cluster = [Submissions([bytes(SIZE)], self.service)], self.cluster
        self.expected = min(cluster.delivered) + 1
        self.calls = self.packets = self.wakes = 0
        effects = self._timed(self.submitting, partial(cluster.members[node].submit, load, cluster.now))
        self._carry_out(node, effects)
        self._fly()
        self._settle()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--engine", choices=ENGINES, default="ring")
    parser.add_argument("--service", choices=("agreed", "safe"), default="agreed")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    lone = Lone(arguments.engine, arguments.nodes, Service[arguments.service.upper()])
    for _ in range(WARM):
        lone.send(1)
    other = "token" if arguments.engine == "ring" else "mark"
    watches = {"submission": lone.submitting, "packet": lone.receiving, other: lone.hearing}
    for watch in watches.values():
        watch.times.clear()
    for _ in range(arguments.rounds):
        lone.send(1)
    lone.is_counting = True
    lone.send(1)
    if lone.is_due:
        sys.exit("a message was not delivered: these figures mean nothing")
    rows = {
        name: {"us": statistics.median(watch.times) / 1e3, "calls": watch.calls, "times": len(watch.times)}
        for name, watch in watches.items()
        if watch.times
    }
    whole = {"calls": lone.calls, "packets": lone.packets, "wakes": lone.wakes}
    if arguments.json:
        about = {"python": platform.python_version(), "engine": arguments.engine, "nodes": arguments.nodes}
        print(json.dumps({**about, "rows": rows, "whole": whole}))
        return
    what = f"one {arguments.service} message of {SIZE} bytes"
    print(f"CPython {platform.python_version()}, {arguments.engine}, {arguments.nodes} members, {what}")
    print(f"{'work':>12} {'median us':>10} {'calls':>6} {'times':>7}")
    for name, row in rows.items():
        print(f"{name:>12} {row['us']:10.1f} {row['calls']:6} {row['times']:7}")
    print(f"delivered everywhere after {', '.join(f'{number:,} {what}' for what, number in whole.items())}")


if __name__ == "__main__":
    main()
