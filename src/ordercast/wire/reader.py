"""The one byte reader of control formats: engines, node lists, replicas. The data path does not use it."""

from __future__ import annotations

import struct
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
