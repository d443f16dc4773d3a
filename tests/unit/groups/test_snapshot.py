from __future__ import annotations

from collections.abc import Sequence

import pytest

from ordercast.groups.names import CLIENT_SIZE_MAX, GROUP_SIZE_MAX
from ordercast.groups.snapshot import PIECE_SIZE_MAX, decode_snapshot, encode_snapshot
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId

RING = ConfigurationId(8, ProcessId(1))
FIXED = b"\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01"
ALICE = b"\x01g\x00\x00\x00\x01\x04a@n1"


LONGEST = "d" * GROUP_SIZE_MAX


def put_together(pieces: Sequence[bytes], daemon: str = "n1") -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for number, piece in enumerate(pieces, 1):
        ring, is_last, part, _ = decode_snapshot(piece, daemon)
        assert ring == RING
        assert is_last == (number == len(pieces)), "only the last piece says that it is"
        for group, members in part.items():
            groups.setdefault(group, []).extend(members)
    return groups


def longest_client(number: int) -> str:
    return f"{number:0{CLIENT_SIZE_MAX}}@{LONGEST}"


def test_the_bytes_of_a_snapshot() -> None:
    assert encode_snapshot(RING, {"g": ["a@n1"]}) == [FIXED + b"\x01" + ALICE]


def test_a_daemon_without_clients_says_so_in_one_piece() -> None:
    (piece,) = encode_snapshot(RING, {})
    assert decode_snapshot(piece, "n1") == (RING, True, {}, set())


def test_groups_are_written_by_name_and_members_as_they_come() -> None:
    (piece,) = encode_snapshot(RING, {"h": ["b@n1"], "g": ["a@n1", "b@n1"]})
    groups = decode_snapshot(piece, "n1").groups
    assert list(groups) == ["g", "h"]
    assert groups == {"g": ["a@n1", "b@n1"], "h": ["b@n1"]}


def test_many_members_of_one_group_are_cut_over_pieces_of_bounded_size() -> None:
    members = [longest_client(number) for number in range(2_000)]
    pieces = encode_snapshot(RING, {"g" * GROUP_SIZE_MAX: members})
    assert len(pieces) > 5
    assert max(map(len, pieces)) <= PIECE_SIZE_MAX
    assert min(map(len, pieces[:-1])) > PIECE_SIZE_MAX - 500, "no piece is cut early"
    assert put_together(pieces, LONGEST) == {"g" * GROUP_SIZE_MAX: members}


@pytest.mark.parametrize("count", [1, 2, 300, 310, 320, 330])
def test_many_groups_are_cut_over_pieces_of_bounded_size(count: int) -> None:
    groups = {f"{number:0{GROUP_SIZE_MAX}}": [longest_client(number)] for number in range(count)}
    pieces = encode_snapshot(RING, groups)
    assert max(map(len, pieces)) <= PIECE_SIZE_MAX
    assert put_together(pieces, LONGEST) == groups


def test_no_size_of_what_goes_before_makes_a_piece_too_large_or_loses_anybody() -> None:
    """The end of a piece falls at every place within an entry."""
    for filler in range(1, 400):
        groups = {
            "a": [f"{number:030}@n1" for number in range(930)],
            "b" * (1 + filler // 8): ["x" * (1 + filler % 32) + "@n1"],
            "c" * GROUP_SIZE_MAX: [f"{number:0{CLIENT_SIZE_MAX}}@n1" for number in range(60)],
        }
        pieces = encode_snapshot(RING, groups)
        assert max(map(len, pieces)) <= PIECE_SIZE_MAX
        assert put_together(pieces) == groups


def test_groups_with_other_views_are_marked_in_all_pieces() -> None:
    members = [longest_client(number) for number in range(1_000)]
    pieces = encode_snapshot(RING, {"g": members, "h": members[:1]}, {"g"})
    read = [decode_snapshot(piece, LONGEST) for piece in pieces]
    assert len(read) > 2 and {group for piece in read for group in piece.behind} == {"g"}
    assert [name for piece in read for name in piece.groups.get("g", ())] == members


def test_a_group_of_nobody_is_not_told() -> None:
    (piece,) = encode_snapshot(RING, {"g": [], "h": ["a@n1"]})
    assert decode_snapshot(piece, "n1").groups == {"h": ["a@n1"]}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut short"),
        (FIXED, "cut short"),
        (FIXED + b"\x01\x00", "at least one character"),
        (FIXED + b"\x01\x02g", "cut short"),
        (FIXED + b"\x01\x01g\x00\x00\x00", "cut short"),
        (FIXED + b"\x01\x01g\x00\x00\x00\x00", "a group of nobody"),
        (FIXED + b"\x01" + b"\x01g\x00\x00\x00\x02\x04a@n1", "cut short"),
        (FIXED + b"\x01\x01g\xff\xff\xff\xff", "cut short"),
        (FIXED + b"\x01\x01\xe9\x00\x00\x00\x01\x01a", "not ASCII"),
        (FIXED + b"\x01" + ALICE + b"\x05", "cut short"),
        (FIXED + b"\x01\x01\x1b\x00\x00\x00\x01\x04a@n1", "the group name '.x1b' has '.x1b' in it"),
        (FIXED + b"\x01\x01g\x00\x00\x00\x01\x04\x07@n1", "the client name '.x07' has '.x07' in it"),
        (FIXED + b"\x01\x01g\x00\x00\x00\x01\x01a", "'a' is no full name of a client"),
        (FIXED + b"\x01\x01g\x00\x00\x00\x01\x04a@n2", "a@n2 is no client of n1"),
        (FIXED + b"\x01\x01g\x00\x00\x00\x01\x24" + b"a" * 33 + b"@n1", "has 33 characters: at most 32"),
    ],
)
def test_a_snapshot_that_cannot_be_read_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=f"^a snapshot .*{why}"):
        decode_snapshot(data, "n1")


def test_who_is_no_client_of_the_daemon_is_named() -> None:
    (piece,) = encode_snapshot(RING, {"g": ["a@n1", "b@n2"]})
    with pytest.raises(WireError, match="b@n2 is no client of n1"):
        decode_snapshot(piece, "n1")
