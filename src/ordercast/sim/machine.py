"""The replicated state of a simulated replica: a real structure that also knows who called for what, and its own past.

Every command of a caller has a stamp in front: whose call it is. It is taken off here, so the judges know what was
called for by whom however commands are put together on their way. The chained digest of the past travels with pictures,
which are cut into small pieces, so that transfers take their time.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from ordercast.replicated.machine import Frozen, Origin
from ordercast.replicated.structures.base import Applied, Cut, Reloaded, Structure
from ordercast.replicated.structures.fields import U64, Reader
from ordercast.sim.users import kind_of

PIECE_SIZE = 60
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
    def __init__(self, chain: int, frozen: Frozen) -> None:
        assert isinstance(frozen, Cut)
        self._chain, self._frozen = chain, frozen

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        assert start == 0
        yield U64.pack(self._chain)
        yield from self._frozen.pieces(size=PIECE_SIZE)


def chained(kind: str) -> Chained:
    """Make a structure of this kind that is `Chained`, too."""
    plain, arguments = kind_of(kind)
    made: Chained = type(f"Chained{plain.__name__}", (Chained, plain), {})(*arguments)
    return made


class Ear:
    """The machine's audience: of what is applied the structure tells itself."""

    def __init__(self, on_loaded: Callable[[], None]) -> None:
        self._on_loaded = on_loaded

    def want(self, kind: type, /) -> bool:
        return False

    def tell(self, event: Applied | Reloaded, /) -> None:
        self._on_loaded()


class Chained(Structure[Any]):
    """What is mixed into a structure."""

    chain: int = 0
    on_applied: Callable[[Command], None]
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
        return Picture(self.chain, super().freeze())  # type: ignore[safe-super]

    def fill(self, fields: Reader) -> None:
        if self._has_chain:
            super().fill(fields)  # type: ignore[safe-super]
            return
        self.chain, self._has_chain = fields.number(U64), True
        fields.end()

    def adopt(self, other: Self) -> None:
        super().adopt(other)  # type: ignore[safe-super]
        self.chain = other.chain


def _call_from(command: bytes, origin: Origin) -> tuple[int, int, bytes]:
    """Return life and number of the call, and the command without its stamp: replicas say some things of their own."""
    if command[:1] != bytes([_MARK]):
        return origin.life, NOBODY, command
    _, life, number = _STAMP.unpack_from(command)
    return life, number, command[_STAMP.size :]
