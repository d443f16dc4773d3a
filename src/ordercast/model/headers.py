"""Headers: short texts with names that travel with a message, ahead of its data and apart from it.

    size of what follows (2) | of each: size of its name (1), name, size of its value (2), value, in UTF-8

Whether a message has such a block is said in its head (`groups/envelope.py`). What cannot be read as a block is data:
all readers answer alike, since it is a question of the bytes alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ordercast.model.errors import UsageError

SIZE_MAX: Final = 16 << 10  # of all headers of a message
CONTENT_TYPE: Final = "content-type"
OWN: Final = "ordercast-"  # what names of Ordercast itself begin with
REQUEST: Final = OWN + "request"  # the message wants a reply; which one
REPLY: Final = OWN + "reply"  # the message is one; to which request
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Headers(Mapping[str, str]):
    """What a message says beside its data. Read only, and hashable as messages are."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values) if values else {}

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"Headers({self._values})"


NO_HEADERS: Final = Headers()


def checked_headers(headers: Mapping[str, str]) -> Headers:
    """Return the headers of an application. UsageError for what cannot be one."""
    if not isinstance(headers, Mapping):
        raise UsageError(f"headers are names with texts, such as {{'trace': '7'}}, not {headers!r:.80}")
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is no name of a header: use 1 to 64 of a-z, 0-9, '-', '_' and '.', a letter or a digit first"
            )
        if name.startswith(OWN):
            raise UsageError(f"headers that begin with {OWN!r} are Ordercast's own: use another name than {name!r}")
        if not isinstance(value, str):
            raise UsageError(f"the header {name} is {type(value).__name__}: give a str")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise UsageError(f"the header {name} has half a character, which UTF-8 cannot say: give a whole text")
    return Headers(headers)


def header_block(headers: Mapping[str, str]) -> bytes:
    parts: list[bytes] = []
    for name, value in headers.items():
        key, text = name.encode(), value.encode()
        parts += (bytes((len(key),)), key, min(len(text), 0xFFFF).to_bytes(2, "big"), text)
    block = b"".join(parts)
    if len(block) > SIZE_MAX:
        raise UsageError(f"headers of {len(block):,} bytes are too large, at most {SIZE_MAX:,}: send it as data")
    return len(block).to_bytes(2, "big") + block


def headers_and_data(payload: bytes) -> tuple[Headers, bytes]:
    """Take off the block with which the payload begins. What is none stays where it is."""
    end = 2 + int.from_bytes(payload[:2], "big")
    if not 2 <= end <= min(len(payload), 2 + SIZE_MAX):
        return NO_HEADERS, payload
    values: dict[str, str] = {}
    at = 2
    try:
        while at < end:
            middle = at + 1 + payload[at]
            name = payload[at + 1 : middle].decode("ascii")
            at = middle + 2 + int.from_bytes(payload[middle : middle + 2], "big")
            if at > end or not _NAME.fullmatch(name):
                return NO_HEADERS, payload
            values[name] = payload[middle + 2 : at].decode()
    except (IndexError, UnicodeDecodeError):
        return NO_HEADERS, payload
    return Headers(values) if values else NO_HEADERS, payload[end:]
