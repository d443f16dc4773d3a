"""Dictionary: keys and values, each bytes or str; compare-and-set for what depends on what was read, of one key or of
several at once; leases for what must not outlive who has set it."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from ordercast.model.arguments import given
from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import NO, YES, Applied, Caller, Cut, Front, Reloaded, Structure, accepted
from ordercast.replicated.structures.fields import (
    U32,
    U64,
    VALUE_SIZE_MAX,
    Reader,
    Value,
    check_key,
    optional_bytes,
    value_bytes,
)
from ordercast.replicated.structures.key_order import KeyOrder
from ordercast.replicated.structures.leases import LEASE_MARK, Leases
from ordercast.replicated.structures.ticking import TICK, Timed, span_in, ticks_of

SET, DELETE, COMPARE, COMPARE_MANY, GRANT, KEEP, REVOKE, SET_LEASED = 1, 2, 3, 4, 5, 6, 7, 8
HEAD: Final = struct.Struct("!BI")  # of a command: its kind, and twice the size of the key, one more if it is a str


class Dictionary(Structure["DictionaryFront"], Timed):
    NAME = "Dictionary"

    def __init__(self) -> None:
        self.entries: dict[Value, Value] = {}
        self.leases = Leases()
        self.order = KeyOrder()
        self._before: Mapping[Value, Value] = {}  # while it is filled: those of the one that it will replace

    def front(self, caller: Caller) -> DictionaryFront:
        return DictionaryFront(self, caller)

    def apply_all(self, commands: Sequence[bytes], origin: Origin) -> list[bytes]:
        """As every structure does, and faster for what comes most: a SET that is whole, where there are no leases."""
        entries, head, mark, terms = self.entries, HEAD.unpack_from, U32.unpack_from, self.leases.terms
        results = []
        for at, command in enumerate(commands):
            try:
                kind, key_mark = head(command)
                middle = 5 + (key_mark >> 1)
                (value_mark,) = mark(command, middle)
                if kind != SET or middle + 4 + (value_mark >> 1) != len(command) or terms:
                    raise ValueError
                key = command[5:middle].decode() if key_mark & 1 else command[5:middle]
                value = command[middle + 4 :].decode() if value_mark & 1 else command[middle + 4 :]
            except (ValueError, struct.error):
                results.append(self.apply(command, origin._replace(position=origin.position + at)))
                continue
            entries[key] = value
            results.append(YES)
        return results

    def carry_out(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        if kind == TICK:
            return self.tick(fields, origin)
        if kind in (GRANT, KEEP, REVOKE):
            number = span_in(fields) if kind == GRANT else fields.number(U64)
            fields.end()
            return self._lease(kind, number, origin.position)
        if kind == COMPARE_MANY:
            return self._compare_many(fields)
        lease = fields.number(U64) if kind == SET_LEASED else 0
        key = fields.value()
        if kind in (SET, SET_LEASED):
            value = fields.value()
            fields.end()
            if lease and lease not in self.leases.terms:
                return NO
            self._put(key, value, lease)
            return YES
        if kind == DELETE:
            fields.end()
            return NO if not self._delete(key) else YES
        if kind == COMPARE:
            expected, wanted = fields.optional(), fields.optional()
            fields.end()
            return self._compare(key, expected, wanted)
        raise WireError(f"a dictionary has no command {kind}")

    def _compare(self, key: Value, expected: Value | None, wanted: Value | None) -> bytes:
        found = self.entries.get(key)
        if found != expected:
            return NO + optional_bytes(found)
        self._put(key, wanted, 0)
        return YES

    def _compare_many(self, fields: Reader) -> bytes:
        lease = fields.number(U64)
        expected = [(fields.value(), fields.optional()) for _ in range(fields.count())]
        wanted = [(fields.value(), fields.optional()) for _ in range(fields.count())]
        fields.end()
        found = [(key, self.entries.get(key)) for key, _ in expected]
        if found != expected or (lease and lease not in self.leases.terms):
            return NO + b"".join(value_bytes(key) + optional_bytes(value) for key, value in found)
        for key, value in wanted:
            self._put(key, value, lease)
        return YES

    def _put(self, key: Value, value: Value | None, lease: int) -> None:
        if value is None:
            self._delete(key)
            return
        self.entries[key] = value
        self.leases.attach(key, lease) if lease else self.leases.detach(key)

    def _delete(self, key: Value) -> bool:
        if self.entries.pop(key, None) is None:
            return False
        self.order.forget(key)
        self.leases.detach(key)
        return True

    # Leases

    @property
    def awaits_tick(self) -> bool:
        return bool(self.leases.terms)

    def expire(self, position: int) -> bytes:
        return b"".join(self._end_lease(number) for number in self.leases.over(self.ticks))

    def _lease(self, kind: int, number: int, position: int) -> bytes:
        if kind == GRANT:
            self.leases.grant(position, number, self.ticks)
            return YES
        if kind == KEEP:
            return YES if self.leases.keep(number, self.ticks) else NO
        return YES + self._end_lease(number) if number in self.leases.terms else NO

    def _end_lease(self, number: int) -> bytes:
        """Delete its keys. They are told in the result, for those who watch."""
        keys = self.leases.end(number)
        for key in keys:
            del self.entries[key]
            self.order.forget(key)
        return b"".join(map(value_bytes, keys))

    # Pictures

    def freeze(self) -> Frozen:
        entries = dict(self.entries)  # in the order in which the keys came, the same at everybody
        leases = list(self.leases.items(self.ticks))

        def items() -> Iterator[bytes]:
            yield from leases
            for key, value in entries.items():
                yield value_bytes(key) + value_bytes(value)

        return Cut(items)

    def blank(self) -> Self:
        other = type(self)()
        other._before = self.entries
        return other

    def fill(self, fields: Reader) -> None:
        """What is as it was before is not kept twice."""
        while not fields.is_at_end:
            mark = fields.number(U32)
            if mark == _LEASE:
                self.ticks = self.leases.fill(fields)
                continue
            key, value = fields.value_behind(mark), fields.value()
            before = self._before.get(key)
            self.entries[key] = before if before is not None and before == value else value

    def adopt(self, other: Self) -> None:
        self.entries, self.leases, self.ticks = other.entries, other.leases, other.ticks
        self.amended()

    def amended(self) -> None:
        self.order.clear()
        self.leases.detach_others(self.entries)


_LEASE = U32.unpack(LEASE_MARK)[0]


def _set_command(key: Value, value: Value) -> bytes:
    """Return the command; what comes most, a text and bytes, has a way of its own, without a call for each of them."""
    if type(key) is str and type(value) is bytes:
        text = key.encode()
        if len(text) <= VALUE_SIZE_MAX >= len(value):
            return HEAD.pack(SET, len(text) << 1 | 1) + text + U32.pack(len(value) << 1) + value
    return SET.to_bytes() + value_bytes(key) + value_bytes(value)


class Lease(NamedTuple):
    """Time that was granted. Keys that are set under it go when it is over."""

    number: int
    ttl: float  # seconds since it was granted, or kept, that it lasts at least


@dataclass(frozen=True, slots=True)
class KeyChanged:
    """A key has a value, or (None) has none any more."""

    key: Value
    value: Value | None
    position: int
    by: str  # whose command it was


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of a compare-and-set."""

    succeeded: bool
    found: Value | None  # what was there
    position: int


