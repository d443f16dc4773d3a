"""The replicated state of simulated replicas: a small dictionary that remembers, in a chained digest, all its past.

put KEY VALUE    gives the value before          add KEY NUMBER    gives the sum
get KEY          gives the value                 delete KEY        gives the value before
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from ordercast.replicated.machine import Origin

Told = Callable[[bytes, Origin, bytes], None]  # a command, whose it is, and its result


class Picture:
    def __init__(self, last: int, chain: bytes, values: dict[bytes, bytes]) -> None:
        self.last, self.chain, self.values = last, chain, values

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """One for each key, so that transfers take their time."""
        yield from [b"%d %s" % (self.last, self.chain.hex().encode()), *self._items()][start:]

    def _items(self) -> list[bytes]:
        return [b"%s %s" % item for item in sorted(self.values.items())]


class Dictionary:
    def __init__(self, told: Told, loaded: Callable[[int, bytes], None]) -> None:
        self._told = told
        self._loaded = loaded  # called with the last position and the chain
        self.values: dict[bytes, bytes] = {}
        self.last = 0  # the position of the last command
        self.chain = bytes(8)

    def apply(self, command: bytes, origin: Origin) -> bytes:
        result = result_of(self.values, command)
        text = b"%d %d %d %s" % (origin.position, origin.life, origin.request, command)
        self.chain = hashlib.blake2b(text, key=self.chain, digest_size=8).digest()
        self.last = origin.position
        self._told(command, origin, result)
        return result

    def freeze(self) -> Picture:
        return Picture(self.last, self.chain, dict(self.values))

    def load(self, pieces: Iterable[bytes]) -> None:
        first, *items = list(pieces)
        last, chain = first.split(b" ")
        self.last, self.chain = int(last), bytes.fromhex(chain.decode())
        self.values = {key: value for key, _, value in (item.partition(b" ") for item in items)}
        self._loaded(self.last, self.chain)


def result_of(values: dict[bytes, bytes], command: bytes) -> bytes:
    """Change the values; the result."""
    operation, key, *rest = command.split(b" ")
    before = values.get(key, b"")
    if operation == b"put":
        values[key] = rest[0]
    elif operation == b"add":
        values[key] = before = b"%d" % ((int(before) if before.isdigit() else 0) + int(rest[0]))
    elif operation == b"delete":
        values.pop(key, None)
    return before
