"""State transfer over TCP, beside the group: a donor serves pictures of a state, a fetcher gets one piece by piece.

    fetcher → donor    magic, version, object, picture, first piece wanted
    donor → fetcher    PIECE number, checksum, bytes … END pieces, checksum of all; or REFUSED and a sentence

A picture is cut into the same pieces at every holder, so a fetcher goes on with another donor at the piece where the
last one died; the checksum over all pieces says that they were of one picture. Each side has one piece at hand, and the
connection a small window of them: a slow fetcher slows its donor down. A donor gives its fetchers a part of its time,
so that the group keeps its rate. One that has not made the picture yet lets the fetcher wait for it: decisions are not
made everywhere at the same moment.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

from ordercast.model.errors import UsageError, WireError

MAGIC: Final = b"OCXF"
VERSION: Final = 1
REQUEST: Final = struct.Struct("!4sHHHQ")  # magic, version, sizes of the object's and the picture's name, first piece
FRAME: Final = struct.Struct("!BIIQ")  # kind, size of the body, its checksum, number of the piece
assert (REQUEST.size, FRAME.size) == (18, 17)
PIECE, END, REFUSED = 1, 2, 3

PIECE_SIZE_MAX = 256 << 20  # a piece is about 64 KiB, unless one value in it is large, or many commands are held
WINDOW_SIZE = 256 << 10  # that the donor has written and the fetcher has not read
NAME_SIZE_MAX = 1024
TURN_S = 0.001  # of work for a fetcher, then the group has its turn
SHARE = 0.25  # of a donor's time that all its fetchers may have together, while the group has work for the rest of it
FETCHERS_MAX = 32  # of one donor at a time
RETRY_S = 0.2


class Picture(Protocol):
    """A state as it was when the picture was made."""

    def pieces(self) -> Iterator[bytes]:
        """The same at every holder."""


class Place(NamedTuple):
    """Where a donor serves."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a transfer has come."""

    donor: str
    pieces: int
    size: int  # bytes so far
    is_done: bool = False
    trouble: str = ""  # why the donor before was given up


@dataclass(frozen=True, slots=True)
class Patience:
    """How long replicas wait for each other, in seconds."""

    connect_s: float = 5.0
    stall_s: float = 20.0  # without a piece: then the next donor is asked
    picture_s: float = 10.0  # a donor waits for its own decision
    rounds_max: int = 20  # through all donors
    silence_s: float = 5.0  # a member that does not say what it has: then the others go on without it


class TransferFailed(Exception):
    """No donor gave the state. It says what was wrong with each."""


# The donor


