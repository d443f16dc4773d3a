"""Clients that read slowly or not at all: what waits for each is bounded, its policy decides, and nobody waits for it.

The daemon keeps little for each client here, and a client gives little credit, so that it is soon too slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import Client, ConnectionLost, Dropped, Message, Reason, SlowPolicy, View
from ordercast.model.events import Event
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.session.frames import Hello, encode_hello, encode_names, encode_number
from ordercast.session.pieces import FrameKind
from tests.live.stage import Daemon, daemon, eventually, live, until, view_with
from tests.live.test_hostile_clients import raw

QUEUE_SIZE = 1 << 20
SIZE = 1000


@pytest.fixture(autouse=True)
def small_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("session.client_half", "api.client_state"):
        monkeypatch.setattr(f"ordercast.{module}.RECEIVE_CREDIT", 100_000)


def numbered(first: int, end: int) -> list[bytes]:
    return [number.to_bytes(8, "big").ljust(SIZE, b".") for number in range(first, end)]


def numbers_of(events: list[Event]) -> list[int]:
    return [int.from_bytes(event.data[:8], "big") for event in events if isinstance(event, Message)]


class Quick:
    """Somebody who sends to the group, and reads everything as it comes."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.seen: list[Event] = []
        self.sent = 0
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self.client:
            self.seen.append(event)

    async def send(self, count: int) -> None:
        """Returns when all of it has come back: nobody waits for the slow."""
        for first in range(self.sent, self.sent + count, 100):
            await self.client.send_many("orders", numbered(first, first + 100))
            await eventually(partial(self._has, first + 99))
        self.sent += count
        assert numbers_of(self.seen) == list(range(self.sent))

    def _has(self, number: int) -> bool:
        return number in numbers_of(self.seen[-5:])

    async def view(self, reason: Reason) -> View:
        def found() -> list[View]:
            return [event for event in self.seen if isinstance(event, View) and event.reason is reason]

        await eventually(lambda: bool(found()))
        return found()[-1]


@asynccontextmanager
async def busy(folder: Path, **options: Any) -> AsyncIterator[tuple[Daemon, Quick]]:
    options = {"queue_size_max": QUEUE_SIZE, **options}
    async with daemon(folder, **options) as here, ordercast.connect(here.unix, name="quick") as client:
        await client.join("orders")
        quick = Quick(client)
        yield here, quick
        await client.close()
        await quick.reading


async def slow_client(client: Client) -> None:
    await client.join("orders")
    await view_with(client, client.name, "quick@n1")


@pytest.mark.parametrize("policy", ["wait", "drop", "disconnect", "hold"])
@live
async def test_below_the_bound_nothing_is_lost_whatever_the_policy(tmp_path: Path, policy: ordercast.SlowName) -> None:
    async with busy(tmp_path) as (here, quick), ordercast.connect(here.unix, slow=policy) as slow:
        await slow_client(slow)
        await quick.send(900)
        assert here.host.clients_status().waiting_size > QUEUE_SIZE // 2  # beyond its credit
        seen = await until(slow, lambda event: numbers_of([event]) == [899])
        assert numbers_of(seen) == list(range(900))
        await eventually(lambda: here.host.clients_status().waiting_size == 0)


@pytest.mark.parametrize("policy", ["wait", "disconnect"])
@live
async def test_above_the_bound_the_client_is_disconnected_with_the_reason(
    tmp_path: Path, policy: ordercast.SlowName
) -> None:
    async with busy(tmp_path) as (here, quick), ordercast.connect(here.tcp, slow=policy) as slow:
        await slow_client(slow)
        await quick.send(3000)
        view = await quick.view(Reason.DISCONNECT)
        assert (view.members, view.who) == (("quick@n1",), (slow.name,))
        assert here.host.counters.clients.too_slow == 1
        seen: list[Event] = []
        with pytest.raises(ConnectionLost, match=rf"too slow: [\d,]+ bytes .* \(policy {policy}\)"):
            async for event in slow:
                seen.append(event)  # noqa: PERF401 (the end is an error)
        got = numbers_of(seen)
        assert got == list(range(len(got))) != []  # the beginning, without a hole
        await quick.send(100)


@live
async def test_all_wait_for_one_who_holds_and_nothing_is_lost(tmp_path: Path) -> None:
    """It reads nothing until the ring is held; then it gets three times what would have cut it off."""
    async with busy(tmp_path) as (here, quick), ordercast.connect(here.unix, slow="hold") as slow:
        await slow_client(slow)
        sending = asyncio.create_task(quick.send(3000))
        await eventually(lambda: here.host.is_behind)
        seen = await until(slow, lambda event: numbers_of([event]) == [2999])
        assert numbers_of(seen) == list(range(3000))
        await sending
        await eventually(lambda: not here.host.is_behind)
        assert here.host.counters.clients.too_slow == 0


@live
async def test_one_who_holds_and_takes_nothing_is_waited_for_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.session.outbound.STILL_MAX_NS", 100 * MILLISECOND)
    async with busy(tmp_path) as (here, quick), ordercast.connect(here.unix, slow="hold") as slow:
        await slow_client(slow)
        await quick.send(3000)
        view = await quick.view(Reason.DISCONNECT)
        assert view.who == (slow.name,)
        assert not here.host.is_behind
        await quick.send(100)


@live
async def test_one_who_holds_and_is_gone_is_waited_for_no_longer(tmp_path: Path) -> None:
    async with busy(tmp_path) as (here, quick):
        async with ordercast.connect(here.unix, slow="hold") as slow:
            await slow_client(slow)
            sending = asyncio.create_task(quick.send(3000))
            await eventually(lambda: here.host.is_behind)
        await sending
        assert not here.host.is_behind


