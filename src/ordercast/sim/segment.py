"""One segment of a run: a broadcast domain, with the hosts attached to it and its redundant networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from ordercast.model.ids import Attachment
from ordercast.model.inputs import Lane
from ordercast.sim.network import Network
from ordercast.sim.options import SimOptions
from ordercast.sim.topology import Line

# Called as arrive(segment, network, at, source, target, lane, packets).
Arrive = Callable[[int, int, int, int, int, Lane, list[bytes]], None]


@dataclass(slots=True)
class Segment:
    number: int
    attachments: dict[int, Attachment]  # hosts in rising order, and the number that each gives to this segment
    networks: list[Network]

    def beside(self, node: int) -> list[int]:
        """The hosts with which this one can exchange packets, on some network."""
        return [
            other
            for other in self.attachments
            if any(not (network.is_cut(node, other) or network.is_cut(other, node)) for network in self.networks)
        ]

    def carry(
        self, source: int, target: int, lane: Lane, packets: list[bytes], networks: tuple[int, ...], now: int
    ) -> None:
        """A burst for one host, a copy on each of these networks; lost when the host is not attached here."""
        if target in self.attachments:
            for number in networks:
                self.networks[number].carry(source, target, lane, packets, now)


def segments_from(options: SimOptions, rng: Random, arrive: Arrive) -> list[Segment]:
    """All segments of a run, each network with a generator of its own."""
    count = options.networks.count  # of each segment
    lines = [*options.lines, *[Line()] * (count * options.segments)]
    segments = []
    for number in range(options.segments):
        attachments = {
            node: Attachment(own.index(number))
            for node in range(options.nodes)
            if number in (own := options.segments_of(node))
        }
        networks = [
            Network(
                options,
                Random(rng.random()),
                partial(arrive, number, network),
                line=lines[number * count + network],
                segment=number,
            )
            for network in range(count)
        ]
        segments.append(Segment(number, attachments, networks))
    return segments
