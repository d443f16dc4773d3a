"""What all ready structures have in common: a state machine of commands with a kind, and a front with typed methods.

A command is one byte for its kind and then its fields (`fields.py`); a result begins with YES, NO or REFUSED. A
structure is pure: it changes by commands alone, and equal commands give equal structures. A front is what an
application calls; it talks to the replica through a `Caller`.

Structures of which members own parts (a lock, a job that was taken) are told in the ordered stream who has gone: by the
commands GONE, from a replica that sees it, and BACK, from one that begins or was cut off for a while.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

from ordercast.model.arguments import check_timeout
from ordercast.model.errors import Error, UsageError, WireError
from ordercast.model.lineage import Term
from ordercast.replicated.effects import Changed
from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.fields import PIECE_SIZE, U32, U64, Reader, pieces_from, value_bytes

YES, NO, REFUSED = b"\1", b"\0", b"\xff"
GONE, BACK = 0xF0, 0xF1

T = TypeVar("T")
FrontT = TypeVar("FrontT", covariant=True)
MachineT = TypeVar("MachineT")


class Owner(NamedTuple):
    """One life of a member."""

    name: str
    life: int


class Claim(NamedTuple):
    """A wish of one task of a member. The ticket is a number that the member does not use again."""

    owner: Owner
    ticket: int


class Applied(NamedTuple):
    """A command that was applied here."""

    command: bytes
    origin: Origin
    result: bytes


class Reloaded(NamedTuple):
    """Some commands are not told one by one: read the copy anew."""

    why: str


class Age(NamedTuple):
    """How old a copy is: the primary component in which it was last known to be current, and its commands so far."""

    term: Term | None
    commands: int
    is_current: bool  # it is the state of a primary component, as far as is known here


class Answer(Protocol):
    """To one's own command."""

    @property
    def position(self) -> int: ...
    @property
    def result(self) -> bytes: ...


AnswerT = TypeVar("AnswerT", bound=Answer)


class Caller(Protocol):
    """What a front needs of its replica."""

    @property
    def me(self) -> Owner:
        """Who calls."""

    @property
    def stint(self) -> int:
        """How often the group's stream was lost."""

    @property
    def is_in_group(self) -> bool: ...

    @property
    def age(self) -> Age: ...

    @property
    def status(self) -> Changed | None: ...

    async def within(
        self,
        waiting: Awaitable[T],
        timeout: float | None,
        *,
        is_command: bool = False,
        awaited: Callable[[], str] | None = None,
    ) -> T:
        """TimedOut when it takes longer than so many seconds. `awaited` tells what for, where the replica is
        current."""

    def submit(self, command: bytes) -> Awaitable[Answer]:
        """Returns when it is confirmed; NotPrimary when it is not."""

    def post(self, command: bytes) -> None:
        """To be submitted, again and again if need be, while nobody waits for it."""

    def repeat(self, deed: Callable[[], Coroutine[Any, Any, bool]], every: float) -> Callable[[], object]:
        """Do it again every so many seconds, whatever it raises, until it gives False or what is returned is called."""

    async def synced(self) -> int: ...
    async def until(self, ready: Callable[[], T | None]) -> T:
        """What `ready` gives as soon as it gives something: asked after everything that is applied here."""

    async def ready(self) -> None: ...
    def watch(self, *kinds: type, after: int | None = None) -> AsyncIterator[Any]:
        """What happens from now on, of these kinds; `after`: what was applied behind this position comes first."""


class Lost(Error):
    """What one held belongs to somebody else now, or may soon: one was out of the group for a while."""


class Cut:
    """A picture: items that are encoded when they are asked for."""

    def __init__(self, items: Callable[[], Iterable[bytes]]) -> None:
        self._items = items

    def pieces(self, start: int = 0, size: int = PIECE_SIZE) -> Iterator[bytes]:
        return islice(pieces_from(self._items(), size), start, None)


