"""The ready structures in one thread: what their commands give when they are done one after the other.

Written from the reference of their commands, not from their code: a model reads the bytes of a command and gives the
bytes of its result, and answers the questions that readers of a copy ask. `model_of` finds the one of a history.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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

    def caller(self) -> Caller:
        return Caller(self.value()[4:].decode(), self.number(8))


class Model(ABC):
    @abstractmethod
    def result(self, operation: bytes, caller: Caller, position: int) -> bytes:
        """Do it."""

    @abstractmethod
    def answer(self, question: bytes) -> bytes:
        """What a reader of a copy in this state sees."""


class SequentialDictionary(Model):
    """A question is a key, the answer its value, each as they are written in commands; NONE for no such key."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def result(self, operation: bytes, caller: Caller, position: int) -> bytes:
        words = Words(operation[1:])
        key = words.value()
        match operation[0]:
            case 1:
                self._values[key] = words.value()
                return YES
            case 2:
                return YES if self._values.pop(key, None) is not None else NO
            case 3:
                return self._compare(key, words.optional(), words.optional())
            case kind:
                raise ValueError(f"a dictionary has no command {kind}")

    def _compare(self, key: bytes, expected: bytes | None, wanted: bytes | None) -> bytes:
        if self._values.get(key) != expected:
            return NO + self.answer(key)
        self._values.pop(key, None) if wanted is None else self._values.update({key: wanted})
        return YES

    def answer(self, question: bytes) -> bytes:
        value = self._values.get(question)
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
