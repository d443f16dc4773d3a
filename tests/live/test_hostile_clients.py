"""Whatever is said at the place where clients are served: that session is closed with a sentence, the others go on, and
nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import ordercast
from ordercast import Client, Left, Node, Reason, Reconnected, UsageError
from ordercast.daemon.clients import connection, server
from ordercast.groups import turns
from ordercast.groups.envelope import Head, Kind, encode_head
from ordercast.groups.layer import data_head
from ordercast.model.service import Service
from ordercast.session import desk
from ordercast.session.addresses import TcpAddress, UnixAddress
from ordercast.session.batches import FRAME_SIZE_MAX, encode_send
from ordercast.session.client_half import BYE, PING
from ordercast.session.daemon_half import DaemonHalf
from ordercast.session.frames import (
    PAGE_MAX,
    Hello,
    SlowPolicy,
    decode_closing,
    decode_listing,
    decode_refused,
    encode_hello,
    encode_list,
    encode_names,
    encode_number,
)
from ordercast.session.pieces import HEADER, FrameKind, frame
from tests.live.stage import (
    Daemon,
    daemon,
    eventually,
    joined,
    live,
    local,
    messages_of,
    messages_until,
    quick_ring,
    until,
    view_because,
)

HELLO = encode_hello(Hello("raw", SlowPolicy.WAIT, 1 << 20))
LIST = encode_list("")
WAYS = ("unix", "tcp")


class Raw:
    """A connection on which anything can be said."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        assert isinstance(writer.transport, asyncio.Transport)
        self.transport = writer.transport

    async def frame(self) -> tuple[int, bytes]:
        length, kind = HEADER.unpack(await self.reader.readexactly(HEADER.size))
        return kind, await self.reader.readexactly(length - 1)

    async def closing(self) -> str:
        """Why the daemon closes; whatever comes before is skipped."""
        while True:
            kind, body = await self.frame()
            if kind == FrameKind.CLOSING:
                assert await self.reader.read() == b""
                return decode_closing(body)

    async def say(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))
        await self.writer.drain()


@asynccontextmanager
async def raw(here: Daemon, way: str = "unix") -> AsyncIterator[Raw]:
    address = here.server.addresses[WAYS.index(way)]
    if isinstance(address, UnixAddress):
        reader, writer = await asyncio.open_unix_connection(str(address.path))
    else:
        assert isinstance(address, TcpAddress)
        reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def calm(here: Daemon) -> AsyncIterator[Client]:
    """Somebody who notices nothing of it; afterwards nothing is left."""
    descriptors = len(os.listdir("/proc/self/fd"))
    async with ordercast.connect(here.unix, name="calm") as me:
        await me.join("calm")
        yield me
        await me.send("calm", b"as before", confirm=True)
        assert len(await messages_until(me, b"as before")) == 1
        await eventually(lambda: list(here.host.sessions) == [1] and len(here.server.connections) == 1)
        await eventually(lambda: not here.server.leaving)
        assert await me.groups() == {"calm": 1}
    await eventually(here.is_empty)
    await eventually(lambda: len(os.listdir("/proc/self/fd")) == descriptors)


def send_frame(sender: str = "raw@n1", group: str = "calm", kind: Kind = Kind.DATA, flags: int = 0) -> bytes:
    return encode_send(Service.AGREED, encode_head(Head(kind, sender, (group,), flags)), [b"forged"])


