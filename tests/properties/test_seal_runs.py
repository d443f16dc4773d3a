"""The compiled cipher seals and opens as the one of the library does, whatever the bytes; and both refuse the same."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from ordercast.sealing.cipher import Tag
from ordercast.sealing.packet import COUNTER_MAX, GROWTH, SEALED_AT, SMALLEST
from ordercast.sealing.runs import Looped, pure_in_a_row
from ordercast.wire.head import HEAD_SIZE
from tests.kernels import compiled_cipher, compiled_kernel

SECRET = bytes(range(32))
HEAD = bytes(range(HEAD_SIZE))
nonces = st.binary(min_size=12, max_size=12)
clears = st.binary(max_size=40)


def both() -> tuple[Tag, Tag]:
    return Looped(AESGCM(SECRET)), compiled_cipher().keyed(SECRET)


def headed(size: int) -> bytes:
    """Return the head of packets of a size."""
    return HEAD[:4] + size.to_bytes(2, "big") + HEAD[6:]


@st.composite
def runs(draw: st.DrawFn) -> tuple[Any, ...]:
    """Arguments of `seal_run`: some packets of one size, the last perhaps shorter."""
    size = draw(st.integers(HEAD_SIZE + 1, 300))
    rest = draw(st.one_of(st.just(0), st.integers(HEAD_SIZE + 1, size)))
    count, before = draw(st.integers(0 if 0 < rest < size else 1, 8)), draw(st.integers(0, 9))
    end = before + count * size + (rest if rest < size else 0)
    data = draw(st.randoms(use_true_random=False)).randbytes(end + draw(st.integers(0, 5)))
    life, counter = draw(st.integers(0, 0xFFFFFFFF)), draw(st.integers(1, COUNTER_MAX))
    counter = min(counter, counter | 0xFFFF00) & ~0xFF | 1  # of one generation
    return data, before, end, size, b"oC\x03\x07", life, counter, draw(st.integers(0, 255)), draw(clears)


@given(nonces, st.binary(max_size=300), st.one_of(st.none(), clears))
def test_single_packets_are_sealed_alike_and_opened(nonce: bytes, data: bytes, clear: bytes | None) -> None:
    library, compiled = both()
    sealed = compiled.encrypt(nonce, data, clear)
    assert sealed == library.encrypt(nonce, data, clear) and compiled.decrypt(nonce, sealed, clear) == data


@given(runs())
def test_runs_are_sealed_alike_and_opened(arguments: tuple[Any, ...]) -> None:
    library, compiled = both()
    sealed, size, clear = compiled.seal_run(*arguments), arguments[3], arguments[-1]
    assert sealed == library.seal_run(*arguments)
    at, end = arguments[1:3]
    size = min(size, end - at)
    opened = compiled.open_run(sealed, size + GROWTH, headed(size), clear)
    assert opened == library.open_run(sealed, size + GROWTH, headed(size), clear)
    bodies = [arguments[0][start:end][HEAD_SIZE:size] for start in range(at, end, size)]
    assert opened == b"".join(headed(HEAD_SIZE + len(body)) + body for body in bodies)


@given(runs(), st.data())
def test_a_changed_bit_of_what_is_sealed_refuses_the_run(arguments: tuple[Any, ...], data: st.DataObject) -> None:
    cipher = compiled_cipher()
    tag, size = cipher.keyed(SECRET), min(arguments[3], arguments[2] - arguments[1])
    sealed = bytearray(tag.seal_run(*arguments))
    at = data.draw(
        st.integers(0, len(sealed) - 1).filter(lambda place: place % (size + GROWTH) not in (0, 1, 2, 3, 16))
    )
    sealed[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(cipher.forged):
        tag.open_run(bytes(sealed), size + GROWTH, headed(size), arguments[-1])


@given(runs(), st.data())
def test_both_find_the_same_in_a_row(arguments: tuple[Any, ...], data: st.DataObject) -> None:
    """Also where the last byte of the counter begins anew, and with a byte changed."""
    counter = data.draw(st.integers(1, COUNTER_MAX - 0xFFFFFFFF)) & ~0xFFFFFFFF | data.draw(st.integers(1, 0x3FF))
    size = min(arguments[3], arguments[2] - arguments[1]) + GROWTH
    seal_run: Any = Looped(AESGCM(SECRET)).seal_run
    sealed = seal_run(*arguments[:6], counter, *arguments[7:])
    assert pure_in_a_row(sealed, size) is compiled_kernel().in_a_row(sealed, size) is True
    changed = bytearray(sealed)
    at = data.draw(st.integers(0, len(sealed) // size)) * size + data.draw(st.integers(0, SEALED_AT))
    changed[min(at, len(sealed) - 1)] ^= 1 << data.draw(st.integers(0, 7))
    assert pure_in_a_row(bytes(changed), size) is compiled_kernel().in_a_row(bytes(changed), size)


@given(st.binary(max_size=400), st.integers(-5, 500), clears)
def test_no_bytes_do_anything_but_be_refused(data: bytes, size: int, clear: bytes) -> None:
    cipher = compiled_cipher()
    tag = cipher.keyed(SECRET)
    with pytest.raises((cipher.forged, ValueError)):
        tag.open_run(data, size, HEAD, clear)
    with pytest.raises((cipher.forged, ValueError)):
        tag.decrypt(data[:12], data[12:], clear)


@pytest.mark.parametrize(
    "arguments",
    [
        (bytes(100), 0, 101, 50, b"oC\3\7", 1, 1, 1, b""),
        (bytes(100), 50, 50, 50, b"oC\3\7", 1, 1, 1, b""),
        (bytes(100), -1, 50, 50, b"oC\3\7", 1, 1, 1, b""),
        (bytes(100), 0, 100, HEAD_SIZE, b"oC\3\7", 1, 1, 1, b""),
        (bytes(100), 0, 100, 90, b"oC\3\7", 1, 1, 1, b""),
        (bytes(100), 0, 100, 50, b"oC\3", 1, 1, 1, b""),
        (bytes(100), 0, 100, 50, b"oC\3\7", 1 << 32, 1, 1, b""),
        (bytes(100), 0, 100, 50, b"oC\3\7", 1, 1 << 48, 1, b""),
        (bytes(100), 0, 100, 0, b"oC\3\7", 1, 1, 1, b""),
        (bytes(1 << 17), 0, 1 << 17, 1 << 16, b"oC\3\7", 1, 1, 1, b""),
        (bytes(100), 0, 100, (1 << 63) - 5, b"oC\3\7", 1, 1, 1, b""),
        (bytes(100), -(1 << 63), (1 << 63) - 1, 50, b"oC\3\7", 1, 1, 1, b""),
    ],
)
def test_what_no_caller_may_ask_for_is_refused(arguments: tuple[Any, ...]) -> None:
    tag = compiled_cipher().keyed(SECRET)
    with pytest.raises(ValueError):
        tag.seal_run(*arguments)


def test_arguments_of_other_types_are_refused() -> None:
    cipher = compiled_cipher()
    tag: Any = cipher.keyed(SECRET)
    for call in (tag.encrypt, tag.decrypt, tag.seal_run, tag.open_run, cipher.keyed):
        for arguments in ((), (None,), ("a", 1, 2, 3), (1, 2, 3), tuple("abcdefghi")):
            with pytest.raises(TypeError):
                call(*arguments)
    with pytest.raises(ValueError):
        cipher.keyed(bytes(31))
    with pytest.raises(ValueError):
        tag.open_run(bytes(SMALLEST), SMALLEST - 2, HEAD, b"")
