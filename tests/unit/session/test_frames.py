"""Greeting, farewell, credit and requests. What these accept is pinned in the vectors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ordercast.model.errors import WireError
from ordercast.session.frames import (
    MAGIC,
    Hello,
    SlowPolicy,
    Welcome,
    decode_closing,
    decode_hello,
    decode_listing,
    decode_names,
    decode_number,
    decode_welcome,
    encode_hello,
    encode_listing,
    encode_welcome,
)
from ordercast.session.pieces import HEADER, write_names

HELLO = encode_hello(Hello("alice", SlowPolicy.DROP, 9))[HEADER.size :]
WELCOME = encode_welcome(Welcome("alice@n1", 100, 9))[HEADER.size :]


def test_a_stranger_is_told_that_it_is_one() -> None:
    with pytest.raises(WireError, match="this is not a client of Ordercast"):
        decode_hello(b"GET / HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "body",
    [HELLO[:-6], b"", HELLO[:6] + b"\x04" + HELLO[7:], HELLO + "é".encode()],
    ids=["cut off", "empty", "no such policy", "name is not ASCII"],
)
def test_a_greeting_that_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(WireError, match="a greeting that cannot be read"):
        decode_hello(body)


def test_of_another_version_only_the_version_is_read() -> None:
    """Whatever else it says may stand elsewhere by then."""
    assert decode_hello(MAGIC + b"\0\x03").version == 3
    assert decode_hello(MAGIC + b"\0\x03" + b"\xff" * 30).version == 3
    assert decode_welcome(b"\0\x03").version == 3
    assert decode_welcome(b"\0\x03" + b"\xff" * 30).version == 3


def test_a_welcome_that_cannot_be_read_is_refused() -> None:
    for body in (WELCOME[:9], b"", WELCOME + b"\xff"):
        with pytest.raises(WireError, match="a welcome that cannot be read"):
            decode_welcome(body)


def test_a_reason_to_close_is_shown_whatever_its_bytes_are() -> None:
    assert decode_closing("zu groß".encode()) == "zu groß"
    assert decode_closing(b"\xff!") == "\N{REPLACEMENT CHARACTER}!"
    assert decode_closing(b"") == ""


def test_a_number_has_four_bytes() -> None:
    assert decode_number(b"\xff\xff\xff\xff") == (1 << 32) - 1
    for body in (b"\0\0\0", b"\0\0\0\0\0"):
        with pytest.raises(WireError, match="a number that cannot be read"):
            decode_number(body)


@pytest.mark.parametrize(
    ("decode", "body"),
    [
        (decode_names, write_names(("chat",))),
        (decode_listing, encode_listing({"chat": 3, "news": 1})[HEADER.size :]),
    ],
)
def test_nothing_may_follow_and_nothing_may_be_missing(decode: Callable[[bytes], object], body: bytes) -> None:
    decode(body)
    for wrong in (body + b"\0", body[:-1], b""):
        with pytest.raises(WireError):
            decode(wrong)


def test_policies_have_their_numbers_for_ever() -> None:
    assert {policy.name: policy.value for policy in SlowPolicy} == {"WAIT": 0, "DROP": 1, "DISCONNECT": 2, "HOLD": 3}
