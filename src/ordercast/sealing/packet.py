"""Bytes of a sealed packet, and of what a process says of itself beneath its engine.

     0  magic 2, version 1, key 1
     4  length 2       of the whole packet
     6  life 4         the first bytes of the sealer's salt
    10  counter 6      rises with every packet of this life; its highest bit: this is a presence, and its salt follows
    16  networks 1     bits: on which networks it was sent
    17  salt 16        of a presence alone
    17  sealed         what the engine says, kind first: the clear head is put in front again by who opens it
        tag 16

Length, life and counter are the nonce, as they stand. Authenticated, beside what is sealed: the first four bytes, the
networks, the lane, and of tokens and links between those who hear all the process that it is for; salt and cluster are
in the key.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from functools import lru_cache
from typing import Final, NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.ids import NOBODY, Attachment, ProcessId
from ordercast.model.inputs import Lane
from ordercast.sealing.cipher import SALT_SIZE, TAG_SIZE
from ordercast.wire.head import HEAD_SIZE, MAGIC, SEAL_ROOM, VERSION

KEY_AT: Final = 3
NETWORKS_AT: Final = 16
SEALED_AT: Final = 17
LIFE_SIZE: Final = 4  # the number of a life, which its packets have
NAME_SIZE: Final = 8  # its name, by which presences say whom they hear
LIFE: Final = slice(6, 10)
NONCE: Final = slice(4, NETWORKS_AT)
NONCE_LAYOUT: Final = struct.Struct(">HIHI")  # length, life, counter in two halves
BEGINNING: Final = MAGIC + bytes((VERSION,))
PRESENCE_BIT: Final = 1 << 15  # of the upper half of the counter
COUNTER_MAX: Final = (1 << 47) - 1
SMALLEST: Final = SEALED_AT + 1 + TAG_SIZE
GROWTH: Final = SEALED_AT + TAG_SIZE - HEAD_SIZE  # of a packet that is sealed
PRESENCE_MIN: Final = SEALED_AT + SALT_SIZE + TAG_SIZE
NAMED_MAX: Final = 1000  # lives in one presence
assert GROWTH == SEAL_ROOM
assert NONCE_LAYOUT.size == 12

_AUTHENTICATED = struct.Struct(">4sBBQ")
_PRESENCE = struct.Struct(">QBBH")  # process, key used, keys accepted, lives heard


def names_target(lane: Lane, attachment: Attachment, broadcasts: Collection[Attachment]) -> bool:
    """Tell whether a packet is for one process, whom its tag names: a token, and what goes on a link between those who
    hear all. (Elsewhere links are greeted before it is known who is there, and have tags of their own.)"""
    return lane is Lane.TOKEN or (lane is Lane.LINK and attachment in broadcasts)


@lru_cache(maxsize=1024)
def authenticated(opening: bytes, networks: int, lane: Lane, target: ProcessId = NOBODY) -> bytes:
    """Return what is in the clear, or in nobody's bytes, and must not be changed."""
    return _AUTHENTICATED.pack(opening, networks, lane, target)


@lru_cache(maxsize=256)
def opening_of(key: int) -> bytes:
    return BEGINNING + bytes((key,))


@lru_cache(maxsize=256)
def bits_of(networks: tuple[int, ...]) -> int:
    """Return the networks of a packet as they are written."""
    return sum(1 << number for number in set(networks))


class Presence(NamedTuple):
    """What a process says of itself, and of those it hears."""

    process: ProcessId
    used: int  # the key with which it seals
    accepted: tuple[int, ...]  # the keys that it opens
    heard: tuple[bytes, ...]  # the names of the lives that it hears


def encode_presence(presence: Presence) -> bytes:
    heard = presence.heard[:NAMED_MAX]
    fixed = _PRESENCE.pack(presence.process, presence.used, len(presence.accepted), len(heard))
    return b"".join((fixed, bytes(presence.accepted), *heard))


def decode_presence(data: bytes) -> Presence:
    """Raises WireError for what no process says."""
    if len(data) < _PRESENCE.size:
        raise WireError("a presence that is cut short")
    process, used, accepted, heard = _PRESENCE.unpack_from(data)
    lives_at = _PRESENCE.size + accepted
    if not process or heard > NAMED_MAX or len(data) != lives_at + heard * NAME_SIZE:
        raise WireError("a presence that does not say what it should")
    lives = tuple(data[at : at + NAME_SIZE] for at in range(lives_at, len(data), NAME_SIZE))
    return Presence(ProcessId(process), used, tuple(data[_PRESENCE.size : lives_at]), lives)
