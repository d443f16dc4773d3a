"""Links against TCP on simulated paths: Table 4.2 and Figure 4.5 of the paper on wide area group communication.

    python -m bench.links              both, in half a minute
    python -m bench.links --count 3000 --seed 2

A client at one end sends 1,024 bytes, a client at the other end sends them back. Hop passes packets on at once, along a
chain too; TCP hop by hop passes them on in order; TCP end to end knows nothing of the hosts between. Times are those of
the paths alone: no computer takes time here.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count, pairwise
from random import Random
from statistics import mean, median
from typing import Protocol

from bench.links_tcp import Connection
from ordercast.model.effects import packets_of
from ordercast.model.ids import MILLISECOND, SECOND, Incarnation, Instant, NodeId, process_id_from
from ordercast.order.links.config import FAR
from ordercast.order.links.link import Link, Tags
from ordercast.order.links.regulator import Regulator
from ordercast.sim.channel import Channel
from ordercast.wire.head import cluster_id_from

SIZE = 1024
BUFFER = 64  # messages that wait at the sender, before the load stops: a full socket
CLUSTER = cluster_id_from("bench")
CONFIG = replace(FAR, silence_ns=0)  # nobody says hello here


class Sized(Protocol):
    def __len__(self) -> int: ...


class End(Protocol):
    """One end of whatever is compared."""

    @property
    def next_deadline(self) -> int | None: ...

    @property
    def waiting(self) -> int:
        """Messages that were not sent yet."""

    def send(self, payload: bytes) -> None: ...

    def receive(self, packet: Sized, now: int) -> list[bytes]: ...

    def flush(self, now: int) -> list[Sized]: ...


class HopEnd:
    def __init__(self, me: int, peer: int, regulator: Regulator | None = None) -> None:
        one, other = (process_id_from(NodeId(node), Incarnation(1)) for node in (me, peer))
        self._link = Link(CONFIG, CLUSTER, one, other, Tags(1, 1), Instant(0), regulator)

    @property
    def next_deadline(self) -> int | None:
        return self._link.next_deadline

    @property
    def waiting(self) -> int:
        return self._link.waiting // SIZE

    def send(self, payload: bytes) -> None:
        self._link.send((payload,))

    def receive(self, packet: Sized, now: int) -> list[bytes]:
        assert isinstance(packet, bytes)
        return self._link.receive(packet, Instant(now)).payloads

    def flush(self, now: int) -> list[Sized]:
        assert self._link.failure is None, self._link.failure
        return list(packets_of(self._link.flush(Instant(now))))


def tcp_end(me: int, peer: int) -> End:
    return Connection()  # type: ignore[return-value]  # its packets are segments


@dataclass
class Line:
    """What lies between neighbours, in each direction."""

    delay: int
    loss: float
    rate: int = 10_000_000
    queue: int = 128_000


@dataclass
class Chain:
    """Hosts in a row, and connections between neighbours, or between the two at the ends alone."""

    lines: list[Line]
    make: Callable[[int, int], End]
    is_end_to_end: bool
    rng: Random
    now: int = 0
    arrive: Callable[[int, bytes], None] = lambda host, payload: None  # told at the host that a payload is for
    load_gap: int = 0  # nanoseconds between messages from the first host to the last that nobody waits for
    _order: count[int] = field(default_factory=count)
    _events: list[tuple[int, int, int, int, Sized | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        last = len(self.lines)
        places = [0, last] if self.is_end_to_end else list(range(last + 1))
        pairs = [*pairwise(places), *((b, a) for a, b in pairwise(places))]
        self._ends = {(a, b): self.make(a, b) for a, b in pairs}
        self._channels = {(a, b): Channel(self.lines[min(a, b)].rate, self.lines[min(a, b)].queue) for a, b in pairs}
        self._beside = {a: {b for one, b in pairs if one == a} for a in places}
        if self.load_gap:
            heappush(self._events, (0, next(self._order), -1, -1, None))

    def send(self, host: int, target: int, payload: bytes) -> None:
        """Let a host send towards another; the target's number is the first byte."""
        self._pass_on(host, bytes((target,)) + payload)

    def step(self) -> None:
        """Let the next thing happen."""
        self.now, _, host, peer, packet = heappop(self._events)
        if host < 0:
            if self._ends[0, min(self._beside[0])].waiting < BUFFER:
                self.send(0, len(self.lines), bytes(SIZE))
            heappush(self._events, (self.now + self.load_gap, next(self._order), -1, -1, None))
            return
        if packet is not None:
            for payload in self._ends[host, peer].receive(packet, self.now):
                self._pass_on(host, payload)
        due = self._ends[host, peer].next_deadline
        if packet is not None or (due is not None and due <= self.now):
            self._flush(host, peer)

    def _pass_on(self, host: int, payload: bytes) -> None:
        if payload[0] == host:
            self.arrive(host, payload[1:])
            return
        peer = min(self._beside[host], key=lambda other: abs(other - payload[0]))
        self._ends[host, peer].send(payload)
        self._flush(host, peer)

    def _flush(self, host: int, peer: int) -> None:
        end = self._ends[host, peer]
        for packet in end.flush(self.now):
            self._travel(host, peer, packet)
        if end.next_deadline is not None:
            heappush(self._events, (end.next_deadline, next(self._order), host, peer, None))

    def _travel(self, host: int, peer: int, packet: Sized) -> None:
        departure = self._channels[host, peer].departure(len(packet), self.now)
        lines = self.lines[min(host, peer) : max(host, peer)]
        if departure is None or any(self.rng.random() < line.loss for line in lines):
            return
        arrival = departure + sum(line.delay for line in lines)
        heappush(self._events, (arrival, next(self._order), peer, host, packet))


