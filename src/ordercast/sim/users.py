"""Users of the ready structures: what applications ask of them, and what they read in the copy that is here.

A user belongs to one life of a replica. Questions and answers are those of the judges' sequential structures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import Any

from ordercast.replicated.structures.barrier import ARRIVE, WITHDRAW, Barrier
from ordercast.replicated.structures.base import Claim, Owner, Structure
from ordercast.replicated.structures.claims import ACQUIRE, ACQUIRE_FOR, RELEASE, RENEW, Exclusive
from ordercast.replicated.structures.counter import ADD, Counter
from ordercast.replicated.structures.dictionary import (
    COMPARE,
    COMPARE_MANY,
    DELETE,
    GRANT,
    KEEP,
    REVOKE,
    SET,
    SET_LEASED,
    Dictionary,
)
from ordercast.replicated.structures.fields import I64, U32, U64, Value, optional_bytes, value_bytes
from ordercast.replicated.structures.leader import Leader
from ordercast.replicated.structures.lock import Lock
from ordercast.replicated.structures.queue import (
    ACKNOWLEDGE,
    DISCARD,
    EXTEND,
    GIVE_BACK,
    PUT,
    PUT_LATER,
    REVIVE,
    TAKE,
    TAKE_FOR,
    Queue,
)

STRUCTURES = ("dictionary", "counter", "queue", "lock", "leader", "barrier 3")
TIMED = ("leases", "timed-queue", "timed-lock")  # the same, used with all that ends with time
_KEYS = 12


class User(ABC):
    @abstractmethod
    def operation(self, rng: Random) -> bytes:
        """The next command."""

    def question(self, rng: Random) -> bytes:
        return b""

    @abstractmethod
    def answer(self, question: bytes) -> bytes:
        """From the copy that is here."""


class DictionaryUser(User):
    def __init__(self, structure: Dictionary) -> None:
        self._structure = structure

    def operation(self, rng: Random) -> bytes:
        key, value = self._key(rng), b"%d" % rng.randrange(1_000_000)
        chance = rng.random()
        if chance < 0.6:
            return bytes([SET]) + value_bytes(key) + value_bytes(value)
        if chance < 0.75:
            return bytes([DELETE]) + value_bytes(key)
        found = self._structure.entries.get(key) if rng.random() < 0.8 else b"nothing like it"
        wanted = None if rng.random() < 0.2 else value
        return bytes([COMPARE]) + value_bytes(key) + optional_bytes(found) + optional_bytes(wanted)

    def question(self, rng: Random) -> bytes:
        return value_bytes(self._key(rng))

    def answer(self, question: bytes) -> bytes:
        return optional_bytes(self._structure.entries.get(question[U32.size :]))

    def _key(self, rng: Random) -> Value:
        return b"k%d" % rng.randrange(_KEYS)


class LeaseUser(DictionaryUser):
    """Sets keys under leases, some of which it keeps."""

    def operation(self, rng: Random) -> bytes:
        leases = list(self._structure.leases.terms)
        chance = rng.random()
        if chance < 0.15 or not leases:
            return bytes([GRANT]) + U64.pack(rng.randrange(1, 4))
        lease = U64.pack(rng.choice(leases) if rng.random() < 0.95 else 1)
        if chance < 0.25:
            return bytes([KEEP]) + lease
        if chance < 0.28:
            return bytes([REVOKE]) + lease
        if chance < 0.6:
            return bytes([SET_LEASED]) + lease + value_bytes(self._key(rng)) + value_bytes(b"%d" % rng.randrange(1000))
        if chance < 0.75:
            return bytes([COMPARE_MANY]) + (lease if rng.random() < 0.5 else U64.pack(0)) + self._pairs(rng)
        return super().operation(rng)

    def _pairs(self, rng: Random) -> bytes:
        compared, wanted = (list(dict.fromkeys(self._key(rng) for _ in range(2))) for _ in range(2))
        found = [self._structure.entries.get(key) if rng.random() < 0.9 else b"nothing like it" for key in compared]
        values = [None if rng.random() < 0.2 else b"%d" % rng.randrange(1000) for _ in wanted]
        fields = b""
        for keys, texts in ((compared, found), (wanted, values)):
            fields += U32.pack(len(keys))
            fields += b"".join(value_bytes(key) + optional_bytes(text) for key, text in zip(keys, texts, strict=True))
        return fields


class CounterUser(User):
    def __init__(self, structure: Counter) -> None:
        self._structure = structure

    def operation(self, rng: Random) -> bytes:
        return bytes([ADD]) + I64.pack(rng.randrange(-50, 100))

    def answer(self, question: bytes) -> bytes:
        return b"%d" % self._structure.value


class _Claimant(User):
    """One that has tickets."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._last = 0
        self._open: list[int] = []  # tickets that it has not given up

    def _begin(self) -> bytes:
        self._last += 1
        self._open.append(self._last)
        return U64.pack(self._last)

    def _end(self, rng: Random) -> bytes:
        return U64.pack(self._open.pop(rng.randrange(len(self._open))))