@live
async def test_what_is_dropped_is_told_in_its_place_and_the_counts_add_up(tmp_path: Path) -> None:
    async with busy(tmp_path) as (here, quick), ordercast.connect(here.unix, slow=SlowPolicy.DROP) as slow:
        await slow_client(slow)
        await quick.send(2000)
        async with ordercast.connect(here.unix, name="guest") as guest:
            await guest.join("orders")
            await quick.send(2000)
        await quick.view(Reason.DISCONNECT)
        await quick.send(2000)
        assert await slow.send("other", b"", confirm=True) is not None  # it is slow, not gone
        seen = await until(slow, lambda event: numbers_of([event]) == [5999])
        await quick.send(100)
        seen += await until(slow, lambda event: numbers_of([event]) == [6099])
        expected = 0
        for event in seen:
            if isinstance(event, Dropped):
                assert event.messages > 0 and event.size > event.messages * SIZE
                expected += event.messages
            elif isinstance(event, Message):
                assert numbers_of([event]) == [expected]
                expected += 1
        lost = sum(event.messages for event in seen if isinstance(event, Dropped))
        assert lost == here.host.counters.clients.messages_dropped > 0
        views = [(event.reason, event.who) for event in seen if isinstance(event, View)]  # are never dropped
        assert views == [(Reason.JOIN, ("guest@n1",)), (Reason.DISCONNECT, ("guest@n1",))]


@pytest.mark.parametrize("way", ["unix", "tcp"])
@pytest.mark.parametrize("policy", ["wait", "drop", "disconnect"])
@live
async def test_a_client_that_does_not_read_at_all_stops_nobody(tmp_path: Path, way: str, policy: str) -> None:
    """Whatever credit it claims: what the kernel does not take waits within the same bound."""
    async with busy(tmp_path) as (here, quick):
        async with raw(here, way) as stuck:
            stuck.transport.pause_reading()
            hello = Hello("stuck", SlowPolicy[policy.upper()], 0xFFFFFFFF)
            await stuck.say(encode_hello(hello), encode_names(FrameKind.JOIN, ["orders"]))
            await eventually(lambda: here.host.named.table.members_of("orders") == ("quick@n1", "stuck@n1"))
            counters = here.host.counters.clients
            while not counters.too_slow and not counters.messages_dropped:  # the kernel's buffers are large
                await quick.send(500)
                assert here.host.clients_status().waiting_size <= 2 * QUEUE_SIZE
                assert quick.sent < 50_000
            if policy != "drop":
                assert (await quick.view(Reason.DISCONNECT)).who == ("stuck@n1",)
                stuck.transport.resume_reading()
                assert f"(policy {policy})" in await stuck.closing()
        assert (await quick.view(Reason.DISCONNECT)).who == ("stuck@n1",)
        await quick.send(100)
        await eventually(lambda: len(here.host.sessions) == 1 and not here.server.leaving)


@live
async def test_a_daemon_ends_though_a_client_does_not_read(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as quick, raw(here, "tcp") as stuck:
        stuck.transport.pause_reading()
        hello = encode_hello(Hello("stuck", SlowPolicy.WAIT, 0xFFFFFFFF))
        await stuck.say(hello, encode_names(FrameKind.JOIN, ["orders"]))
        await eventually(lambda: bool(here.host.named.table.members_of("orders")))
        await quick.send_many("orders", [bytes(100_000)] * 200, confirm=True)
        await here.server.close()
        await eventually(here.is_empty)
        with pytest.raises(ConnectionLost, match="is being shut down"):
            await until(quick, lambda event: False)


@live
async def test_one_who_holds_and_reads_a_frame_now_and_then_is_disconnected_and_named(tmp_path: Path) -> None:
    """It moves all the time, and would hold the ring for good."""
    async with busy(tmp_path, hold_ns=500 * MILLISECOND) as (here, quick), raw(here) as slow:
        await slow.say(encode_hello(Hello("slow", SlowPolicy.HOLD, 1)), encode_names(FrameKind.JOIN, ["orders"]))
        await eventually(lambda: len(here.host.named.table.members_of("orders")) == 2)
        sending = asyncio.create_task(quick.send(3000))
        await eventually(lambda: here.host.is_behind)
        counters, named = here.host.counters.clients, set()
        while not counters.held_too_long:
            await slow.say(encode_number(FrameKind.CREDIT, 5000))
            named |= {hold.client for hold in here.host.clients_status().holding}
            await asyncio.sleep(0.05)
        assert named == {"slow@n1"}
        assert not here.host.is_behind and not here.host.clients_status().holding
        await sending
        assert (await quick.view(Reason.DISCONNECT)).who == ("slow@n1",)
        assert "everybody waited for it" in (why := await slow.closing()) and "within 0.5 s (policy hold)" in why


@live
async def test_one_who_holds_and_is_nearly_fast_enough_is_waited_for(tmp_path: Path) -> None:
    """Half of what waits within the time, again and again."""
    async with busy(tmp_path, hold_ns=10 * SECOND) as (here, quick), ordercast.connect(here.unix, slow="hold") as slow:
        await slow_client(slow)
        sending = asyncio.create_task(quick.send(3000))
        seen: list[Event] = []
        while numbers_of(seen[-1:]) != [2999]:
            await eventually(lambda: here.host.is_behind or sending.done())
            seen += await until(slow, lambda event: not here.host.is_behind)
        assert numbers_of(seen) == list(range(3000))
        await sending
        assert (here.host.counters.clients.held_too_long, here.host.counters.clients.too_slow) == (0, 0)
