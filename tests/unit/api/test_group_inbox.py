"""One stream shared out between readers: each gets what concerns it, in order, and nothing piles up for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.api.group_inbox import GroupInbox, GroupQueue
from ordercast.api.group_reader import GroupReader
from ordercast.model.errors import UsageError
from ordercast.model.events import Batch, Dropped, Event, Left, Message, Piece, Reason, Reconnected, View, ViewId
from ordercast.model.ids import ConfigurationId, Places, Position, ProcessId

RING = ConfigurationId(4, ProcessId(1))
SIZE_MAX = 1000


@dataclass
class Member:
    """Joins and leaves at once."""

    name: str = "me@n1"
    joined: set[str] = field(default_factory=set)
    taken: list[int] = field(default_factory=list)
    behind: list[bool] = field(default_factory=list)
    inbox: GroupInbox = field(init=False)

    def __post_init__(self) -> None:
        self.inbox = GroupInbox(SIZE_MAX, self.behind.append, self.taken.append)

    async def join(self, *groups: str) -> None:
        self.joined.update(groups)
        for group in groups:
            self.put(view(group))

    async def leave_within(self, seconds: float, *groups: str) -> None:
        self.joined.difference_update(groups)
        for group in groups:
            self.put(batch(group, data=b"on its way"))
            self.put(Left(group))

    def is_in(self, group: str) -> bool:
        return group in self.joined

    def put(self, *pieces: Piece) -> None:
        for piece in pieces:
            self.inbox.put(piece, 10)


def batch(*groups: str, data: bytes = b"x", seq: int = 1) -> Batch:
    return Batch(groups, "a@n1", [data], [4], Places(RING, seq, 0, 1, 0))


def view(group: str) -> View:
    return View(group, ("me@n1",), ("me@n1",), Reason.JOIN, ("me@n1",), ViewId(RING, Position(RING, 1, 0)))


RECONNECTED = Reconnected("me@n2", (), 0, None, "why")


async def read(queue: GroupQueue) -> list[Piece]:
    """What waits there."""
    found = []
    try:
        while True:
            async with asyncio.timeout(0):
                found.append(await queue.next_piece())
    except (TimeoutError, StopAsyncIteration):
        return found


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


def test_a_reader_gets_its_group_and_the_member_the_rest() -> None:
    async def work() -> None:
        me = Member()
        await me.join("chat")
        async with GroupReader(me, "orders") as orders:
            me.put(batch("orders", data=b"1"), batch("chat", data=b"2"), batch("orders", "chat", data=b"3"))
            me.put(batch("orders", "elsewhere", data=b"4"))
            got = [piece.data[0] if isinstance(piece, Batch) else type(piece) for piece in await read(orders.queue)]
            assert got == [View, b"1", b"3", b"4"]
            got = [piece.data[0] if isinstance(piece, Batch) else type(piece) for piece in await read(me.inbox.main)]
            assert got == [View, b"2", b"3"]
        assert await read(me.inbox.main) == [], "what came up to the leave is for nobody"
        assert me.inbox.size == 0 and sum(me.taken) == 80
        me.put(batch("orders"))
        assert len(await read(me.inbox.main)) == 1, "the group is as any other again"

    run(work())


def test_a_member_that_nobody_reads_keeps_nothing_but_what_it_has_joined_itself() -> None:
    async def work() -> None:
        me = Member()
        async with GroupReader(me, "orders") as orders:
            me.put(batch("me@n1"), Left("gone"), RECONNECTED, Dropped(1, 1))
            assert me.inbox.size == 30, "of the reader's: its view, and what all are told"
            assert [type(piece) for piece in await read(orders.queue)] == [View, Reconnected, Dropped]
            assert me.inbox.size == 0
            await me.join("chat")
            me.put(RECONNECTED)
            assert [type(piece) for piece in await read(me.inbox.main)] == [View, Reconnected]
            me.put(batch("me@n1"))  # now it is read
            assert len(await read(me.inbox.main)) == 1

    run(work())


def test_a_group_that_the_member_is_in_is_read_from_here_on_and_not_left() -> None:
    async def work() -> None:
        me = Member()
        await me.join("orders")
        async with GroupReader(me, "orders") as orders:
            me.put(batch("orders"))
            assert [type(piece) for piece in await read(orders.queue)] == [Batch]
        assert "orders" in me.joined
        me.put(batch("orders"))
        assert [type(piece) for piece in await read(me.inbox.main)] == [View, Batch]

    run(work())


def test_one_reader_of_a_group_at_a_time_and_one_block_for_a_reader() -> None:
    async def work() -> None:
        me = Member()
        async with GroupReader(me, "orders") as orders:
            with pytest.raises(UsageError, match="somebody else reads the group orders of me@n1: one reader at a time"):
                async with GroupReader(me, "orders"):
                    pass
        with pytest.raises(UsageError, match="a group is read in one block"):
            await orders.__aenter__()
        async with GroupReader(me, "orders"):
            pass
        with pytest.raises(UsageError, match="has ' ' in it"):
            GroupReader(me, "no blanks")

    run(work())


def test_all_readers_together_are_bounded_and_one_who_goes_gives_way() -> None:
    async def work() -> None:
        me = Member()
        await me.join("chat")
        async with GroupReader(me, "orders"):
            me.put(*[batch("orders") for _ in range(70)], *[batch("chat") for _ in range(70)])
            assert me.behind == [True]
        assert me.inbox.size == 10 + 700
        await read(me.inbox.main)
        assert me.behind == [True, False] and me.inbox.size == 0

    run(work())


def test_a_stream_that_ends_ends_for_every_reader() -> None:
    async def work() -> None:
        me = Member()
        async with GroupReader(me, "orders") as orders:
            await anext(orders.batches())
            reading = [asyncio.ensure_future(anext(stream)) for stream in (orders.batches(), me.inbox.pieces())]
            await asyncio.sleep(0)
            me.inbox.close(UsageError("over"))
            for task in reading:
                with pytest.raises(UsageError, match="over"):
                    await task

    run(work())


def test_who_waits_for_a_group_whose_block_is_over_is_told_the_end() -> None:
    async def work() -> None:
        me = Member()
        events: list[Event] = []
        async with GroupReader(me, "orders") as orders:

            async def reading() -> None:
                events.extend([event async for event in orders])

            task = asyncio.create_task(reading())
            me.put(batch("orders", data=b"last"))
            await asyncio.sleep(0)
        await task
        assert [type(event) for event in events] == [View, Message]

    run(work())


GROUPS = ("a", "b", "c", "d")
Steps = list[tuple[int, tuple[str, ...]]]
steps = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.sampled_from(GROUPS), min_size=1, max_size=3, unique=True).map(tuple)),
    max_size=60,
)


@given(st.sets(st.sampled_from(GROUPS)), st.sets(st.sampled_from(GROUPS)), steps)
def test_every_reader_has_its_part_of_the_stream_in_order(claimed: set[str], joined: set[str], drawn: Steps) -> None:
    async def work() -> None:
        me = Member(joined=set(joined))
        queues = {group: GroupQueue(me.inbox) for group in sorted(claimed)}
        for group, queue in queues.items():
            me.inbox.claim(group, queue, me)
        expected: dict[GroupQueue, list[Piece]] = {queue: [] for queue in (*queues.values(), me.inbox.main)}
        for number, (kind, groups) in enumerate(drawn):
            piece: Piece = batch(*groups, seq=number + 1) if kind else Dropped(number, 0)
            me.put(piece)
            for group, queue in queues.items():
                if not kind or group in groups:
                    expected[queue].append(piece)
            others = joined - claimed
            if (others if not kind else others & set(groups)) or not claimed:
                expected[me.inbox.main].append(piece)
        for queue, pieces in expected.items():
            assert await read(queue) == pieces
        assert me.inbox.size == 0 and sum(me.taken) == 10 * len(drawn)

    run(work())
