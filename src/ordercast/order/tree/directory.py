"""Who wants which group: a function of the control stream. Immutable; a batch of changes makes another one.

The digest of a directory is the sum of those of its groups, so that what a change costs does not grow with the groups
that it leaves alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from ordercast.model.ids import ProcessId
from ordercast.order.tree.graph import Memberships

DIGEST_SIZE = 8
_BOUND = 1 << 8 * DIGEST_SIZE


class InterestChange(NamedTuple):
    """What a process wants from now on, and what no longer."""

    process: ProcessId
    gained: Iterable[str]
    lost: Iterable[str] = ()


class Directory:
    __slots__ = ("_sum", "_wants", "groups")

    def __init__(self) -> None:
        self.groups: Memberships = {}
        self._wants: dict[ProcessId, frozenset[str]] = {}
        self._sum = 0

    @property
    def digest(self) -> bytes:
        """Eight bytes that tell one directory from another."""
        return self._sum.to_bytes(DIGEST_SIZE, "big")

    def wants(self, process: ProcessId) -> tuple[str, ...]:
        """Return the groups that a process wants, sorted."""
        return tuple(sorted(self._wants.get(process, ())))

    def groups_of(self, processes: Iterable[ProcessId]) -> Memberships:
        """Return the groups that any of these processes wants."""
        names = {name for process in processes for name in self._wants.get(process, ())}
        return {name: self.groups[name] for name in sorted(names)}

    def after(self, changes: Iterable[InterestChange]) -> Directory:
        """Return the directory when these have been said, one after the other."""
        following = Directory()
        groups = dict(self.groups)
        wants, total = dict(self._wants), self._sum
        for process, gained, lost in changes:
            wanted = wants.get(process, frozenset())
            wants[process] = (wanted - frozenset(lost)) | frozenset(gained)
            for name in sorted(wants[process] ^ wanted):
                before = groups.pop(name, frozenset())
                total -= _digest_of(name, before)
                now = before ^ {process}
                if now:
                    groups[name] = now
                    total += _digest_of(name, now)
        following.groups, following._wants, following._sum = groups, wants, total % _BOUND
        return following


def _digest_of(name: str, members: frozenset[ProcessId]) -> int:
    if not members:
        return 0
    text = f"{name}\0{sorted(members)}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=DIGEST_SIZE).digest(), "big")
