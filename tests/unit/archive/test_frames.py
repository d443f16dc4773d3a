"""Frames: whatever goes in comes out, and no damage goes unnoticed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.archive.entries import Item, Outcome, SinkCommit
from ordercast.archive.frames import cut, frame_of, header_from, is_whole, runs_of, whole_frames
from ordercast.archive.places import NO_VIEW, Place
from ordercast.model.errors import WireError
from ordercast.model.ids import POSITION_NUMBER_MAX, ConfigurationId
from tests.unit.archive.stories import GAP, RING, batch, item_of, records_of, transition, view

NEXT = ConfigurationId(10, RING.representative)
BATCHES = st.builds(
    lambda data, seq, base: batch(*data, seq=seq, base=base),
    st.lists(st.binary(max_size=40), min_size=1, max_size=8),
    st.integers(1, POSITION_NUMBER_MAX),
    st.sampled_from((0, 512)),
)
ITEMS: st.SearchStrategy[Item] = st.one_of(
    BATCHES,
    st.builds(
        lambda seq, ring: view(seq, "a@n1", "b@n2", configuration=ring),
        st.integers(1, 99),
        st.sampled_from((RING, NEXT)),
    ),
    st.builds(lambda seq: transition(seq, "a@n1"), st.integers(1, 99)),
    st.just(GAP),
)
STORIES = st.lists(ITEMS, min_size=1, max_size=6)


def frame(items: list[Item], first: int = 1) -> bytes:
    return frame_of(first, [(item, None) for item in items], 5, NO_VIEW)


@given(STORIES)
def test_what_goes_in_comes_out(items: list[Item]) -> None:
    data = frame(items, 10)
    header = header_from(data)
    assert is_whole(data, 0, header) and header.first == 10 and header.time_ns == 5
    found = [item_of(run) for run in runs_of(data, header)]
    assert records_of("b", 10, found) == records_of("b", 10, items)


@given(STORIES, st.data())
def test_a_frame_is_cut_by_numbers(items: list[Item], draw: st.DataObject) -> None:
    data = frame(items)
    header = header_from(data)
    first = draw.draw(st.integers(1, header.last))
    last = draw.draw(st.integers(first, header.last))
    part = cut(data, header, first, last)
    found = [item_of(run) for run in runs_of(part, header_from(part))]
    assert records_of("b", first, found) == records_of("b", 1, items)[first - 1 : last]


@given(STORIES, st.data())
def test_a_changed_byte_is_noticed(items: list[Item], draw: st.DataObject) -> None:
    data = bytearray(frame(items))
    at = draw.draw(st.integers(0, len(data) - 1))
    data[at] ^= draw.draw(st.integers(1, 255))
    try:
        header = header_from(bytes(data))
    except WireError:
        return
    assert not is_whole(bytes(data), 0, header)


@given(st.binary(max_size=300))
def test_bytes_that_are_no_frame_are_none(data: bytes) -> None:
    assert list(whole_frames(data)) == []


@given(STORIES, STORIES)
def test_every_cut_leaves_the_whole_frames_before_it(one: list[Item], other: list[Item]) -> None:
    first = frame(one)
    second = frame(other, header_from(first).last + 1)
    for size in range(len(first) + len(second) + 1):
        ends = [at + header.size for at, header in whole_frames((first + second)[:size])]
        assert ends == [end for end in (len(first), len(first) + len(second)) if end <= size]


def test_a_commit_stands_with_its_marker() -> None:
    commit = SinkCommit("etl", 7, Outcome.COMMITTED, (Place("0" * 16, 3), Place("0" * 16, 4)))
    data = frame_of(5, [(batch(b"marker"), commit)], 0, NO_VIEW)
    assert [run.commit for run in runs_of(data, header_from(data))] == [commit]
