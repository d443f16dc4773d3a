"""What an application gives to be replicated: a state, and commands that change it.

`apply` must be deterministic: the same commands in the same order give the same state and the same results on every
replica, on any machine. It gets no clock and no randomness; what it needs of either travels in the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Origin(NamedTuple):
    """Whose command it is, and its place."""

    name: str  # of the replica that submitted it: alice@n1
    life: int  # which life of it
    request: int  # which request of that life, from 1
    position: int  # which command of all, from 1: rises for ever, so it serves as a fencing token


class Frozen(Protocol):
    """A picture of the state as it was when it was frozen, whatever is applied afterwards. Cheap to take: it shares
    what has not changed since."""

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """From piece number `start` on. Deterministic: replicas that applied the same commands cut the same bytes."""
        ...


class StateMachine(Protocol):
    def apply(self, command: bytes, origin: Origin) -> bytes:
        """Change the state; the result is given to who submitted it. A command that cannot be done says so in its
        result: an exception here is a fault of the program, and the end of the replica (`effects.Spoilt`)."""
        ...

    def freeze(self) -> Frozen: ...

    def load(self, pieces: Iterable[bytes]) -> None:
        """Replace the whole state by that of a picture. All or nothing: when `pieces` raises, the old state stays."""
        ...


class SideState(NamedTuple):
    """The state of one of several sides that have met."""

    number: int  # from 1, the same at all replicas
    members: tuple[str, ...]  # who was on it
    pieces: Iterable[bytes] | None  # of its picture; None: it is the state that is here


@runtime_checkable
class Unites(Protocol):
    """What a state machine has besides, when every side of a partition goes on."""

    def unite(self, sides: Sequence[SideState]) -> None:
        """Have a state that unites these: one of them is the one that is here, perhaps. It happens at one replica, the
        others get what comes of it, so it need not be deterministic."""
