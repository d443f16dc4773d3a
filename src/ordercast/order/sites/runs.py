"""Entries of a site's ring in a row: messages of one session, as many in each entry and all of one length.

They are the same bytes as other entries of messages (`codec.py`, `units.py`), laid and read many at a time. Entries
that are larger than a packet take as many of the ring's packets each, so that their stamps are equally far apart.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from operator import itemgetter
from typing import Final, NamedTuple

from ordercast.model.effects import Deliver
from ordercast.model.ids import NOBODY, ProcessId
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


@dataclass(slots=True)
class EntriesInARow:
    """Entries of one daemon with none of another one between them. Each has seq and stamp of its last packet."""

    originator: ProcessId
    seq: int  # of the first
    entries: list[bytes]
    stamps: list[int]
    step: int = 1  # from one seq to the next: packets that an entry takes

    @property
    def last(self) -> int:
        """The seq of the last entry."""
        return self.seq + (len(self.entries) - 1) * self.step

    def take(self, seq: int, entries: Sequence[bytes], stamps: Sequence[int]) -> bool:
        """Take entries that follow, one a packet or one alone, if they are as far apart as those here; return whether
        they are."""
        step = seq - self.last
        if (len(self.entries) > 1 and step != self.step) or (len(entries) > 1 and step != 1):
            return False
        self.step = step
        self.entries += entries
        self.stamps += stamps
        return True

    def evenly(self, count: int) -> int:
        """Return how many of the first so many have stamps as far apart as their seqs; all from one visit of the token
        have, and often those of the next."""
        stamps, first, step = self.stamps, self.stamps[0], self.step
        if stamps[count - 1] == first + (count - 1) * step:
            return count
        return next(index for index in range(1, count) if stamps[index] != first + index * step)

    def behind(self, count: int, at_most: int) -> EntriesInARow:
        """Return those that follow so many of them."""
        some = slice(count, count + at_most)
        begin = self.seq + count * self.step
        return EntriesInARow(self.originator, begin, self.entries[some], self.stamps[some], self.step)


def rows_of(delivered: Deliver) -> list[EntriesInARow]:
    """Return what a ring delivers in rows, however many reads brought it."""
    assert delivered.stamps is not None, "an enclosed ring tells them"
    rows: list[EntriesInARow] = []
    before = NOBODY
    for (seq, originator, _, _, entries, *_), stamps in zip(delivered.parcels, delivered.stamps, strict=True):
        if originator != before or not rows[-1].take(seq, entries, stamps):
            rows.append(EntriesInARow(originator, seq, list(entries), list(stamps)))
        before = originator
    return rows


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

    def between(self, start: int, stop: int) -> EntryRun:
        """Return what some of the entries say."""
        at, end = start * self.each, stop * self.each
        run = self.run._replace(first=self.run.first + at, messages=end - at)
        return self._replace(run=run, payloads=self.payloads[at:end])


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
def _shape(head: int, each: int, length: int) -> struct.Struct:
    """An entry with so many messages of one length, behind a head of so many bytes."""
    return struct.Struct(f"{head}x" + f"{length}s" * each)


@lru_cache(maxsize=512)
def _head_of(size: int) -> Callable[[bytes], bytes]:
    """Return what gives the first bytes of an entry."""
    return itemgetter(slice(size))


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
    at = head + _HEAD.size + LENGTH_SIZE * each  # the messages begin here
    lengths = first[head + _HEAD.size : at]
    length = int.from_bytes(lengths[:LENGTH_SIZE], "big")
    if at + length * each != len(first) or lengths != lengths[:LENGTH_SIZE] * each:
        return None
    if not Service.UNRELIABLE < service <= SERVICE_MAX:
        return None
    count = _alike(entries, head + _BEFORE, at, number, each)
    alike = entries if count == len(entries) else entries[:count]
    payloads = tuple(chain.from_iterable(map(_shape(at, each, length).unpack, alike)))
    run = SessionRun(sender, number, count * each, service)
    return EntryRun(view, unpacked(first[_FRONT.size : head]), run, each, payloads)


def _alike(entries: Sequence[bytes], before: int, at: int, number: int, each: int) -> int:
    """Return how many entries, from the first on, have its length and its head, but for the number, which is that of
    the message that follows. It stands behind so many bytes; `at` is where the messages begin."""
    first, head_of = entries[0], _head_of(at)
    count = _alike_at_most(entries, before, at, number, each)
    if count < len(entries):
        entries = entries[:count]
    if count == 1:
        return 1
    lengths = list(map(len, entries))
    sized = count if lengths.count(len(first)) == count else _matching(lengths, [len(first)] * count)
    heads = [first[:before], b"", first[before + _NUMBER.size : at]] * sized
    heads[1::3] = map(_NUMBER.pack, range(number, number + sized * each, each))
    expected = b"".join(heads)
    found = list(map(head_of, entries if sized == count else entries[:sized]))
    if b"".join(found) == expected:
        return sized
    return _matching(found, [expected[index : index + at] for index in range(0, sized * at, at)])


def _alike_at_most(entries: Sequence[bytes], before: int, at: int, number: int, each: int) -> int:
    """Return so many that no more are alike: all of them, or at most twice as many as there are. So what is looked at
    in vain is never much, and where senders take turns it is one entry."""
    count, first = len(entries), entries[0]
    front, behind, length = first[:before], first[before + _NUMBER.size : at], len(first)

    def is_in_turn(index: int) -> bool:
        entry = entries[index]
        return len(entry) == length and entry[:at] == front + _NUMBER.pack(number + index * each) + behind

    if count == 1 or is_in_turn(count - 1):
        return count
    found = 1
    while is_in_turn(found):
        found = min(2 * found, count - 1)
    return found


def _matching(found: Sequence[object], expected: Sequence[object]) -> int:
    """Return how many of these, from the first on, are the expected ones; not all of them are."""
    return next(index for index, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1])
