"""What enters an engine: packets from the network, submissions from above, what stable storage held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ordercast.model.ids import MAIN, Attachment, ProcessId
from ordercast.model.service import Service


class Lane(IntEnum):
    """Tokens and data have sockets of their own, so that one can be read before the other."""

    DATA = 0
    TOKEN = 1


class Packet(NamedTuple):
    """One read: one or more datagrams of `segment_size` bytes each, the last one perhaps shorter."""

    data: bytes | memoryview
    segment_size: int  # at least 1; at least len(data) when the read brought a single datagram
    lane: Lane = Lane.DATA
    attachment: Attachment = MAIN
    network: int = 0  # which of several redundant networks brought it


@dataclass(slots=True)
class Submission:
    """One message to be sent. `sender` is the client within this process: order is kept per sender."""

    data: bytes
    service: Service = Service.AGREED
    sender: int = 0
    destinations: tuple[str, ...] = ()  # group names, for engines that route by them


@dataclass(slots=True)
class Submissions:
    """Messages of one sender to be sent in this order: cheaper than as many submissions."""

    payloads: Sequence[bytes]
    service: Service = Service.AGREED
    sender: int = 0
    destinations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interest:
    """Some process gained or lost members of a group; for engines that prune."""

    group: str
    process: ProcessId
    joined: bool


Stored = Mapping[str, bytes]  # what earlier `Persist` effects left in stable storage; empty when it was lost
