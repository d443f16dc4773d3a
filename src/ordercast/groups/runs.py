"""Runs of messages, as they go from the groups of a daemon to its clients. Imported by clients too: it is light."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ordercast.model.ids import Places, Position


class MessageRun(NamedTuple):
    """Messages in a row with one head, for these local sessions: columns, as in `Deliver`."""

    sessions: tuple[int, ...]
    head: bytes  # with which every payload begins
    places: Places
    services: Sequence[int]
    payloads: Sequence[bytes]

    @property
    def last(self) -> Position:
        return self.places.last(len(self.payloads))


class Confirmed(NamedTuple):
    """Messages of this local session have their places in the order."""

    session: int
    run: MessageRun
