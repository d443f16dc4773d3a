"""Frames with messages, and what is refused of them. What is accepted is pinned in the vectors."""

from __future__ import annotations

import pytest

from ordercast.groups.layer import MessageRun
from ordercast.model.errors import WireError
from ordercast.model.ids import Places, Position
from ordercast.model.service import Service
from ordercast.session.batches import (
    FRAME_SIZE_MAX,
    Confirm,
    decode_confirm,
    decode_dropped,
    decode_messages,
    decode_send,
    encode_confirm,
    encode_messages,
    encode_send,
)
from ordercast.session.pieces import HEADER, FrameKind

from ..wire.vectors import RING
from .vectors import DATA, HEAD, PAYLOADS, RUN, SERVICES

SEND = encode_send(Service.AGREED, HEAD, DATA)[HEADER.size :]
MESSAGES = encode_messages(RUN)[HEADER.size :]
CONFIRM = encode_confirm(RUN)[HEADER.size :]
COUNT_OF_SEND, LENGTHS_OF_SEND = 3, 7  # where they are in the bodies
NUMBER, EACH, HEAD_SIZE, COUNT, SERVICES_AT = 16, 26, 34, 36, 40


def _patched(body: bytes, at: int, piece: bytes) -> bytes:
    return body[:at] + piece + body[at + len(piece) :]


def test_any_sequences_of_services_and_payloads_make_the_same_frame() -> None:
    assert encode_messages(RUN._replace(services=tuple(SERVICES), payloads=tuple(PAYLOADS))) == encode_messages(RUN)


def test_the_largest_message_with_its_head_fits_into_a_frame() -> None:
    largest = bytes(16 << 20)
    head = HEAD.ljust(1 << 16, b"x")[: (1 << 16) - 1]
    assert len(encode_send(Service.SAFE, head, [largest])) - HEADER.size < FRAME_SIZE_MAX
    run = MessageRun((1,), head, Places(RING, 1, 0, 1, 0), bytes((5,)), [head + largest])
    assert len(encode_messages(run)) - HEADER.size < FRAME_SIZE_MAX


def test_a_run_too_large_for_a_frame_makes_several_that_follow_one_another() -> None:
    """Of packets with 2 messages from seq 41 on, number 1 is the first."""
    payloads = [HEAD + bytes([number]) * (6 << 20) for number in range(5)]
    run = RUN._replace(services=bytes((4, 5, 2, 3, 4)), payloads=payloads)
    encoded = encode_messages(run)
    got: list[tuple[Position, int, bytes]] = []
    while encoded:
        length, kind = HEADER.unpack_from(encoded)
        assert kind == FrameKind.MESSAGES and length <= FRAME_SIZE_MAX
        end = HEADER.size - 1 + length
        messages = decode_messages(encoded[HEADER.size : end])
        assert messages.head == HEAD
        for number, (service, data) in enumerate(
            zip(messages.services, messages.data, strict=True), messages.places.first
        ):
            got.append((Position(RING, messages.places.number + number // 2, 512 + number % 2), service, data))
        encoded = encoded[end:]
    places = [(41, 1), (42, 0), (42, 1), (43, 0), (43, 1)]
    assert got == [
        (Position(RING, seq, 512 + slot), service, payload[len(HEAD) :])
        for (seq, slot), service, payload in zip(places, run.services, payloads, strict=True)
    ]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (_patched(SEND, 0, b"\x06"), "there is no service 6"),
        (_patched(SEND, 1, b"\x00\x1b"), "messages shorter than their heads"),
        (_patched(SEND, 1, b"\xff\xff"), "messages shorter than their heads"),
        (_patched(SEND, len(SEND) - len(PAYLOADS[2]) + 8, b"!"), "different heads"),
        (_patched(SEND, COUNT_OF_SEND, bytes(4)), "0 messages in a frame of"),
        (_patched(SEND, COUNT_OF_SEND, b"\xff\xff\xff\xff"), "4294967295 messages in one frame"),
        (_patched(SEND, COUNT_OF_SEND, b"\0\0\0\x02"), "a frame of 114 bytes ends after"),
        (_patched(SEND, LENGTHS_OF_SEND, b"\xff\xff\xff\xff"), "a frame of 114 bytes ends after"),
        (SEND + b"\0", "a frame of 115 bytes ends after 114"),
        (SEND[:-1], "a frame of 113 bytes ends after 114"),
        (SEND[:6], "messages that cannot be read"),
        (b"", "messages that cannot be read"),
    ],
)
def test_a_wrong_frame_of_a_client_is_refused(body: bytes, why: str) -> None:
    assert len(SEND) == 114
    with pytest.raises(WireError, match=why):
        decode_send(body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (_patched(MESSAGES, EACH, bytes(4)), "messages at places that there are not"),
        (_patched(MESSAGES, NUMBER, b"\x80"), "messages at places that there are not"),
        (_patched(MESSAGES, HEAD_SIZE, b"\x00\x1b"), "messages shorter than their heads"),
        (_patched(MESSAGES, SERVICES_AT + 1, b"\x06"), "services that there are not"),
        (_patched(MESSAGES, COUNT, bytes(4)), "0 messages in a frame of"),
        (_patched(MESSAGES, COUNT, b"\xff\xff\xff\xff"), "4294967295 messages in a frame of"),
        (_patched(MESSAGES, SERVICES_AT + 3, b"\xff\xff\xff\xff"), "ends after"),
        (MESSAGES + b"\0", "ends after"),
        (MESSAGES[:-1], "ends after"),
        (MESSAGES[:30], "messages that cannot be read"),
    ],
)
def test_a_wrong_frame_of_a_daemon_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        decode_messages(body)


def test_the_last_confirmed_place_is_counted_over_packets() -> None:
    """Packets of 2 messages from seq 41 on, the message number 1 is the first: 41/1, 42/0, 42/1."""
    assert decode_confirm(CONFIRM).last == Position(RING, 42, 513)
    assert Confirm(Places(RING, 41, 512, 2, 1), 1).last == Position(RING, 41, 513)
    assert Confirm(Places(RING, 41, 0, 1, 0), 7).last == Position(RING, 47, 0)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (_patched(CONFIRM, EACH, bytes(4)), "messages at places that there are not"),
        (_patched(CONFIRM, len(CONFIRM) - 4, bytes(4)), "a confirmation of nothing"),
        (CONFIRM + b"\0", "a confirmation that cannot be read"),
        (CONFIRM[:-1], "a confirmation that cannot be read"),
    ],
)
def test_a_wrong_confirmation_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        decode_confirm(body)


def test_a_wrong_notice_of_loss_is_refused() -> None:
    for body in (bytes(15), bytes(17)):
        with pytest.raises(WireError, match="a notice of loss that cannot be read"):
            decode_dropped(body)
