"""A tiny engine with two attachments and links, on real sockets: the driver reads and writes each where it belongs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from ordercast.daemon.config.node import LINK_OFFSET, NetworkConfig, NodeConfig, Peer, Transport
from ordercast.daemon.driver import Driver
from ordercast.daemon.sockets.network import Sockets
from ordercast.daemon.status.counters import Counters
from ordercast.daemon.storage import MemoryStorage
from ordercast.model.effects import Broadcast, Effect, Endpoint, SendTo, Unicast
from ordercast.model.errors import UsageError
from ordercast.model.ids import (
    MAIN,
    Attachment,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    process_id_from,
)
from ordercast.model.inputs import Lane, Packet, Stored, Submission, Submissions
from ordercast.wire.head import HEAD_SIZE, with_head
from tests.ports import free_ports

FIRST, SECOND = MAIN, Attachment(1)
PATIENCE_S = 100.0
SIZE = 400
Heard = tuple[Attachment, int, Lane, bytes]  # attachment, network, lane, text


def packet(text: str) -> bytes:
    """A packet that says its length where every packet does; the rest is of no kind that is known."""
    return with_head(bytes(8), ProcessId(1), text.encode().ljust(SIZE - HEAD_SIZE, b"."))


def text_of(data: bytes) -> bytes:
    return data[HEAD_SIZE:].rstrip(b".")


class TinyEngine:
    """Sends what it is given as effects, and remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.reads = 0
        self.asked: set[Attachment] = set()
        self.news = asyncio.Event()

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        return []

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        return cast(list[Effect], list(submissions))

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        for data, size, lane, attachment, network in packets:
            self.reads += lane is Lane.LINK
            for at in range(0, len(data), size):
                self.heard.append((attachment, network, lane, text_of(bytes(data[at : at + size]))))
        self.news.set()
        return []

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        self.asked.add(attachment)
        return Lane.DATA

    def next_deadline(self) -> Instant | None:
        return None

    async def hears(self, count: int) -> list[Heard]:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.heard) < count:
                self.news.clear()
                await self.news.wait()
        heard, self.heard = self.heard, []
        return heard


class Place:
    """One node with an attachment to each of two segments; on the first it has two networks."""

    def __init__(self, node: int, ports: int, *, has_links: bool = True) -> None:
        self.engine = TinyEngine()
        self.opened: list[Sockets] = []
        attached: dict[Attachment, list[Sockets]] = {}
        for attachment, numbers in ((FIRST, (0, 1)), (SECOND, (0,))):
            for number in numbers:
                sockets = Sockets(config(node, ports), number, attachment, has_links=has_links)
                attached.setdefault(attachment, []).append(sockets)
                self.opened.append(sockets)
                ports += 8
        self.driver = Driver(cast(Any, self.engine), attached, MemoryStorage(), Mock(), Counters())
        self.driver.start()

    def send(self, *effects: Effect) -> None:
        self.driver.submit(cast(Any, effects))

    def close(self) -> None:
        self.driver.stop()
        for sockets in self.opened:
            sockets.close()


def config(node: int, ports: int) -> NodeConfig:
    peers = tuple(
        Peer(NodeId(number), f"n{number}", "127.0.0.1", ports + 2 * number, ports + 2 * number + 1) for number in (1, 2)
    )
    network = NetworkConfig(transport=Transport.UNICAST)
    return replace(NodeConfig(), node=NodeId(node), peers=peers, network=network)


def process(node: int) -> ProcessId:
    return process_id_from(NodeId(node), Incarnation(1))


async def _scene(ports: int) -> tuple[Place, Place]:
    return Place(1, ports), Place(2, ports)


def run(scene: Any) -> None:
    async def work() -> None:
        one, two = await _scene(free_ports())
        try:
            await scene(one, two)
        finally:
            one.close()
            two.close()

    asyncio.run(work())


def test_packets_go_out_and_come_in_by_attachment_and_network() -> None:
    async def scene(one: Place, two: Place) -> None:
        data = [(packet("data"), SIZE)]
        one.send(Broadcast(data, FIRST, (1,)), Broadcast(data, SECOND))
        assert sorted(await two.engine.hears(2)) == [
            (FIRST, 1, Lane.DATA, b"data"),
            (SECOND, 0, Lane.DATA, b"data"),
        ]
        one.send(SendTo(process(2), packet("token"), SECOND), SendTo(process(2), packet("token"), FIRST, (0, 1)))
        assert sorted(await two.engine.hears(3)) == [
            (FIRST, 0, Lane.TOKEN, b"token"),
            (FIRST, 1, Lane.TOKEN, b"token"),
            (SECOND, 0, Lane.TOKEN, b"token"),
        ]
        assert two.engine.asked == {FIRST, SECOND}
        assert one.engine.heard == []

    run(scene)


def test_bursts_of_a_link_come_in_order_on_a_lane_of_their_own() -> None:
    async def scene(one: Place, two: Place) -> None:
        texts = [f"{number:03}" for number in range(50)]
        burst = b"".join(map(packet, texts))
        one.send(Unicast(process(2), [(burst, SIZE)], SECOND, (0,)))
        heard = await two.engine.hears(len(texts))
        assert heard == [(SECOND, 0, Lane.LINK, text.encode()) for text in texts]
        if one.opened[-1].segmentation:
            assert two.engine.reads < len(texts)  # the kernel carried many at a time
        link = one.opened[-1].link
        assert link is not None and (link.counters.packets_sent, link.counters.send_failures) == (len(texts), 0)

    run(scene)


def test_a_link_has_copies_on_redundant_networks_and_may_go_to_an_address() -> None:
    async def scene(one: Place, two: Place) -> None:
        one.send(Unicast(process(2), [(packet("both"), SIZE)], FIRST, (0, 1)))
        assert sorted(await two.engine.hears(2)) == [(FIRST, 0, Lane.LINK, b"both"), (FIRST, 1, Lane.LINK, b"both")]
        there = Endpoint("127.0.0.1", two.opened[-1].config.me().link_port)
        one.send(Unicast(there, [(packet("hello"), SIZE)], SECOND))
        assert await two.engine.hears(1) == [(SECOND, 0, Lane.LINK, b"hello")]

    run(scene)


def test_a_link_to_nobody_is_counted() -> None:
    async def scene(one: Place, two: Place) -> None:
        one.send(Unicast(process(7), [(packet("lost"), SIZE)]))
        link = one.opened[0].link
        assert link is not None and link.counters.send_failures == 1

    run(scene)


def test_an_engine_without_links_opens_two_sockets_to_be_read() -> None:
    """What a ring opens is what it always opened."""

    async def work() -> None:
        place = Place(1, free_ports(), has_links=False)
        try:
            assert all(sockets.link is None and len(sockets.lanes) == 2 for sockets in place.opened)
            with pytest.raises(UsageError, match="no link lane"):
                place.opened[0].unicast(NodeId(2), [(packet("no"), SIZE)])
        finally:
            place.close()

    asyncio.run(work())


def test_the_port_of_links_follows_from_that_of_tokens() -> None:
    peer = Peer(NodeId(1), "n1", "127.0.0.1", 4701)
    assert peer.link_port == 4701 + LINK_OFFSET
    assert replace(peer, token_port=65535).link_port == 65535 - LINK_OFFSET
