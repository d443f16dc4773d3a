"""What processes of a tree say on the control stream, as values and as bytes. A kind byte comes first.

    EVERYWHERE  data
    CROSS       epoch 4 (first bit: sent again), source number 8, names: count 1, each: length 1, letters; data
    INTEREST    full 1, gained: count 2, names; lost: count 2, names
    OPEN        number 4, through 8, digest 8, closing: count 2, each: birth 4, root 8;
                born: count 2, each: processes: count 2, each: process 8, parent 8 (0: none)
    CLOSED      number 4, root 8
    HOLD        held 1
    RECONCILE   number 4
    BROKEN      process 8, epoch 4
    LOAD        rates: count 2, each: name: length 1, letters; messages a second 4
    REPORT, RECOVERED   see `reports.py`

One decoder, one kind of error: whatever is wrong with bytes is a WireError.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ordercast.model.errors import WireError
from ordercast.model.ids import NOBODY, ProcessId
from ordercast.order.tree.blocks import AGAIN, BIRTH_MAX
from ordercast.order.tree.forest import TreeId
from ordercast.order.tree.graph import Parents
from ordercast.order.tree.reports import Recovered, Report, decode_recovered, decode_report
from ordercast.wire.reader import ByteReader

_COUNT: Final = struct.Struct(">H")
_EPOCH: Final = struct.Struct(">I")
_CROSS: Final = struct.Struct(">IQ")
_OPEN: Final = struct.Struct(">IQ8s")
_TREE: Final = struct.Struct(">IQ")
_NODE: Final = struct.Struct(">QQ")
_BROKEN: Final = struct.Struct(">QI")


class ControlKind(IntEnum):
    """Numbers travel on the wire: append only."""

    EVERYWHERE = 1
    CROSS = 2
    INTEREST = 3
    OPEN = 4
    CLOSED = 5
    HOLD = 6
    REPORT = 7
    RECOVERED = 8
    RECONCILE = 9
    BROKEN = 10
    LOAD = 11


class Everywhere(NamedTuple):
    """A message that does not go through a tree. It takes effect with the next OPEN, which closes the trees of its
    groups; without groups, all."""

    groups: tuple[str, ...]
    data: bytes
    epoch: int = 0  # of its source, by which its receivers are chosen, if it has groups
    is_again: bool = False  # as of a cargo
    source: int = 0  # the number of the cargo that it was in, if it was in one


class Wants(NamedTuple):
    """Which groups a process wants from now on, and which no longer. `is_full`: it has said nothing before."""

    gained: tuple[str, ...]
    lost: tuple[str, ...] = ()
    is_full: bool = False


class Opening(NamedTuple):
    """A new epoch, for everything that the control stream has brought up to `through`."""

    number: int
    through: int
    digest: bytes  # of the directory that results
    closing: tuple[TreeId, ...]
    born: tuple[Parents, ...]


class Closed(NamedTuple):
    """The whole of a tree has closed for this opening."""

    number: int
    root: ProcessId


class Holding(NamedTuple):
    """The application of a process is behind, or no longer."""

    is_held: bool


class Reconcile(NamedTuple):
    """All trees end here, whatever is under way in them; everybody reports what it holds, as when members change."""

    number: int  # among the openings


class Broken(NamedTuple):
    """Nothing moves on the link between who says it and another process, or what moves is wrong."""

    peer: ProcessId
    epoch: int  # of the links


class SenderLoad(NamedTuple):
    """How many messages a second a process sends to groups; of those that it does not name as many as before."""

    rates: tuple[tuple[str, int], ...]


CourseControl = Everywhere | Wants | Opening | Closed | Holding | Reconcile | Broken | SenderLoad
Control = CourseControl | Report | Recovered


def _names(names: Sequence[str]) -> bytes:
    return b"".join(bytes((len(name),)) + name.encode("ascii") for name in names)


def encode_everywhere(data: bytes) -> bytes:
    return bytes((ControlKind.EVERYWHERE,)) + data


def encode_cross(epoch: int, groups: Sequence[str], data: bytes, *, is_again: bool = False, source: int = 0) -> bytes:
    head = bytes((ControlKind.CROSS,)) + _CROSS.pack(epoch | is_again * AGAIN, source)
    return head + bytes((len(groups),)) + _names(groups) + data


def encode_wants(wants: Wants) -> bytes:
    head = bytes((ControlKind.INTEREST, wants.is_full))
    gained = _COUNT.pack(len(wants.gained)) + _names(wants.gained)
    return head + gained + _COUNT.pack(len(wants.lost)) + _names(wants.lost)


def encode_opening(opening: Opening) -> bytes:
    parts = [bytes((ControlKind.OPEN,)), _OPEN.pack(opening.number, opening.through, opening.digest)]
    parts.append(_COUNT.pack(len(opening.closing)))
    parts += [_TREE.pack(*id) for id in opening.closing]
    parts.append(_COUNT.pack(len(opening.born)))
    for parents in opening.born:
        parts.append(_COUNT.pack(len(parents)))
        parts += [_NODE.pack(node, parent or NOBODY) for node, parent in sorted(parents.items())]
    return b"".join(parts)


def encode_closed(closed: Closed) -> bytes:
    return bytes((ControlKind.CLOSED,)) + _TREE.pack(*closed)


def encode_held(held: Holding) -> bytes:
    return bytes((ControlKind.HOLD, held.is_held))


def encode_reconcile(reconcile: Reconcile) -> bytes:
    return bytes((ControlKind.RECONCILE,)) + _EPOCH.pack(reconcile.number)


def encode_broken(broken: Broken) -> bytes:
    return bytes((ControlKind.BROKEN,)) + _BROKEN.pack(*broken)


def encode_load(load: SenderLoad) -> bytes:
    entries = (_names((name,)) + _EPOCH.pack(rate) for name, rate in load.rates)
    return bytes((ControlKind.LOAD,)) + _COUNT.pack(len(load.rates)) + b"".join(entries)


def decode_control(data: bytes) -> Control:
    reader = ByteReader(data, 0, "the control message")
    kind = reader.byte()
    if kind == ControlKind.EVERYWHERE:
        return Everywhere((), reader.rest())
    if kind == ControlKind.CROSS:
        epoch, source = reader.unpack(_CROSS)
        groups = tuple(reader.names(reader.byte()))
        if not groups:
            raise WireError("a message to groups that names none")
        return Everywhere(groups, reader.rest(), epoch & ~AGAIN, bool(epoch & AGAIN), source)
    control = _read(kind, reader)
    reader.end()
    return control


def _read(kind: int, reader: ByteReader) -> Control:
    if kind == ControlKind.INTEREST:
        is_full = _flag(reader)
        gained = tuple(reader.names(*reader.unpack(_COUNT)))
        return Wants(gained, tuple(reader.names(*reader.unpack(_COUNT))), is_full)
    if kind == ControlKind.OPEN:
        return _opening(reader)
    if kind == ControlKind.CLOSED:
        number, root = reader.unpack(_TREE)
        return Closed(number, ProcessId(root))
    if kind == ControlKind.HOLD:
        return Holding(_flag(reader))
    if kind == ControlKind.REPORT:
        return decode_report(reader)
    if kind == ControlKind.RECOVERED:
        return decode_recovered(reader)
    if kind == ControlKind.RECONCILE:
        return Reconcile(*reader.unpack(_EPOCH))
    if kind == ControlKind.BROKEN:
        peer, epoch = reader.unpack(_BROKEN)
        return Broken(ProcessId(peer), epoch)
    if kind == ControlKind.LOAD:
        (count,) = reader.unpack(_COUNT)
        return SenderLoad(tuple((*reader.names(1), *reader.unpack(_EPOCH)) for _ in range(count)))
    raise WireError(f"there is no control message of kind {kind}")


def _flag(reader: ByteReader) -> bool:
    value = reader.byte()
    if value > 1:
        raise WireError("a flag that is neither set nor clear")
    return bool(value)


def _opening(reader: ByteReader) -> Opening:
    number, through, digest = reader.unpack(_OPEN)
    if not 0 < number <= BIRTH_MAX:
        raise WireError("an opening beyond all bounds")
    (count,) = reader.unpack(_COUNT)
    closing = tuple((birth, ProcessId(root)) for birth, root in (reader.unpack(_TREE) for _ in range(count)))
    (count,) = reader.unpack(_COUNT)
    return Opening(number, through, digest, closing, tuple(_parents(reader) for _ in range(count)))


def _parents(reader: ByteReader) -> Parents:
    (count,) = reader.unpack(_COUNT)
    nodes = [reader.unpack(_NODE) for _ in range(count)]
    parents = {ProcessId(node): ProcessId(parent) if parent else None for node, parent in nodes}
    if len(parents) < count or not count:
        raise WireError("a tree with no process, or with one twice")
    return parents
