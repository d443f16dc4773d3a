"""The pieces of a group member's stream: what they cost while they wait, and the events in them."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.api.inbox import Items
from ordercast.groups.envelope import Head
from ordercast.groups.runs import MessageRun
from ordercast.model.events import Batch, Event, Piece, View
from ordercast.session.payloads import MESSAGE_OVERHEAD

GroupPieces = Items[Piece]
GroupEvents = Items[Event]


def events_of(piece: Piece) -> Iterable[Event]:
    return piece if isinstance(piece, Batch) else (piece,)


def rest_of(piece: Piece, taken: int) -> Piece | None:
    return piece.after(taken) if isinstance(piece, Batch) and taken < len(piece) else None


def size_of(piece: Piece) -> int:
    if isinstance(piece, Batch):
        return sum(map(len, piece.raw)) + MESSAGE_OVERHEAD * len(piece)
    return MESSAGE_OVERHEAD + (8 * len(piece.members) if isinstance(piece, View) else 0)


def batch_from(run: MessageRun, head: Head) -> Batch:
    size = len(run.head)
    data = [payload[size:] for payload in run.payloads]
    return Batch(head.groups, head.sender, data, run.services, run.places, head.is_headed)
