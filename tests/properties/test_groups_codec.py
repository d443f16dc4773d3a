"""Heads and snapshots survive the wire; whatever else comes is a WireError and nothing worse."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from ordercast.groups.envelope import Head, decode_head, encode_head, head_bytes_of
from ordercast.groups.snapshot import PIECE_SIZE_MAX, decode_snapshot, encode_snapshot
from ordercast.model.errors import WireError
from ordercast.model.ids import RingId

from .group_strategies import clients, damaged_heads, damaged_snapshots, groups, heads, long_heads, reports
from .strategies import rings


@given(st.one_of(heads, long_heads), st.binary(max_size=20))
def test_a_head_survives_the_wire_and_is_found_before_any_data(head: Head, data: bytes) -> None:
    encoded = encode_head(head)
    assert head_bytes_of(encoded + data) == encoded
    assert decode_head(encoded) == head


@given(heads, heads, st.binary(max_size=20))
def test_a_payload_begins_with_a_head_only_if_it_is_its_own(one: Head, other: Head, data: bytes) -> None:
    """A run of messages is found by comparing beginnings."""
    assert (encode_head(one) + data).startswith(encode_head(other)) == (one == other)


@given(rings, st.dictionaries(groups, st.lists(clients, min_size=1, max_size=200), max_size=4))
def test_a_snapshot_survives_the_wire_in_pieces_of_bounded_size(ring: RingId, told: dict[str, list[str]]) -> None:
    gathered: dict[str, list[str]] = {}
    pieces = encode_snapshot(ring, told)
    for number, piece in enumerate(pieces, 1):
        assert len(piece) <= PIECE_SIZE_MAX
        read, is_last, part = decode_snapshot(piece)
        assert (read, is_last) == (ring, number == len(pieces))
        for group, members in part.items():
            gathered.setdefault(group, []).extend(members)
    assert gathered == told


@given(rings, reports)
def test_every_group_of_a_snapshot_has_members(ring: RingId, told: dict[str, list[str]]) -> None:
    (piece,) = encode_snapshot(ring, told)
    assert all(decode_snapshot(piece)[2].values())


@given(st.one_of(st.binary(max_size=100), damaged_heads))
def test_any_bytes_are_a_head_or_a_wire_error(data: bytes) -> None:
    with suppress(WireError):
        assert encode_head(decode_head(data)) == data
    with suppress(WireError):
        assert data.startswith(head_bytes_of(data))


@given(st.one_of(st.binary(max_size=100), damaged_snapshots))
def test_any_bytes_are_a_snapshot_or_a_wire_error(data: bytes) -> None:
    with suppress(WireError):
        _, _, told = decode_snapshot(data)
        assert all(told.values())
