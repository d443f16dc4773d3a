"""Batches of commands and their results: a round trip, and noise that is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import WireError
from ordercast.replicated.batching import (
    COMMANDS_MAX,
    SIZE_MAX,
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


class Caller:
    """The ticket of one that waits, until it gives up."""

    def __init__(self) -> None:
        self.is_gone = False

    def done(self) -> bool:
        return self.is_gone


def test_what_has_no_answer_is_counted() -> None:
    batches = Batches(COUNT_MAX)
    for _ in range(5):
        batches.add(b"x", None)
    (batches.underway[1],) = batches.take()
    assert batches.count == 5
    batches.settle(1)
    assert batches.count == 0


def test_a_batch_knows_who_waits_and_what_nobody_waits_for() -> None:
    one, other = Caller(), Caller()
    batches = Batches(COUNT_MAX)
    for command, ticket in ((b"a", one), (b"posted", None), (b"b", other)):
        batches.add(command, ticket)
    assert batches.has_posted(b"posted") and not batches.has_posted(b"a")
    (batches.underway[1],) = batches.take()
    assert batches.has_posted(b"posted") and not batches.has_posted(b"a")
    batch, is_new = batches.settle(1)
    assert batch is not None and not is_new
    assert (batch.posted, batch.callers) == ([b"posted"], [one, other])
    assert batches.settle(1) == (None, False), "a batch is answered once"


def test_without_room_one_waits_in_line_and_who_gave_up_is_never_sent() -> None:
    callers = [Caller() for _ in range(5)]
    batches = Batches(2)
    for at, caller in enumerate(callers):
        batches.add(b"%d" % at, caller)
    batches.add(b"posted", None)  # has no bound: nobody could be told to wait
    assert [batches.is_queued(caller) for caller in callers] == [False, False, True, True, True]
    (batches.underway[1],) = batches.take()
    assert batches.underway[1].commands == [b"0", b"1", b"posted"]
    callers[2].is_gone = True
    _, is_new = batches.settle(1)
    assert is_new, "there is something new to be submitted"
    (batch,) = batches.take()
    assert batch.commands == [b"3", b"4"]


def test_at_the_end_it_is_known_whose_commands_were_submitted() -> None:
    underway, following, queued = Caller(), Caller(), Caller()
    batches = Batches(2)
    batches.add(b"underway", underway)
    (batches.underway[1],) = batches.take()
    batches.add(b"next", following)
    batches.add(b"in line", queued)
    assert batches.clear() == ([underway], [following, queued])
    assert batches.count == 0 and not batches.underway and list(batches.take()) == []
