"""Heads and snapshots survive the wire; whatever else comes is a WireError and nothing worse."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.groups.envelope import Head, Kind, decode_head, encode_head, head_bytes_of
from ordercast.groups.names import (
    checked_daemon,
    checked_destinations,
    checked_group,
    checked_groups,
    checked_member,
)
from ordercast.groups.snapshot import PIECE_SIZE_MAX, decode_snapshot, encode_snapshot
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import ConfigurationId

from .group_strategies import (
    HERE,
    damaged_heads,
    damaged_snapshots,
    forged_heads,
    forged_reports,
    groups,
    heads,
    long_heads,
    own_clients,
    reports,
)
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


@given(rings, st.dictionaries(groups, st.lists(own_clients, min_size=1, max_size=200), max_size=4))
def test_a_snapshot_survives_the_wire_in_pieces_of_bounded_size(
    ring: ConfigurationId, told: dict[str, list[str]]
) -> None:
    gathered: dict[str, list[str]] = {}
    pieces = encode_snapshot(ring, told)
    for number, piece in enumerate(pieces, 1):
        assert len(piece) <= PIECE_SIZE_MAX
        read, is_last, part, _ = decode_snapshot(piece, HERE)
        assert (read, is_last) == (ring, number == len(pieces))
        for group, members in part.items():
            gathered.setdefault(group, []).extend(members)
    assert gathered == told


@given(rings, reports)
def test_every_group_of_a_snapshot_has_members(ring: ConfigurationId, told: dict[str, list[str]]) -> None:
    (piece,) = encode_snapshot(ring, told)
    assert all(decode_snapshot(piece, HERE).groups.values())


@given(st.one_of(st.binary(max_size=100), damaged_heads))
def test_any_bytes_are_a_head_or_a_wire_error(data: bytes) -> None:
    with suppress(WireError):
        assert encode_head(decode_head(data)) == data
    with suppress(WireError):
        assert data.startswith(head_bytes_of(data))


@given(st.one_of(st.binary(max_size=100), damaged_snapshots))
def test_any_bytes_are_a_snapshot_or_a_wire_error(data: bytes) -> None:
    with suppress(WireError):
        told = decode_snapshot(data, HERE).groups
        assert all(told.values())


@given(forged_heads)
def test_a_head_is_read_exactly_when_an_application_could_have_asked_for_it(head: Head) -> None:
    if _could_be_asked_for(head):
        assert decode_head(encode_head(head)) == head
    else:
        with pytest.raises(WireError):
            decode_head(encode_head(head))


def _could_be_asked_for(head: Head) -> bool:
    try:
        (checked_daemon if head.kind in (Kind.GROUPS, Kind.ROSTER) else checked_member)(head.sender)
        if head.kind in (Kind.DATA, Kind.JOIN, Kind.LEAVE):
            (checked_destinations if head.kind is Kind.DATA else checked_groups)(head.groups)
            return True
    except UsageError:
        return False
    return not head.groups


@given(rings, forged_reports)
def test_a_snapshot_is_read_exactly_when_it_is_of_clients_that_its_daemon_can_have(
    ring: ConfigurationId, told: dict[str, list[str]]
) -> None:
    pieces = encode_snapshot(ring, told)
    if all(_is_group(group) and all(map(_is_own, members)) for group, members in told.items()):
        assert decode_snapshot(pieces[0], HERE).groups == told
    else:
        with pytest.raises(WireError):
            decode_snapshot(pieces[0], HERE)


def _is_group(name: str) -> bool:
    with suppress(UsageError):
        return bool(checked_group(name))
    return False


def _is_own(name: str) -> bool:
    with suppress(UsageError):
        return checked_member(name).endswith(f"@{HERE}")
    return False