SAID: dict[str, tuple[bytes, str]] = {
    "nothing of ours": (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "a frame of 1195725856 bytes: at most"),
    "a huge length": (struct.pack(">IB", 0xFFFFFFFF, FrameKind.HELLO), "a frame of 4294967295 bytes: at most"),
    "an empty frame": (struct.pack(">IB", 0, FrameKind.HELLO), "a frame of 0 bytes"),
    "another greeting first": (LIST, "says who it is first"),
    "another magic": (HELLO.replace(b"OCST", b"SPRD"), "this is not a client of Ordercast"),
    "another version": (
        encode_hello(Hello("raw", SlowPolicy.WAIT, 0, 77)),
        "the client speaks version 77 of the protocol, this daemon 3",
    ),
    "a short greeting": (frame(FrameKind.HELLO, b"OC"), "a greeting that cannot be read"),
    "no such policy": (frame(FrameKind.HELLO, b"OCST\0\3\x09\0\0\0\0raw"), "a greeting that cannot be read"),
    "a bad name": (encode_hello(Hello("a b", SlowPolicy.WAIT, 0)), "has ' ' in it"),
    "somebody's name": (encode_hello(Hello("calm", SlowPolicy.WAIT, 0)), "the name 'calm' is in use"),
    "a second greeting": (HELLO + HELLO, "a client does not send frames of kind 1"),
    "a daemon's frame": (HELLO + frame(FrameKind.MESSAGES, b""), "a client does not send frames of kind 5"),
    "an unknown kind": (HELLO + struct.pack(">IB", 1, 200), "a client does not send frames of kind 200"),
    "a forged sender": (HELLO + send_frame("calm@n1"), "a message that is not this client's own"),
    "a forged daemon": (HELLO + send_frame("raw@n2"), "a message that is not this client's own"),
    "a forged join": (HELLO + send_frame(kind=Kind.JOIN), "a message that is not this client's own"),
    "a forged snapshot": (HELLO + send_frame(kind=Kind.GROUPS), "a head with a wrong name"),
    "unknown flags": (HELLO + send_frame(flags=0x80), "a message that is not this client's own"),
    "a bad group": (HELLO + send_frame(group="a b"), "has ' ' in it"),
    "no head": (HELLO + encode_send(Service.AGREED, b"", [b"forged"]), "a head is cut short|a message that"),
    "a truncated batch": (HELLO + frame(FrameKind.SEND, b"\0\0\x05\0\0\0\x09"), "9 messages in a frame of 7 bytes"),
    "two questions at once": (HELLO + LIST + LIST, "a second question before the first was answered"),
    "a join that is too large": (HELLO + struct.pack(">IB", 1 << 20, FrameKind.JOIN), "a frame of kind 6 with 1048580"),
    "a message that was not announced": (
        HELLO + struct.pack(">IB", 2 << 20, FrameKind.SEND),
        "more than it has credit for: a frame of 2097156 bytes, with credit for 1310720",
    ),
    "an announcement of too much": (
        HELLO + encode_number(FrameKind.WANT, 0xFFFFFFFF),
        "wants to send a frame of 4294967295 bytes",
    ),
    "a second join": (HELLO + encode_names(FrameKind.JOIN, ["a"]) * 2, "the client is already in the group a"),
    "a join of a bad name": (HELLO + encode_names(FrameKind.JOIN, ["a@n1"]), "has '@' in it"),
    "a join of nothing": (HELLO + encode_names(FrameKind.JOIN, []), "joins or leaves 1 to 100 groups"),
    "names without end": (HELLO + frame(FrameKind.JOIN, b"\xff\xff\xff\xff"), "names"),
    "a short credit": (HELLO + frame(FrameKind.CREDIT, b"\0"), "a number that cannot be read"),
    "a message that is too large": (
        HELLO
        + encode_number(FrameKind.WANT, (16 << 20) + 1000)
        + encode_send(Service.AGREED, data_head("raw@n1", ("calm",)), [bytes(16 << 20)]),
        "bytes with its head: at most",
    ),
}


@pytest.mark.parametrize("what", SAID)
@live
async def test_what_is_said_wrongly_closes_that_session_with_a_sentence(tmp_path: Path, what: str) -> None:
    said, sentence = SAID[what]
    async with daemon(tmp_path) as here, calm(here):
        for way in WAYS:
            refused = here.host.counters.clients.refused
            async with raw(here, way) as stranger:
                stranger.writer.write(said)
                why = await stranger.closing()
                assert any(each in why for each in sentence.split("|")), why
            assert here.host.counters.clients.refused == refused + 1


