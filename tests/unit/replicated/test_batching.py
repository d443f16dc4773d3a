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
    Batches,
    Entry,
    decode_batch,
    decode_results,
    encode_batch,
    encode_results,
)

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


def test_batches_have_bounds() -> None:
    batches = Batches()
    batches.waiting = [Entry(b"", None)] * (COMMANDS_MAX + 1)
    assert [len(batch) for batch in batches.take()] == [COMMANDS_MAX, 1]
    batches.waiting = [Entry(bytes(SIZE_MAX), None), Entry(b"x", None), Entry(bytes(2 * SIZE_MAX), None)]
    assert [len(batch) for batch in batches.take()] == [1, 1, 1]
    assert list(batches.take()) == []


def test_what_has_no_answer_is_counted() -> None:
    batches = Batches()
    for _ in range(5):
        batches.add(Entry(b"x", None))
    (batches.underway[1],) = batches.take()
    assert batches.count == 5
    batches.confirm(1, encode_results(1, [b""] * 5))
    assert batches.count == 0


def test_each_gets_its_own_answer_and_what_nobody_waits_for_is_given_back() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        batches = Batches()
        futures = [loop.create_future() for _ in range(3)]
        batches.underway = {1: [Entry(b"a", futures[0]), Entry(b"posted", None), Entry(b"b", futures[1])]}
        assert batches.has_posted(b"posted") and not batches.has_posted(b"a")
        batches.confirm(1, encode_results(7, [b"x", b"y", b"z"]))
        assert [await future for future in futures[:2]] == [(7, b"x"), (9, b"z")]
        batches.underway = {2: [Entry(b"c", futures[2]), Entry(b"posted", None)]}
        assert batches.refuse(2, ValueError("no")) == [b"posted"]
        with pytest.raises(ValueError, match="no"):
            await futures[2]

    asyncio.run(work())
