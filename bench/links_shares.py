"""What flows get of one line on a simulated path: links with a fixed and with a fair rate, alone and beside TCP.

    python -m bench.links_shares [--seconds 30]

Both flows always have something to send. The line has a rate, a delay and a queue of one round trip; acknowledgements
come back over a line of their own that is never full.
"""

from __future__ import annotations

import argparse
from heapq import heappop, heappush
from itertools import count
from random import Random

from bench.links import End, HopEnd, Sized, tcp_end
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.order.links.rate import Fair, Fixed
from ordercast.sim.channel import Channel

SIZE = 1200
AHEAD = 64  # messages that wait at every sender
DELAY = 25 * MILLISECOND


class Shared:
    """One line, and flows over it from a sender to a receiver each."""

    def __init__(self, flows: list[tuple[End, End]], rate: int, loss: float, seed: int) -> None:
        self._flows = flows
        self._channel = Channel(rate, rate * 2 * DELAY // (8 * SECOND))
        self._loss = loss
        self._rng = Random(seed)
        self._order = count()
        self._events: list[tuple[int, int, int, int, Sized | None]] = []
        self.arrived = [0] * len(flows)

    def run(self, until: int) -> None:
        for flow in range(len(self._flows)):
            self._turn(flow, 0, 0)
        while self._events[0][0] <= until:
            now, _, flow, side, packet = heappop(self._events)
            end = self._flows[flow][side]
            if packet is not None:
                self.arrived[flow] += sum(map(len, end.receive(packet, now)))
            due = end.next_deadline
            if packet is not None or (due is not None and due <= now):
                self._turn(flow, side, now)

    def _turn(self, flow: int, side: int, now: int) -> None:
        end = self._flows[flow][side]
        while side == 0 and end.waiting < AHEAD:
            end.send(bytes(SIZE))
        for packet in end.flush(now):
            departure = now if side else self._channel.departure(len(packet), now)
            if departure is not None and self._rng.random() >= self._loss:
                heappush(self._events, (departure + DELAY, next(self._order), flow, 1 - side, packet))
        if end.next_deadline is not None:
            heappush(self._events, (end.next_deadline, next(self._order), flow, side, None))


def flow_of(kind: str, rate: int) -> tuple[End, End]:
    if kind == "TCP":
        return tcp_end(0, 1), tcp_end(1, 0)
    regulator = Fair(4096, 1472) if kind == "fair" else Fixed(rate, 4096)
    return HopEnd(0, 1, regulator), HopEnd(1, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description="What flows get of one line on a simulated path")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rate = 10_000_000
    print(f"payload as a part of a line of 10 Mbit/s, 50 ms, over {given.seconds} s")
    cases = [(["fixed"], 0.0), (["fixed"], 0.01), (["fair"], 0.0), (["fair"], 0.01), (["TCP"], 0.0), (["TCP"], 0.01)]
    for kinds, loss in [*cases, (["fair", "TCP"], 0.0), (["fair", "fair"], 0.0)]:
        shared = Shared([flow_of(kind, rate) for kind in kinds], rate, loss, given.seed)
        shared.run(given.seconds * SECOND)
        shares = [8 * one / (given.seconds * rate) for one in shared.arrived]
        print(f"  {' and '.join(kinds):<16}{loss:>6.0%} loss" + "".join(f"{share:8.2f}" for share in shares))


if __name__ == "__main__":
    main()