@live
async def test_the_reason_comes_through_while_the_client_goes_on_sending(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, calm(here):
        for way in WAYS:
            async with raw(here, way) as stranger:
                stranger.writer.write(HELLO + send_frame("calm@n1"))
                stranger.writer.write(send_frame() * 50_000)
                assert "not this client's own" in await stranger.closing()


@live
async def test_random_bytes(tmp_path: Path) -> None:
    rng = random.Random(7)
    async with daemon(tmp_path) as here, calm(here):
        for number in range(150):
            async with raw(here, WAYS[number % 2]) as stranger:
                noise = rng.randbytes(rng.choice((1, 4, 5, 100, 10_000)))
                if number % 3 == 0:
                    noise = HELLO.replace(b"raw", b"r%02x" % number) + noise
                elif number % 3 == 1:
                    noise = HELLO + struct.pack(">IB", len(noise) + 1, rng.randrange(1, len(FrameKind) + 2)) + noise
                stranger.writer.write(noise)
                if number % 2:
                    stranger.writer.write_eof()
                    await stranger.reader.read()


@live
async def test_connections_that_end_in_the_middle_of_a_frame(tmp_path: Path) -> None:
    whole = HELLO + encode_names(FrameKind.JOIN, ["calm"]) + send_frame()
    async with daemon(tmp_path) as here, calm(here) as me:
        for cut in range(0, len(whole), 3):
            async with raw(here, WAYS[cut % 2]) as stranger:
                await stranger.say(whole[:cut])
                if cut > len(HELLO):
                    assert (await stranger.frame())[0] == FrameKind.WELCOME
        await me.send("calm", b"end of noise", confirm=True)
        heard = {message.data for message in await messages_until(me, b"end of noise")}
        assert heard <= {b"forged", b"end of noise"}


@live
async def test_half_a_greeting_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "GREETING_S", 0.2)
    monkeypatch.setattr(server, "LOOK_EVERY_S", 0.01)
    begun = struct.pack(">IB", 400, FrameKind.HELLO)
    async with daemon(tmp_path) as here, calm(here):
        for said, more in ((b"", b""), (HELLO[:7], b""), (begun, b"x")):  # a byte now and then does not help
            async with raw(here) as stranger:
                await stranger.say(said)
                await eventually(lambda: len(here.server.connections) == 2)
                (there,) = [each for each in here.server.connections if not each.half.name]
                while there in here.server.connections:
                    await stranger.say(more)
                    await asyncio.sleep(0.01)
                assert "says who it is first, within 0.2 s" in await stranger.closing()
        assert here.host.clients_status().refusals["no greeting"] == 3