def round_trips(chain: Chain, number: int) -> list[float]:
    """Return the milliseconds of so many round trips, one at a time."""
    last, answers = len(chain.lines), {0: 0}

    def arrive(host: int, payload: bytes) -> None:
        if payload.startswith(b"?"):
            chain.send(last, 0, b"!" + payload[1:])
        elif host == 0:
            answers[int(payload[1:].rstrip(b"\0"))] = chain.now

    chain.arrive = arrive
    times = []
    for serial in range(1, number + 1):
        began, asked = chain.now, b"?%d" % serial
        chain.send(0, last, asked + bytes(SIZE - len(asked)))
        while serial not in answers:
            chain.step()
        times.append((answers[serial] - began) / MILLISECOND)
    return times


def row(name: str, times: list[float]) -> str:
    times = sorted(times)
    at = [times[min(len(times) - 1, int(len(times) * share))] for share in (0.95, 0.99)]
    figures = (median(times), mean(times), *at, times[-1])
    return f"  {name:<18}" + "".join(f"{one:>9.1f}" for one in figures)


KINDS: list[tuple[str, Callable[[int, int], End], bool]] = [
    ("Hop", HopEnd, False),
    ("TCP hop by hop", tcp_end, False),
    ("TCP end to end", tcp_end, True),
]
TITLE = f"  {'round trip in ms':<18}" + "".join(f"{name:>9}" for name in ("median", "mean", "95 %", "99 %", "max"))


def compare(lines: list[Line], number: int, load: int, seed: int) -> None:
    kinds = KINDS if len(lines) > 1 else [("Hop", HopEnd, False), ("TCP", tcp_end, True)]
    for name, make, is_end_to_end in kinds:
        chain = Chain(lines, make, is_end_to_end, Random(seed), load_gap=SIZE * 8 * SECOND // load if load else 0)
        print(row(name, round_trips(chain, number)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Links against TCP on simulated paths")
    parser.add_argument("--count", type=int, default=300, help="round trips of each kind")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for loss, load in ((0.0, 0), (0.01, 0), (0.05, 0), (0.05, 25 * SIZE * 8)):
        print(f"\nTable 4.2: one link, 104 ms, {loss:.0%} loss, {load // (SIZE * 8)} messages a second beside\n{TITLE}")
        compare([Line(52 * MILLISECOND, loss)], given.count, load, given.seed)
    for loss in (0.01, 0.02):
        for load in (0, 100_000, 200_000, 300_000, 400_000):
            print(
                f"\nFigure 4.5: chain of 6, 20 ms a link, {loss:.0%} loss on each, load {load // 1000} kbit/s\n{TITLE}"
            )
            compare([Line(20 * MILLISECOND, loss)] * 5, given.count, load, given.seed)


if __name__ == "__main__":
    main()