@dataclass(frozen=True, slots=True)
class ComparedMany:
    """What came of a compare-and-set of several keys."""

    succeeded: bool
    found: dict[Value, Value | None]  # what was there, of the keys that were compared
    position: int


class DictionaryFront(Front[Dictionary]):
    # Commands

    async def set(self, key: Value, value: Value, *, lease: Lease | None = None, timeout: float | None = None) -> int:
        """Returns when it is confirmed, with its position. `lease`: the key goes when that is over; UsageError when it
        is over already."""
        if lease is not None:
            fields = _lease_bytes(lease) + value_bytes(key) + value_bytes(value)
            answer = await self._ask(SET_LEASED, fields, timeout)
            if answer.result != YES:
                raise UsageError(f"the lease {lease.number} is over: ask for another one with lease()")
            return answer.position
        if timeout is not None:
            return (await self._ask(SET, value_bytes(key) + value_bytes(value), timeout)).position
        return accepted(await self._caller.submit(_set_command(key, value))).position

    async def delete(self, key: Value, *, timeout: float | None = None) -> bool:
        """Whether there was such a key."""
        return (await self._ask(DELETE, value_bytes(key), timeout)).result == YES

    async def compare_and_set(
        self, key: Value, expected: Value | None, value: Value | None, *, timeout: float | None = None
    ) -> Compared:
        """Set it if it is as expected; None stands for no such key, on either side."""
        fields = value_bytes(key) + optional_bytes(expected) + optional_bytes(value)
        answer = await self._ask(COMPARE, fields, timeout)
        succeeded = answer.result == YES
        return Compared(succeeded, expected if succeeded else Reader(answer.result, 1).optional(), answer.position)

    async def compare_and_set_many(
        self,
        expected: Mapping[Value, Value | None],
        values: Mapping[Value, Value | None],
        *,
        lease: Lease | None = None,
        timeout: float | None = None,
    ) -> ComparedMany:
        """Set and delete (None) all of `values` if everything is as expected and the lease is not over; otherwise
        nothing."""
        fields = (U64.pack(0) if lease is None else _lease_bytes(lease)) + _pairs_bytes(expected) + _pairs_bytes(values)
        answer = await self._ask(COMPARE_MANY, fields, timeout)
        succeeded = answer.result == YES
        found = dict(expected) if succeeded else _pairs_from(Reader(answer.result, 1))
        return ComparedMany(succeeded, found, answer.position)

    # Leases

    async def lease(self, ttl: float, *, timeout: float | None = None) -> Lease:
        """Time, at least so many seconds: keys that are set under it go when it is over and was not kept."""
        return Lease((await self._ask(GRANT, U64.pack(ticks_of(ttl)), timeout)).position, ttl)

    async def keep(self, lease: Lease, *, timeout: float | None = None) -> bool:
        """Its time begins anew. False when it was over already."""
        return (await self._ask(KEEP, _lease_bytes(lease), timeout)).result == YES

    async def revoke(self, lease: Lease, *, timeout: float | None = None) -> bool:
        """It is over now, and its keys are gone. False when it was over already."""
        return (await self._ask(REVOKE, _lease_bytes(lease), timeout)).result[:1] == YES

    @asynccontextmanager
    async def leased(self, ttl: float, *, timeout: float | None = None) -> AsyncIterator[Lease]:
        """A lease that is kept as long as the block lasts, and revoked at its end."""
        lease = await self.lease(ttl, timeout=timeout)
        stop = self._caller.repeat(lambda: self.keep(lease), ttl / 3)
        try:
            yield lease
        finally:
            stop()
            self._caller.post(bytes([REVOKE]) + U64.pack(lease.number))

    # Reads

    def __getitem__(self, key: Value) -> Value:
        """From the copy that is here; KeyError when there is no such key."""
        return self.machine.entries[key]

    def __iter__(self) -> Iterator[Value]:
        return iter(self.keys())

    def keys(self) -> list[Value]:
        """In the order in which they came."""
        return list(self.machine.entries)

    def values(self) -> list[Value]:
        return list(self.machine.entries.values())

    def prefix(self, prefix: Value) -> list[tuple[Value, Value]]:
        """Items whose keys begin so, in the order of their keys, from the copy that is here."""
        check_key(prefix)
        entries = self.machine.entries
        return [(key, entries[key]) for key in self.machine.order.beginning(entries, prefix)]

    def range(self, start: Value, end: Value | None = None) -> list[tuple[Value, Value]]:
        """Items with keys from `start` on and before `end`, in the order of their keys, from the copy that is here.
        Keys that are bytes and keys that are str are apart."""
        check_key(start)
        if end is not None and type(start) is not type(end):
            raise UsageError("a range goes from bytes to bytes, or from str to str")
        entries = self.machine.entries
        return [(key, entries[key]) for key in self.machine.order.between(entries, start, end)]

    def get(self, key: Value) -> Value | None:
        """From the copy that is here, at once: see `age`."""
        return self.machine.entries.get(key)

    async def latest(self, key: Value, *, timeout: float | None = None) -> Value | None:
        """Linearised: with everything that was confirmed to anybody before the call."""
        await self.synced(timeout=timeout)
        return self.get(key)

    def items(self) -> list[tuple[Value, Value]]:
        """In the order in which the keys came."""
        return list(self.machine.entries.items())

    def __len__(self) -> int:
        return len(self.machine.entries)

    def __contains__(self, key: Value) -> bool:
        return key in self.machine.entries

    def changes(self, after: int | None = None) -> AsyncIterator[KeyChanged | Reloaded]:
        """What is set and deleted from now on, in order; with `after`, from behind this position on: a `Reloaded` comes
        first when that is not kept here any more."""
        if after is not None:
            given(after, int, "position", "one that a call on this dictionary returned")
        return _changes(self._caller.watch(Applied, Reloaded, after=after), after or 0)