@live
async def test_a_silent_client_over_tcp_is_asked_and_then_given_up(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, calm(here):
        async with raw(here, "tcp") as silent:
            await silent.say(HELLO)
            assert (await silent.frame())[0] == FrameKind.WELCOME
            (there,) = [each for each in here.server.connections if each.half.name == "raw@n1"]
            now = asyncio.get_running_loop().time()
            there.look(now + connection.QUIET_S + 1)
            assert (await silent.frame())[0] == FrameKind.PING
            there.look(now + connection.SILENCE_MAX_S + 1)
            assert "nothing was heard of the client for 90 s" in await silent.closing()
        for there in here.server.connections:  # over a unix socket nobody is lost unnoticed
            there.look(asyncio.get_running_loop().time() + 1000)
        assert len(here.server.connections) == 1


@live
async def test_answers_that_are_not_read_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.session.daemon_half.URGENT_SIZE_MAX", 1 << 16)
    async with daemon(tmp_path) as here, calm(here):
        for way in WAYS:
            async with raw(here, way) as stranger:
                stranger.transport.pause_reading()
                await stranger.say(HELLO, encode_names(FrameKind.JOIN, [f"g{each:063}" for each in range(100)]))
                await eventually(lambda: len(here.host.named.table) == 101)
                refused = here.host.counters.clients.refused
                while here.host.counters.clients.refused == refused:
                    await stranger.say(LIST)
                stranger.transport.resume_reading()
                assert "asks " in await stranger.closing()


@asynccontextmanager
async def standstill(folder: Path, **clients: int) -> AsyncIterator[tuple[Daemon, Node]]:
    """The daemon's engine takes next to nothing, because a node reads nothing."""
    ring = quick_ring(queue_size_max=20_000, message_size_max=10_000)
    async with daemon(folder, local(ring), **clients) as here, Node(local(ring, inbox_size_max=1000)) as stubborn:
        await eventually(lambda: len(stubborn.host.members) == 2)
        await stubborn.join("orders")
        await stubborn.send("orders", bytes(2000), confirm=True)
        await eventually(lambda: stubborn.inbox.is_behind)
        yield here, stubborn


async def reads_on(here: Daemon, stubborn: Node) -> None:
    """Then everything comes to its end."""
    reading = asyncio.create_task(until(stubborn, lambda event: False))
    await eventually(lambda: not here.host.requests_waiting and not here.host.sessions)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


@live
async def test_joins_and_leaves_without_end_are_read_only_as_fast_as_they_are_ordered(tmp_path: Path) -> None:
    change = encode_names(FrameKind.JOIN, ["g"]) + encode_names(FrameKind.LEAVE, ["g"])
    room = 1 << 14
    at_once = room // len(change) * 2
    async with standstill(tmp_path) as (here, stubborn):
        here.server.room = bytearray(room)  # that is read at a time
        async with raw(here) as stranger, raw(here, "tcp") as other:
            await stranger.say(HELLO)
            stranger.writer.write(change * (50 * at_once))
            await eventually(lambda: here.host.requests_waiting > 0)
            await other.say(encode_hello(Hello("other", SlowPolicy.WAIT, 1 << 20)))
            for _ in range(100):  # others are served meanwhile
                await other.say(LIST)
                while (await other.frame())[0] != FrameKind.LISTING:
                    pass
            assert here.host.requests_waiting <= desk.CHANGES_MAX
        await reads_on(here, stubborn)


@live
async def test_whoever_sends_more_than_it_has_credit_for_is_sent_away(tmp_path: Path) -> None:
    async with standstill(tmp_path) as (here, stubborn):
        async with raw(here) as stranger:
            stranger.writer.write(HELLO)
            stranger.writer.write(encode_send(Service.AGREED, data_head("raw@n1", ("x",)), [bytes(9000)] * 50) * 4)
            assert "sends more than it has credit for" in await stranger.closing()
            assert here.host.requests_waiting < 200
        await reads_on(here, stubborn)


@live
async def test_a_connection_that_comes_while_the_daemon_ends_is_sent_away(tmp_path: Path) -> None:
    """It was accepted before, and is made a turn of the event loop later."""
    async with daemon(tmp_path) as here, raw(here) as first:
        await greeted(first, "raw")
        ending = asyncio.create_task(here.server.close())
        await eventually(lambda: bool(here.server.leaving))
        accepted, late = socket.socketpair()
        await asyncio.get_running_loop().connect_accepted_socket(here.server._accept_local, accepted)
        other = Raw(*await asyncio.open_unix_connection(sock=late))
        assert "is being shut down" in await other.closing()
        other.transport.abort()
        assert "is being shut down" in await first.closing()
        first.transport.abort()
        await ending
        assert here.is_empty()


@live
async def test_pings_are_answered_and_a_farewell_is_heeded(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, calm(here), raw(here) as stranger:
        await stranger.say(HELLO + PING * 3 + BYE + send_frame())
        kinds = []
        while not stranger.reader.at_eof():
            try:
                kinds.append((await stranger.frame())[0])
            except asyncio.IncompleteReadError:
                break
        assert kinds in ([FrameKind.WELCOME, FrameKind.PONG], [])  # a farewell needs no answers


@pytest.mark.parametrize(("crowd", "each"), [(1, 100_000), (50, 250)])
@live
async def test_small_frames_without_end_leave_the_event_loop_its_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crowd: int, each: int
) -> None:
    """A client that says many thousand times that it is alive must not keep the token waiting."""
    heard = most = 0
    receive = DaemonHalf.receive

    def counted(half: DaemonHalf, kind: int, body: bytes) -> object:
        nonlocal heard
        heard += 1
        return receive(half, kind, body)

    monkeypatch.setattr(DaemonHalf, "receive", counted)
    async with daemon(tmp_path) as here, AsyncExitStack() as stack:
        floods = [await stack.enter_async_context(raw(here)) for _ in range(crowd)]
        for number, flood in enumerate(floods):
            hello = encode_hello(Hello(f"raw{number}", SlowPolicy.WAIT, 1 << 20))
            flood.writer.write(hello + frame(FrameKind.PONG) * each + PING)

        async def answered() -> None:
            for flood in floods:
                while (await flood.frame())[0] != FrameKind.PONG:
                    pass

        answer = asyncio.create_task(answered())
        while not answer.done():
            before = heard
            await asyncio.sleep(0)
            most = max(most, heard - before)
        assert heard == crowd * (each + 2) and most <= server.WORK_MAX + 2 * connection.FRAMES_TOGETHER


@live
async def test_a_frame_of_the_largest_size_in_small_pieces(tmp_path: Path) -> None:
    assert FRAME_SIZE_MAX > 16 << 20
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as me:
        await me.join("orders")
        async with raw(here) as slow:
            await slow.say(HELLO)
            large = encode_send(Service.AGREED, data_head("raw@n1", ("orders",)), [bytes(3 << 20)])
            await slow.say(encode_number(FrameKind.WANT, len(large)))
            while (await slow.frame())[0] != FrameKind.CREDIT:
                pass
            for start in range(0, len(large), 1 << 16):
                await slow.say(large[start : start + (1 << 16)])
            assert len((await messages_of(me, 1))[0].data) == 3 << 20


# Clients that are gone without a word


@pytest.mark.parametrize("way", WAYS)
@live
async def test_a_connection_that_breaks_is_a_view_at_everybody(tmp_path: Path, way: str) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix, name="witness") as witness:
        breaks: tuple[Callable[[socket.socket], None], ...] = (
            lambda sock: None,
            lambda sock: sock.shutdown(socket.SHUT_RDWR),
            lambda sock: sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)),
        )
        await witness.join("orders")
        for how in breaks:
            async with raw(here, way) as stranger:
                await stranger.say(HELLO + encode_names(FrameKind.JOIN, ["orders"]))
                view = await view_because(witness, Reason.JOIN)
                while view.who == ("witness@n1",):
                    view = await view_because(witness, Reason.JOIN)
                await stranger.say(send_frame(group="orders") * 100)
                sock = stranger.writer.get_extra_info("socket")
                how(sock)
            view = await view_because(witness, Reason.DISCONNECT)
            assert (view.members, view.who) == (("witness@n1",), ("raw@n1",))