class Structure(ABC, Generic[FrontT]):
    """A state machine (see `machine.py`) with a front. `NAME`: what it is called among replicas, which then refuse one
    that is called otherwise under the same name of a group; without it they cannot tell."""

    NAME: ClassVar[str] = ""
    _is_taken = False

    def take(self) -> None:
        """Say that it is a replica's from now on: its state is that of one group."""
        if self._is_taken:
            raise UsageError(f"this {type(self).__name__} is, or was, another replica's: give each replica a new one")
        self._is_taken = True

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @abstractmethod
    def front(self, caller: Caller) -> FrontT: ...

    @abstractmethod
    def carry_out(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        """The result. Fields that make no sense raise WireError, before anything is changed."""

    @abstractmethod
    def freeze(self) -> Frozen:
        """Copies references, not data."""

    @abstractmethod
    def blank(self) -> Self:
        """Another one like it, to be filled piece by piece."""

    @abstractmethod
    def fill(self, fields: Reader) -> None:
        """Take the items of one more piece."""

    @abstractmethod
    def adopt(self, other: Self) -> None:
        """Have the state of the other one, which nobody uses any more."""

    def amended(self) -> None:
        """An application may have changed the state itself, in `on_merge`: what follows from it is made anew."""

    def apply(self, command: bytes, origin: Origin) -> bytes:
        try:
            if not command:
                raise WireError("a command without a kind")
            return self.carry_out(command[0], Reader(command, 1), origin)
        except WireError as error:
            return REFUSED + str(error).encode()

    def apply_all(self, commands: Sequence[bytes], origin: Origin) -> list[bytes]:
        """Commands in a row of one sender, and the place of the first. A structure that has much to do may know a
        faster way than one by one."""
        name, life, request, first = origin
        apply = self.apply
        return [
            apply(command, Origin(name, life, request, position)) for position, command in enumerate(commands, first)
        ]

    def load(self, pieces: Iterable[bytes]) -> None:
        filled = self.blank()
        for piece in pieces:
            filled.fill(Reader(piece))
        self.adopt(filled)


class Owned(Structure[FrontT]):
    """One of which members own parts."""

    @abstractmethod
    def owners(self) -> Collection[Owner]:
        """Who has something, or waits for something."""

    @abstractmethod
    def drop(self, is_gone: Callable[[Owner], bool], position: int) -> None:
        """These have gone: what they had is free, what they waited for is not theirs."""

    @abstractmethod
    def act(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        """As `carry_out`, of its own commands."""

    def carry_out(self, kind: int, fields: Reader, origin: Origin) -> bytes:
        if kind == GONE:
            gone = {read_owner(fields) for _ in range(fields.count())}
            fields.end()
            self.drop(lambda life: life in gone, origin.position)
            return YES
        if kind == BACK:
            fields.end()
            self.drop(lambda life: origin.name == life.name or origin.life == life.life, origin.position)
            return YES
        return self.act(kind, fields, origin)


def gone_command(lives: Iterable[Owner]) -> bytes:
    encoded = [owner_bytes(life) for life in sorted(lives)]
    return bytes([GONE]) + U32.pack(len(encoded)) + b"".join(encoded)


BACK_COMMAND = bytes([BACK])


def owner_bytes(life: Owner) -> bytes:
    return value_bytes(life.name) + U64.pack(life.life)


def read_owner(fields: Reader) -> Owner:
    return Owner(fields.text(), fields.number(U64))


def claim_bytes(claim: Claim) -> bytes:
    return owner_bytes(claim.owner) + U64.pack(claim.ticket)


def read_claim(fields: Reader) -> Claim:
    return Claim(read_owner(fields), fields.number(U64))


def claim_in(fields: Reader, origin: Origin) -> Claim:
    """Read the claim of who sent a command, which has the ticket."""
    return Claim(Owner(origin.name, origin.life), fields.number(U64))


class Front(Generic[MachineT]):
    """Typed methods on a replica."""

    def __init__(self, machine: MachineT, caller: Caller) -> None:
        self.machine = machine
        self._caller = caller

    def __repr__(self) -> str:
        known = "nothing is known yet" if self.status is None else self.status.sentence
        return f"<{type(self).__name__}, {'current' if self.age.is_current else 'not current'}: {known}>"

    @property
    def age(self) -> Age:
        """The age of the copy that is here."""
        return self._caller.age

    @property
    def status(self) -> Changed | None:
        """What is known of the component; its `sentence` says for whom is waited. None: nothing yet."""
        return self._caller.status

    async def synced(self, *, timeout: float | None = None) -> int:
        """Returns when everything that was confirmed to anybody before the call is in the copy that is here."""
        return await self._caller.within(self._caller.synced(), timeout)

    async def ready(self, *, timeout: float | None = None) -> None:
        """Returns when the copy that is here is the state of a primary component: commands are taken. TimedOut says for
        whom is waited."""
        await self._caller.within(self._caller.ready(), timeout)

    def watch(self) -> AsyncIterator[Any]:
        """What happens from now on: `Applied`, `Reloaded`, `Changed` (the component) and `Progress` (of a transfer)."""
        return self._caller.watch()

    async def _ask(self, kind: int, fields: bytes = b"", timeout: float | None = None) -> Answer:
        check_timeout(timeout)
        waiting = self._caller.submit(bytes([kind]) + fields)
        if timeout is None:
            return accepted(await waiting)
        return accepted(await self._caller.within(waiting, timeout, is_command=True))


class ClaimingFront(Front[MachineT]):
    """A front whose calls wait for something that the machine gives to claims, in its own time."""

    def __init__(self, machine: MachineT, caller: Caller) -> None:
        super().__init__(machine, caller)
        self._tickets = count(1)

    async def _given(
        self,
        claim: Claim,
        kinds: tuple[int, int],
        found: Callable[[Claim, bytes], T | None],
        more: bytes = b"",
        *,
        is_bare: bool = False,
    ) -> T:
        """Claim something with a command of the first kind, and return what `found` makes of its result. Whoever does
        not wait any more withdraws the claim with a command of the second kind; `is_bare`: without what is `more`."""
        fields = U64.pack(claim.ticket) + more
        try:
            result = (await self._ask(kinds[0], fields)).result
            return await self._caller.until(lambda: found(claim, result))
        except BaseException:
            self._caller.post(bytes([kinds[1]]) + fields[: U64.size if is_bare else None])
            raise

    def _new_claim(self) -> Claim:
        return Claim(self._caller.me, next(self._tickets))


def accepted(answer: AnswerT) -> AnswerT:
    if answer.result[:1] == REFUSED:
        raise UsageError(answer.result[1:].decode(errors="replace"))
    return answer