class Donor:
    """Serves pictures at one port. `offer` and `withdraw` may be called at any time."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, patience: Patience | None = None) -> None:
        self.place = Place(host, port)
        self.sent = 0  # bytes of pieces, in all
        self._patience = patience or Patience()
        self._pictures: dict[tuple[bytes, bytes], Picture] = {}
        self._offered = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._notices: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._on_fetcher, *self.place, limit=NAME_SIZE_MAX)
        except OSError as error:
            raise UsageError(
                f"state cannot be served at {self.place}: {_told(error)}: choose another address or port"
            ) from error
        host, port = self._server.sockets[0].getsockname()[:2]
        self.place = Place(host, port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self._pictures.clear()
        tasks = [*self._serving, *self._notices]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def offer(self, name: bytes, key: bytes, picture: Picture) -> None:
        """Serve it until it is withdrawn."""
        self._pictures[name, key] = picture
        task = asyncio.get_running_loop().create_task(self._tell_waiting())
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    def withdraw(self, name: bytes, key: bytes) -> None:
        """Nobody needs it any more; who is being served gets no more of it."""
        self._pictures.pop((name, key), None)

    async def _tell_waiting(self) -> None:
        async with self._offered:
            self._offered.notify_all()

    async def _on_fetcher(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        writer.transport.set_write_buffer_limits(high=WINDOW_SIZE)
        try:
            if len(self._serving) > FETCHERS_MAX:
                raise _RefusedError(f"{FETCHERS_MAX} others are being served: ask another holder, or later")
            async with asyncio.timeout(self._patience.stall_s):
                name, key, first = await _read_request(reader)
            await self._serve(writer, name, key, first)
        except (_RefusedError, WireError) as error:
            writer.write(_frame(REFUSED, 0, str(error).encode()))
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the fetcher is gone, or as good as gone: it asks somebody else
        except asyncio.CancelledError:
            writer.transport.abort()  # the donor ends: nothing is half said
        finally:
            self._serving.discard(task)
            writer.close()

    async def _serve(self, writer: asyncio.StreamWriter, name: bytes, key: bytes, first: int) -> None:
        picture = await self._picture(name, key)
        clock = asyncio.get_running_loop().time
        number = chain = 0
        began, waited = clock(), 0.0
        for number, piece in enumerate(picture.pieces(), 1):
            chain = zlib.crc32(piece, chain)
            if number > first:  # those before it are made for the checksum of all
                writer.write(FRAME.pack(PIECE, len(piece), zlib.crc32(piece), number - 1))
                writer.write(piece)
                self.sent += len(piece)
                at = clock()
                async with asyncio.timeout(self._patience.stall_s):
                    await writer.drain()
                waited += clock() - at
            work = clock() - began - waited
            if work > TURN_S:
                await asyncio.sleep(work * (len(self._serving) / SHARE - 1))
                began, waited = clock(), 0.0
            if self._pictures.get((name, key)) is not picture:
                raise _RefusedError("the picture was withdrawn: the group has moved on")
        writer.write(FRAME.pack(END, 0, chain, number))
        async with asyncio.timeout(self._patience.stall_s):
            await writer.drain()

    async def _picture(self, name: bytes, key: bytes) -> Picture:
        try:
            async with asyncio.timeout(self._patience.picture_s), self._offered:
                await self._offered.wait_for(lambda: (name, key) in self._pictures)
        except TimeoutError:
            raise _RefusedError("this donor has no such picture") from None
        return self._pictures[name, key]


class _RefusedError(Exception):
    """Told to the fetcher."""


async def _read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes, int]:
    magic, version, name_size, key_size, first = REQUEST.unpack(await reader.readexactly(REQUEST.size))
    if magic != MAGIC:
        raise WireError("this is a donor of replicated state, and that was no request for it")
    if version != VERSION:
        raise WireError(f"this donor speaks version {VERSION}, not {version}")
    if max(name_size, key_size) > NAME_SIZE_MAX:
        raise WireError(f"a name of more than {NAME_SIZE_MAX} bytes")
    return await reader.readexactly(name_size), await reader.readexactly(key_size), first


def _frame(kind: int, number: int, body: bytes) -> bytes:
    return FRAME.pack(kind, len(body), zlib.crc32(body), number) + body


# The fetcher


@dataclass(slots=True)
class Fetch:
    """One picture, from whoever of the donors gives it. `take` gets its pieces in order, each once, and may raise
    WireError for one that makes no sense."""

    name: bytes
    key: bytes
    donors: Sequence[tuple[str, Place]]  # names and places, in the order in which they are asked
    take: Callable[[bytes], None]
    on_progress: Callable[[Progress], None] = lambda progress: None
    patience: Patience = field(default_factory=Patience)
    pieces: int = 0
    size: int = 0
    _chain: int = 0
    _trouble: str = ""

    async def run(self) -> None:
        """Returns when all of it was taken. TransferFailed when nobody gives it."""
        problems: dict[str, str] = {}
        for turn in range(self.patience.rounds_max):
            if turn:
                await asyncio.sleep(min(RETRY_S * turn, self.patience.connect_s))
            for donor, place in self.donors:
                try:
                    await self._from(donor, place)
                    return
                except TimeoutError:
                    self._trouble = f"{donor} at {place} sent nothing for too long"
                except (OSError, WireError, _RefusedError) as error:
                    self._trouble = f"{donor} at {place}: {_told(error)}"
                except asyncio.IncompleteReadError:
                    self._trouble = f"{donor} at {place} closed the connection after {self.pieces} pieces"
                problems[donor] = self._trouble
        told = "; ".join(problems.values()) or "there is no donor"
        raise TransferFailed(f"the state could not be fetched from anybody: {told}")

    async def _from(self, donor: str, place: Place) -> None:
        async with asyncio.timeout(self.patience.connect_s):
            reader, writer = await asyncio.open_connection(*place, limit=WINDOW_SIZE // 2)
        try:
            head = REQUEST.pack(MAGIC, VERSION, len(self.name), len(self.key), self.pieces)
            writer.write(head + self.name + self.key)
            self.on_progress(Progress(donor, self.pieces, self.size, trouble=self._trouble))
            while await self._piece(reader):
                self.on_progress(Progress(donor, self.pieces, self.size))
            self.on_progress(Progress(donor, self.pieces, self.size, is_done=True))
        finally:
            writer.transport.abort()

    async def _piece(self, reader: asyncio.StreamReader) -> bool:
        """Whether there was another one."""
        async with asyncio.timeout(self.patience.stall_s):
            kind, size, checksum, number = FRAME.unpack(await reader.readexactly(FRAME.size))
            if kind not in (PIECE, END, REFUSED) or size > PIECE_SIZE_MAX:
                raise WireError("what it sends is no state")
            body = await reader.readexactly(size)
        if kind == END:
            if (number, checksum) != (self.pieces, self._chain):
                raise TransferFailed("the pieces that came are not of one picture: the transfer has to begin again")
            return False
        if zlib.crc32(body) != checksum:
            raise WireError(f"the checksum of piece {number} is wrong")
        if kind == REFUSED:
            raise _RefusedError(body.decode(errors="replace"))
        if number != self.pieces:
            raise WireError(f"piece {number} came where piece {self.pieces} was wanted")
        try:
            self.take(body)
        except WireError as error:
            raise TransferFailed(f"piece {number} makes no sense: {error}") from error
        self._chain = zlib.crc32(body, self._chain)
        self.pieces += 1
        self.size += size
        return True


def _told(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