@live
async def test_a_client_that_breaks_off_in_a_crowd_leaves_the_others_together(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as one, ordercast.connect(here.tcp) as two:
        await joined((one, two), "orders")
        async with raw(here) as stranger:
            await stranger.say(HELLO + encode_names(FrameKind.JOIN, ["orders", "more"]))
            await view_because(one, Reason.JOIN)
        views = [await view_because(member, Reason.DISCONNECT) for member in (one, two)]
        assert views[0] == views[1] and views[0].transitional == views[0].members == tuple(sorted((one.name, two.name)))


# What is kept for clients


LARGE = 16 << 20  # a message of the largest size, more or less


def begun(size: int = LARGE) -> bytes:
    """All but the end of a frame with one large message."""
    head = data_head("raw@n1", ("calm",))
    fixed = struct.pack(">IBBHII", size, FrameKind.SEND, Service.AGREED, len(head), 1, size - 12)
    return fixed + head + bytes(size - 100)


async def greeted(stranger: Raw, name: str) -> None:
    await stranger.say(encode_hello(Hello(name, SlowPolicy.WAIT, 1 << 20)))
    while (await stranger.frame())[0] != FrameKind.WELCOME:
        pass


@live
async def test_frames_without_an_end_are_refused_at_their_headers(tmp_path: Path) -> None:
    """Twenty sessions would have cost 16 MiB each."""
    async with daemon(tmp_path) as here, calm(here), AsyncExitStack() as stack:
        for number in range(20):
            stranger = await stack.enter_async_context(raw(here, WAYS[number % 2]))
            await greeted(stranger, f"raw{number}")
            stranger.writer.write(begun())
            assert "credit for: a frame of 16777220 bytes, with credit for 1310720" in await stranger.closing()
            status = here.host.clients_status()
            assert (status.received_size, status.refusals["something wrong"]) == (0, number + 1)


@live
async def test_frames_without_an_end_that_were_announced_are_kept_within_the_budget(tmp_path: Path) -> None:
    budget = 3 * LARGE
    async with daemon(tmp_path, memory_max=budget) as here, calm(here), AsyncExitStack() as stack:
        strangers = []
        for number in range(20):
            stranger = await stack.enter_async_context(raw(here, WAYS[number % 2]))
            await greeted(stranger, f"raw{number}")
            await stranger.say(encode_number(FrameKind.WANT, LARGE + 4))
            while (await stranger.frame())[0] != FrameKind.CREDIT:
                pass
            stranger.writer.write(begun())
            strangers.append(stranger)
            await eventually(lambda: here.host.clients_status().received_size > 0)
            status = here.host.clients_status()
            assert status.received_size <= status.memory_size <= budget == status.memory_max
        for stranger in strangers[:17]:  # of those who owe the same the oldest go
            assert "this client takes the most memory of all clients of this daemon" in await stranger.closing()
        assert here.host.counters.clients.over_memory == 17


@live
async def test_readers_that_read_nothing_are_kept_within_the_budget(tmp_path: Path) -> None:
    """Six of them would have had 64 MiB each."""
    budget = 4 << 20
    async with daemon(tmp_path, memory_max=budget) as here, calm(here) as me, AsyncExitStack() as stack:
        for number in range(6):
            stuck = await stack.enter_async_context(raw(here, WAYS[number % 2]))
            stuck.transport.pause_reading()
            await stuck.say(encode_hello(Hello(f"stuck{number}", SlowPolicy.WAIT, 0xFFFFFFFF)))
            await stuck.say(encode_names(FrameKind.JOIN, ["calm"]))
        await eventually(lambda: len(here.host.named.table.members_of("calm")) == 7)
        reading = asyncio.create_task(until(me, lambda event: getattr(event, "data", b"") == b"end of it"))
        while here.host.counters.clients.over_memory < 6:
            await me.send_many("calm", [bytes(10_000)] * 20, confirm=True)
            assert here.host.clients_status().memory_size <= budget
        await me.send("calm", b"end of it")
        await reading
        assert here.host.counters.clients.too_slow == 0


@live
async def test_what_is_left_to_send_of_clients_that_are_gone_is_kept_within_the_budget(tmp_path: Path) -> None:
    budget = 2 << 20
    async with standstill(tmp_path, memory_max=budget) as (here, stubborn):
        for number in range(12):
            async with raw(here) as stranger:
                await greeted(stranger, f"raw{number}")
                await stranger.say(
                    encode_send(Service.AGREED, data_head(f"raw{number}@n1", ("x",)), [bytes(9000)] * 50)
                )
                await eventually(lambda: here.host.clients_status().requests_size > 0)
            await eventually(lambda: not here.host.sessions)
            status = here.host.clients_status()
            assert status.requests_size <= budget and status.memory_size <= budget
        await reads_on(here, stubborn)
        assert here.host.clients_status().memory_size == 0


@live
async def test_what_was_read_late_is_not_counted_any_more(tmp_path: Path) -> None:
    """The transport does not tell when it has written what it had taken."""
    async with daemon(tmp_path, memory_max=1 << 20) as here, calm(here) as me, AsyncExitStack() as stack:
        late: list[asyncio.Task[bytes]] = []

        def waiting() -> int:
            return sum(session.waiting_size for session in here.host.sessions.values())

        for number in range(20):
            reader = await stack.enter_async_context(raw(here))
            reader.transport.pause_reading()
            await reader.say(encode_hello(Hello(f"late{number}", SlowPolicy.WAIT, 0xFFFFFFFF)))
            await reader.say(encode_names(FrameKind.JOIN, [f"late{number}"]))
            await eventually(lambda: len(here.host.named.table) == len(late) + 2)
            while waiting() < 100_000:  # beyond what the kernel takes
                await me.send(f"late{number}", bytes(10_000), confirm=True)
            reader.transport.resume_reading()
            late.append(asyncio.create_task(reader.reader.read(1 << 20)))
            await eventually(lambda: waiting() < 100_000)
        await asyncio.gather(*late)
        assert here.host.counters.clients.over_memory == 0


# Many groups


@live
async def test_a_client_that_joins_too_many_groups_is_told_so_and_goes_on(tmp_path: Path) -> None:
    async with daemon(tmp_path, groups_max=150, memberships_max=250) as here:
        async with ordercast.connect(here.unix) as one, ordercast.connect(here.tcp) as two:
            for each in (one, two):
                await each.join(*(f"g{number}" for number in range(100)))
            with pytest.raises(UsageError, match="may be in 150 groups, and this one would be in 160"):
                await one.join(*(f"h{number}" for number in range(60)))
            await one.join("h0", "h1")
            await one.leave("h1")
            await one.join(*(f"k{number}" for number in range(49)))
            with pytest.raises(UsageError, match="are in 250 groups together, and may be in 250: connect to another"):
                await two.join("h0")
            assert two.joined == {f"g{number}" for number in range(100)}
            await one.leave("g0")
            await two.join("h0")
            assert here.host.clients_status().refusals["too many groups"] == 2
            assert here.host.clients_status().memberships == 250
        await eventually(here.is_empty)
        assert here.server.quota.used == 0


@live
async def test_a_leave_that_overtakes_the_refusal_of_its_join_is_refused_too(tmp_path: Path) -> None:
    async with daemon(tmp_path, groups_max=1) as here, calm(here), raw(here) as stranger:
        await greeted(stranger, "raw")
        await stranger.say(encode_names(FrameKind.JOIN, ["a", "b"]), encode_names(FrameKind.LEAVE, ["a", "b"]), PING)
        answers: list[tuple[int, bytes]] = []
        while not answers or answers[-1][0] != FrameKind.PONG:
            answers.append(await stranger.frame())
        refused = [decode_refused(body) for kind, body in answers if kind == FrameKind.REFUSED]
        assert [(one.groups, one.joins) for one in refused] == [(("a", "b"), True), (("a", "b"), False)]


@live
async def test_a_client_that_finds_a_daemon_again_where_it_may_not_join_is_told_in_its_stream(tmp_path: Path) -> None:
    async with (
        daemon(tmp_path / "a") as here,
        daemon(tmp_path / "b", memberships_max=1) as there,
        ordercast.connect(f"{here.unix} {there.unix}", reconnect=True) as me,
    ):
        await me.join("orders", "news")
        await here.server.close()
        seen = await until(me, lambda event: event == Left("orders"))
        assert Left("news") not in seen and any(isinstance(event, Reconnected) for event in seen)
        assert me.joined == {"news"}
        with pytest.raises(UsageError, match="may be in 1: connect to another daemon"):
            await me.send("orders", b"")
        await me.leave("news")
        await me.join("orders")
        assert me.joined == {"orders"}


@live
async def test_lists_of_many_groups_are_told_in_pages_and_the_ring_turns_meanwhile(tmp_path: Path) -> None:
    """Twenty clients that ask as fast as they can; and whoever asks several at once is sent away."""
    async with daemon(tmp_path) as here, Node(local(here.host.config.ring)) as node, AsyncExitStack() as stack:
        await eventually(lambda: len(node.host.members) == 2)
        for number in range(4):
            client = await stack.enter_async_context(raw(here))
            await greeted(client, f"many{number}")
            for first in range(0, 2500, 100):
                names = [f"{number}-{first + each}" for each in range(100)]
                await client.say(encode_names(FrameKind.JOIN, names))
        await eventually(lambda: len(node.host.named.table) == 10_000)
        views = len(here.host.counters.views)

        async def ask(number: int) -> None:
            async with raw(here, WAYS[number % 2]) as asker:
                await greeted(asker, f"asker{number}")
                last = ""
                for _ in range(20):
                    await asker.say(encode_list(last))
                    kind, body = await asker.frame()
                    assert kind == FrameKind.LISTING
                    page = decode_listing(body)
                    assert len(page.groups) <= PAGE_MAX
                    last = "" if page.is_last else next(reversed(page.groups))
                await asker.say(LIST * 15)
                assert "a second question before the first was answered" in await asker.closing()

        await asyncio.gather(*(ask(number) for number in range(20)))
        me = await stack.enter_async_context(ordercast.connect(here.unix))
        assert list(await me.groups()) == sorted(f"{number}-{each}" for number in range(4) for each in range(2500))
        assert len(here.host.counters.views) == views  # nobody was thought to be gone


@live
async def test_members_of_a_large_group_are_told_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "PAGE_MAX", 7)
    async with daemon(tmp_path) as here, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(ordercast.connect(here.unix)) for _ in range(20)]
        await asyncio.gather(*(client.join("orders", client.name.replace("@", "-")) for client in clients))
        assert await clients[0].members("orders") == tuple(sorted(client.name for client in clients))
        assert await clients[0].members("nobody") == ()
        assert len(await clients[0].groups()) == 21
        asking = [asyncio.create_task(clients[0].groups()) for _ in range(5)]
        await asyncio.sleep(0)
        asking[0].cancel()  # the next question waits for the answer all the same
        assert [len(found) for found in await asyncio.gather(*asking[1:])] == [21] * 4


