"""Control messages that are larger than a packet travel in pieces: networks that cut datagrams themselves lose more of
them, and firewalls drop what was cut.

A piece is a packet of its own. Behind the clear head it has

    22  kind 1
    23  number 4   of the message, counted by the process that sends it
    27  place 2, count 2
    31  bytes      of the message, from its kind on
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId
from ordercast.wire.head import HEAD_SIZE, KIND_AT, PACKET_SIZE_MAX, SEAL_ROOM, kind_of, transmitter_of, with_head
from ordercast.wire.header import MessageKind

PIECE: Final = struct.Struct(">BIHH")  # kind, number, place, count
PLACE: Final = slice(27, 29)
COUNT_MAX: Final = 1000  # the largest message in the smallest packets has some 600
BODY_AT: Final = HEAD_SIZE + PIECE.size
KEPT_SIZE_MAX: Final = 1 << 20  # bytes of messages of which pieces are missing: the oldest are forgotten first
OVERHEAD: Final = 512  # memory of such a message beside its bytes, and of each piece
_WHOLE = frozenset({int(MessageKind.DATA), int(MessageKind.PIECE)})  # kinds that never come in pieces


@dataclass(slots=True)
class _Unfinished:
    count: int
    pieces: dict[int, bytes] = field(default_factory=dict)  # by place
    size: int = OVERHEAD


@dataclass(slots=True)
class Pieces:
    """What one process sends in pieces, and what it has of the messages of others."""

    cluster: bytes
    size_max: int  # of a packet, its seal not counted
    number: int = 0  # of the last message that was cut
    _kept: dict[tuple[ProcessId, int], _Unfinished] = field(default_factory=dict)
    _kept_size: int = 0

    def cut(self, packet: bytes) -> list[bytes]:
        """Return the packets that carry this message: itself, if it is small enough."""
        if len(packet) <= self.size_max:
            return [packet]
        self.number = (self.number + 1) & 0xFFFFFFFF
        step = self.size_max - BODY_AT
        starts = range(KIND_AT, len(packet), step)
        return [
            with_head(
                self.cluster,
                transmitter_of(packet),
                PIECE.pack(MessageKind.PIECE, self.number, place, len(starts)) + packet[start : start + step],
            )
            for place, start in enumerate(starts)
        ]

    def add(self, packet: bytes) -> bytes | None:
        """Take a piece; return the whole message when it was the last that was missing. Raises WireError."""
        kind_of(packet, self.cluster)
        if len(packet) <= BODY_AT:
            raise WireError("a piece of nothing")
        _, number, place, count = PIECE.unpack_from(packet, HEAD_SIZE)
        if not place < count > 1 or count > COUNT_MAX:
            raise WireError(f"piece {place} of {count}")
        key = transmitter_of(packet), number
        message = self._kept.get(key)
        if message is None:
            message = self._kept[key] = _Unfinished(count)
            self._kept_size += message.size
        elif message.count != count:
            raise WireError("two pieces of one message contradict each other")
        if place in message.pieces:
            return None
        message.pieces[place] = packet[BODY_AT:]
        message.size += OVERHEAD + len(packet)
        self._kept_size += OVERHEAD + len(packet)
        if len(message.pieces) < count:
            self._bound()
            return None
        del self._kept[key]
        self._kept_size -= message.size
        return _joined(self.cluster, key[0], b"".join(message.pieces[place] for place in range(count)))

    def _bound(self) -> None:
        while self._kept_size > KEPT_SIZE_MAX:
            oldest = next(iter(self._kept))
            self._kept_size -= self._kept.pop(oldest).size


def _joined(cluster: bytes, sender: ProcessId, body: bytes) -> bytes:
    if body[0] in _WHOLE or HEAD_SIZE + len(body) > PACKET_SIZE_MAX:
        raise WireError("pieces of what never comes in pieces")
    return with_head(cluster, sender, body)


def size_of_pieces(packet_size_max: int) -> int:
    """Return how large a control message may be in one packet, so that it fits when it is sealed."""
    return packet_size_max - SEAL_ROOM


def message_at(packet: bytes) -> int | None:
    """Return where the kind of a message stands in the packet that carries its beginning; None in other pieces."""
    if packet[KIND_AT] != MessageKind.PIECE:
        return KIND_AT
    return BODY_AT if len(packet) > BODY_AT and not any(packet[PLACE]) else None
