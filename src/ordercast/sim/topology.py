"""Who is attached to what in a simulation, what the paths between hosts are like, and how often hosts send. Pure.

A *segment* is a broadcast domain: its hosts hear each other's multicasts. `SimOptions.attachments` names the segments
of each host; the place in that list is the number of the attachment. Each segment has as many redundant networks as
`SimOptions.networks` says, and `lines` describes them, those of segment 0 first. A *link* is the directed path from one
host to another on a segment. A wide area is a segment without multicast, whose links have delays of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import log

from ordercast.model.ids import SECOND
from ordercast.model.rng import Rng

SEGMENTS_MAX = 255
NEVER = 1 << 62
RATE_MAX = 1_000_000  # messages per second of one host

Attachments = tuple[tuple[int, ...], ...]  # segments by host and attachment; empty: all hosts on segment 0


@dataclass(frozen=True, slots=True)
class Link:
    """One directed link that is unlike the others. What is None is as everywhere."""

    source: int
    target: int
    loss: float | None = None
    duplication: float | None = None
    straggler: float | None = None
    delay_min_ns: int | None = None
    delay_max_ns: int | None = None
    rate: int | None = None  # bits per second; None: no limit
    queue: int | None = None  # bytes that wait for the rate or are being sent, more are lost; None: no limit
    segment: int | None = None  # on which the link is unlike the others; None: on all


@dataclass(frozen=True, slots=True)
class Line:
    """One of several networks that is unlike the others. What is None is as everywhere."""

    loss: float | None = None
    delay_min_ns: int | None = None
    delay_max_ns: int | None = None
    bandwidth: int | None = None
    multicast: bool = True  # False: the network carries packets for one host alone


@dataclass(frozen=True, slots=True)
class Rate:
    """How often the applications of one host send, while faults strike."""

    node: int
    per_second: float
    is_poisson: bool = False  # at random times; otherwise at equal intervals
    start_ns: int = 0  # it sends from then on
    end_ns: int | None = None  # and until then; None: as long as faults may strike
    pulse_ns: int = 0  # it sends for so long, pauses for as long, and so on; 0: it never pauses

    def gap_ns(self, rng: Rng) -> int:
        """The time until the next message."""
        gap = SECOND / self.per_second
        return max(1, int(-gap * log(1 - rng.random()) if self.is_poisson else gap))

    def active_ns(self, at: int) -> int | None:
        """The time of a message that would come at this one: later where the host pauses, None when it has ended."""
        if self.pulse_ns and (at - self.start_ns) // self.pulse_ns % 2:
            at += self.pulse_ns - (at - self.start_ns) % self.pulse_ns
        return at if self.end_ns is None or at < self.end_ns else None

    def active_for(self, until: int) -> int:
        """How long it sends before this time, roughly where it pauses."""
        time = min(until, self.end_ns if self.end_ns is not None else until) - self.start_ns
        return max(0, time // 2 if self.pulse_ns else time)

    def first_ns(self, rng: Rng) -> int:
        """The time until the first message: hosts with equal intervals do not send in step."""
        first = self.gap_ns(rng) if self.is_poisson else rng.randrange(0, max(1, int(SECOND / self.per_second)))
        return self.start_ns + first


def segments_of(attachments: Attachments, node: int) -> tuple[int, ...]:
    """The segments of one host, by attachment."""
    return attachments[node] if attachments else (0,)


def are_linked(links: Sequence[tuple[int, int]], one: int, other: int) -> bool:
    """Whether a link leads from one site to another: these pairs have one, or, where none is named, all have."""
    return one != other and (not links or (one, other) in links or (other, one) in links)


def segment_count(attachments: Attachments) -> int:
    return 1 + max((segment for segments in attachments for segment in segments), default=0)


def attachment_problems(attachments: Attachments, nodes: int, most: int, engine: str) -> Iterator[str]:
    """What is wrong with the attachments, in sentences. The engine allows `most` for a host."""
    if not attachments:
        return
    if len(attachments) != nodes or not all(attachments):
        yield "attachments must name a segment for every host, or be left out"
        return
    count = segment_count(attachments)
    for node, segments in enumerate(attachments):
        if len(set(segments)) != len(segments):
            yield f"host {node} is attached to a segment twice"
        if len(segments) > most:
            yield f"host {node} has {len(segments)} attachments, engine {engine!r} allows {most}"
        if not all(0 <= segment < SEGMENTS_MAX for segment in segments):
            yield f"segments must be within 0..{SEGMENTS_MAX - 1}"
            return
    used = {segment for segments in attachments for segment in segments}
    if unused := sorted(set(range(count)) - used):
        yield f"no host is attached to segment {unused[0]}, though there is a segment {count - 1}"
    elif apart := sorted(used - _joined(attachments)):
        yield f"no host joins segment {apart[0]} to segment 0: their hosts can never come together"


def _joined(attachments: Attachments) -> set[int]:
    """The segments that hosts with several attachments join to segment 0, directly or not."""
    beside: dict[int, set[int]] = {}
    for segments in attachments:
        for one, other in pairwise(segments):
            beside.setdefault(one, set()).add(other)
            beside.setdefault(other, set()).add(one)
    found, fresh = {0}, {0}
    while fresh:
        fresh = {other for one in fresh for other in beside.get(one, ())} - found
        found |= fresh
    return found


def link_problems(
    links: Sequence[Link], delays: tuple[int, int], attachments: Attachments, nodes: int, packet_size: int
) -> Iterator[str]:
    """What is wrong with the links, in sentences; `delays` are the usual ones."""
    for link in links:
        if stranger := next((n for n in (link.source, link.target) if not 0 <= n < nodes), None):
            yield f"a link names node {stranger}, there are 0..{nodes - 1}"
            continue
        if not all(0 <= (chance or 0) < 1 for chance in (link.loss, link.duplication, link.straggler)):
            yield "a link's loss, duplication and straggler are chances: 0 up to below 1"
        low, high = (
            usual if own is None else own
            for own, usual in zip((link.delay_min_ns, link.delay_max_ns), delays, strict=True)
        )
        if not 0 < low <= high:
            yield "a link's delays must be positive and rise"
        if link.rate is not None and link.rate <= 0:
            yield "a link's rate must be positive"
        if link.queue is not None and (link.rate is None or link.queue < packet_size):
            yield f"a link's queue needs a rate, and room for a packet of {packet_size} bytes"
        for node in (link.source, link.target):
            if link.segment is not None and link.segment not in segments_of(attachments, node):
                yield f"a link names segment {link.segment}, node {node} is not attached to it"


def _overlap(one: Rate, other: Rate) -> bool:
    first, second = (rate.end_ns if rate.end_ns is not None else NEVER for rate in (one, other))
    return one.start_ns < second and other.start_ns < first


def rate_problems(rates: Sequence[Rate], nodes: int) -> Iterator[str]:
    """What is wrong with the rates, in sentences."""
    named = [rate.node for rate in rates]
    if any(not 0 <= node < nodes for node in named):
        yield f"a rate names node {next(n for n in named if not 0 <= n < nodes)}, there are 0..{nodes - 1}"
    if any(_overlap(one, other) for one, other in combinations(rates, 2) if one.node == other.node):
        yield "a node has two rates at a time: give it one"
    if any(rate.end_ns is not None and rate.end_ns <= rate.start_ns for rate in rates):
        yield "a rate ends before it begins"
    if not all(0 < rate.per_second <= RATE_MAX for rate in rates):
        yield f"a rate must be above 0 and at most {RATE_MAX} messages per second"