# Strangers


@live
async def test_silent_connections_push_out_each_other_and_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STRANGERS_MAX", 100)
    async with daemon(tmp_path) as here, AsyncExitStack() as stack:
        for way in WAYS:
            silent = [await stack.enter_async_context(raw(here, way)) for _ in range(150)]
            async with ordercast.connect(here.unix if way == "unix" else here.tcp) as me:
                assert await me.groups() == {}
            for stranger in silent[:20]:
                assert "more than 100 connections have not said who they are" in await stranger.closing()
        places = {each.gate.place for each in here.server.connections}
        assert places == {os.getuid(), "127.0.0.1"}
        status = here.host.clients_status()
        assert status.strangers <= 100
        assert status.refused == status.refusals["too many strangers"] >= 200


@live
async def test_a_greeting_is_due_sooner_when_there_are_many_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STRANGERS_MAX", 10)
    async with daemon(tmp_path) as here, AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(raw(here)) for _ in range(6)]
        await eventually(lambda: len(here.server.strangers) == 6)
        here.server.look_at_strangers(asyncio.get_running_loop().time() + server.CROWDED_GREETING_S + 0.1)
        assert [await stranger.closing() for stranger in silent] == [
            "a client of Ordercast says who it is first, within 2 s"
        ] * 6
        assert here.host.clients_status().refusals["no greeting"] == 6


@live
async def test_joins_and_leaves_of_many_groups_are_on_their_way_a_few_at_a_time_and_messages_pass_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "CHANGING_MAX", 250)
    most = 0
    async with daemon(tmp_path) as here, calm(here) as me, AsyncExitStack() as stack:
        names = [f"g{number}" for number in range(100)]
        for number in range(4):
            stranger = await stack.enter_async_context(raw(here, WAYS[number % 2]))
            await greeted(stranger, f"raw{number}")
            for turn in range(20):
                for kind in (FrameKind.JOIN, FrameKind.LEAVE)[: 2 - (turn == 19)]:
                    stranger.writer.write(encode_names(kind, names))
        for number in range(20):
            await me.send("nobody", b"%d" % number, confirm=True)
            most = max(most, here.host.desk.changing)
        await eventually(lambda: all(len(here.host.named.table.members_of(name)) == 4 for name in names))
        assert 0 < most <= 250 and not here.host.desk.changing
        await stack.aclose()  # all are gone from a hundred groups
        await eventually(lambda: len(here.host.named.table) == 1 and not here.host.desk.changing)
