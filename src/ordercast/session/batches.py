"""Frames with messages: batches in columns, with the heads that the groups write (`groups/envelope.py`). A daemon
passes on the bytes that it got, and cuts nothing apart that it need not look into."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, pack, unpack_from
from typing import NamedTuple

from ordercast.groups.runs import MessageRun
from ordercast.model.errors import WireError
from ordercast.model.events import Dropped
from ordercast.model.ids import POSITION_NUMBER_MAX, ConfigurationId, Places, Position, ProcessId
from ordercast.model.service import SERVICE_MAX, Service
from ordercast.session.pieces import HEADER, FrameKind, expect_end, frame, reading
from ordercast.wire.cuts import beginnings, cut
from ordercast.wire.header import SERVICES

OVERHEAD = 64  # bytes that a frame has beside the messages in it, more or less
FRAME_SIZE_MAX = (16 << 20) + (1 << 16) + OVERHEAD  # a message of the usual largest size, with its head
MESSAGES_MAX = 1 << 16  # in a frame of a client: a frame of many empty ones must not keep the daemon for long


def frame_size_max(message_size_max: int) -> int:
    """What a frame may have where messages of this size are sent."""
    return max(FRAME_SIZE_MAX, message_size_max + OVERHEAD)


class Send(NamedTuple):
    """Messages of one service to the same groups."""

    service: Service
    head: bytes  # with which every payload begins
    payloads: list[bytes]


class Messages(NamedTuple):
    """A run of messages, as in `groups.layer.MessageRun`."""

    places: Places
    services: bytes
    head: bytes
    data: list[bytes]  # without heads


class Confirm(NamedTuple):
    """So many messages of this client have their places in the order."""

    places: Places
    messages: int

    @property
    def last(self) -> Position:
        return self.places.last(self.messages)


_SEND = Struct(">BHI")
_PLACES = ">QQQHII"  # origin, number, base, each, first
_MESSAGES = Struct(_PLACES + "HI")
_CONFIRM = Struct(_PLACES + "I")
_DROPPED = Struct(">QQ")
_SERVICES = tuple(Service)  # by number


def send_size(payloads: int, size: int) -> int:
    """Return the size of the frame with so many payloads, which have this size together, heads included."""
    return HEADER.size + _SEND.size + 4 * payloads + size


def encode_send(service: Service, head: bytes, data: Sequence[bytes]) -> bytes:
    """Each with the head before it."""
    size = len(head)
    lengths = [size + len(one) for one in data]
    pieces = [b""] * (2 * len(data))
    pieces[::2] = [head] * len(data)
    pieces[1::2] = data
    fixed = _SEND.pack(service, size, len(data))
    return frame(FrameKind.SEND, fixed, pack(f">{len(lengths)}I", *lengths), *pieces)


def decode_send(body: bytes) -> Send:
    with reading("messages"):
        service, size, count = _SEND.unpack_from(body)
        if service > SERVICE_MAX:
            raise WireError(f"there is no service {service}")
        if count > MESSAGES_MAX:
            raise WireError(f"{count} messages in one frame: at most {MESSAGES_MAX}")
        lengths, at = _lengths(body, _SEND.size, count, size)
        head = body[at : at + size]
        if count == 1:
            return Send(_SERVICES[service], head, [body[at:]])
        if beginnings(body, at, lengths, size).count(head) != count:
            raise WireError("messages of one frame have different heads")
        return Send(_SERVICES[service], head, list(cut(body, at, lengths)))


def encode_messages(run: MessageRun) -> bytes:
    """Several frames, one behind the other, when a single one would be too large."""
    payloads = run.payloads
    if len(payloads) > 1 and OVERHEAD + sum(map(len, payloads)) + 5 * len(payloads) > FRAME_SIZE_MAX:
        middle = len(payloads) // 2
        begin = run._replace(services=run.services[:middle], payloads=payloads[:middle])
        rest = run._replace(places=run.places.after(middle), services=run.services[middle:], payloads=payloads[middle:])
        return encode_messages(begin) + encode_messages(rest)
    (seq, representative), number, base, each, first = run.places
    fixed = _MESSAGES.pack(seq, representative, number, base, each, first, len(run.head), len(payloads))
    lengths = pack(f">{len(payloads)}I", *map(len, payloads))
    return frame(FrameKind.MESSAGES, fixed, bytes(run.services), lengths, *payloads)


def decode_messages(body: bytes) -> Messages:
    with reading("messages"):
        seq, representative, number, base, each, first, size, count = _MESSAGES.unpack_from(body)
        places = _places(seq, representative, number, base, each, first)
        services = body[_MESSAGES.size : _MESSAGES.size + count]
        lengths, at = _lengths(body, _MESSAGES.size + count, count, size)
        if services.translate(None, SERVICES):
            raise WireError("messages of services that there are not")
        data = [body[at + size :]] if count == 1 else list(cut(body, at, lengths, size))
        return Messages(places, services, body[at : at + size], data)


def _places(seq: int, representative: int, number: int, base: int, each: int, first: int) -> Places:
    if not each or number > POSITION_NUMBER_MAX:
        raise WireError("messages at places that there are not")
    return Places(ConfigurationId(seq, ProcessId(representative)), number, base, each, first)


def _lengths(body: bytes, at: int, count: int, head: int) -> tuple[tuple[int, ...], int]:
    """Return the lengths of so many messages, which begin at `at`, and where the messages begin."""
    if not 0 < count <= (len(body) - at) // 4:
        raise WireError(f"{count} messages in a frame of {len(body)} bytes")
    lengths = unpack_from(f">{count}I", body, at)
    expect_end(body, at + 4 * count + sum(lengths))
    if min(lengths) < head:
        raise WireError("messages shorter than their heads")
    return lengths, at + 4 * count


def encode_confirm(run: MessageRun) -> bytes:
    return frame(FrameKind.CONFIRM, _CONFIRM.pack(*run.places.origin, *run.places[1:], len(run.payloads)))


def decode_confirm(body: bytes) -> Confirm:
    with reading("a confirmation"):
        *numbers, count = _CONFIRM.unpack(body)
        if not count:
            raise WireError("a confirmation of nothing")
        return Confirm(_places(*numbers), count)


def encode_dropped(dropped: Dropped) -> bytes:
    return frame(FrameKind.DROPPED, _DROPPED.pack(*dropped))


def decode_dropped(body: bytes) -> Dropped:
    with reading("a notice of loss"):
        return Dropped._make(_DROPPED.unpack(body))
