"""Keys of a cluster: which are accepted, which is used, which shall be used as soon as all accept it.

Clear traffic is key 0, so that a cluster becomes sealed, or clear again, by the steps of any other change of keys. A
secret is in no `repr`, text or comparison that somebody prints.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from ordercast.model.errors import UsageError
from ordercast.sealing.cipher import SECRET_SIZE
from ordercast.wire.head import CLEAR

KEYS_MAX: Final = 8  # of one cluster at a time


def key_id_of(secret: bytes) -> int:
    """Return the public number of a key, 1 to 255: the first byte of a hash of it that is not 0."""
    return next((byte for byte in hashlib.sha256(b"ordercast key id" + secret).digest() if byte != CLEAR), 1)


@dataclass(frozen=True)
class ClusterKey:
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != SECRET_SIZE:
            raise UsageError(f"a key has {SECRET_SIZE} bytes, not {len(self.secret)}")

    @cached_property
    def id(self) -> int:
        return key_id_of(self.secret)

    def __str__(self) -> str:
        return f"key {self.id}"


@dataclass(frozen=True)
class KeyRing:
    """What one node knows. `used` is what it begins with; `wanted` differs from it while a change is under way."""

    keys: tuple[ClusterKey, ...]
    used: int
    wanted: int
    accepts_clear: bool = False
    at_once: bool = False  # do not wait for those who are away

    def __post_init__(self) -> None:
        ids = [key.id for key in self.keys]
        if len(self.keys) > KEYS_MAX:
            raise UsageError(f"a cluster has at most {KEYS_MAX} keys at a time, not {len(self.keys)}: retire some")
        if len(set(ids)) != len(ids):
            raise UsageError("two keys have one number: make another key")
        for which, number in (("used", self.used), ("next", self.wanted)):
            if number not in self.accepted:
                raise UsageError(f"key {number} is to be {which}, and is not among the keys {listed(self.accepted)}")

    @cached_property
    def accepted(self) -> tuple[int, ...]:
        """The numbers of what is opened."""
        return tuple(sorted({*(key.id for key in self.keys), *((CLEAR,) if self.accepts_clear else ())}))

    @cached_property
    def secrets(self) -> dict[int, bytes]:
        return {key.id: key.secret for key in self.keys}

    @cached_property
    def spoken(self) -> tuple[int, ...]:
        """The numbers of the keys under which a process says who it is: whoever may be heard has one of them."""
        spoken = tuple(sorted({self.used, self.wanted} - {CLEAR}))
        return spoken or tuple(key.id for key in self.keys[:1])

    def using(self, number: int) -> KeyRing:
        return KeyRing(self.keys, number, self.wanted, self.accepts_clear, self.at_once)


def listed(numbers: Sequence[int]) -> str:
    """Numbers of keys for people."""
    return ", ".join("clear" if number == CLEAR else str(number) for number in numbers)
