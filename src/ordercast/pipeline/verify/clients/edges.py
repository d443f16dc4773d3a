"""What a part of the clients' messages says to the parts around it, and what is not in order between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ordercast.checker.groups.matters import GroupMatter
from ordercast.model.service import Service
from ordercast.pipeline.verify.clients.clearing import NOTHING, Had, views_of
from ordercast.pipeline.verify.clients.ends import is_owing, matters_in
from ordercast.pipeline.verify.clients.index import Stretch
from ordercast.pipeline.verify.clients.part import COUNTER_BITS, ClientPart, identities
from ordercast.pipeline.verify.part import spans
from ordercast.pipeline.verify.rows import Ints


@dataclass(slots=True)
class ClientEdges:
    """What a part says to the parts around it."""

    got: dict[int, Stretch] = field(default_factory=dict)  # of each client, the events in which it got something
    sent: dict[int, Stretch] = field(default_factory=dict)  # and those in which it sent what came here
    counters: dict[int, Stretch] = field(default_factory=dict)  # of the latter
    short: set[int] = field(default_factory=set)  # stays that lack something that others got in the view
    agreed: set[int] = field(default_factory=set)  # stays that got an agreed message
    loose: list[int] = field(default_factory=list)  # messages confirmed here that nobody got here
    matters: set[GroupMatter] = field(default_factory=set)
    pending: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # owed, sent here, and got elsewhere if at all
    arrived: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # got here, and sent elsewhere


def edges_of(part: ClientPart, had: dict[int, Had]) -> ClientEdges:
    edges = ClientEdges(matters=matters_in(part))
    for client, begin, end in spans(part.got["client"]):
        edges.got[client] = int(part.got["n"][begin]), int(part.got["n"][end - 1])
    placed = np.flatnonzero(part.is_placed)
    placed = placed[np.argsort(part.sent["client"][placed], kind="stable")]
    for client, begin, end in spans(part.sent["client"][placed]):
        numbers = placed[begin:end]
        edges.sent[client] = int(part.sent["n"][numbers[0]]), int(part.sent["n"][numbers[-1]])
        counters = part.sent["counter"][numbers]
        edges.counters[client] = int(counters.min()), int(counters.max())
    stamps = identities(part.sent)
    edges.pending = stamps[part.here & ~part.is_placed & is_owing(part)]
    edges.arrived = stamps[~part.here & part.is_placed]
    edges.loose = stamps[part.confirmed_number[~part.is_placed[part.confirmed_number]]].tolist()
    for stays in views_of(part, had):
        sizes = {stay: len(had.get(stay, NOTHING).numbers) for stay in stays}
        everything = len(np.unique(np.concatenate([had.get(stay, NOTHING).numbers for stay in stays])))
        edges.short |= {stay for stay, size in sizes.items() if size < everything}
    services = part.sent["service"]
    edges.agreed = {stay for stay, one in had.items() if (services[one.numbers] >= Service.AGREED).any()}
    return edges


def between(parts: list[ClientEdges | None]) -> Iterator[str]:
    """What is not in order between parts, which are given in the order of the run; None: it could not be indexed."""
    got: dict[int, int] = {}
    sent: dict[int, int] = {}
    counters: dict[int, int] = {}
    short: set[int] = set()
    for edges in parts:
        if edges is None:
            yield "a message is not what was sent"
            continue
        if any(edges.got[client][0] <= got.get(client, -1) for client in edges.got):
            yield "places that do not rise"
        if any(edges.got[client][0] <= sent.get(client, -1) for client in edges.got):
            yield "a message below what it depends on"
        if any(edges.sent[client][0] <= sent.get(client, -1) for client in edges.sent):
            yield "messages of a sender out of its order"
        if any(edges.counters[client][0] <= counters.get(client, -1) for client in edges.counters):
            yield "a message in two places"
        if edges.agreed & short:
            yield "a hole before an agreed message"
        got |= {client: last for client, (_, last) in edges.got.items()}
        sent |= {client: last for client, (_, last) in edges.sent.items()}
        counters |= {client: last for client, (_, last) in edges.counters.items()}
        short |= edges.short
    yield from _loose([edges for edges in parts if edges is not None])


def _loose(parts: list[ClientEdges]) -> Iterator[str]:
    """Confirmations of messages that nobody got there: told twice, or got elsewhere."""
    seen: set[int] = set()
    for edges in parts:
        for message in edges.loose:
            client, counter = message >> COUNTER_BITS, message & (1 << COUNTER_BITS) - 1
            is_elsewhere = any(
                low <= counter <= high for other in parts for low, high in [other.counters.get(client, (1, 0))]
            )
            if message in seen or is_elsewhere:
                yield "another place than others saw"
            seen.add(message)
