"""Memory over ten million messages, while one member is slow: it must be flat after the first million.

Four members in one process, on a network of function calls whose packets take 50 µs; time is made up, so nobody waits.
Three members are fast and send all that is accepted. The slow one reads 120 packets a millisecond, and then what came
to it alone, and loses what does not fit into its buffer, so that the others keep packets for it, send them again, and
are held back by it.

    python bench/memory.py [--engine adaptive] [--json] [--messages N]
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections import deque
from heapq import heappop, heappush
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from ordercast.model.effects import Broadcast, Deliver, Effect, Persist, SendTo, in_order
from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND, Incarnation, Instant, NodeId, node_of
from ordercast.model.inputs import Lane, Packet, Submissions
from ordercast.order.catalogue import DEFAULT, entry_of
from ordercast.order.ring.config import RingConfig
from ordercast.order.setup import Setup

MEMBERS = 4
SLOW = MEMBERS - 1
SIZE = 100
AT_ONCE = 6000  # messages of a submission
HOP_NS = 50 * MICROSECOND
BUFFER = 300  # packets that wait to be read at the slow member
READ = 120  # packets that it reads at a time
READ_NS = 1 * MILLISECOND  # between two times
STEP = 1_000_000
CONFIG = RingConfig(queue_size_max=1 << 20, message_size_max=1 << 16)


class Crowd:
    """The members and their network."""

    def __init__(self, engine: str) -> None:
        entry = entry_of(engine)
        tables = {name: CONFIG if name == "ring" else table() for name, table in entry.tables.items()}
        self.engines = [entry.make(Setup(NodeId(node), tables)) for node in range(MEMBERS)]
        self.now = Instant(0)
        self.delivered = [0] * MEMBERS
        self.lost = 0
        self.is_slow = False
        self.load: list[Submissions] = []
        self._buffer: deque[Packet] = deque()  # of the slow member
        self._unicasts: list[Packet] = []  # likewise, in a buffer of their own
        self._reads_at: int | None = None
        self._under_way: list[tuple[int, int, int, list[Packet]]] = []  # when they come, a number, to whom
        self._sent = 0
        for node, engine_ in enumerate(self.engines):
            self.carry_out(node, engine_.start({}, Incarnation(1), self.now))

    def form(self) -> None:
        """Until all are in one configuration."""
        while any(len(one.configuration.members) < MEMBERS or not one.is_idle() for one in self.engines):
            self.step()
            if self.now > 60 * SECOND:
                sys.exit("no configuration of all was formed")

    def step(self) -> None:
        """Whatever is next: packets come, the slow member reads, or a timer is due."""
        comes = self._under_way[0][0] if self._under_way else None
        deadlines = [one.next_deadline() for one in self.engines]
        due = min((at for at in (comes, self._reads_at, *deadlines) if at is not None), default=None)
        if due is None:
            sys.exit("nobody does anything any more")
        self.now = Instant(max(self.now, due))
        if due == comes:
            _, _, node, packets = heappop(self._under_way)
            if node != SLOW or not self.is_slow:
                self._receive(node, packets)
            else:
                self._keep(packets)
        elif due == self._reads_at:
            packets = [self._buffer.popleft() for _ in range(min(READ, len(self._buffer)))] + self._unicasts
            self._unicasts = []
            self._reads_at = self.now + READ_NS if self._buffer else None
            self._receive(SLOW, packets)
        else:
            node = deadlines.index(Instant(due))
            self.carry_out(node, self.engines[node].wake(self.now))

    def _keep(self, packets: list[Packet]) -> None:
        for packet in packets:
            if packet.lane is not Lane.DATA:
                self._unicasts.append(packet)
            elif len(self._buffer) < BUFFER:
                self._buffer.append(packet)
            else:
                self.lost += 1
        if self._reads_at is None:
            self._reads_at = self.now + READ_NS

    def _receive(self, node: int, packets: list[Packet]) -> None:
        engine = self.engines[node]
        if self.load and engine.room() > AT_ONCE * (SIZE + 64):
            self.carry_out(node, engine.submit(self.load, self.now))
        self.carry_out(node, engine.receive(packets, self.now))

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in in_order(effects):
            if isinstance(effect, Broadcast):
                packets = [Packet(data, len(data), Lane.DATA) for data in effect.packets]
                for other in range(MEMBERS):
                    if other != node:
                        self._send(other, packets)
            elif isinstance(effect, SendTo):
                self._send(node_of(effect.process), [Packet(effect.packet, len(effect.packet), Lane.TOKEN)])
            elif isinstance(effect, Deliver):
                self.delivered[node] += len(effect)
            elif isinstance(effect, Persist):
                self.carry_out(node, self.engines[node].persisted(effect.key, self.now))

    def _send(self, node: int, packets: list[Packet]) -> None:
        self._sent += 1
        heappush(self._under_way, (self.now + HOP_NS, self._sent, node, packets))


def resident_kib() -> int:
    """What the process holds now, not its peak, where the system tells."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default=DEFAULT, choices=["ring", "adaptive"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--messages", type=int, default=10_000_000)
    arguments = parser.parse_args()
    crowd = Crowd(arguments.engine)
    crowd.form()
    crowd.is_slow = True
    crowd.load = [Submissions([bytes(SIZE)] * AT_ONCE)]
    for node, engine in enumerate(crowd.engines):
        crowd.carry_out(node, engine.submit(crowd.load, crowd.now))
    rows: list[tuple[int, int, int]] = []
    start = time.monotonic()
    while crowd.delivered[SLOW] < arguments.messages:
        before = crowd.delivered[SLOW]
        crowd.step()
        if before // STEP != crowd.delivered[SLOW] // STEP:
            rows.append((crowd.delivered[SLOW] // STEP, resident_kib(), crowd.lost))
            if not arguments.json:
                print(
                    f"{rows[-1][0]:4} million delivered  {rows[-1][1]:8,} KiB  {rows[-1][2]:10,} packets lost",
                    flush=True,
                )
    if not rows:
        sys.exit(f"nothing to compare: give at least {STEP:,} messages")
    growth = rows[-1][1] / rows[0][1] - 1
    members = len(crowd.engines[0].configuration.members)
    if arguments.json:
        print(json.dumps({"rows": rows, "growth": growth, "members": members, "seconds": time.monotonic() - start}))
    else:
        print(f"growth after the first million: {growth:+.1%}; the configuration still has {members} members")


if __name__ == "__main__":
    main()
