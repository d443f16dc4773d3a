"""Whatever is said at the place where clients are served: that session is closed with a sentence, the others go on, and
nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import ordercast
from ordercast import Client, Node, Reason
from ordercast.daemon import clients
from ordercast.groups.envelope import Head, Kind, encode_head
from ordercast.groups.layer import data_head
from ordercast.model.service import Service
from ordercast.session.batches import FRAME_SIZE_MAX, encode_send
from ordercast.session.client_half import BYE, LIST, PING
from ordercast.session.frames import Hello, SlowPolicy, decode_closing, encode_hello, encode_names
from ordercast.session.pieces import HEADER, FrameKind, frame
from ordercast.stream.addresses import TcpAddress, UnixAddress
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
        "the client speaks version 77 of the protocol, this daemon 1",
    ),
    "a short greeting": (frame(FrameKind.HELLO, b"OC"), "a greeting that cannot be read"),
    "no such policy": (frame(FrameKind.HELLO, b"OCST\0\1\x09\0\0\0\0raw"), "a greeting that cannot be read"),
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
    "no head": (HELLO + encode_send(Service.AGREED, b"", [b"forged"]), "a head that cannot be read|a message that"),
    "a truncated batch": (HELLO + frame(FrameKind.SEND, b"\0\0\x05\0\0\0\x09"), "9 messages in a frame of 7 bytes"),
    "a leave of what was not joined": (
        HELLO + encode_names(FrameKind.LEAVE, ["calm"]),
        "the client is not in the group calm",
    ),
    "a second join": (HELLO + encode_names(FrameKind.JOIN, ["a"]) * 2, "the client is already in the group a"),
    "a join of a bad name": (HELLO + encode_names(FrameKind.JOIN, ["a@n1"]), "has '@' in it"),
    "a join of nothing": (HELLO + encode_names(FrameKind.JOIN, []), "joins or leaves 1 to 100 groups"),
    "names without end": (HELLO + frame(FrameKind.JOIN, b"\xff\xff\xff\xff"), "names"),
    "a short credit": (HELLO + frame(FrameKind.CREDIT, b"\0"), "a number that cannot be read"),
    "a message that is too large": (
        HELLO + encode_send(Service.AGREED, data_head("raw@n1", ("calm",)), [bytes(16 << 20)]),
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
                    noise = HELLO + struct.pack(">IB", len(noise) + 1, rng.randrange(1, 22)) + noise
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
    monkeypatch.setattr(clients, "GREETING_S", 0.2)
    begun = struct.pack(">IB", 400, FrameKind.HELLO)
    async with daemon(tmp_path) as here, calm(here):
        for said, more in ((b"", b""), (HELLO[:7], b""), (begun, b"x")):  # a byte now and then does not help
            async with raw(here) as stranger:
                await stranger.say(said)
                await eventually(lambda: len(here.server.connections) == 2)
                (connection,) = [each for each in here.server.connections if not each.half.name]
                while connection in here.server.connections:
                    await stranger.say(more)
                    connection.look(asyncio.get_running_loop().time())
                    await asyncio.sleep(0.01)
                assert "says who it is first" in await stranger.closing()


@live
async def test_a_silent_client_over_tcp_is_asked_and_then_given_up(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, calm(here):
        async with raw(here, "tcp") as silent:
            await silent.say(HELLO)
            assert (await silent.frame())[0] == FrameKind.WELCOME
            (connection,) = [each for each in here.server.connections if each.half.name == "raw@n1"]
            now = asyncio.get_running_loop().time()
            connection.look(now + clients.QUIET_S + 1)
            assert (await silent.frame())[0] == FrameKind.PING
            connection.look(now + clients.SILENCE_MAX_S + 1)
            assert "nothing was heard of the client for 90 s" in await silent.closing()
        for connection in here.server.connections:  # over a unix socket nobody is lost unnoticed
            connection.look(asyncio.get_running_loop().time() + 1000)
        assert len(here.server.connections) == 1


@live
async def test_answers_that_are_not_read_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.session.daemon_half.URGENT_SIZE_MAX", 1 << 16)
    async with daemon(tmp_path) as here, calm(here):
        for way in WAYS:
            async with raw(here, way) as stranger:
                stranger.transport.pause_reading()
                await stranger.say(HELLO)
                await eventually(lambda: len(here.host.sessions) == 2)
                refused = here.host.counters.clients.refused
                while here.host.counters.clients.refused == refused:
                    await stranger.say(LIST * 10)
                stranger.transport.resume_reading()
                assert "asks " in await stranger.closing()


@asynccontextmanager
async def standstill(folder: Path) -> AsyncIterator[tuple[Daemon, Node]]:
    """The daemon's engine takes next to nothing, because a node reads nothing."""
    ring = quick_ring(queue_size_max=20_000, message_size_max=10_000)
    async with daemon(folder, local(ring)) as here, Node(local(ring, inbox_size_max=1000)) as stubborn:
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
            assert here.host.requests_waiting < at_once + clients.CHANGES_MAX
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


@live
async def test_a_frame_of_the_largest_size_in_small_pieces(tmp_path: Path) -> None:
    assert FRAME_SIZE_MAX > 16 << 20
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as me:
        await me.join("orders")
        async with raw(here) as slow:
            await slow.say(HELLO)
            large = encode_send(Service.AGREED, data_head("raw@n1", ("orders",)), [bytes(3 << 20)])
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
