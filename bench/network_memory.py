"""Memory of a network of rings over thousands of ring changes and a million messages: it must be flat.

Five members of the shipped engine in one process, joined by function calls: two rings and a gateway. Again and again
one member of a ring loses its attachment and gets it back; meanwhile all send. Two ring changes at least come of that:
a split and a merge. After each step the resident memory is told, and how many entries the engines' collections have.

    python bench/network_memory.py [--json] [--changes 2000] [--messages 1000000]
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.memory import resident_kib
from ordercast.model.effects import Broadcast, Deliver, Effect, Install, Persist, SendTo, in_order
from ordercast.model.ids import MILLISECOND, Attachment, Incarnation, Instant, NodeId, node_of
from ordercast.model.inputs import Lane, Packet, Submissions
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.ring.config import RingConfig
from ordercast.order.setup import Domain

ATTACHMENTS = ((0,), (0,), (0, 1), (1,), (1,))
SIZE = 100
STEPS = 10
TURN_NS = MILLISECOND // 4
PATIENCE = 40_000  # turns in which a ring has formed, or never will
CONFIG = RingConfig(
    queue_size_max=1 << 20,
    message_size_max=1 << 16,
    token_loss_ns=60 * MILLISECOND,
    token_retransmit_ns=8 * MILLISECOND,
    join_ns=8 * MILLISECOND,
    consensus_ns=40 * MILLISECOND,
    announce_ns=25 * MILLISECOND,
    hold_down_ns=60 * MILLISECOND,
    rest_ns=10 * MILLISECOND,
    linger_ns=MILLISECOND,
    pause_ns=25 * MILLISECOND,
)


class RingsInOneProcess:
    """Members joined by function calls. Time goes on when nothing is left to do."""

    def __init__(self) -> None:
        self.now = Instant(0)
        self.members = [
            GatewayNode(NodeId(node), CONFIG, [Domain(segment, f"ring{segment}") for segment in own])
            for node, own in enumerate(ATTACHMENTS)
        ]
        self.cut: set[tuple[int, int]] = set()  # attachments that are lost
        self.delivered: Counter[int] = Counter()
        self.changes = 0  # views of the first member
        self._waiting: deque[tuple[int, Packet]] = deque()
        for node, member in enumerate(self.members):
            self._carry_out(node, member.start({}, Incarnation(1), self.now))

    def turn(self) -> None:
        """Pass on what was sent; then let the time go on."""
        while self._waiting:
            node, packet = self._waiting.popleft()
            self._carry_out(node, self.members[node].receive([packet], self.now))
        self.now = Instant(self.now + TURN_NS)
        for node, member in enumerate(self.members):
            deadline = member.next_deadline()
            if deadline is not None and deadline <= self.now:
                self._carry_out(node, member.wake(self.now))

    def until_together(self) -> None:
        """Go on until all who can hear one another are in one view, and nothing waits."""
        expected = [self._reached_from(node) for node in range(len(self.members))]
        for _ in range(PATIENCE):
            self.turn()
            views = [{node_of(each) for each in member.configuration.members} for member in self.members]
            if views == expected and not self._waiting and all(member.is_idle() for member in self.members):
                return
        sys.exit(f"the rings did not come together: {views}")

    def submit(self, count: int) -> None:
        """Let every member send so many messages, as far as it has room."""
        for node, member in enumerate(self.members):
            if member.room() > count * (SIZE + 64):
                self._carry_out(node, member.submit([Submissions([bytes(SIZE)] * count)], self.now))

    def _reached_from(self, node: int) -> set[int]:
        found, todo = {node}, [node]
        while todo:
            one = todo.pop()
            for segment in ATTACHMENTS[one]:
                for other, own in enumerate(ATTACHMENTS):
                    if other not in found and segment in own and not {(one, segment), (other, segment)} & self.cut:
                        found.add(other)
                        todo.append(other)
        return found

    def _carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in in_order(effects):
            if isinstance(effect, Broadcast):
                for data, size in effect.bursts:
                    self._send(node, effect.attachment, None, Packet(data, size))
            elif isinstance(effect, SendTo):
                packet = Packet(effect.packet, len(effect.packet), Lane.TOKEN)
                self._send(node, effect.attachment, node_of(effect.process), packet)
            elif isinstance(effect, Deliver):
                self.delivered[node] += len(effect)
            elif isinstance(effect, Install):
                self.changes += node == 0
            elif isinstance(effect, Persist):
                self._carry_out(node, self.members[node].persisted(effect.key, self.now))

    def _send(self, node: int, attachment: Attachment, target: int | None, packet: Packet) -> None:
        segment = ATTACHMENTS[node][attachment]
        if (node, segment) in self.cut:
            return
        for other, own in enumerate(ATTACHMENTS):
            if other != node and segment in own and target in (None, other) and (other, segment) not in self.cut:
                self._waiting.append((other, packet._replace(attachment=Attachment(own.index(segment)))))


def entries_of(roots: Iterable[object]) -> Counter[str]:
    """Return how many entries all collections have that hang on some objects of the engine, by the owner's class."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    todo = [(each, type(each).__name__) for each in roots]
    while todo:
        each, owner = todo.pop()
        if id(each) in seen or isinstance(each, (type, str, bytes, int, float)) or callable(each):
            continue
        seen.add(id(each))
        if isinstance(each, (dict, list, set, frozenset, deque, tuple)):
            found[owner] += len(each)
        else:
            owner = type(each).__name__
        todo += [(inner, owner) for inner in gc.get_referents(each)]
    return found


def measure(changes: int, messages: int) -> Iterable[tuple[int, int, int, int]]:
    """Yield ring changes, messages delivered, resident KiB and entries of collections, after each of some steps."""
    rings = RingsInOneProcess()
    rings.until_together()
    rounds = max(1, changes // 2)
    each = max(1, messages // (rounds * 2 * len(ATTACHMENTS)))
    for number in range(rounds):
        node = (0, 4, 1, 3)[number % 4]
        rings.cut = {(node, ATTACHMENTS[node][0])}
        rings.submit(each)
        rings.until_together()
        rings.cut = set()
        rings.submit(each)
        rings.until_together()
        if (number + 1) % max(1, rounds // STEPS) == 0:
            gc.collect()
            yield (number + 1) * 2, rings.delivered[2], resident_kib(), sum(entries_of(rings.members).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    arguments = parser.parse_args()
    start = time.monotonic()
    rows: list[tuple[int, int, int, int]] = []
    for row in measure(arguments.changes, arguments.messages):
        rows.append(row)
        if not arguments.json:
            print(f"{row[0]:6,} changes  {row[1]:10,} messages  {row[2]:8,} KiB  {row[3]:7,} entries", flush=True)
    growth = rows[-1][2] / rows[0][2] - 1
    if arguments.json:
        print(json.dumps({"rows": rows, "growth": growth, "seconds": time.monotonic() - start}))
    else:
        print(f"growth after the first tenth: {growth:+.1%}; {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
