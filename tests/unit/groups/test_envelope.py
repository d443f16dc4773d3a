from __future__ import annotations

import pytest

from ordercast.groups.envelope import (
    CONFIRM,
    SELF_DISCARD,
    Head,
    Kind,
    daemon_destination,
    decode_head,
    destinations_of,
    encode_head,
    head_bytes_of,
    joins_of,
    sender_of,
)
from ordercast.groups.layer import data_head, disconnect_payload, join_payload, leave_payload
from ordercast.groups.names import CLIENT_SIZE_MAX, GROUP_SIZE_MAX, GROUPS_MAX
from ordercast.model.errors import WireError
from ordercast.model.inputs import EVERYWHERE

DATA = Head(Kind.DATA, "a@n1", ("g", "hall"), SELF_DISCARD)
BYTES = b"\x00\x11\x00\x01\x04a@n1\x02\x01g\x04hall"


def test_the_bytes_of_a_head() -> None:
    assert encode_head(DATA) == BYTES
    assert decode_head(BYTES) == DATA


def test_the_numbers_of_kinds_and_flags_travel_and_never_change() -> None:
    assert {kind.name: int(kind) for kind in Kind} == {
        "DATA": 0,
        "JOIN": 1,
        "LEAVE": 2,
        "DISCONNECT": 3,
        "GROUPS": 4,
        "ROSTER": 5,
    }
    assert (SELF_DISCARD, CONFIRM) == (1, 2)


def test_the_head_of_a_payload_ends_where_the_data_begins() -> None:
    assert head_bytes_of(BYTES + b"hello") == BYTES
    assert head_bytes_of(BYTES) == BYTES


def test_what_a_client_asks_for_is_in_the_head() -> None:
    assert decode_head(join_payload("a@n1", ["g", "h"])) == Head(Kind.JOIN, "a@n1", ("g", "h"))
    assert decode_head(leave_payload("a@n1", ["g"])) == Head(Kind.LEAVE, "a@n1", ("g",))
    assert decode_head(disconnect_payload("a@n1")) == Head(Kind.DISCONNECT, "a@n1", ())
    assert decode_head(data_head("a@n1", ("g",))) == Head(Kind.DATA, "a@n1", ("g",))
    assert decode_head(data_head("a@n1", ("g",), self_discard=True)).flags == SELF_DISCARD
    assert decode_head(data_head("a@n1", ("g",), confirm=True)).flags == CONFIRM


def test_the_largest_head_that_names_allow_can_be_written() -> None:
    longest = "c" * CLIENT_SIZE_MAX + "@" + "d" * GROUP_SIZE_MAX
    groups = tuple(f"{number:0{CLIENT_SIZE_MAX}}@{'d' * GROUP_SIZE_MAX}" for number in range(GROUPS_MAX))
    head = Head(Kind.DATA, longest, groups)
    assert decode_head(encode_head(head)) == head


@pytest.mark.parametrize(
    "payload",
    [b"", b"\x00", b"\x00\x04\x00\x00", b"\x00\x12" + BYTES[2:], b"\xff\xff" + BYTES[2:], b"\x00\x00" + BYTES[2:]],
)
def test_a_payload_whose_head_does_not_fit_is_refused(payload: bytes) -> None:
    with pytest.raises(WireError, match=r"a head of \d+ bytes in a payload of \d+"):
        head_bytes_of(payload)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut short"),
        (b"\x00\x05\x00\x00\x01", "cut short"),
        (BYTES[:2] + b"\x63" + BYTES[3:], "a head of kind 99"),
        (b"\x00\x06\x00\x00\x00\x00", "is no full name"),
        (b"\x00\x08\x00\x00\x01a\x01\x00", "is no full name"),
        (b"\x00\x09\x00\x00\x01\xe9\x01\x01g", "not ASCII"),
        (b"\x00\x08\x00\x00\x01a\x02\x05", "cut short"),
        (b"\x00\x06\x00\x00\x01a", "cut short"),
    ],
)
def test_a_head_that_cannot_be_read_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        decode_head(data)


@pytest.mark.parametrize("data", [BYTES + b"x", b"\x00\x10" + BYTES[2:], b"\x00\x12" + BYTES[2:]])
def test_a_head_says_its_own_length(data: bytes) -> None:
    with pytest.raises(WireError, match=r"a head of kind 0 and \d+ bytes, in \d+"):
        decode_head(data)


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (Head(Kind.DATA, "\x1b[31ma@n1", ("g",)), r"the client name '\\x1b\[31ma' has '\\x1b' in it"),
        (Head(Kind.DATA, "a@n1", ("g\x07",)), r"the group name 'g\\x07' has '\\x07' in it"),
        (Head(Kind.DATA, "a@n1", ("b@n 2",)), "the daemon name 'n 2' has ' ' in it"),
        (Head(Kind.DATA, "a@n1", ()), "a message needs a group to go to"),
        (Head(Kind.DATA, "a@n1", tuple(f"g{n}" for n in range(GROUPS_MAX + 1))), "at most 100 groups, not to 101"),
        (Head(Kind.DATA, "alice", ("g",)), "'alice' is no full name of a client"),
        (Head(Kind.JOIN, "a@n1@n2", ("g",)), "the daemon name 'n1@n2' has '@' in it"),
        (Head(Kind.JOIN, "a@n1", ("b@n1",)), "the group name 'b@n1' has '@' in it"),
        (Head(Kind.JOIN, "a@n1", ()), "name at least one group"),
        (Head(Kind.LEAVE, "a@n1", ("g" * (GROUP_SIZE_MAX + 1),)), "has 65 characters: at most 64"),
        (Head(Kind.LEAVE, "a" * (CLIENT_SIZE_MAX + 1) + "@n1", ("g",)), "has 33 characters: at most 32"),
        (Head(Kind.DISCONNECT, "a@n1", ("g",)), "groups are named where none belong"),
        (Head(Kind.GROUPS, "a@n1", ()), "the daemon name 'a@n1' has '@' in it"),
        (Head(Kind.GROUPS, "n1", ("g",)), "groups are named where none belong"),
        (Head(Kind.ROSTER, "a@n1", ()), "the daemon name 'a@n1' has '@' in it"),
    ],
)
def test_names_from_the_wire_are_held_to_the_rules_of_names_from_users(head: Head, why: str) -> None:
    with pytest.raises(WireError, match=why):
        decode_head(encode_head(head))


def test_the_sender_of_a_decoded_head_is_found_without_decoding_it_again() -> None:
    assert sender_of(BYTES) == "a@n1"


def test_messages_go_to_their_groups_and_to_the_daemons_of_those_named() -> None:
    head = data_head("a@n1", ("g", "b@n2", "c@n2", "h"))
    assert destinations_of(head + b"data") == ("g", daemon_destination("n2"), "h")


def test_what_changes_the_groups_goes_everywhere() -> None:
    others = [Head(Kind.GROUPS, "n1", ()), Head(Kind.ROSTER, "n1", ())]
    changes = [join_payload("a@n1", ["g"]), leave_payload("a@n1", ["g"]), disconnect_payload("a@n1")]
    for payload in (*changes, *map(encode_head, others)):
        assert destinations_of(payload) == EVERYWHERE


def test_a_join_says_which_groups_it_joins_and_nothing_else_does() -> None:
    assert joins_of(join_payload("a@n1", ["g", "h"])) == ("g", "h")
    assert joins_of(leave_payload("a@n1", ["g"])) == joins_of(data_head("a@n1", ("g",)) + b"data") == ()
