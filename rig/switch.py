"""An Ethernet switch in a program: TAP devices joined by one loop, with everything that a bad network does to packets.

Started by `fabric.py` as a program, by the path of this file. Arguments are a seed and numbers of inherited
descriptors: the control socket, then for each host `NUMBER:TAP`. It ends when the control socket closes.

A link is an ordered pair of hosts. Packets of a link stay in order unless it reorders, whatever the jitter; its rate
and its queue are those of simulated links (`sim/channel.py`). Chance comes from the seed; when packets arrive does not,
so runs are alike and not equal.
"""

from __future__ import annotations

import heapq
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from ordercast.sim.channel import Channel

ANSWER_SIZE_MAX = 1 << 16
FRAME_SIZE_MAX = 1 << 16
READS_MAX = 64  # frames of one device before the others have their turn
READS_MAX_BEFORE_REQUEST = 10_000  # as many as a device can hold
ETHERNET_SIZE = 14
UDP_HEADER_SIZE = 8
EVERYBODY: list[int] = []


@dataclass(frozen=True)
class Link:
    """What happens to packets between two hosts. Probabilities are per packet."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0  # added to the delay, evenly between nothing and this
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0  # held back, so that later ones overtake
    held_ms: float = 5.0  # how long
    corrupt: float = 0.0  # a bit flips somewhere behind the Ethernet header: IP or UDP will notice
    swap: float = 0.0  # two words of a UDP payload change places: a checksum that adds words cannot notice
    rate: int = 0  # bits per second, one packet after the other; 0: no limit
    queue: int | None = None  # bytes that wait for the rate or are being sent, more are lost; None: no limit


PERFECT = Link()


@dataclass
class Counters:
    forwarded: int = 0  # copies that arrived at a host
    lost: int = 0  # by chance or by cuts
    duplicated: int = 0
    late: int = 0  # held back to be overtaken
    corrupted: int = 0
    swapped: int = 0
    overflowed: int = 0  # lost, for a queue had no room


@dataclass(frozen=True)
class Udp:
    """Where UDP is in a frame."""

    header_at: int
    target_port: int


def udp_from_frame(frame: bytes) -> Udp | None:
    """None where it is something else, or a piece of a fragmented packet."""
    kind = frame[12:14]
    if kind == b"\x08\x00" and len(frame) > 34 and frame[23] == socket.IPPROTO_UDP:
        if int.from_bytes(frame[20:22]) & 0x3FFF:
            return None
        at = ETHERNET_SIZE + (frame[14] & 15) * 4
    elif kind == b"\x86\xdd" and len(frame) > 54 and frame[20] == socket.IPPROTO_UDP:
        at = ETHERNET_SIZE + 40
    else:
        return None
    return Udp(at, int.from_bytes(frame[at + 2 : at + 4]))


def is_neighbour_discovery(frame: bytes) -> bool:
    kind = frame[12:14]
    if kind == b"\x86\xdd":
        # Group reports come with a hop-by-hop header before ICMP.
        return len(frame) > 54 and (frame[20] == socket.IPPROTO_ICMPV6 or frame[20] == 0)
    return kind == b"\x08\x06"


def with_flipped_bit(frame: bytes, rng: Random) -> bytes:
    changed = bytearray(frame)
    changed[rng.randrange(ETHERNET_SIZE, len(frame))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def with_swapped_words(frame: bytes, rng: Random) -> bytes:
    """Two different words of the payload exchanged; the same frame where there are none."""
    udp = udp_from_frame(frame)
    if udp is None:
        return frame
    start = udp.header_at + UDP_HEADER_SIZE
    places = range(start, len(frame) - 1, 2)
    if len(places) < 2:
        return frame
    a, b = rng.sample(places, 2)
    changed = bytearray(frame)
    changed[a : a + 2], changed[b : b + 2] = frame[b : b + 2], frame[a : a + 2]
    return bytes(changed)


@dataclass
class Switch:
    taps: dict[int, int]  # devices by the numbers of their hosts
    rng: Random
    links: dict[tuple[int, int], Link] = field(default_factory=dict)
    channels: dict[tuple[int, int], Channel] = field(default_factory=dict)  # of links with a rate
    cuts: set[tuple[int, int]] = field(default_factory=set)
    losses: list[tuple[int, int | None, float]] = field(default_factory=list)  # target, UDP port, probability
    counters: Counters = field(default_factory=Counters)
    places: dict[bytes, int] = field(default_factory=dict)  # hosts by their hardware address, as heard
    waiting: list[tuple[float, int, int, bytes]] = field(default_factory=list)  # due, tie-break, target, frame
    last_due: dict[tuple[int, int], float] = field(default_factory=dict)  # keeps the packets of a link in order
    numbers: Iterator[int] = field(default_factory=count)

    def run(self, control: socket.socket) -> None:
        sources = {tap: number for number, tap in self.taps.items()}
        while True:
            ready = select.select([control.fileno(), *sources], [], [], self._patience())[0]
            for descriptor in ready:
                if descriptor == control.fileno():
                    request = control.recv(ANSWER_SIZE_MAX)
                    if not request:
                        return
                    # What was sent before the request was made goes by the old rules.
                    for tap, source in sources.items():
                        self._read(tap, source, READS_MAX_BEFORE_REQUEST)
                    self.obey(json.loads(request))
                    control.send(json.dumps(vars(self.counters)).encode())
                else:
                    self._read(descriptor, sources[descriptor], READS_MAX)
            self._deliver_due()

    def obey(self, request: dict[str, Any]) -> None:
        if "cuts" in request:
            self.cuts = {(a, b) for a, b in request["cuts"]}
            self.losses = [(loss["target"], loss["port"], loss["probability"]) for loss in request["losses"]]
        if "link" in request:
            link = Link(**request["link"])
            for a in request["sources"] or self.taps:
                for b in request["targets"] or self.taps:
                    self.links[a, b] = link
                    self.channels.pop((a, b), None)
                    if link.rate:
                        self.channels[a, b] = Channel(link.rate, link.queue)

    def _patience(self) -> float | None:
        return max(0.0, self.waiting[0][0] - time.monotonic()) if self.waiting else None

    def _read(self, tap: int, source: int, reads_max: int) -> None:
        for _ in range(reads_max):
            try:
                frame = os.read(tap, FRAME_SIZE_MAX)
            except BlockingIOError:
                return
            self.places[frame[6:12]] = source
            known = self.places.get(frame[:6])
            targets = self.taps if known is None else (known,)
            for target in targets:
                if target != source:
                    self._forward(frame, source, target)

    def _forward(self, frame: bytes, source: int, target: int) -> None:
        if (source, target) in self.cuts or (self.losses and self._is_lost(frame, target)):
            self.counters.lost += 1
            return
        link = self.links.get((source, target), PERFECT)
        if link is PERFECT:
            self._write(target, frame)
            return
        if self.rng.random() < link.loss and not is_neighbour_discovery(frame):
            self.counters.lost += 1
            return
        copies = 1
        if self.rng.random() < link.duplicate:
            copies = 2
            self.counters.duplicated += 1
        for _ in range(copies):
            self._delay(self._damaged(frame, link), link, source, target)

    def _is_lost(self, frame: bytes, target: int) -> bool:
        for number, port, probability in self.losses:
            if number != target or self.rng.random() >= probability:
                continue
            if port is None and not is_neighbour_discovery(frame):
                return True
            udp = udp_from_frame(frame)
            if udp is not None and udp.target_port == port:
                return True
        return False

    def _damaged(self, frame: bytes, link: Link) -> bytes:
        if self.rng.random() < link.corrupt:
            self.counters.corrupted += 1
            frame = with_flipped_bit(frame, self.rng)
        if self.rng.random() < link.swap:
            swapped = with_swapped_words(frame, self.rng)
            self.counters.swapped += swapped != frame
            frame = swapped
        return frame

    def _delay(self, frame: bytes, link: Link, source: int, target: int) -> None:
        leaves = time.monotonic()
        channel = self.channels.get((source, target))
        if channel is not None and not is_neighbour_discovery(frame):
            departure = channel.departure(len(frame), int(leaves * 1e9))
            if departure is None:
                self.counters.overflowed += 1
                return
            leaves = departure / 1e9
        due = leaves + (link.delay_ms + self.rng.random() * link.jitter_ms) / 1000
        if self.rng.random() < link.reorder:
            self.counters.late += 1
            due += link.held_ms / 1000
        else:
            due = max(due, self.last_due.get((source, target), 0.0))
            self.last_due[source, target] = due
        heapq.heappush(self.waiting, (due, next(self.numbers), target, frame))

    def _deliver_due(self) -> None:
        now = time.monotonic()
        while self.waiting and self.waiting[0][0] <= now:
            _, _, target, frame = heapq.heappop(self.waiting)
            self._write(target, frame)

    def _write(self, target: int, frame: bytes) -> None:
        try:
            os.write(self.taps[target], frame)
            self.counters.forwarded += 1
        except OSError:  # the device is down, or was taken away
            self.counters.lost += 1


def main() -> None:
    seed, control, *taps = sys.argv[1:]
    numbered = {int(number): int(tap) for number, tap in (text.split(":") for text in taps)}
    with socket.socket(fileno=int(control)) as connection:
        Switch(numbered, Random(int(seed))).run(connection)


if __name__ == "__main__":
    main()
