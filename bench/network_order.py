"""The order of a network of rings alone: packets that one process takes, orders and carries on in a second of CPU.

Three rings in line, all saturated: A - g - B - h - C. Packets come as a ring hands them up: a stretch for each token
visit. Measured are an ordinary process on A and the gateway g, without bytes, sockets or a simulator.

    python bench/network_order.py --packets 400000
"""

from __future__ import annotations

import argparse
from time import process_time

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.attached import SEQS_PER_DOMAIN
from ordercast.order.gateways.items import (
    Carried,
    Column,
    LogicalRing,
    NoticeItem,
    Processes,
    Statement,
    Stretch,
)
from ordercast.order.gateways.network import Heard, RingNetwork

A, B, C = (ConfigurationId(1024 + SEQS_PER_DOMAIN * domain, ProcessId(domain)) for domain in (1, 2, 3))
G, H, P = ProcessId(1), ProcessId(2), ProcessId(3)
MEMBERS: dict[ConfigurationId, Processes] = {
    A: frozenset((G, P)),
    B: frozenset((G, H)),
    C: frozenset((H, ProcessId(5))),
}
PAYLOAD = bytes(1350)


def network(me: ProcessId) -> RingNetwork:
    """Return the order at a process, with all three rings known for long."""
    mine = {domain: ring for domain, ring in ((1, A), (2, B)) if me in MEMBERS[ring]}
    result = RingNetwork(me, {domain: ConfigurationId(SEQS_PER_DOMAIN * domain, me) for domain in mine}, 0)
    known = result.known
    known.parts.clear()
    for domain, (ring, members) in enumerate(MEMBERS.items(), start=1):
        known.learn(LogicalRing(ring, members, members & {G, H}, 1))
        known.born.add(ring)
        known.parts[ring] = members
        for process in members:
            known.bases[process, domain] = ring
    known.own.update(mine)
    known.changed()
    return result


def run(me: ProcessId, packets: int, each: int, is_safe: bool) -> float:
    """Return the packets that a process handles in a second."""
    order = network(me)
    bodies = (PAYLOAD,) * each
    seqs = dict.fromkeys(MEMBERS, 0)
    done = count = tick = 0
    begin = process_time()
    while count < packets:
        for ring in MEMBERS:
            tick += 1
            first = seqs[ring] + 1
            seqs[ring] += each
            stretch = Stretch(ring, tick, min(MEMBERS[ring]), tuple(range(first, first + each)), bodies, is_safe)
            count += each
            _hand_up(order, me, stretch, tick)
        tick = _notices(order, me, tick, seqs)
        order.step()
        done += sum(len(event.content.seqs) for event in order.passed if isinstance(event, tuple))
        order.passed.clear()
        for domain, queue in order.forwarding.queues.items():
            order.deliver(domain, [Heard(me, seqs[A if domain == 1 else B], tick, carried) for carried in queue])
            queue.clear()
    assert done > packets * 0.9, f"{done} of {packets} were ordered"
    return done / (process_time() - begin)


def _hand_up(order: RingNetwork, me: ProcessId, stretch: Stretch, tick: int) -> None:
    """Give a process packets of its own ring, or what a gateway carried."""
    if stretch.ring == A:
        order.deliver(1, [stretch])
    elif me == G:
        order.deliver(2, [stretch if stretch.ring == B else Heard(H, stretch.seqs[-1], tick, Carried(stretch))])
    else:
        order.deliver(1, [Heard(G, stretch.seqs[-1], tick, Carried(stretch))])


def _notices(order: RingNetwork, me: ProcessId, tick: int, seqs: dict[ConfigurationId, int]) -> int:
    """Let gateways tell fronts and statements, once a round."""
    for ring, by in ((B, H), (C, H)):
        entries = tuple(
            Statement(Column(source, None), order.known.streams[source].stamp(tick, seqs[source])) for source in MEMBERS
        )
        front = order.known.streams[ring].stamp(tick, seqs[ring])
        domain, sender = (2, H) if me == G else (1, G)
        notice = NoticeItem(ring, by, front, entries)
        order.deliver(domain, [Heard(sender, seqs[A if domain == 1 else B], tick, Carried(notice))])
    return tick


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=400_000)
    parser.add_argument("--each", type=int, default=20, help="packets of a token visit")
    arguments = parser.parse_args()
    for name, me in (("process", P), ("gateway", G)):
        for is_safe in (False, True):
            rate = run(me, arguments.packets, arguments.each, is_safe)
            print(f"{name:8} {'safe' if is_safe else 'agreed':6} {rate:12,.0f} packets/s of CPU")


if __name__ == "__main__":
    main()
