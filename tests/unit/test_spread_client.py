"""The client of Spread daemons in `bench`: its bytes are those of real clients, and its load is bounded."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from bench.spread_client import (
    JOIN,
    SERVICES,
    SpreadBatch,
    SpreadClient,
    SpreadError,
    SpreadView,
    connected,
    frame,
    frames,
)

from ordercast.model.service import Service

ALICE, GROUP = b"#alice#lh1", b"grp"
HELLO = b"\x05\x00\x01\x01\x05alice"


def _said(kind: str, name: bytes, rest: str, group: bytes, data: bytes = b"") -> bytes:
    """A frame to or of one group."""
    return bytes.fromhex(kind) + name.ljust(32, b"\0") + bytes.fromhex(rest) + group.ljust(32, b"\0") + data


# What a real daemon and a real client said to each other.
JOINS = _said("80000180", ALICE, "010000008000008000000000", GROUP)
SETS = bytes(12) + bytes.fromhex("010000000000000001000000") + ALICE.ljust(32, b"\0")
VIEW = _said("80110080", GROUP, "010000008000008038000000", ALICE, SETS)
HEARD = _said("90000080", ALICE, "010000008007008005000000", GROUP, b"hello")


def test_what_is_sent_is_as_real_clients_send_it() -> None:
    assert frame(JOIN, ALICE, b"grp") == JOINS
    sent = frame(SERVICES[Service.AGREED], ALICE, b"grp", b"hello")
    assert sent == HEARD.replace(bytes.fromhex("80070080"), bytes.fromhex("80000080"))


@pytest.mark.parametrize("cut", [1, 47, 60, 1000])
def test_frames_are_read_however_they_are_cut(cut: int) -> None:
    stream, buffer = VIEW + HEARD + VIEW, bytearray()
    found = []
    for at in range(0, len(stream), cut):
        buffer += stream[at : at + cut]
        found += list(frames(buffer))
    assert [(one.type, one.name, one.groups) for one in found] == [
        (0x1100, b"grp", (ALICE,)),
        (0x10, ALICE, (b"grp",)),
        (0x1100, b"grp", (ALICE,)),
    ]
    assert found[1].data == b"hello" and not buffer


def test_a_daemon_with_another_order_of_bytes_is_read() -> None:
    (one,) = frames(bytearray(_said("00000010", ALICE, "000000018007008000000005", GROUP, b"hello")))
    assert (one.type, one.groups, one.data) == (0x10, (GROUP,), b"hello")


def test_a_frame_that_is_a_refusal_is_told() -> None:
    with pytest.raises(SpreadError, match="a frame of type 0x"):
        list(frames(bytearray(bytes.fromhex("80004080") + bytes(44))))


async def _daemon(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Greet as a daemon does, send a message back, and end the session."""
    assert await reader.readexactly(len(HELLO)) == HELLO
    writer.write(b"\x05NULL ")
    assert await reader.readexactly(90) == b"NULL".ljust(90, b"\0")
    writer.write(b"\x01\x05\x00\x01\x0a" + ALICE)
    assert await reader.readexactly(len(JOINS)) == JOINS
    writer.write(VIEW + await reader.readexactly(len(HEARD)))
    writer.close()


async def _talk() -> list[SpreadBatch | SpreadView]:
    server = await asyncio.start_server(_daemon, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    heard: list[SpreadBatch | SpreadView] = []
    async with server, connected(f"spread://127.0.0.1:{port}", "alice", clients=1) as me:
        await me.join("grp")
        await me.send("grp", b"hello", Service.AGREED)
        with pytest.raises(SpreadError, match="ended the session"):
            async for piece in me.batches():
                heard.append(piece)  # noqa: PERF401 - what came before the end counts
    return heard


def test_a_session_is_opened_used_and_its_end_is_told() -> None:
    assert asyncio.run(asyncio.wait_for(_talk(), 30)) == [SpreadView((ALICE,)), SpreadBatch([b"hello"])]


class Written:
    """Takes the place of a connection's writer."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        await asyncio.sleep(0)


async def _send_four() -> list[int]:
    """Return how many of four messages a client with a share of two has sent, before two came back and after."""
    reader, written = asyncio.StreamReader(), Written()
    me = SpreadClient(reader, cast("asyncio.StreamWriter", written), ALICE, share=2)
    sending = asyncio.create_task(me.send_many("grp", [b"hello"] * 4, Service.AGREED))
    pieces = me.batches()
    counts = []
    for _ in range(2):
        for _ in range(20):
            await asyncio.sleep(0)
        counts.append(len(written.data) // len(HEARD))
        reader.feed_data(HEARD * 2)
        assert await anext(pieces) == SpreadBatch([b"hello"] * 2)
    await sending
    return counts


def test_a_client_sends_no_more_than_its_share_before_its_own_messages_came_back() -> None:
    assert asyncio.run(_send_four()) == [2, 4]
