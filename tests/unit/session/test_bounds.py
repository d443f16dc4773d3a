"""What a hostile client may not do to its daemon."""

from __future__ import annotations

import pytest

from ordercast.groups.envelope import Head, Kind, encode_head
from ordercast.model.errors import WireError
from ordercast.model.service import Service
from ordercast.session.batches import FRAME_SIZE_MAX, MESSAGES_MAX, encode_send, frame_size_max
from ordercast.session.daemon_half import DaemonHalf
from ordercast.session.frames import Hello, SlowPolicy, encode_number
from ordercast.session.pieces import HEADER, FrameKind

from .vectors import kind_and_body


def _welcome() -> DaemonHalf:
    half = DaemonHalf(1 << 20)
    half.welcome("alice@n1", Hello("alice", SlowPolicy.WAIT, 1 << 20))
    return half


def _send(service: Service, groups: tuple[str, ...], data: list[bytes]) -> bytes:
    return encode_send(service, encode_head(Head(Kind.DATA, "alice@n1", groups)), data)[HEADER.size :]


def test_a_service_that_is_not_served_is_refused() -> None:
    with pytest.raises(WireError, match="unreliable messages are not served"):
        _welcome().receive(FrameKind.SEND, _send(Service.UNRELIABLE, ("g",), [b"x"]))


def test_a_group_that_is_named_twice_is_refused() -> None:
    with pytest.raises(WireError, match="names a group twice"):
        _welcome().receive(FrameKind.SEND, _send(Service.AGREED, ("g", "h", "g"), [b"x"]))


def test_a_frame_of_very_many_messages_is_refused() -> None:
    half, body = _welcome(), _send(Service.AGREED, ("g",), [b""] * (MESSAGES_MAX + 1))
    half.receive(*kind_and_body(encode_number(FrameKind.WANT, len(body) + HEADER.size)))
    half.take()
    with pytest.raises(WireError, match=f"65537 messages in one frame: at most {MESSAGES_MAX}"):
        half.receive(FrameKind.SEND, body)


def test_frames_are_as_large_as_the_messages_that_are_allowed() -> None:
    assert frame_size_max(1000) == FRAME_SIZE_MAX
    assert frame_size_max(64 << 20) > 64 << 20
