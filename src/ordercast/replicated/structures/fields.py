"""The binary form of commands, results and pieces: numbers, and keys and values that are bytes or str.

A value is a number of 4 bytes, twice its size in bytes and one more if it is a str, and then its bytes (UTF-8). What
cannot be read raises WireError, at every replica alike; counts and sizes are checked before anything is made of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from ordercast.model.errors import UsageError, WireError
from ordercast.wire.reader import ByteReader

Value = bytes | str

U8: Final = struct.Struct("!B")
U32: Final = struct.Struct("!I")
U64: Final = struct.Struct("!Q")
I64: Final = struct.Struct("!q")
VALUE_SIZE_MAX = 16 << 20  # of one key or value: what a message may have
PIECE_SIZE = 64 << 10  # about: a piece ends with the first item that makes it so large
I64_MAX = (1 << 63) - 1


def value_bytes(value: Value) -> bytes:
    if isinstance(value, str):
        data, mark = value.encode(), 1
    elif isinstance(value, bytes):
        data, mark = value, 0
    else:
        raise _wrong_kind(value)
    if len(data) > VALUE_SIZE_MAX:
        raise UsageError(f"a value of {len(data):,} bytes is too large, at most {VALUE_SIZE_MAX:,}")
    return U32.pack(len(data) << 1 | mark) + data


def check_key(key: Value) -> None:
    """Raise UsageError unless this could be a key."""
    if not isinstance(key, bytes | str):
        raise _wrong_kind(key)


def _wrong_kind(value: object) -> UsageError:
    return UsageError(f"a key or value is bytes or str, not {type(value).__name__}: encode it first")


def optional_bytes(value: Value | None) -> bytes:
    return b"\0" if value is None else b"\1" + value_bytes(value)


class Reader(ByteReader):
    """Reads fields one after the other."""

    __slots__ = ()

    @property
    def is_at_end(self) -> bool:
        return not self.left

    def number(self, form: struct.Struct) -> int:
        return int(self.unpack(form)[0])

    def value(self) -> Value:
        return self.value_behind(self.number(U32))

    def value_behind(self, mark: int) -> Value:
        """Read a value whose size and mark were read already."""
        data = self.take(mark >> 1)
        if not mark & 1:
            return data
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise WireError("a text is not UTF-8") from None

    def text(self) -> str:
        value = self.value()
        if not isinstance(value, str):
            raise WireError("bytes where a text was expected")
        return value

    def optional(self) -> Value | None:
        mark = self.number(U8)
        if mark > 1:
            raise WireError(f"neither a value nor none: {mark}")
        return self.value() if mark else None

    def count(self) -> int:
        """Read a count of items that follow, each of at least 4 bytes."""
        count = self.number(U32)
        if count * U32.size > self.left:
            raise WireError(f"{count} items do not fit in")
        return count


def pieces_from(items: Iterable[bytes], size_min: int) -> Iterator[bytes]:
    """Cut after the item with which a piece gets large enough: the same cuts wherever the items are the same."""
    waiting: list[bytes] = []
    size = 0
    for item in items:
        waiting.append(item)
        size += len(item)
        if size >= size_min:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)
