"""State transfer over TCP, beside the group: a donor serves pictures of a state, a fetcher gets one piece by piece.

What goes between them is in `frames.py`, what a fetcher makes of it in `arrival.py`; all of it is sealed under a
secret that the donor's STATE tells the group (`daemon/sockets/sealed_streams.py`). Each side has one piece at hand,
and the connection a small window of them: a slow fetcher slows its donor down. A donor gives its fetchers a part of its
time, so that the group keeps its rate. One that has not made the picture yet lets the fetcher wait for it: decisions
are not made everywhere at the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ordercast.daemon.sockets.sealed_streams import (
    SealedReader,
    SealedWriter,
    answer_sealed,
    ask_sealed,
    new_secret,
)
from ordercast.daemon.sockets.tcp import TcpServer
from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.arrival import Patience
from ordercast.replicated.effects import Dial
from ordercast.replicated.frames import (
    FRAME,
    NAME_SIZE_MAX,
    REQUEST,
    Picture,
    Place,
    TransferFrame,
    body_size,
    decode_request,
    frame_from,
    frame_head,
    frames_of,
    place_from,
    refusal,
)

WINDOW_SIZE = 256 << 10  # that the donor has written and the fetcher has not read
TURN_S = 0.001  # of work for a fetcher, then the group has its turn
SHARE = 0.25  # of a donor's time that all its fetchers may have together, while the group has work for the rest of it
FETCHERS_MAX = 32  # of one donor at a time


# The donor


class Donor(TcpServer):
    """Serves pictures at one port. `offer` and `withdraw` may be called at any time."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, patience: Patience | None = None) -> None:
        super().__init__(host, port, NAME_SIZE_MAX)
        self.sent = 0  # bytes of pieces, in all
        self._secret = new_secret()
        self._patience = patience or Patience()
        self._pictures: dict[tuple[bytes, bytes], Picture] = {}
        self._offered = asyncio.Condition()
        self._notices: set[asyncio.Task[None]] = set()

    @property
    def place(self) -> Place:
        return Place(self.address, self.port, self._secret)

    def refused(self, error: OSError) -> UsageError:
        return UsageError(f"state cannot be served at {self.place}: {_told(error)}: choose another address or port")

    async def __aexit__(self, *how: object) -> None:
        self._pictures.clear()
        await asyncio.gather(*self._notices, return_exceptions=True)
        await super().__aexit__(*how)

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

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One fetcher. One that is refused is told why; one that is gone asks somebody else."""
        writer.transport.set_write_buffer_limits(high=WINDOW_SIZE)
        async with asyncio.timeout(self._patience.stall_s):
            question, answer = await answer_sealed(reader, writer, self._secret)
        try:
            if len(self.connections) > FETCHERS_MAX:
                raise _RefusedError(f"{FETCHERS_MAX} others are being served: ask another holder, or later")
            async with asyncio.timeout(self._patience.stall_s):
                name, key, first = await _read_request(question)
            await self._serve(answer, name, key, first)
        except (_RefusedError, WireError) as error:
            frame = refusal(str(error))
            answer.write(frame_head(frame) + frame.body)

    async def _serve(self, writer: SealedWriter, name: bytes, key: bytes, first: int) -> None:
        picture = await self._picture(name, key)
        clock = asyncio.get_running_loop().time
        began, waited = clock(), 0.0
        for frame in frames_of(picture, first):
            if frame is not None:
                writer.write(frame_head(frame))
                writer.write(frame.body)
                self.sent += len(frame.body)
                at = clock()
                async with asyncio.timeout(self._patience.stall_s):
                    await writer.drain()
                waited += clock() - at
            work = clock() - began - waited
            if work > TURN_S:
                await asyncio.sleep(work * (len(self.connections) / SHARE - 1))
                began, waited = clock(), 0.0
            if self._pictures.get((name, key)) is not picture:
                raise _RefusedError("the picture was withdrawn: the group has moved on")

    async def _picture(self, name: bytes, key: bytes) -> Picture:
        try:
            async with asyncio.timeout(self._patience.picture_s), self._offered:
                await self._offered.wait_for(lambda: (name, key) in self._pictures)
        except TimeoutError:
            raise _RefusedError("this donor has no such picture") from None
        return self._pictures[name, key]


class _RefusedError(Exception):
    """Told to the fetcher."""


async def _read_request(reader: SealedReader) -> tuple[bytes, bytes, int]:
    request = decode_request(await reader.readexactly(REQUEST.size))
    return await reader.readexactly(request.name_size), await reader.readexactly(request.key_size), request.first


# The fetcher


class Line:
    """The connection of a fetcher to the donor that it has dialled last. It tells what happens on it."""

    def __init__(
        self,
        on_connected: Callable[[], None],
        on_frame: Callable[[TransferFrame], None],
        on_broken: Callable[[str], None],
    ) -> None:
        self._on_connected = on_connected
        self._on_frame = on_frame
        self._on_broken = on_broken
        self._reading: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()  # cancelled, and not over yet

    def dial(self, dial: Dial) -> None:
        self.hang_up()
        reading = self._read(place_from(dial.donor.address), dial.request)
        self._reading = asyncio.get_running_loop().create_task(reading)

    def hang_up(self) -> None:
        """What is on its way is not told any more."""
        if self._reading is not None:
            self._reading.cancel()
            self._ending.add(self._reading)
            self._reading.add_done_callback(self._ending.discard)
            self._reading = None

    async def stop(self) -> None:
        self.hang_up()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _read(self, place: Place, request: bytes) -> None:
        try:
            reader, writer = await asyncio.open_connection(place.host, place.port, limit=WINDOW_SIZE // 2)
            try:
                answer, question = await ask_sealed(reader, writer, place.secret)
                question.write(request)
                self._on_connected()
                while True:
                    self._on_frame(await _read_frame(answer))
            finally:
                writer.transport.abort()
        except asyncio.IncompleteReadError:
            self._on_broken("")
        except (OSError, WireError) as error:
            self._on_broken(_told(error))


async def _read_frame(reader: SealedReader) -> TransferFrame:
    head = await reader.readexactly(FRAME.size)
    return frame_from(head, await reader.readexactly(body_size(head)))


def _told(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
