"""What processes tell each other when a configuration ends, as values and as bytes.

REPORT     kind 1, installed: seq 8, representative 8; ended by: likewise; birth 4, opened 4, delivered: order;
           counts: count 4, each: entry 8, groups, count 4; held: count 4, each: mark;
           unordered: count 4, each: source 8, birth 4, entry 8, groups; settled: count 4, each: mark
mark       birth 4, entry 8, number 4, originator 8, source 8, groups, rank; earlier ones, as on links
order      birth 4, rank
rank       count 1, 4 each
groups     count 1, 4 each
RECOVERED  kind 1, installed: seq 8, representative 8; mark; the cargo, as on links
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId
from ordercast.order.tree.blocks import (
    Cargo,
    Channel,
    GroupPlaces,
    Ordered,
    Rank,
    encode_cargo,
    encode_earlier,
    encode_rank,
    read_cargo,
    read_earlier,
    read_rank,
)
from ordercast.wire.reader import ByteReader

REPORT_KIND: Final = 7
RECOVERED_KIND: Final = 8

_CONFIGURATION: Final = struct.Struct(">QQ")
_BIRTHS: Final = struct.Struct(">II")
_COUNT: Final = struct.Struct(">I")
_ENTRY: Final = struct.Struct(">Q")
_MARK: Final = struct.Struct(">IQIQQ")
_UNORDERED: Final = struct.Struct(">QIQ")

Order = tuple[int, Rank]  # birth and rank
CargoIdentity = tuple[ProcessId, int, int]  # originator, source number, birth: a cargo has one place in a birth at most

NOTHING_DELIVERED: Final[Order] = (0, ())


class HeldMark(NamedTuple):
    """A held cargo, without its bytes."""

    birth: int
    entry: ProcessId
    number: int  # in its channel; 0: nobody knows
    originator: ProcessId
    source: int
    groups: GroupPlaces
    rank: Rank
    earlier: bytes = b""  # of its source; none where its source alone says that it is ordered

    @property
    def order(self) -> Order:
        return self.birth, self.rank

    @property
    def identity(self) -> CargoIdentity:
        return self.originator, self.source, self.birth


class Unordered(NamedTuple):
    """What a source has sent and does not know to be ordered."""

    source: int
    birth: int
    entry: ProcessId
    groups: GroupPlaces


class Report(NamedTuple):
    """What one process knows at the end of a configuration."""

    installed: ConfigurationId
    birth: int  # of the tree that it is in; 0: none
    opened: int  # the last opening that took effect there
    delivered: Order
    counts: tuple[tuple[Channel, int], ...]  # of that tree
    held: tuple[HeldMark, ...]
    unordered: tuple[Unordered, ...]
    settled: tuple[HeldMark, ...] = ()  # ordered, and with all who are owed it, since trees were reconciled
    ended_by: ConfigurationId = NO_CONFIGURATION  # the next one of the control stream; none while trees are reconciled


class Recovered(NamedTuple):
    """A held cargo, for those who lack it."""

    installed: ConfigurationId
    mark: HeldMark
    cargo: Cargo


def mark_of(ordered: Ordered) -> HeldMark:
    birth, entry, number, rank, cargo, earlier = ordered
    return HeldMark(birth, entry, number, cargo.originator, cargo.source, cargo.groups, rank, earlier)


def _groups(groups: GroupPlaces) -> bytes:
    return struct.pack(f">B{len(groups)}I", len(groups), *groups)


def _order(order: Order) -> bytes:
    birth, rank = order
    return _COUNT.pack(birth) + encode_rank(rank)


def _mark(mark: HeldMark) -> bytes:
    birth, entry, number, originator, source, groups, rank, earlier = mark
    head = _MARK.pack(birth, entry, number, originator, source) + _groups(groups)
    return head + encode_rank(rank) + encode_earlier(earlier, rank)


def encode_report(report: Report) -> bytes:
    parts = [bytes((REPORT_KIND,)), _CONFIGURATION.pack(*report.installed), _CONFIGURATION.pack(*report.ended_by)]
    parts += [_BIRTHS.pack(report.birth, report.opened)]
    parts += [_order(report.delivered), _COUNT.pack(len(report.counts))]
    for (entry, groups), count in report.counts:
        parts += [_ENTRY.pack(entry), _groups(groups), _COUNT.pack(count)]
    parts += [_COUNT.pack(len(report.held)), *map(_mark, report.held), _COUNT.pack(len(report.unordered))]
    for source, birth, entry, groups in report.unordered:
        parts += [_UNORDERED.pack(source, birth, entry), _groups(groups)]
    parts += [_COUNT.pack(len(report.settled)), *map(_mark, report.settled)]
    return b"".join(parts)


def encode_recovered(recovered: Recovered) -> bytes:
    head = bytes((RECOVERED_KIND,)) + _CONFIGURATION.pack(*recovered.installed)
    return head + _mark(recovered.mark) + encode_cargo(recovered.cargo)


def decode_report(reader: ByteReader) -> Report:
    """Read what follows the kind."""
    installed, ended_by = _configuration(reader), _configuration(reader)
    birth, opened = reader.unpack(_BIRTHS)
    delivered = _read_order(reader)
    counts = tuple(_read_count(reader) for _ in range(_bounded(reader)))
    held = tuple(_read_mark(reader) for _ in range(_bounded(reader)))
    unordered = _read_unordered(reader)
    settled = tuple(_read_mark(reader) for _ in range(_bounded(reader)))
    return Report(installed, birth, opened, delivered, counts, held, unordered, settled, ended_by)


def decode_recovered(reader: ByteReader) -> Recovered:
    """Read what follows the kind."""
    installed, mark, cargo = _configuration(reader), _read_mark(reader), read_cargo(reader)
    if (cargo.originator, cargo.source, cargo.groups) != (mark.originator, mark.source, mark.groups):
        raise WireError("a recovered cargo that is not what its mark says")
    return Recovered(installed, mark, cargo)


def _configuration(reader: ByteReader) -> ConfigurationId:
    seq, representative = reader.unpack(_CONFIGURATION)
    return ConfigurationId(seq, ProcessId(representative))


def _bounded(reader: ByteReader) -> int:
    (count,) = reader.unpack(_COUNT)
    if count > reader.left:
        raise WireError("more entries than bytes")
    return int(count)


def _read_groups(reader: ByteReader) -> GroupPlaces:
    return reader.numbers(reader.byte(), "I")


def _read_order(reader: ByteReader) -> Order:
    (birth,), rank = reader.unpack(_COUNT), read_rank(reader)
    return birth, rank


def _read_count(reader: ByteReader) -> tuple[Channel, int]:
    (entry,), groups = reader.unpack(_ENTRY), _read_groups(reader)
    (count,) = reader.unpack(_COUNT)
    return (ProcessId(entry), groups), count


def _read_mark(reader: ByteReader) -> HeldMark:
    birth, entry, number, originator, source = reader.unpack(_MARK)
    groups, rank = _read_groups(reader), read_rank(reader)
    earlier = read_earlier(reader, rank)
    return HeldMark(birth, ProcessId(entry), number, ProcessId(originator), source, groups, rank, earlier)


def _read_unordered(reader: ByteReader) -> tuple[Unordered, ...]:
    found = []
    for _ in range(_bounded(reader)):
        source, birth, entry = reader.unpack(_UNORDERED)
        found.append(Unordered(source, birth, ProcessId(entry), _read_groups(reader)))
    return tuple(found)
