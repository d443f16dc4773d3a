"""Entries of a site's ring in a row: messages of one session, as many in each entry and all of one length.

They are the same bytes as other entries of messages (`codec.py`, `units.py`), laid and read many at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Final, NamedTuple

from ordercast.model.service import SERVICE_MAX, Service
from ordercast.order.sites.interest import DESTINATIONS_MAX, Digests, packed, unpacked
from ordercast.order.sites.units import BODY_HEAD_SIZE, DIGEST_SIZE, LENGTH_SIZE, RUN_SIZE, BodyKind, SessionRun
from ordercast.wire.codec import NUMBER_MAX

DATA: Final = 1  # the type of such an entry
_DATA: Final = bytes((DATA,))
_FRONT = struct.Struct(">B8sB")  # type, view, destinations
_HEAD = struct.Struct(">HHBBLQBB")  # part, parts, runs, kind; sender, first number, messages, service
_LENGTH = struct.Struct(">H")
_NUMBER = struct.Struct(">Q")
_BEHIND = struct.Struct(">BB")  # what follows the number, before the lengths
_BEFORE: Final = _HEAD.size - _NUMBER.size - _BEHIND.size  # bytes of the head before the number
assert _HEAD.size == BODY_HEAD_SIZE + RUN_SIZE


class EntryRun(NamedTuple):
    """What entries in a row say."""

    view: bytes
    destinations: Digests
    run: SessionRun  # all messages
    each: int  # messages in an entry
    payloads: Sequence[bytes]

    @property
    def entries(self) -> int:
        """How many there are."""
        return len(self.payloads) // self.each


def build_entries(run: EntryRun) -> list[bytes]:
    """Return the entries; all messages have one length."""
    session, each, payloads = run.run, run.each, run.payloads
    front = _FRONT.pack(DATA, run.view, len(run.destinations)) + packed(run.destinations)
    front += _HEAD.pack(0, 1, 1, BodyKind.WHOLE, session.sender, 0, each, session.service)[:_BEFORE]
    behind = _BEHIND.pack(each, session.service) + _LENGTH.pack(len(payloads[0])) * each
    numbers = map(_NUMBER.pack, range(session.first, session.first + len(payloads), each))
    contents = payloads if each == 1 else map(b"".join, zip(*repeat(iter(payloads), each), strict=True))
    return [b"".join(pieces) for pieces in zip(repeat(front), numbers, repeat(behind), contents, strict=False)]


@lru_cache(maxsize=512)
def _shape(front: int, each: int, length: int) -> struct.Struct:
    """An entry with so many messages of one length, behind a front of so many bytes."""
    behind = _BEHIND.size + LENGTH_SIZE * each
    return struct.Struct(f">{front}sQ{behind}s" + f"{length}s" * each)


def read_entries(entries: Sequence[bytes]) -> EntryRun | None:
    """Return what the first entry and those behind it that are alike say; None when the first is no such entry: it is
    left to whoever takes more time."""
    first = entries[0]
    if first[:1] != _DATA or len(first) < _FRONT.size:
        return None
    _, view, many = _FRONT.unpack_from(first)
    head = _FRONT.size + DIGEST_SIZE * many
    if many > DESTINATIONS_MAX or len(first) < head + _HEAD.size + LENGTH_SIZE:
        return None
    part, parts, runs, kind, sender, number, each, service = _HEAD.unpack_from(first, head)
    if (part, parts, runs, kind) != (0, 1, 1, BodyKind.WHOLE) or not each or not 0 < number <= NUMBER_MAX:
        return None
    (length,) = _LENGTH.unpack_from(first, head + _HEAD.size)
    shape = _shape(head + _BEFORE, each, length)
    lengths = first[head + _HEAD.size : head + _HEAD.size + LENGTH_SIZE * each]
    if shape.size != len(first) or lengths != lengths[:LENGTH_SIZE] * each:
        return None
    if not Service.UNRELIABLE < service <= SERVICE_MAX:
        return None
    sized = _matching(list(map(len, entries)), [len(first)] * len(entries))
    fronts, numbers, behind, *contents = zip(*map(shape.unpack, entries[:sized]), strict=True)
    count = min(
        _matching(numbers, tuple(range(number, number + sized * each, each))),
        _matching(fronts, (fronts[0],) * sized),
        _matching(behind, (behind[0],) * sized),
    )
    payloads = contents[0] if each == 1 else tuple(chain.from_iterable(zip(*contents, strict=True)))
    run = SessionRun(sender, number, count * each, service)
    return EntryRun(view, unpacked(first[_FRONT.size : head]), run, each, payloads[: count * each])


def _matching(found: Sequence[object], expected: Sequence[object]) -> int:
    """Return how many of these, from the first on, are the expected ones."""
    if found == expected:
        return len(found)
    return next(index for index, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1])
