"""Pieces of items as bytes: numbers, rings, stamps, sets and lists, each with one way to be written.

Counts are checked before anything is made of them. Whatever is read raises WireError and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import CAP, InterestItem, Processes
from ordercast.order.stamped.lanes import Stamp
from ordercast.wire.codec import NUMBER_MAX
from ordercast.wire.messages import MEMBERS_MAX
from ordercast.wire.reader import ByteReader

RING = struct.Struct(">QQ")
STAMP = struct.Struct(">QQq")  # the seq of a cap is negative
PROCESS = struct.Struct(">Q")
COUNT = struct.Struct(">H")
FLAG = struct.Struct(">B")

T = TypeVar("T")


def counted(pieces: Sequence[bytes]) -> bytes:
    return b"".join((COUNT.pack(len(pieces)), *pieces))


def read_list(body: ByteReader, read: Callable[[ByteReader], T], limit: int, what: str) -> tuple[T, ...]:
    (count,) = body.unpack(COUNT)
    if count > limit:
        raise WireError(f"{count} {what}, more than the limit of {limit}")
    return tuple(read(body) for _ in range(count))


def write_set(processes: Iterable[ProcessId]) -> bytes:
    listed = sorted(processes)
    return COUNT.pack(len(listed)) + struct.pack(f">{len(listed)}Q", *listed)


def read_set(body: ByteReader) -> Processes:
    (count,) = body.unpack(COUNT)
    if count > MEMBERS_MAX:
        raise WireError(f"{count} processes, more than the limit of {MEMBERS_MAX}")
    listed = body.numbers(count, "Q")
    if any(one >= other for one, other in pairwise(listed)):
        raise WireError("processes that do not ascend")
    return frozenset(map(ProcessId, listed))


def sane(number: int) -> int:
    if number > NUMBER_MAX:
        raise WireError("a number beyond all bounds")
    return number


def read_process(body: ByteReader) -> ProcessId:
    (process,) = body.unpack(PROCESS)
    return ProcessId(process)


def read_ring(body: ByteReader) -> ConfigurationId:
    seq, representative = body.unpack(RING)
    return ConfigurationId(sane(seq), ProcessId(representative))


def read_stamp(body: ByteReader) -> Stamp:
    tick, tag, seq = body.unpack(STAMP)
    if seq < CAP:
        raise WireError("a place below all places")
    return sane(tick), tag, sane(seq)


def read_flag(body: ByteReader, limit: int = 1) -> int:
    (flag,) = body.unpack(FLAG)
    if flag > limit:
        raise WireError("flags that do not exist")
    return int(flag)


def read_mask(body: ByteReader) -> tuple[ProcessId, int]:
    process, mask = body.numbers(2, "Q")
    return ProcessId(process), mask


def write_interest(item: InterestItem) -> bytes:
    return struct.pack(">QQB", item.process, item.mask, item.is_return)


def read_interest(body: ByteReader) -> InterestItem:
    return InterestItem(*read_mask(body), bool(read_flag(body)))
