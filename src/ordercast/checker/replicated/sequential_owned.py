"""The structures of which members own parts, in one thread: lock (and leader, which is the same), queue, barrier.

Two commands are common to them: GONE, which names members that are in the group no more, and BACK, by which a member
that begins or was cut off gives up what it had. A claim is a member and a ticket, which it uses once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from ordercast.checker.replicated.sequential import (
    NO,
    YES,
    Caller,
    Model,
    SequentialCounter,
    SequentialDictionary,
    Words,
)

_GONE, _BACK = 0xF0, 0xF1


class Claim(NamedTuple):
    owner: Caller
    ticket: int

    def text(self) -> bytes:
        return b"%s %d %d" % (self.owner.name.encode(), self.owner.life, self.ticket)


class _Owned(Model):
    def result(self, operation: bytes, caller: Caller, position: int) -> bytes:
        kind, words = operation[0], Words(operation[1:])
        if kind == _GONE:
            gone = {words.caller() for _ in range(words.number(4))}
            self.drop(lambda owner: owner in gone, position)
            return YES
        if kind == _BACK:
            self.drop(lambda owner: owner.name == caller.name or owner.life == caller.life, position)
            return YES
        return self.act(kind, words, caller, position)

    @abstractmethod
    def act(self, kind: int, words: Words, caller: Caller, position: int) -> bytes: ...

    @abstractmethod
    def drop(self, is_gone: Callable[[Caller], bool], position: int) -> None: ...


class SequentialLock(_Owned):
    """A line of claims: the first one holds. The answer is the holder's claim and its token, or nothing."""

    def __init__(self) -> None:
        self._line: list[Claim] = []
        self._token = 0

    def act(self, kind: int, words: Words, caller: Caller, position: int) -> bytes:
        claim = Claim(caller, words.number(8))
        if (kind == 1) == (claim in self._line) or kind not in (1, 2):
            return NO
        self._become([*self._line, claim] if kind == 1 else [each for each in self._line if each != claim], position)
        return YES

    def drop(self, is_gone: Callable[[Caller], bool], position: int) -> None:
        self._become([claim for claim in self._line if not is_gone(claim.owner)], position)

    def _become(self, line: list[Claim], position: int) -> None:
        if line[:1] != self._line[:1]:
            self._token = position
        self._line = line

    def answer(self, question: bytes) -> bytes:
        return b"%s %d" % (self._line[0].text(), self._token) if self._line else b""


class SequentialQueue(_Owned):
    """Jobs by number, each free or somebody's. The answer: how many are free, and each that is not, with its claim."""

    def __init__(self) -> None:
        self._jobs: dict[int, Claim | None] = {}
        self._line: list[Claim] = []  # who wants one

    def act(self, kind: int, words: Words, caller: Caller, position: int) -> bytes:
        if kind == 1:
            self._jobs[position] = None
            return self._hand_out()
        claim = Claim(caller, words.number(8))
        if kind == 2:
            if claim in self._line or claim in self._jobs.values():
                return NO
            self._line.append(claim)
            return self._hand_out()
        had = [number for number, whose in self._jobs.items() if whose == claim]
        if kind == 3:
            for number in had:
                del self._jobs[number]
            return YES if had else NO
        if kind == 4:
            is_known = bool(had) or claim in self._line
            self._free(lambda each: each == claim)
            return YES if is_known else NO
        raise ValueError(f"a queue has no command {kind}")

    def drop(self, is_gone: Callable[[Caller], bool], position: int) -> None:
        self._free(lambda claim: is_gone(claim.owner))

    def _free(self, is_gone: Callable[[Claim], bool]) -> None:
        self._line = [claim for claim in self._line if not is_gone(claim)]
        self._jobs = {number: None if whose and is_gone(whose) else whose for number, whose in self._jobs.items()}
        self._hand_out()

    def _hand_out(self) -> bytes:
        """The first who want one get the oldest that are free."""
        free = sorted(number for number, whose in self._jobs.items() if whose is None)
        for number, claim in zip(free, list(self._line), strict=False):
            self._jobs[number] = claim
            self._line.remove(claim)
        return YES

    def answer(self, question: bytes) -> bytes:
        taken = [b"%d %s" % (number, whose.text()) for number, whose in sorted(self._jobs.items()) if whose]
        return b"; ".join([b"%d free" % (len(self._jobs) - len(taken)), *taken])


class SequentialBarrier(_Owned):
    """The answer: how often it has opened, and how many have arrived since."""

    def __init__(self, parties: int) -> None:
        self._parties = parties
        self._opened = 0
        self._arrived: set[Claim] = set()

    def act(self, kind: int, words: Words, caller: Caller, position: int) -> bytes:
        claim = Claim(caller, words.number(8))
        if kind == 2:
            is_known = claim in self._arrived
            self._arrived.discard(claim)
            return YES if is_known else NO
        if kind != 1:
            raise ValueError(f"a barrier has no command {kind}")
        time = self._opened
        self._arrived.add(claim)
        if len(self._arrived) == self._parties:
            self._opened, self._arrived = time + 1, set()
        return YES + time.to_bytes(8, "big")

    def drop(self, is_gone: Callable[[Caller], bool], position: int) -> None:
        self._arrived = {claim for claim in self._arrived if not is_gone(claim.owner)}

    def answer(self, question: bytes) -> bytes:
        return b"%d opened, %d arrived" % (self._opened, len(self._arrived))


def model_of(structure: str) -> Model:
    """Return the model of a structure by its name, and the number that it was made with."""
    name, _, number = structure.partition(" ")
    models: dict[str, Callable[[], Model]] = {
        "dictionary": SequentialDictionary,
        "counter": SequentialCounter,
        "queue": SequentialQueue,
        "lock": SequentialLock,
        "leader": SequentialLock,
        "barrier": lambda: SequentialBarrier(int(number)),
    }
    return models[name]()
