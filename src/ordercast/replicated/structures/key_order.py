"""Keys of a dictionary in order, for who asks for a prefix or a range. Kept beside a copy, and no part of its state.

Nothing is done when a key is set: new keys stand at the end of the dictionary, so the next question finds those that
have come since the last one. Bytes come before texts; each kind is in the order of its bytes or letters.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice, takewhile
from typing import Any

from ordercast.replicated.structures.fields import Value


class KeyOrder:
    def __init__(self) -> None:
        self._keys: dict[type, list[Any]] = {bytes: [], str: []}
        self._count = 0  # of keys that are known here

    def forget(self, key: Value) -> None:
        """The key has been deleted."""
        known = self._keys[type(key)]
        at = bisect_left(known, key)
        if at < len(known) and known[at] == key:
            del known[at]
            self._count -= 1

    def clear(self) -> None:
        """The dictionary is another one."""
        self._keys = {bytes: [], str: []}
        self._count = 0

    def between(self, entries: dict[Value, Value], start: Value, end: Value | None) -> list[Value]:
        """Return the keys from `start` on, and before `end`, of the same kind."""
        known = self._known(entries, type(start))
        return known[bisect_left(known, start) : None if end is None else bisect_left(known, end)]

    def beginning(self, entries: dict[Value, Value], prefix: Value) -> list[Value]:
        known = self._known(entries, type(prefix))
        first = bisect_left(known, prefix)
        return list(takewhile(lambda key: key.startswith(prefix), islice(known, first, None)))

    def _known(self, entries: dict[Value, Value], kind: type) -> list[Any]:
        if missing := len(entries) - self._count:
            for key in islice(reversed(entries), missing):
                self._keys[type(key)].append(key)
            for keys in self._keys.values():
                keys.sort()  # what was in order stays in one run: this costs hardly more than the new ones
            self._count = len(entries)
        return self._keys[kind]