async def _changes(events: AsyncIterator[Applied | Reloaded], after: int) -> AsyncIterator[KeyChanged | Reloaded]:
    """A state that was fetched may have fewer commands than were applied here: nothing behind it is left out."""
    async for event in events:
        if isinstance(event, Reloaded):
            after = 0
            yield event
        elif event.origin.position > after:
            for key, value in _changed(event):
                yield KeyChanged(key, value, event.origin.position, event.origin.name)


def _changed(applied: Applied) -> list[tuple[Value, Value | None]]:
    result = applied.result
    if result[:1] != YES:  # it may be no command of ours at all
        return []
    kind, fields = applied.command[0], Reader(applied.command, 1)
    if kind in (GRANT, KEEP):
        return []
    if kind in (TICK, REVOKE):
        return [(key, None) for key in _values_in(Reader(result, 1))]
    if kind == COMPARE_MANY:
        fields.number(U64)
        for _ in range(fields.count()):
            fields.value(), fields.optional()
        return [(fields.value(), fields.optional()) for _ in range(fields.count())]
    if kind == SET_LEASED:
        fields.number(U64)
    key = fields.value()
    if kind == COMPARE:
        fields.optional()
        return [(key, fields.optional())]
    return [(key, None if kind == DELETE else fields.value())]


def _values_in(fields: Reader) -> Iterator[Value]:
    while not fields.is_at_end:
        yield fields.value()


def _lease_bytes(lease: Lease) -> bytes:
    return U64.pack(given(lease, Lease, "lease", "what lease() returned").number)


def _pairs_bytes(pairs: Mapping[Value, Value | None]) -> bytes:
    if not isinstance(pairs, Mapping):
        raise UsageError(f"{pairs!r:.80} are no keys with values: give a dict")
    return U32.pack(len(pairs)) + b"".join(value_bytes(key) + optional_bytes(value) for key, value in pairs.items())


def _pairs_from(fields: Reader) -> dict[Value, Value | None]:
    found: dict[Value, Value | None] = {}
    while not fields.is_at_end:
        key = fields.value()
        found[key] = fields.optional()
    return found