class LockUser(_Claimant):
    """Uses a lock, or a leader."""

    def __init__(self, structure: Exclusive[Any], owner: Owner) -> None:
        super().__init__(owner)
        self._structure = structure

    def operation(self, rng: Random) -> bytes:
        if self._open and rng.random() < 0.55:
            return bytes([RELEASE]) + self._end(rng)
        return bytes([ACQUIRE]) + self._begin()

    def answer(self, question: bytes) -> bytes:
        grant = self._structure.grant
        return b"" if grant is None else b"%s %d" % (_claim_text(*grant.claim), grant.token)


class TimedLockUser(LockUser):
    """Holds it for some time at most, and forgets to release it."""

    def operation(self, rng: Random) -> bytes:
        chance = rng.random()
        if self._open and chance < 0.2:
            return bytes([RENEW]) + U64.pack(rng.choice(self._open))
        if chance < 0.6:
            return bytes([ACQUIRE_FOR]) + self._begin() + U64.pack(rng.randrange(1, 4))
        return super().operation(rng)


class QueueUser(_Claimant):
    def __init__(self, structure: Queue, owner: Owner) -> None:
        super().__init__(owner)
        self._structure = structure

    def operation(self, rng: Random) -> bytes:
        chance = rng.random()
        if chance < 0.4:
            return bytes([PUT]) + value_bytes(b"%d" % rng.randrange(1_000_000))
        done = [ticket for ticket in self._open if Claim(self._owner, ticket) in self._structure.taken]
        if done and chance < 0.65:
            self._open.remove(done[0])
            return bytes([ACKNOWLEDGE]) + U64.pack(done[0])
        if self._open and chance < 0.75:
            return bytes([GIVE_BACK]) + self._end(rng)
        return bytes([TAKE]) + self._begin()

    def answer(self, question: bytes) -> bytes:
        later, dead = self._structure.later, sorted(self._structure.dead)
        taken = sorted((job[0], take) for take, job in self._structure.taken.items())
        texts = [b"%d %s" % (number, _claim_text(*take)) for number, take in taken]
        texts += [b"%d later" % len(later)] if later else []
        texts += [b"dead: " + b" ".join(b"%d" % number for number in dead)] if dead else []
        return b"; ".join([b"%d free" % len(self._structure.waiting), *texts])


class TimedQueueUser(QueueUser):
    """Puts jobs for later, takes them for some time, and forgets them."""

    def operation(self, rng: Random) -> bytes:
        chance = rng.random()
        if chance < 0.3:
            value = value_bytes(b"%d" % rng.randrange(1000))
            return bytes([PUT_LATER]) + value + U64.pack(rng.randrange(3)) + U32.pack(rng.randrange(3))
        if chance < 0.55:
            return bytes([TAKE_FOR]) + self._begin() + U64.pack(rng.randrange(1, 4))
        if self._open and chance < 0.62:
            return bytes([EXTEND]) + U64.pack(rng.choice(self._open))
        if self._structure.dead and chance < 0.7:
            return bytes([rng.choice((REVIVE, DISCARD))]) + U64.pack(rng.choice(sorted(self._structure.dead)))
        return super().operation(rng)


class BarrierUser(_Claimant):
    def __init__(self, structure: Barrier, owner: Owner) -> None:
        super().__init__(owner)
        self._structure = structure

    def operation(self, rng: Random) -> bytes:
        is_leaving = bool(self._open) and rng.random() < 0.3
        kind, ticket = (WITHDRAW, self._end(rng)) if is_leaving else (ARRIVE, self._begin())
        return bytes([kind]) + ticket + U32.pack(self._structure.parties)

    def answer(self, question: bytes) -> bytes:
        return b"%d opened, %d arrived" % (self._structure.opened, len(self._structure.arrived))


def _claim_text(owner: Owner, ticket: int) -> bytes:
    return b"%s %d %d" % (owner.name.encode(), owner.life, ticket)


def kind_of(text: str) -> tuple[type[Structure[Any]], tuple[int, ...]]:
    """Return the class of a structure, and what it is made with."""
    name, *numbers = text.split()
    kinds: dict[str, type[Structure[Any]]] = {
        "dictionary": Dictionary,
        "counter": Counter,
        "queue": Queue,
        "lock": Lock,
        "leader": Leader,
        "barrier": Barrier,
        "leases": Dictionary,
        "timed-queue": Queue,
        "timed-lock": Lock,
    }
    return kinds[name], tuple(map(int, numbers))


def user_of(structure: Structure[Any], owner: Owner, *, is_timed: bool = False) -> User:
    """`is_timed`: one who uses all that ends with time."""
    match structure:
        case Dictionary() if is_timed:
            return LeaseUser(structure)
        case Queue() if is_timed:
            return TimedQueueUser(structure, owner)
        case Exclusive() if is_timed:
            return TimedLockUser(structure, owner)
        case Dictionary():
            return DictionaryUser(structure)
        case Counter():
            return CounterUser(structure)
        case Queue():
            return QueueUser(structure, owner)
        case Exclusive():
            return LockUser(structure, owner)
        case Barrier():
            return BarrierUser(structure, owner)
        case _:
            raise TypeError(f"nobody knows how to use a {type(structure).__name__}")
