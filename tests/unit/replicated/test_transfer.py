"""State transfer over real sockets on loopback: donors that die, lie, stall, or have moved on."""

from __future__ import annotations

import asyncio
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from typing import Any

import pytest

from ordercast.daemon.sockets.sealed_streams import SealedWriter, answer_sealed, ask_sealed, new_secret
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import SECOND, Instant
from ordercast.replicated import effects
from ordercast.replicated.arrival import Arrival, Patience
from ordercast.replicated.effects import DeskEffect, Dial, HangUp, Progress
from ordercast.replicated.frames import END, FRAME, PIECE, Place, TransferFrame, address_of
from ordercast.replicated.transfer import Donor, Line

PATIENCE_S = 60.0
NAME, KEY = b"accounts", b"view 7"
QUICK = Patience(connect_s=5.0, stall_s=0.2, picture_s=0.2, rounds_max=2)
SIZE = 64 << 10


def live(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def bounded(*arguments: Any, **options: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **options), PATIENCE_S))

    return bounded


class Made:
    """A picture of so many pieces, each different, made as they are asked for."""

    def __init__(self, count: int, salt: int = 0, size: int = SIZE) -> None:
        self.count, self.salt, self.size = count, salt, size

    def pieces(self) -> Iterator[bytes]:
        for number in range(self.count):
            yield struct.pack("!QQ", number, self.salt) * (self.size // 16)


class DiesAfter(Made):
    """Its donor is gone when so many were asked for."""

    def __init__(self, count: int, alive: int) -> None:
        super().__init__(count)
        self.alive = alive

    def pieces(self) -> Iterator[bytes]:
        for number, piece in enumerate(super().pieces()):
            if number == self.alive:
                raise OSError("the donor has crashed")
            yield piece


Script = Callable[[asyncio.StreamReader, SealedWriter], Coroutine[Any, Any, None]]
SECRET = new_secret()


async def scripted(script: Script) -> asyncio.Server:
    """A donor that does as the script says."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(reader, (await answer_sealed(reader, writer, SECRET))[1])
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


def place_of(server: asyncio.Server) -> Place:
    host, port = server.sockets[0].getsockname()[:2]
    return Place(host, port, SECRET)


class Failed(Exception):
    """The transfer would begin again."""


class Fetched:
    """One that is fetched over real connections: what came, and what was told."""

    def __init__(self, *donors: tuple[str, Place], patience: Patience = QUICK) -> None:
        self.pieces: list[bytes] = []
        self.progress: list[Progress] = []
        self.donors = tuple(effects.Donor(name, 0, address_of(place)) for name, place in donors)
        self.places = [place for _, place in donors]
        self.on_progress: Callable[[Progress], object] = lambda progress: None
        self._arrival = Arrival(NAME, KEY, lambda: self, patience)
        self._line = Line(
            lambda: self._carry_out(self._arrival.on_connected(now())),
            lambda frame: self._carry_out(self._on_frame(frame)),
            lambda why: self._carry_out(self._arrival.on_broken(now(), why)),
        )
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, piece: bytes) -> None:
        self.pieces.append(piece)

    async def run(self) -> None:
        """Returns when all has come."""
        try:
            self._carry_out(self._arrival.ask(now(), self.donors))
            await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await self._line.stop()

    def _on_frame(self, frame: TransferFrame) -> list[DeskEffect]:
        return self._arrival.on_frame(now(), frame)

    def _carry_out(self, found: list[DeskEffect]) -> None:
        for effect in found:
            if isinstance(effect, Dial):
                self._line.dial(effect)
            elif isinstance(effect, HangUp):
                self._line.hang_up()
            elif isinstance(effect, Progress):
                self._tell(effect)
        if self._timer is not None:
            self._timer.cancel()
        if self._arrival.deadline is not None:
            self._timer = asyncio.get_running_loop().call_at(self._arrival.deadline / SECOND, self._wake)

    def _wake(self) -> None:
        self._carry_out(self._arrival.wake(now()))

    def _tell(self, progress: Progress) -> None:
        self.progress.append(progress)
        self.on_progress(progress)
        if progress.is_done:
            self._over.set_result(None)
        elif not progress.donor and not self._over.done():
            self._over.set_exception(Failed(progress.trouble))

    @property
    def troubles(self) -> list[str]:
        return [progress.trouble for progress in self.progress if progress.trouble]


def now() -> Instant:
    return Instant(int(asyncio.get_running_loop().time() * SECOND))


def piece_frame(number: int, body: bytes, checksum: int | None = None) -> bytes:
    return FRAME.pack(PIECE, len(body), zlib.crc32(body) if checksum is None else checksum, number) + body


# What must work


@live
async def test_all_pieces_come_in_order_with_progress() -> None:
    async with Donor() as donor:
        donor.offer(NAME, KEY, Made(20))
        got = Fetched(("a", donor.place))
        await got.run()
    assert got.pieces == list(Made(20).pieces())
    assert [each.pieces for each in got.progress] == [*range(21), 20]
    assert got.progress[-1] == Progress("a", 20, 20 * SIZE, is_done=True)


@live
async def test_an_empty_state_is_a_state() -> None:
    async with Donor() as donor:
        donor.offer(NAME, KEY, Made(0))
        got = Fetched(("a", donor.place))
        await got.run()
    assert got.pieces == []
    assert got.progress[-1].is_done


@live
async def test_a_fetcher_may_come_before_the_picture() -> None:
    async with Donor(patience=Patience(picture_s=PATIENCE_S)) as donor:
        asked = asyncio.Event()
        got = Fetched(("a", donor.place), patience=Patience())
        got.on_progress = lambda progress: asked.set()
        running = asyncio.create_task(got.run())
        await asked.wait()
        donor.offer(NAME, b"another", Made(1))
        donor.offer(NAME, KEY, Made(3))
        await running
    assert len(got.pieces) == 3


@live
async def test_several_fetch_at_once() -> None:
    async with Donor() as donor:
        donor.offer(NAME, KEY, Made(10))
        all_of_them = [Fetched(("a", donor.place), patience=Patience()) for _ in range(8)]
        await asyncio.gather(*(got.run() for got in all_of_them))
    assert all(len(got.pieces) == 10 for got in all_of_them)
    assert donor.sent == 80 * SIZE


@live
async def test_memory_is_bounded_at_both_sides() -> None:
    """128 MiB through a few pieces of memory: both sides are in this process."""
    taken = 0

    class Counting(Fetched):
        def take(self, piece: bytes) -> None:
            nonlocal taken
            taken += len(piece)

    async with Donor() as donor:
        donor.offer(NAME, KEY, Made(2048))
        got = Counting(("a", donor.place), patience=Patience())  # every allocation is traced: it takes its time
        tracemalloc.start()
        try:
            await got.run()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert taken == 2048 * SIZE
    assert peak < 4 << 20


# Donors that fail


@live
async def test_the_next_donor_goes_on_where_the_last_one_died() -> None:
    async with Donor() as one, Donor() as two:
        one.offer(NAME, KEY, DiesAfter(30, 12))
        two.offer(NAME, KEY, Made(30))
        got = Fetched(("a", one.place), ("b", two.place))
        await got.run()
    assert got.pieces == list(Made(30).pieces())
    assert two.sent == 18 * SIZE
    assert got.troubles == [f"a at {one.place} closed the connection after 12 pieces"]


@live
async def test_a_donor_that_is_stopped_midway_is_replaced() -> None:
    async with Donor() as two:
        two.offer(NAME, KEY, Made(300))
        async with Donor() as one:
            one.offer(NAME, KEY, Made(300))
            got = Fetched(("a", one.place), ("b", two.place), patience=Patience())
            halfway = asyncio.Event()
            got.on_progress = lambda progress: halfway.set() if progress.pieces == 100 else None
            running = asyncio.create_task(got.run())
            await halfway.wait()
        await running
    assert got.pieces == list(Made(300).pieces())
    assert 0 < two.sent <= 200 * SIZE


@live
async def test_nobody_listens_there() -> None:
    async with Donor() as gone:
        place = gone.place
    async with Donor() as donor:
        donor.offer(NAME, KEY, Made(2))
        got = Fetched(("a", place), ("b", donor.place))
        await got.run()
    assert len(got.pieces) == 2
    assert got.troubles[0].startswith(f"a at {place}: ")


@live
async def test_garbage_is_no_state() -> None:
    async def garbage(reader: asyncio.StreamReader, writer: SealedWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    server = await scripted(garbage)
    async with server, Donor() as donor:
        donor.offer(NAME, KEY, Made(2))
        got = Fetched(("a", place_of(server)), ("b", donor.place))
        await got.run()
    assert got.pieces == list(Made(2).pieces())
    assert got.troubles == [f"a at {place_of_text(got)}: what it sends is no state"]


def place_of_text(got: Fetched) -> str:
    return str(got.places[0])


@live
async def test_a_damaged_piece_is_fetched_from_another_donor() -> None:
    async def damaged(reader: asyncio.StreamReader, writer: SealedWriter) -> None:
        first, second = list(Made(2).pieces())
        writer.write(piece_frame(0, first) + piece_frame(1, second, checksum=1))
        await writer.drain()
        await reader.read()

    server = await scripted(damaged)
    async with server, Donor() as donor:
        donor.offer(NAME, KEY, Made(2))
        got = Fetched(("a", place_of(server)), ("b", donor.place))
        await got.run()
    assert got.pieces == list(Made(2).pieces())
    assert got.troubles == [f"a at {place_of_text(got)}: the checksum of piece 1 is wrong"]


@live
async def test_a_donor_that_stalls_is_given_up() -> None:
    async def stalls(reader: asyncio.StreamReader, writer: SealedWriter) -> None:
        writer.write(piece_frame(0, next(Made(1).pieces())))
        await writer.drain()
        await reader.read(1000)
        await reader.read()  # until the fetcher has gone

    server = await scripted(stalls)
    async with server, Donor() as donor:
        donor.offer(NAME, KEY, Made(3))
        got = Fetched(("a", place_of(server)), ("b", donor.place))
        await got.run()
    assert got.pieces == list(Made(3).pieces())
    assert got.troubles == [f"a at {place_of_text(got)} sent nothing for too long"]


@live
async def test_a_slow_donor_is_not_given_up_while_it_gives() -> None:
    """Each piece takes half of the patience, and all of them far more than it."""

    async def slow(reader: asyncio.StreamReader, writer: SealedWriter) -> None:
        chain = 0
        for number, piece in enumerate(Made(6, size=1024).pieces()):
            await asyncio.wait([asyncio.create_task(asyncio.Event().wait())], timeout=0.1)
            writer.write(piece_frame(number, piece))
            await writer.drain()
            chain = zlib.crc32(piece, chain)
        writer.write(FRAME.pack(END, 0, chain, 6))
        await writer.drain()

    server = await scripted(slow)
    async with server:
        got = Fetched(("a", place_of(server)), patience=Patience(stall_s=5.0))
        await got.run()
    assert len(got.pieces) == 6
    assert got.troubles == []


@live
async def test_pieces_of_two_pictures_are_noticed() -> None:
    async with Donor() as one, Donor() as two:
        one.offer(NAME, KEY, DiesAfter(5, 2))
        two.offer(NAME, KEY, Made(5, salt=1))
        got = Fetched(("a", one.place), ("b", two.place))
        with pytest.raises(Failed, match="not of one picture"):
            await got.run()


@live
async def test_a_piece_that_the_machine_cannot_read_ends_the_transfer() -> None:
    class Unreadable(Fetched):
        def take(self, piece: bytes) -> None:
            raise WireError("no such entry")

    async with Donor() as donor:
        donor.offer(NAME, KEY, Made(5))
        with pytest.raises(Failed, match="piece 0 makes no sense: no such entry"):
            await Unreadable(("a", donor.place)).run()


@live
async def test_when_nobody_has_it_each_is_named_with_its_reason() -> None:
    async with Donor(patience=QUICK) as one, Donor() as gone:
        place = gone.place
        await gone.__aexit__(None, None, None)
        got = Fetched(("a", one.place), ("b", place), patience=Patience(rounds_max=1))
        with pytest.raises(Failed) as caught:
            await got.run()
    assert "this donor has no such picture" in str(caught.value)
    assert f"b at {place}" in str(caught.value)


@live
async def test_a_picture_that_is_withdrawn_is_not_finished() -> None:
    async with Donor(patience=QUICK) as donor:
        donor.offer(NAME, KEY, Made(10_000))
        got = Fetched(("a", donor.place), patience=Patience(rounds_max=1))
        got.on_progress = lambda progress: donor.withdraw(NAME, KEY) if progress.pieces else None
        with pytest.raises(Failed, match="withdrawn"):
            await got.run()
    assert len(got.pieces) < 1000


# What a donor is asked


@pytest.mark.parametrize("is_known", [True, False], ids=["sealed", "clear"])
@pytest.mark.parametrize(
    "request_bytes",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", struct.pack("!4sHHHQ", b"OCXF", 9, 0, 0, 0), b"OC"],
    ids=["stranger", "version", "short"],
)
@live
async def test_a_donor_survives_strangers(request_bytes: bytes, is_known: bool) -> None:
    async with Donor(patience=QUICK) as donor:
        reader, writer = await asyncio.open_connection(*donor.place[:2])
        if is_known:
            (await ask_sealed(reader, writer, donor.place.secret))[1].write(request_bytes)
        else:
            writer.write(request_bytes)
        writer.write_eof()
        await reader.read()
        writer.close()
        donor.offer(NAME, KEY, Made(2))
        got = Fetched(("a", donor.place))
        await got.run()
    assert len(got.pieces) == 2


@live
async def test_whoever_lacks_the_secret_gets_nothing_and_what_was_recorded_is_not_answered_again() -> None:
    recorded: list[bytes] = []

    async def passes_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_connection(*donor.place[:2])
        seen.append(bytearray())

        async def answers() -> None:
            while data := await there.read(1000):
                seen[-1] += data
                writer.write(data)
            writer.close()

        answering = asyncio.create_task(answers())
        while data := await reader.read(1000):
            recorded.append(data)
            onward.write(data)
        onward.close()
        await answering

    seen: list[bytearray] = []
    async with Donor(patience=QUICK) as donor:
        donor.offer(NAME, KEY, Made(2))
        for secret in (b"", bytes(32), donor.place.secret[::-1]):
            with pytest.raises(Failed):
                await Fetched(("a", donor.place._replace(secret=secret)), patience=Patience(rounds_max=1)).run()
        between = await asyncio.start_server(passes_on, "127.0.0.1", 0)
        async with between:
            got = Fetched(("a", place_of(between)._replace(secret=donor.place.secret)))
            await got.run()
        assert got.pieces == list(Made(2).pieces())
        assert not any(piece[:100] in seen[0] for piece in got.pieces)
        reader, writer = await asyncio.open_connection(*donor.place[:2])
        writer.write(b"".join(recorded))
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        assert len(answer) < 200  # a salt, and a refusal that nobody can read


@live
async def test_a_place_that_is_taken_is_told_in_a_sentence() -> None:
    async with Donor() as donor:
        with pytest.raises(UsageError, match="choose another address or port"):
            await Donor(*donor.place[:2]).__aenter__()


# Nothing leaks


@live
async def test_a_fetch_that_is_cancelled_leaves_nothing_behind() -> None:
    before = asyncio.all_tasks()
    async with Donor() as donor:
        donor.offer(NAME, KEY, Made(100_000))
        got = Fetched(("a", donor.place), patience=Patience())
        begun = asyncio.Event()
        got.on_progress = lambda progress: begun.set() if progress.pieces else None
        setattr(got, "take", lambda piece: None)  # noqa: B010 (nothing is kept)
        running = asyncio.create_task(got.run())
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert asyncio.all_tasks() == before
