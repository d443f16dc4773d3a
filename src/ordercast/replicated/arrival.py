"""Arrival: a state that is being fetched for the core, from one donor after the other, until it is here or unwanted.

Its pieces fill a structure beside the one in use as they come, so that nothing is kept twice and taking it over at the
end is a moment's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.replicated.effects import Donor, Point
from ordercast.replicated.machine import Frozen
from ordercast.replicated.structures.base import Structure
from ordercast.replicated.told import Filling
from ordercast.replicated.transfer import RETRY_S, Fetch, Patience, Place, Progress, TransferFailed


@dataclass(frozen=True, slots=True)
class Served:
    """A picture as it is served: what the core adds, then the structure's own pieces."""

    preface: bytes
    frozen: Frozen

    def pieces(self) -> Iterator[bytes]:
        yield self.preface
        yield from self.frozen.pieces()


class Arrival:
    def __init__(
        self,
        group: str,
        point: Point,
        structure: Structure[Any],
        on_progress: Callable[[Progress], None],
        patience: Patience,
    ) -> None:
        self.point = point
        self.preface: bytes | None = None
        self.filling: Filling
        self.is_done = False
        self._structure = structure
        self._on_progress = on_progress
        self._names = (group.encode(), key_of(point))
        self._patience = patience
        self._fetch: Fetch = self._begin(())

    def _begin(self, donors: Sequence[tuple[str, Place]]) -> Fetch:
        self.preface, self.filling, self.is_done = None, Filling(self._structure.blank()), False
        return Fetch(*self._names, donors, self._take, self._on_progress, self._patience)

    def _take(self, piece: bytes) -> None:
        if self.preface is None:
            self.preface = piece
        else:
            self.filling.take(piece)

    def ask(self, donors: Sequence[Donor]) -> None:
        """These have it: go on with them."""
        self._fetch.donors = [(donor.name, place_from(donor.address)) for donor in donors]

    def again(self) -> None:
        """What came is of no use."""
        self._fetch = self._begin(self._fetch.donors)

    async def run(self) -> None:
        """Returns when it is here."""
        while not self.is_done:
            try:
                await self._fetch.run()
                self.is_done = True
            except TransferFailed as error:
                self._on_progress(Progress("", 0, 0, trouble=str(error)))
                self.again()
                await asyncio.sleep(RETRY_S)


def key_of(point: Point) -> bytes:
    (ring, seq, slot), step = point
    return f"{ring.seq}.{ring.representative}.{seq}.{slot}.{step}".encode()


def address_of(place: Place) -> bytes:
    return f"{place.host} {place.port}".encode()


def place_from(address: bytes) -> Place:
    """Port 0, where nobody serves, for what is no address."""
    host, _, port = address.decode(errors="replace").rpartition(" ")
    return Place(host or "127.0.0.1", int(port) if port.isdigit() and int(port) < 65536 else 0)
