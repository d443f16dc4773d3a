"""Arrival: a state that is being fetched, from one donor after the other, until it is here. Pure.

    Dial       connect to a donor and ask it for the pieces that are missing; answered by `on_connected`, a frame after
               the other by `on_frame`, and `on_broken` when the connection ends
    HangUp     give the connection up

A donor that refuses, breaks off, sends a damaged piece or nothing for too long is given up, and the next one asked to
go on from there; after all of them there is a pause. What has come is dropped when it turns out not to be one picture.
Its pieces fill a structure beside the one in use as they come, so that nothing is kept twice and taking it over at the
end is a moment's work.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ordercast.model.errors import WireError
from ordercast.model.ids import SECOND, Instant
from ordercast.replicated.effects import DeskEffect, Dial, Donor, HangUp, Progress
from ordercast.replicated.frames import END, REFUSED, TransferFrame, encode_request, place_from
from ordercast.replicated.told import Filling


@dataclass(frozen=True, slots=True)
class Patience:
    """How long replicas wait for each other, in seconds."""

    connect_s: float = 5.0
    stall_s: float = 20.0  # without a piece: then the next donor is asked
    picture_s: float = 10.0  # a donor waits for its own decision
    rounds_max: int = 20  # through all donors, then what has come is dropped
    silence_s: float = 5.0  # a member that does not say what it has: then the others go on without it
    retry_s: float = 0.2  # between two rounds through all donors, longer each time


class Taker(Protocol):
    def take(self, piece: bytes, /) -> None:
        """Take the next piece. WireError for one that makes no sense."""


TakerT = TypeVar("TakerT", bound=Taker)


class Incoming:
    """What has come of a picture: what the core adds to it, then the structure, as far as it is filled."""

    def __init__(self, filling: Filling) -> None:
        self.preface: bytes | None = None
        self.filling = filling

    def take(self, piece: bytes) -> None:
        if self.preface is None:
            self.preface = piece
        else:
            self.filling.take(piece)


class Arrival(Generic[TakerT]):
    def __init__(self, name: bytes, key: bytes, blank: Callable[[], TakerT], patience: Patience) -> None:
        """`blank` makes what the pieces go into."""
        self.key = key
        self.is_done = False
        self.deadline: Instant | None = None
        self.pieces = 0
        self.taken = blank()
        self._name = name
        self._blank = blank
        self._patience = patience
        self._size = self._chain = 0
        self._donors: tuple[Donor, ...] = ()
        self._at = 0  # which of them
        self._round = 0  # through all of them
        self._is_pausing = False  # until the deadline: nobody is asked
        self._problems: dict[str, str] = {}  # by donor
        self._trouble = ""  # why the donor before was given up

    def ask(self, now: Instant, donors: tuple[Donor, ...]) -> list[DeskEffect]:
        """These have it: go on with them."""
        self._donors, self._at, self._round, self._problems = donors, 0, 0, {}
        return self._next(now)

    def _next(self, now: Instant) -> list[DeskEffect]:
        if self._at < len(self._donors):
            self._wait(now, self._patience.connect_s)
            request = encode_request(self._name, self.key, self.pieces)
            return [Dial(self._donors[self._at], request)]
        self._at, self._round = 0, self._round + 1
        if self._round == self._patience.rounds_max:
            told = "; ".join(self._problems.values()) or "there is no donor"
            return self.again(now, f"the state could not be fetched from anybody: {told}")
        pause_s = min(self._patience.retry_s * self._round, self._patience.connect_s)
        self._wait(now, pause_s, is_pausing=True)
        return [HangUp()]

    def _wait(self, now: Instant, seconds: float, *, is_pausing: bool = False) -> None:
        self.deadline, self._is_pausing = Instant(now + int(seconds * SECOND)), is_pausing

    def again(self, now: Instant, trouble: str) -> list[DeskEffect]:
        """What has come is of no use: begin anew after a pause, with the donor after the last one."""
        self.is_done, self.pieces, self.taken = False, 0, self._blank()
        self._size = self._chain = 0
        after = self._at + 1
        self._donors = self._donors[after:] + self._donors[:after]
        self._at, self._round, self._problems, self._trouble = 0, 0, {}, ""
        self._wait(now, self._patience.retry_s, is_pausing=True)
        return [Progress("", 0, 0, trouble=trouble), HangUp()]

    def wake(self, now: Instant) -> list[DeskEffect]:
        if self.deadline is None or now < self.deadline:
            return []
        return self._next(now) if self._is_pausing else self._give_up(now, " sent nothing for too long")

    def _give_up(self, now: Instant, what: str) -> list[DeskEffect]:
        """Ask the next one. `what` the donor did."""
        donor = self._donors[self._at]
        self._trouble = self._problems[donor.name] = f"{donor.name} at {place_from(donor.address)}{what}"
        self._at += 1
        return self._next(now)

    # The connection

    def on_connected(self, now: Instant) -> list[DeskEffect]:
        self._wait(now, self._patience.stall_s)
        trouble, self._trouble = self._trouble, ""
        return [Progress(self._donors[self._at].name, self.pieces, self._size, trouble=trouble)]

    def on_broken(self, now: Instant, why: str) -> list[DeskEffect]:
        """The connection ended, or never was. `why`: in words, or empty when the donor closed it."""
        return self._give_up(now, f": {why}" if why else f" closed the connection after {self.pieces} pieces")

    def on_frame(self, now: Instant, frame: TransferFrame) -> list[DeskEffect]:
        if frame.kind == END:
            return self._end(now, frame)
        if zlib.crc32(frame.body) != frame.checksum:
            return self.on_broken(now, f"the checksum of piece {frame.number} is wrong")
        if frame.kind == REFUSED:
            return self.on_broken(now, frame.body.decode(errors="replace"))
        if frame.number != self.pieces:
            return self.on_broken(now, f"piece {frame.number} came where piece {self.pieces} was wanted")
        return self._take(now, frame.body)

    def _take(self, now: Instant, piece: bytes) -> list[DeskEffect]:
        try:
            self.taken.take(piece)
        except WireError as error:
            return self.again(now, f"piece {self.pieces} makes no sense: {error}")
        self._chain = zlib.crc32(piece, self._chain)
        self.pieces += 1
        self._size += len(piece)
        self._wait(now, self._patience.stall_s)
        return [Progress(self._donors[self._at].name, self.pieces, self._size)]

    def _end(self, now: Instant, end: TransferFrame) -> list[DeskEffect]:
        if (end.number, end.checksum) != (self.pieces, self._chain):
            return self.again(now, "the pieces that came are not of one picture: the transfer has to begin again")
        self.is_done, self.deadline = True, None
        return [Progress(self._donors[self._at].name, self.pieces, self._size, is_done=True), HangUp()]
