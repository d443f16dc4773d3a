"""The bytes of a state transfer: what a fetcher asks of a donor, and the frames that it gets. Pure.

    fetcher → donor    magic, version, object, picture, first piece wanted
    donor → fetcher    PIECE number, checksum, bytes … END pieces, checksum of all; or REFUSED and a sentence

A picture is cut into the same pieces at every holder, so a fetcher goes on with another donor at the piece where the
last one died; the checksum over all pieces says that they were of one picture.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from ordercast.model.errors import WireError
from ordercast.replicated.effects import Point

MAGIC: Final = b"OCXF"
VERSION: Final = 1
REQUEST: Final = struct.Struct("!4sHHHQ")  # magic, version, sizes of the object's and the picture's name, first piece
FRAME: Final = struct.Struct("!BIIQ")  # kind, size of the body, its checksum, number of the piece
assert (REQUEST.size, FRAME.size) == (18, 17)
PIECE, END, REFUSED = 1, 2, 3
PIECE_SIZE_MAX = 256 << 20  # a piece is about 64 KiB, unless one value in it is large, or many commands are held
NAME_SIZE_MAX = 1024


class Picture(Protocol):
    """A state as it was when the picture was made."""

    def pieces(self) -> Iterator[bytes]:
        """Cut the picture: the same pieces at every holder."""


class TransferFrame(NamedTuple):
    kind: int
    number: int  # of the piece; of an END, how many there are
    checksum: int  # of the body; of an END, of all pieces
    body: bytes


class Request(NamedTuple):
    """The head of what a fetcher asks for; the two names follow."""

    name_size: int
    key_size: int
    first: int  # piece that is wanted


def encode_request(name: bytes, key: bytes, first: int) -> bytes:
    return REQUEST.pack(MAGIC, VERSION, len(name), len(key), first) + name + key


def decode_request(head: bytes) -> Request:
    """Return the sizes of the names that follow this head; WireError for a head that is none."""
    magic, version, name_size, key_size, first = REQUEST.unpack(head)
    if magic != MAGIC:
        raise WireError("this is a donor of replicated state, and that was no request for it")
    if version != VERSION:
        raise WireError(f"this donor speaks version {VERSION}, not {version}")
    if max(name_size, key_size) > NAME_SIZE_MAX:
        raise WireError(f"a name of more than {NAME_SIZE_MAX} bytes")
    return Request(name_size, key_size, first)


def frames_of(picture: Picture, first: int) -> Iterator[TransferFrame | None]:
    """Frame the pieces of a picture from number `first` on, and its END. None stands for an earlier piece: it is made
    for the checksum of all, and not sent."""
    number = chain = 0
    for number, piece in enumerate(picture.pieces(), 1):
        chain = zlib.crc32(piece, chain)
        yield TransferFrame(PIECE, number - 1, zlib.crc32(piece), piece) if number > first else None
    yield TransferFrame(END, number, chain, b"")


def refusal(sentence: str) -> TransferFrame:
    body = sentence.encode()
    return TransferFrame(REFUSED, 0, zlib.crc32(body), body)


def frame_head(frame: TransferFrame) -> bytes:
    return FRAME.pack(frame.kind, len(frame.body), frame.checksum, frame.number)


def body_size(head: bytes) -> int:
    """Return how many bytes follow the head of a frame; WireError for a head that is none."""
    kind, size, _, _ = FRAME.unpack(head)
    if kind not in (PIECE, END, REFUSED) or size > PIECE_SIZE_MAX:
        raise WireError("what it sends is no state")
    return int(size)


def frame_from(head: bytes, body: bytes) -> TransferFrame:
    kind, _, checksum, number = FRAME.unpack(head)
    return TransferFrame(kind, number, checksum, body)


class Place(NamedTuple):
    """Where a donor serves, and the secret that whoever asks must have."""

    host: str
    port: int
    secret: bytes = b""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def key_of(point: Point) -> bytes:
    """Return the name under which the picture of a point is served."""
    (era, (configuration, (origin, number, slot))), step = point
    return ".".join(map(str, (era, *configuration, *origin, number, slot, step))).encode()


def address_of(place: Place) -> bytes:
    return f"{place.host} {place.port} {place.secret.hex()}".encode()


def place_from(address: bytes) -> Place:
    """Return the place that an address names: port 0, where nobody serves, for what is no address."""
    host, port, secret = (*address.decode(errors="replace").split(" "), "", "", "")[:3]
    is_one = port.isdecimal() and port.isascii() and int(port) < 65536
    return Place(host or "127.0.0.1", int(port) if is_one else 0, _secret_from(secret))


def _secret_from(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
