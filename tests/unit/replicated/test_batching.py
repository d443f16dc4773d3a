"""Batches of commands and their results: a round trip, and noise that is refused."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import WireError
from ordercast.replicated.batching import (
    COMMANDS_MAX,
    SIZE_MAX,
    Answer,
    Batch,
    Batches,
    decode_batch,
    decode_results,
    encode_batch,
    encode_results,
)

COUNT_MAX = 10_000
PARTS = st.lists(st.binary(max_size=20), max_size=20)


@given(PARTS)
def test_a_batch_comes_back(parts: list[bytes]) -> None:
    assert decode_batch(encode_batch(parts)) == parts


@given(st.integers(0, 2**64 - 1), PARTS)
def test_results_come_back(first: int, parts: list[bytes]) -> None:
    assert decode_results(encode_results(first, parts)) == (first, parts)


@given(st.binary(max_size=40))
def test_noise_is_a_batch_or_a_wire_error(noise: bytes) -> None:
    with suppress(WireError):
        assert encode_batch(decode_batch(noise)) == noise


@given(PARTS, st.data())
def test_a_batch_that_was_cut_is_refused(parts: list[bytes], data: st.DataObject) -> None:
    whole = encode_batch(parts)
    with pytest.raises(WireError):
        decode_batch(whole[: data.draw(st.integers(0, len(whole) - 1))])


def sizes_of(parts: list[bytes]) -> list[int]:
    """Of the batches that these make."""
    batches = Batches(COUNT_MAX)
    for part in parts:
        batches.add(part, None)
    sizes = [len(batch.commands) for batch in batches.take()]
    assert list(batches.take()) == []
    return sizes


def test_batches_have_bounds() -> None:
    assert sizes_of([b""] * COMMANDS_MAX) == [COMMANDS_MAX]
    assert sizes_of([b""] * (2 * COMMANDS_MAX + 1)) == [COMMANDS_MAX, COMMANDS_MAX, 1]
    assert sizes_of([bytes(SIZE_MAX), b"x", bytes(2 * SIZE_MAX), b"y", b"z"]) == [1, 1, 1, 2]
    assert sizes_of([]) == []


@given(st.lists(st.binary(max_size=3), max_size=30))
def test_batches_have_all_in_order(parts: list[bytes]) -> None:
    batches = Batches(COUNT_MAX)
    news = [batches.add(part, None) for part in parts]
    assert news == [True, *[False] * (len(parts) - 1)][: len(parts)], "the first alone asks for a turn"
    assert [command for batch in batches.take() for command in batch.commands] == parts


def test_what_has_no_answer_is_counted() -> None:
    batches = Batches(COUNT_MAX)
    for _ in range(5):
        batches.add(b"x", None)
    (batches.underway[1],) = batches.take()
    assert batches.count == 5
    batches.confirm(1, encode_results(1, [b""] * 5))
    assert batches.count == 0


def test_each_gets_its_own_answer_and_what_nobody_waits_for_is_given_back() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        batches = Batches(COUNT_MAX)
        futures = [loop.create_future() for _ in range(3)]
        batches.underway = {1: Batch([b"a", b"posted", b"b"], [futures[0], None, futures[1]])}
        assert batches.has_posted(b"posted") and not batches.has_posted(b"a")
        batches.confirm(1, encode_results(7, [b"x", b"y", b"z"]))
        answers = [await future for future in futures[:2]]
        assert answers == [(7, b"x"), (9, b"z")] and all(isinstance(answer, Answer) for answer in answers)
        batches.underway = {2: Batch([b"c", b"posted"], [futures[2], None])}
        assert batches.refuse(2, ValueError("no")) == ([b"posted"], False)
        with pytest.raises(ValueError, match="no"):
            await futures[2]

    asyncio.run(work())


def test_without_room_one_waits_in_line_and_who_gave_up_is_never_sent() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        batches = Batches(2)
        futures = [loop.create_future() for _ in range(5)]
        for at, future in enumerate(futures):
            batches.add(b"%d" % at, future)
        batches.add(b"posted", None)  # has no bound: nobody could be told to wait
        (batches.underway[1],) = batches.take()
        assert batches.underway[1].commands == [b"0", b"1", b"posted"]
        futures[2].cancel()
        assert batches.confirm(1, encode_results(1, [b""] * 3)), "there is something new to be submitted"
        (batch,) = batches.take()
        assert batch.commands == [b"3", b"4"]

    asyncio.run(work())


def test_the_end_is_told_to_all_who_wait() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        batches = Batches(1)
        futures = [loop.create_future() for _ in range(3)]
        batches.add(b"underway", futures[0])
        (batches.underway[1],) = batches.take()
        batches.count = 0
        batches.add(b"next", futures[1])
        batches.add(b"in line", futures[2])
        assert [batches.is_queued(future) for future in futures] == [False, False, True]
        batches.fail(ValueError("over"), ValueError("never sent"))
        assert batches.count == 0 and not batches.underway and list(batches.take()) == []
        for future, why in zip(futures, ("over", "never sent", "never sent"), strict=True):
            with pytest.raises(ValueError, match=why):
                await future

    asyncio.run(work())


def test_a_refusal_makes_room_for_what_waits() -> None:
    async def run() -> None:
        batches = Batches(1)
        futures = [asyncio.get_running_loop().create_future() for _ in range(2)]
        assert [batches.add(b"x", future) for future in futures] == [True, False]
        batches.underway[1] = next(batches.take())
        assert batches.refuse(1, ValueError("no")) == ([], True)
        assert [batch.waiting for batch in batches.take()] == [futures[1:]]
        with pytest.raises(ValueError, match="no"):
            await futures[0]

    asyncio.run(run())
