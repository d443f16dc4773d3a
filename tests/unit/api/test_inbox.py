"""One stream, read event by event, in pieces, or first one and then the other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ordercast.api.group_inbox import GroupInbox
from ordercast.api.pieces import size_of
from ordercast.model.errors import UsageError
from ordercast.model.events import Batch, Left, Message
from ordercast.model.ids import ConfigurationId, Places, ProcessId

RING = ConfigurationId(4, ProcessId(1))


def _inbox(size_max: int = 1 << 20, **options: Any) -> GroupInbox:
    return GroupInbox(size_max, **options)


def _batch(*data: bytes, seq: int = 1) -> Batch:
    return Batch(("g",), "alice@n1", list(data), [4] * len(data), Places(RING, seq, 0, 2, 0))


def _put(inbox: GroupInbox, *pieces: Batch | Left) -> None:
    for piece in pieces:
        inbox.put(piece, size_of(piece))


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 30))


def test_what_is_left_of_a_batch_comes_before_the_next() -> None:
    async def work() -> None:
        inbox = _inbox()
        _put(inbox, _batch(b"1", b"2", b"3"), Left("g"), _batch(b"4", seq=3))
        first = await anext(inbox.events())
        assert isinstance(first, Message) and first.data == b"1"
        rest = await anext(inbox.pieces())
        assert isinstance(rest, Batch) and rest.data == [b"2", b"3"]
        assert [(m.position.number, m.position.slot) for m in rest] == [(1, 1), (2, 0)]
        assert await anext(inbox.events()) == Left("g")
        last = await anext(inbox.pieces())
        assert isinstance(last, Batch) and last.data == [b"4"]

    run(work())


def test_a_batch_that_was_read_to_its_end_leaves_nothing() -> None:
    async def work() -> None:
        inbox = _inbox()
        _put(inbox, _batch(b"1"), Left("g"))
        assert isinstance(await anext(inbox.events()), Message)
        assert await anext(inbox.pieces()) == Left("g")

    run(work())


def test_two_readers_at_once_are_refused_and_the_first_goes_on() -> None:
    async def work() -> None:
        inbox = _inbox()
        reading = asyncio.create_task(inbox.main.next_event())
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="one reader at a time"):
            await inbox.next_piece()
        _put(inbox, Left("g"))
        assert await reading == Left("g")

    run(work())


def test_a_reader_that_was_cancelled_leaves_everything_to_the_next() -> None:
    async def work() -> None:
        inbox = _inbox()
        reading = asyncio.create_task(inbox.main.next_event())
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        _put(inbox, Left("g"))
        assert await inbox.main.next_event() == Left("g")

    run(work())


def test_it_says_when_the_reader_is_behind_and_when_it_has_caught_up() -> None:
    async def work() -> None:
        told: list[bool] = []
        inbox = _inbox(1000, on_behind=told.append)
        _put(inbox, *[_batch(bytes(400)) for _ in range(4)])
        assert told == [True]
        for _ in range(4):
            await inbox.next_piece()
        assert told == [True, False] and inbox.size == 0

    run(work())


@pytest.mark.parametrize("size_max", [0, 1, 2, 1000])
def test_nobody_is_behind_who_has_taken_everything(size_max: int) -> None:
    async def work() -> None:
        inbox = _inbox(size_max)
        _put(inbox, _batch(bytes(1000)))
        assert inbox.is_behind
        await inbox.next_piece()
        assert not inbox.is_behind

    run(work())


def test_the_end_comes_after_what_was_there() -> None:
    async def work() -> None:
        inbox = _inbox()
        _put(inbox, Left("g"))
        inbox.close(RuntimeError("it broke"))
        assert await inbox.main.next_event() == Left("g")
        with pytest.raises(RuntimeError, match="it broke"):
            await inbox.main.next_event()

    run(work())
