"""Windows, keys and presences."""

from __future__ import annotations

import random
import struct

import pytest

from ordercast.model.errors import UsageError, WireError
from ordercast.sealing.cipher import hkdf
from ordercast.sealing.keys import KEYS_MAX, ClusterKey, KeyRing
from ordercast.sealing.packet import Presence, decode_presence, encode_presence
from ordercast.sealing.window import WIDTH, Window
from tests.unit.sealing.stage import KEY, OTHER_KEY, SENDER, ring_of


def test_a_window_is_a_set_of_what_came_with_a_floor_that_rises() -> None:
    rng, window, came, highest = random.Random(1), Window(), set[int](), 0
    for _ in range(20_000):
        first = max(1, highest + rng.choice((1, 1, 1, -3, -100, -WIDTH, -WIDTH + 1, 7, 5000)))
        count = rng.choice((1, 1, 3, 44)) if first > highest else 1
        is_new = first > highest or (highest - first < WIDTH and first not in came)
        assert window.is_new(first) == is_new
        if is_new:
            window.take(first, count)
            came |= set(range(first, first + count))
            highest = max(highest, first + count - 1)
    assert window.highest == highest


def test_a_window_with_a_floor_takes_nothing_below_it() -> None:
    window = Window(100)
    window.take(110)
    assert not any(window.is_new(counter) for counter in range(1, 101))
    assert all(window.is_new(counter) for counter in range(101, 110))


def test_keys_are_made_as_rfc_5869_says() -> None:
    """Its first test case, cut to one block."""
    secret, salt, info = bytes.fromhex("0b" * 22), bytes(range(13)), bytes(range(0xF0, 0xFA))
    assert hkdf(secret, salt, info).hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"


def test_a_presence_says_what_it_should_or_is_refused() -> None:
    presence = Presence(SENDER, 7, (0, 7, 9), (b"abcdefgh", b"ijklmnop"))
    data = encode_presence(presence)
    assert decode_presence(data) == presence
    for wrong in (data[:-1], data + b"x", data[:5], b"", bytes(8) + data[8:], struct.pack(">QBBH", 1, 1, 0, 60000)):
        with pytest.raises(WireError):
            decode_presence(wrong)


def test_no_secret_is_in_any_text_of_a_key() -> None:
    for text in (repr(KEY), str(KEY), repr(ring_of(KEY, OTHER_KEY))):
        assert KEY.secret.hex() not in text and repr(KEY.secret) not in text


def test_rings_of_keys_that_do_not_fit_together_are_refused() -> None:
    many = tuple({key.id: key for key in (ClusterKey(bytes((n,)) * 32) for n in range(60))}.values())[: KEYS_MAX + 1]
    for wrong in (
        lambda: KeyRing((KEY, KEY), KEY.id, KEY.id),
        lambda: KeyRing((KEY,), OTHER_KEY.id, KEY.id),
        lambda: KeyRing((KEY,), KEY.id, 0),
        lambda: KeyRing(many, many[0].id, many[0].id),
        lambda: ClusterKey(b"short"),
    ):
        with pytest.raises(UsageError):
            wrong()
