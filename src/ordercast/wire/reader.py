"""The one byte reader of control formats: engines, node lists, groups, clients, replicas. The data path has none."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ordercast.model.errors import WireError


class ByteReader:
    """Takes pieces off some bytes, front to back; whatever is missing is a WireError."""

    __slots__ = ("_what", "at", "data")

    def __init__(self, data: bytes, at: int = 0, what: str = "the packet") -> None:
        self.data = data
        self.at = at
        self._what = what

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        try:
            fields = layout.unpack_from(self.data, self.at)
        except struct.error:
            raise self._short() from None
        self.at += layout.size
        return fields

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise self._short()
        self.at += size
        return self.data[self.at - size : self.at]

    def cut(self, sizes: Sequence[int]) -> tuple[bytes, ...]:
        """Take pieces of these sizes in a row."""
        data = self.take(sum(sizes))
        return tuple([data[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)])

    def byte(self) -> int:
        return self.take(1)[0]

    def name(self) -> str:
        return self.names(1)[0]

    def names(self, count: int) -> list[str]:
        """So many names, each a length (1) and as many letters of ASCII."""
        data, at = self.data, self.at
        names: list[str] = []
        try:
            for _ in range(count):
                start = at + 1
                at = start + data[at]
                names.append(str(data[start:at], "ascii"))
        except IndexError:
            raise self._short() from None
        except UnicodeDecodeError:
            raise WireError(f"{self._what} has a name that is not ASCII") from None
        if at > len(data):
            raise self._short()
        self.at = at
        return names

    def numbers(self, count: int, letter: str) -> tuple[int, ...]:
        """So many integers of the size that a letter of `struct` names."""
        return struct.unpack(f">{count}{letter}", self.take(count * struct.calcsize(f">{letter}")))

    def rest(self) -> bytes:
        return self.take(self.left)

    def end(self) -> None:
        if self.left:
            raise WireError(f"{self.left} bytes too many behind {self._what}")

    def _short(self) -> WireError:
        return WireError(f"{self._what} is cut short")
