"""Arrival: a state that is being fetched for the core, from one donor after the other, until it is here or unwanted.

Its pieces fill a structure beside the one in use as they come, so that nothing is kept twice and taking it over at the
end is a moment's work. `Arrivals` is the task that fetches: the latest Fetch of the core counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.model.errors import WireError
from ordercast.replicated import effects
from ordercast.replicated.effects import Donor, Effect, Point
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

    def again(self, trouble: str) -> None:
        """What came is of no use."""
        self._on_progress(Progress("", 0, 0, trouble=trouble))
        self._fetch = self._begin(self._fetch.donors)

    async def run(self) -> None:
        """Returns when it is here."""
        while not self.is_done:
            try:
                await self._fetch.run()
                self.is_done = True
            except TransferFailed as error:
                self.again(str(error))
                await asyncio.sleep(RETRY_S)


class Arrivals:
    """Of one replica, one at a time."""

    def __init__(
        self,
        begin: Callable[[Point], Arrival],
        load: Callable[[Arrival], list[Effect]],
        on_loaded: Callable[[list[Effect]], None],
    ) -> None:
        """`load`: the core's answer to one that is here, WireError when it is not the one that was wanted."""
        self._begin = begin
        self._load = load
        self._on_loaded = on_loaded
        self._arrival: Arrival | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()  # cancelled, and not over yet

    def fetch(self, wanted: effects.Fetch) -> None:
        """Of the same point: go on with what has come so far."""
        arrival = self._arrival
        self.stop_fetching()
        if arrival is None or arrival.point != wanted.point:
            arrival = self._begin(wanted.point)
        arrival.ask(wanted.donors)
        self._arrival = arrival
        self._fetching = asyncio.get_running_loop().create_task(self._arrive(arrival))

    def stop_fetching(self) -> None:
        self._arrival = None
        if self._fetching is not None:
            self._fetching.cancel()
            self._ending.add(self._fetching)
            self._fetching.add_done_callback(self._ending.discard)
            self._fetching = None

    async def stop(self) -> None:
        self.stop_fetching()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _arrive(self, arrival: Arrival) -> None:
        while True:
            await arrival.run()
            try:
                found = self._load(arrival)
            except WireError as error:
                arrival.again(f"the state that came is not the one wanted: {error}")
                continue
            self._fetching = None  # before what the core wants next, which may be another
            self._on_loaded(found)
            return


def key_of(point: Point) -> bytes:
    (era, (configuration, (origin, number, slot))), step = point
    return ".".join(map(str, (era, *configuration, *origin, number, slot, step))).encode()


def address_of(place: Place) -> bytes:
    return f"{place.host} {place.port}".encode()


def place_from(address: bytes) -> Place:
    """Port 0, where nobody serves, for what is no address."""
    host, _, port = address.decode(errors="replace").rpartition(" ")
    return Place(host or "127.0.0.1", int(port) if port.isdigit() and int(port) < 65536 else 0)
