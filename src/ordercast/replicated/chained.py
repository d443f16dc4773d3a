"""A structure whose replicas are recorded: it also knows who called for what, and has a digest of its own past. Pure.

Every command of a caller has a stamp in front: whose call it is. It is taken off here, so the judges know what was
called for by whom however commands are put together on their way. The chained digest of the past travels with pictures.
Simulated replicas and recorded live ones have the same; all replicas of a group are chained, or none.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import Cut, Structure
from ordercast.replicated.structures.fields import PIECE_SIZE, U64, Reader

NOBODY = 0  # the number of a call that nobody waits for
_MARK = 0xEE  # no command of a structure begins with it
_STAMP = struct.Struct("!BQI")  # mark, life, number of the call


class Command(NamedTuple):
    """A command as it was applied."""

    life: int  # of the caller
    number: int  # of the call
    bare: bytes
    origin: Origin
    result: bytes


def stamped(life: int, number: int, command: bytes) -> bytes:
    return _STAMP.pack(_MARK, life, number) + command


class Picture:
    """The chained digest, and then the pieces of the structure."""

    def __init__(self, chain: int, frozen: Frozen, piece_size: int = PIECE_SIZE) -> None:
        assert isinstance(frozen, Cut)
        self._chain, self._frozen, self._piece_size = chain, frozen, piece_size

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        if start == 0:
            yield U64.pack(self._chain)
        yield from self._frozen.pieces(max(0, start - 1), self._piece_size)


def chained(plain: type[Structure[Any]], *arguments: Any, piece_size: int = PIECE_SIZE) -> Chained:
    """Make a structure of this kind that is `Chained`, too. `piece_size`: of its pictures."""
    name = " ".join((plain.__name__.lower(), *map(str, arguments)))
    members = {"piece_size": piece_size, "structure_name": name, "NAME": f"Recorded{plain.__name__}"}
    made: Chained = type(f"Chained{plain.__name__}", (Chained, plain), members)(*arguments)
    return made


class Chained(Structure[Any]):
    """What is mixed into a structure."""

    chain: int = 0
    piece_size: int
    structure_name: str  # what is replicated, and what it was made with
    on_applied: Callable[[Command], None]
    on_adopted: Callable[[], None] | None = None  # the state is another's
    _has_chain = False  # it is being filled, and its head has come

    def apply_all(self, commands: Sequence[bytes], origin: Origin) -> list[bytes]:
        calls = [_call_from(command, origin) for command in commands]
        results = super().apply_all([bare for _, _, bare in calls], origin)
        for at, ((life, number, bare), result) in enumerate(zip(calls, results, strict=True), origin.position):
            text = b"%d %d %d %s" % (at, life, number, bare)
            digest = hashlib.blake2b(text, key=U64.pack(self.chain), digest_size=U64.size).digest()
            self.chain = int.from_bytes(digest, "big")
            self.on_applied(Command(life, number, bare, origin._replace(position=at), result))
        return results

    def freeze(self) -> Frozen:
        return Picture(self.chain, super().freeze(), self.piece_size)  # type: ignore[safe-super]

    def fill(self, fields: Reader) -> None:
        if self._has_chain:
            super().fill(fields)  # type: ignore[safe-super]
            return
        self.chain, self._has_chain = fields.number(U64), True
        fields.end()

    def adopt(self, other: Self) -> None:
        super().adopt(other)  # type: ignore[safe-super]
        self.chain = other.chain
        if self.on_adopted is not None:
            self.on_adopted()


def _call_from(command: bytes, origin: Origin) -> tuple[int, int, bytes]:
    """Return life and number of the call, and the command without its stamp: replicas say some things of their own."""
    if command[:1] != bytes([_MARK]):
        return origin.life, NOBODY, command
    _, life, number = _STAMP.unpack_from(command)
    return life, number, command[_STAMP.size :]
