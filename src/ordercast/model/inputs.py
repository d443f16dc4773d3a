"""What enters an engine: packets from the network, submissions from above, what stable storage held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ordercast.model.ids import MAIN, Attachment
from ordercast.model.service import Service

EVERYWHERE: tuple[str, ...] = ()  # no destinations: every process must have it


class Lane(IntEnum):
    """Each lane has a socket of its own, so that one can be read before the other. Numbers are those of a driver."""

    DATA = 0  # multicast
    TOKEN = 1  # unicast, one packet at a time
    LINK = 2  # unicast in bursts, between two processes; only engines that have links use it


class Packet(NamedTuple):
    """One read: one or more datagrams of `segment_size` bytes each, the last one perhaps shorter."""

    data: bytes | memoryview
    segment_size: int  # at least 1; at least len(data) when the read brought a single datagram
    lane: Lane = Lane.DATA
    attachment: Attachment = MAIN
    network: int = 0  # which of several redundant networks brought it


@dataclass(slots=True)
class Submission:
    """One message to be sent. `sender` is the client within this process: order is kept per sender. Engines that prune
    bring it to the processes that want one of its `destinations`: names of groups, and of single members in full, which
    stand for their daemons."""

    data: bytes
    service: Service = Service.AGREED
    sender: int = 0
    destinations: tuple[str, ...] = EVERYWHERE


@dataclass(slots=True)
class Submissions:
    """Messages of one sender to be sent in this order: cheaper than as many submissions."""

    payloads: Sequence[bytes]
    service: Service = Service.AGREED
    sender: int = 0
    destinations: tuple[str, ...] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Interest:
    """This process begins or ceases to want what is sent to a group. An engine remembers it over configurations."""

    group: str
    is_wanted: bool


Stored = Mapping[str, bytes]  # what earlier `Persist` effects left in stable storage; empty when it was lost
