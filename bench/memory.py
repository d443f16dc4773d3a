"""Memory over ten million messages, while one member is slow: it must be flat after the first million.

Four members in one process, joined by function calls; three are fast. The slow one reads a few packets each time the
token comes and loses what does not fit into its buffer, so that the others keep packets for it, send them again, and
are held back by it.

    python bench/memory.py [--json] [--messages N]
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.core import Cluster
from ordercast.model.effects import Broadcast
from ordercast.model.inputs import Lane, Packet, Submissions
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode

MEMBERS = 4
SLOW = MEMBERS - 1
SIZE = 100
BUFFER = 300  # packets that wait to be read at the slow member
READ = 120  # packets that it reads before each token
STEP = 1_000_000


class SlowCluster(Cluster):
    """One member reads late and little."""

    def __init__(self, config: RingConfig) -> None:
        self.buffer: deque[bytes] = deque()
        self.lost = 0
        self.is_slow = False
        super().__init__(MEMBERS, SIZE, lambda node: RingNode(node, config))

    def reached(self, source: int) -> list[int]:
        """Not the slow one: it finds what comes in its buffer."""
        return [node for node in super().reached(source) if node != SLOW or not self.is_slow]

    def broadcast(self, source: int, effect: Broadcast) -> None:
        if self.is_slow and source != SLOW:
            packets = effect.packets
            room = BUFFER - len(self.buffer)
            self.buffer.extend(packets[:room])
            self.lost += max(0, len(packets) - room)
        super().broadcast(source, effect)

    def pass_tokens(self, limit: int) -> None:
        for _ in range(limit):
            if self.tokens and self.tokens[0][0] == SLOW and self.buffer:
                read = [self.buffer.popleft() for _ in range(min(READ, len(self.buffer)))]
                effects = self.members[SLOW].receive([Packet(data, len(data), Lane.DATA) for data in read], self.now)
                self.carry_out(SLOW, effects)
            super().pass_tokens(1)


def resident_kib() -> int:
    """What the process holds now, not its peak, where the system tells."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--messages", type=int, default=10_000_000)
    arguments = parser.parse_args()
    cluster = SlowCluster(RingConfig(queue_size_max=1 << 20, message_size_max=1 << 16))
    cluster.form()
    cluster.is_slow = True
    cluster.load = [Submissions([bytes(SIZE)] * 6000)]
    for node, member in enumerate(cluster.members):
        cluster.carry_out(node, member.submit(cluster.load, cluster.now))
    rows: list[tuple[int, int, int]] = []
    start = time.monotonic()
    while cluster.delivered[SLOW] < arguments.messages:
        before = cluster.delivered[SLOW]
        cluster.pass_tokens(1000)
        if not cluster.tokens:
            sys.exit("the token was lost")
        if before // STEP != cluster.delivered[SLOW] // STEP:
            rows.append((cluster.delivered[SLOW] // STEP, resident_kib(), cluster.lost))
            if not arguments.json:
                print(
                    f"{rows[-1][0]:4} million delivered  {rows[-1][1]:8,} KiB  {rows[-1][2]:10,} packets lost",
                    flush=True,
                )
    if not rows:
        sys.exit(f"nothing to compare: give at least {STEP:,} messages")
    growth = rows[-1][1] / rows[0][1] - 1
    members = len(cluster.rings[0].ring.members)
    if arguments.json:
        print(json.dumps({"rows": rows, "growth": growth, "members": members, "seconds": time.monotonic() - start}))
    else:
        print(f"growth after the first million: {growth:+.1%}; the ring still has {members} members")


if __name__ == "__main__":
    main()
