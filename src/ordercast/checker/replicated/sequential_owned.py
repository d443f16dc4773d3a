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
    Clock,
    Model,
    SequentialCounter,
    SequentialDictionary,
    Words,
)

_GONE, _BACK, _TICK = 0xF0, 0xF1, 0xF2


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
    """A line of claims: the first one holds. The answer is the holder's claim and its token, or nothing. A claim may
    have a time: so many ticks after it has come to the head, or was renewed there, it goes."""

    def __init__(self) -> None:
        self._line: list[Claim] = []
        self._token = 0
        self._clock = Clock()
        self._spans: dict[Claim, int] = {}
        self._since = 0  # when the time of the first began

    def act(self, kind: int, words: Words, caller: Caller, position: int) -> bytes:
        if kind == _TICK:
            return self._tick(words, position)
        claim = Claim(caller, words.number(8))
        if kind == 4:
            if self._line[:1] != [claim]:
                return NO
            self._since = self._clock.now
            return YES
        is_wanted = kind in (1, 3)
        if is_wanted == (claim in self._line) or kind not in (1, 2, 3):
            return NO
        if kind == 3:
            self._spans[claim] = words.number(8)
        self._become([*self._line, claim] if is_wanted else [each for each in self._line if each != claim], position)
        return YES

    def _tick(self, words: Words, position: int) -> bytes:
        if not self._clock.ticks(words):
            return NO
        span = self._spans.get(self._line[0]) if self._line else None
        if span and self._clock.now >= self._since + span:
            self._become(self._line[1:], position)
        return YES

    def drop(self, is_gone: Callable[[Caller], bool], position: int) -> None:
        self._become([claim for claim in self._line if not is_gone(claim.owner)], position)

    def _become(self, line: list[Claim], position: int) -> None:
        if line[:1] != self._line[:1]:
            self._token, self._since = position, self._clock.now
        self._line = line
        self._spans = {claim: span for claim, span in self._spans.items() if claim in line}

    def answer(self, question: bytes) -> bytes:
        return b"%s %d" % (self._line[0].text(), self._token) if self._line else b""


class Work:
    """A job: free, somebody's, not due yet, or dead."""

    def __init__(self, most: int, due: int) -> None:
        self.whose: Claim | None = None
        self.until = 0  # the tick with which whoever has it loses it; 0: never
        self.most = most  # how often it may be taken; 0: without end
        self.made = 0
        self.due = due  # not before this tick
        self.is_dead = False


class SequentialQueue(_Owned):
    """Jobs by number. The answer: how many are free, each that is somebody's, with its claim, and, if there are any,
    how many are for later and which are dead."""

    def __init__(self) -> None:
        self._jobs: dict[int, Work] = {}
        self._line: list[Claim] = []  # who wants one
        self._spans: dict[Claim, int] = {}  # for how long
        self._clock = Clock()

    def act(self, kind: int, words: Words, caller: Caller, position: int) -> bytes:
        match kind:
            case 1 | 5:
                words.value()
                delay, most = (words.number(8), words.number(4)) if kind == 5 else (0, 0)
                self._jobs[position] = Work(most, self._clock.now + delay)
                return self._hand_out()
            case 8 | 9:
                return self._bury(kind, words.number(8))
            case 0xF2:
                return self._tick(words)
        claim = Claim(caller, words.number(8))
        had = [number for number, job in self._jobs.items() if job.whose == claim]
        match kind:
            case 2 | 6:
                if claim in self._line or had:
                    return NO
                self._line.append(claim)
                self._spans[claim] = words.number(8) if kind == 6 else 0
                return self._hand_out()
            case 3:
                for number in had:
                    del self._jobs[number]
                return YES if had else NO
            case 4:
                is_known = bool(had) or claim in self._line
                self._free(lambda each: each == claim)
                return YES if is_known else NO
            case 7:
                for number in had:
                    self._lend(self._jobs[number], claim)
                return YES if had else NO
            case _:
                raise ValueError(f"a queue has no command {kind}")

    def _bury(self, kind: int, number: int) -> bytes:
        if number not in self._jobs or not self._jobs[number].is_dead:
            return NO
        if kind == 9:
            del self._jobs[number]
            return YES
        self._jobs[number].is_dead, self._jobs[number].made = False, 0
        return self._hand_out()

    def _tick(self, words: Words) -> bytes:
        if not self._clock.ticks(words):
            return NO
        self._hand_out()  # what is due now
        over = {job.whose for job in self._jobs.values() if job.whose and 0 < job.until <= self._clock.now}
        self._free(lambda claim: claim in over)
        return YES

    def drop(self, is_gone: Callable[[Caller], bool], position: int) -> None:
        self._free(lambda claim: is_gone(claim.owner))

    def _free(self, is_gone: Callable[[Claim], bool]) -> None:
        self._line = [claim for claim in self._line if not is_gone(claim)]
        for job in self._jobs.values():
            if job.whose is not None and is_gone(job.whose):
                job.whose, job.until = None, 0
                job.is_dead = 0 < job.most <= job.made
        self._hand_out()

    def _hand_out(self) -> bytes:
        """The first who want one get the oldest that are free."""
        for number, claim in zip(sorted(self._waiting()), list(self._line), strict=False):
            self._lend(self._jobs[number], claim)
            self._jobs[number].made += 1
            self._line.remove(claim)
        return YES

    def _lend(self, job: Work, claim: Claim) -> None:
        span = self._spans[claim]
        job.whose, job.until = claim, self._clock.now + span if span else 0

    def _waiting(self) -> list[int]:
        return [
            number
            for number, job in self._jobs.items()
            if job.whose is None and not job.is_dead and job.due <= self._clock.now
        ]

    def answer(self, question: bytes) -> bytes:
        jobs = sorted(self._jobs.items())
        taken = [b"%d %s" % (number, job.whose.text()) for number, job in jobs if job.whose]
        later = [number for number, job in jobs if job.due > self._clock.now]
        dead = [b"%d" % number for number, job in jobs if job.is_dead]
        more = ([b"%d later" % len(later)] if later else []) + ([b"dead: " + b" ".join(dead)] if dead else [])
        return b"; ".join([b"%d free" % len(self._waiting()), *taken, *more])


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
        "leases": SequentialDictionary,
        "timed-queue": SequentialQueue,
        "timed-lock": SequentialLock,
        "counter": SequentialCounter,
        "queue": SequentialQueue,
        "lock": SequentialLock,
        "leader": SequentialLock,
        "barrier": lambda: SequentialBarrier(int(number)),
    }
    return models[name]()
