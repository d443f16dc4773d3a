"""Greetings between representatives, as bytes. Behind the clear head:

22  kind 1   HELLO: I represent a fragment; REFER: I do not, that process does; naming itself: I leave
23  site 2
25  mine 8   HELLO: the tag that I write into packets of our link; REFER: the representative
33  yours 8  HELLO: the tag that I heard from you; 0: none
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId
from ordercast.wire.head import HEAD_SIZE, with_head
from ordercast.wire.reader import ByteReader

_GREETING: Final = struct.Struct(">BHQQ")


class HelloKind(IntEnum):
    """Kinds of packets between processes that have no link yet. Links have lower ones."""

    HELLO = 34
    REFER = 35


class Greeting(NamedTuple):
    kind: int
    site: int
    mine: int
    yours: int


def encode_greeting(cluster: bytes, transmitter: ProcessId, greeting: Greeting) -> bytes:
    """Return the packet that says this."""
    return with_head(cluster, transmitter, _GREETING.pack(*greeting))


def decode_greeting(packet: bytes) -> Greeting:
    """Return the greeting of a packet whose clear head was found good."""
    reader = ByteReader(packet, HEAD_SIZE, "the greeting")
    greeting = Greeting(*reader.unpack(_GREETING))
    reader.end()
    if greeting.kind not in (HelloKind.HELLO, HelloKind.REFER) or not greeting.mine:
        raise WireError("a greeting of no kind, or without a tag")
    return greeting
