"""The ready structures in one thread: what their commands give when they are done one after the other.

Written from the reference of their commands, not from their code: a model reads the bytes of a command and gives the
bytes of its result, and answers the questions that readers of a copy ask. `model_of` finds the one of a history.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

YES, NO = b"\1", b"\0"
NONE = b"\0"  # no value


class Caller(NamedTuple):
    """Whose command it is."""

    name: str
    life: int


class Words:
    """Takes the fields of a command from the left. A value is kept as it is written: size and mark, and its bytes."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def number(self, size: int, *, signed: bool = False) -> int:
        taken, self.rest = self.rest[:size], self.rest[size:]
        if len(taken) < size:
            raise ValueError("a command ends within a number")
        return int.from_bytes(taken, "big", signed=signed)

    def value(self) -> bytes:
        size = 4 + (int.from_bytes(self.rest[:4], "big") >> 1)
        taken, self.rest = self.rest[:size], self.rest[size:]
        if len(taken) < size:
            raise ValueError("a command ends within a value")
        return taken

    def optional(self) -> bytes | None:
        return self.value() if self.number(1) else None

    def pairs(self) -> list[tuple[bytes, bytes | None]]:
        return [(self.value(), self.optional()) for _ in range(self.number(4))]

    def caller(self) -> Caller:
        return Caller(self.value()[4:].decode(), self.number(8))


class Model(ABC):
    @abstractmethod
    def result(self, operation: bytes, caller: Caller, position: int) -> bytes:
        """Do it."""

    @abstractmethod
    def answer(self, question: bytes) -> bytes:
        """What a reader of a copy in this state sees."""


class Clock:
    """Time in a structure: ticks that are said in their order. Any other number is not the next one, and nothing."""

    def __init__(self) -> None:
        self.now = 0

    def ticks(self, words: Words) -> bool:
        is_next = words.number(8) == self.now + 1
        self.now += is_next
        return is_next


class SequentialDictionary(Model):
    """A question is a key, the answer its value, each as they are written in commands; NONE for no such key. An entry
    has a lease, or 0; a lease ends at a tick, and lasts so many from whenever it is kept."""

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[bytes, int]] = {}
        self._leases: dict[int, tuple[int, int]] = {}  # how long, until when
        self._clock = Clock()
        self._under: dict[int, list[bytes]] = {}  # keys that were set under a lease, in order

    def result(self, operation: bytes, caller: Caller, position: int) -> bytes:
        words = Words(operation[1:])
        match operation[0]:
            case 1:
                return self._set({words.value(): words.value()}, 0)
            case 2:
                return YES if self._values.pop(words.value(), None) is not None else NO
            case 3:
                key, expected = words.value(), words.optional()
                if self._now(key) != expected:
                    return NO + self.answer(key)
                return self._set({key: words.optional()}, 0)
            case 4:
                lease, expected_all, wanted = words.number(8), words.pairs(), words.pairs()
                if any(self._now(key) != value for key, value in expected_all) or not self._lasts(lease):
                    return NO + b"".join(key + self.answer(key) for key, _ in expected_all)
                return self._set(dict(wanted), lease)
            case 8:
                lease = words.number(8)
                key, value = words.value(), words.value()
                return self._set({key: value}, lease) if self._lasts(lease) else NO
            case kind:
                return self._lease(kind, words, position)

    def _lease(self, kind: int, words: Words, position: int) -> bytes:
        match kind:
            case 5:
                span = words.number(8)
                self._leases[position] = span, self._clock.now + span
                return YES
            case 6:
                number = words.number(8)
                if number in self._leases:
                    span, _ = self._leases[number]
                    self._leases[number] = span, self._clock.now + span
                return YES if number in self._leases else NO
            case 7:
                number = words.number(8)
                return YES + self._end(number) if number in self._leases else NO
            case 0xF2:
                if not self._clock.ticks(words):
                    return NO
                over = [number for number, (_, end) in self._leases.items() if end <= self._clock.now]
                return YES + b"".join(map(self._end, over))
            case _:
                raise ValueError(f"a dictionary has no command {kind}")

    def _lasts(self, lease: int) -> bool:
        return not lease or lease in self._leases

    def _now(self, key: bytes) -> bytes | None:
        return self._values[key][0] if key in self._values else None

    def _set(self, values: Mapping[bytes, bytes | None], lease: int) -> bytes:
        for key, value in values.items():
            if value is None:
                self._values.pop(key, None)
                continue
            self._values[key] = value, lease
            if lease:
                under = self._under.setdefault(lease, [])
                if key in under:
                    under.remove(key)
                under.append(key)
        return YES

    def _end(self, number: int) -> bytes:
        """Its keys, in the order in which they were last set under it, are gone."""
        del self._leases[number]
        keys = [key for key in self._under.pop(number, []) if key in self._values and self._values[key][1] == number]
        for key in keys:
            del self._values[key]
        return b"".join(keys)

    def answer(self, question: bytes) -> bytes:
        value = self._now(question)
        return NONE if value is None else YES + value


class SequentialCounter(Model):
    """The answer is the value in digits."""

    def __init__(self) -> None:
        self._value = 0

    def result(self, operation: bytes, caller: Caller, position: int) -> bytes:
        if operation[0] != 1:
            raise ValueError(f"a counter has no command {operation[0]}")
        self._value += Words(operation[1:]).number(8, signed=True)
        return YES + self._value.to_bytes(8, "big", signed=True)

    def answer(self, question: bytes) -> bytes:
        return b"%d" % self._value
