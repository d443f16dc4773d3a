"""Leases of a dictionary's keys: who stops asking for more time loses what it has set under a lease. Pure.

A lease is as long as it was asked for, counted in ordered ticks (`ticking.py`) since it was granted or kept. A key that
is set again without it, or deleted, belongs to it no more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ordercast.replicated.structures.fields import U32, U64, Reader, Value, value_bytes

LEASE_MARK = U32.pack(0xFFFFFFFF)  # no value is so large: an item of a picture that begins with it is a lease


@dataclass(slots=True)
class LeaseTerm:
    """One lease."""

    span: int  # ticks
    end: int  # the tick with which it is over
    keys: dict[Value, None] = field(default_factory=dict)


class Leases:
    def __init__(self) -> None:
        self.terms: dict[int, LeaseTerm] = {}  # by number: the position of the command that granted it
        self._of_key: dict[Value, int] = {}

    def grant(self, number: int, span: int, now: int) -> None:
        self.terms[number] = LeaseTerm(span, now + span)

    def keep(self, number: int, now: int) -> bool:
        term = self.terms.get(number)
        if term is not None:
            term.end = now + term.span
        return term is not None

    def attach(self, key: Value, number: int) -> None:
        self.detach(key)
        self.terms[number].keys[key] = None
        self._of_key[key] = number

    def detach(self, key: Value) -> None:
        if (number := self._of_key.pop(key, None)) is not None:
            del self.terms[number].keys[key]

    def detach_others(self, keys: Collection[Value]) -> None:
        """Keep none but these."""
        for key in [key for key in self._of_key if key not in keys]:
            self.detach(key)

    def end(self, number: int) -> list[Value]:
        """Return the keys of a lease that is over."""
        keys = list(self.terms.pop(number).keys)
        for key in keys:
            del self._of_key[key]
        return keys

    def over(self, now: int) -> list[int]:
        return [number for number, term in self.terms.items() if term.end <= now]

    def items(self, ticks: int) -> Iterator[bytes]:
        """For a picture; none, if there was never a lease."""
        if ticks:
            yield LEASE_MARK + U64.pack(ticks) + U64.pack(0)
        for number, term in self.terms.items():
            keys = b"".join(map(value_bytes, term.keys))
            numbers = U64.pack(number) + U64.pack(term.span) + U64.pack(term.end)
            yield LEASE_MARK + U64.pack(ticks) + numbers + U32.pack(len(term.keys)) + keys

    def fill(self, fields: Reader) -> int:
        """Take one such item, behind its mark. The ticks so far."""
        ticks, number = fields.number(U64), fields.number(U64)
        if number:
            term = self.terms[number] = LeaseTerm(fields.number(U64), fields.number(U64))
            for _ in range(fields.count()):
                key = fields.value()
                term.keys[key] = None
                self._of_key[key] = number
        return ticks
