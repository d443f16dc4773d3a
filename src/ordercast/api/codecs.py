"""Codecs: what an application sends and reads instead of bytes, with a content type that says so in the message.

    await me.send("orders", JSON.pack({"buy": 3}))
    ...
    order = JSON.unpack(message)    # WrongContent, if its sender says that it is something else

A codec has a type: `JSON.shaped(...)` makes one for a class of the application.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Generic, TypeVar

from ordercast.model.content import Content
from ordercast.model.errors import Error, UsageError
from ordercast.model.events import Message
from ordercast.model.extras import missing_extra
from ordercast.model.headers import CONTENT_TYPE, checked_headers

T = TypeVar("T")
U = TypeVar("U")


class WrongContent(Error, ValueError):
    """The data of a message is not what the codec reads."""


class Codec(Generic[T]):
    """Makes data of values, and values of data."""

    def __init__(self, content_type: str, encode: Callable[[T], bytes], decode: Callable[[bytes], T]) -> None:
        """`decode` raises ValueError, KeyError or TypeError for what is not such data."""
        self.content_type = content_type
        self._encode = encode
        self._decode = decode

    def __repr__(self) -> str:
        return f"<Codec {self.content_type}>"

    def pack(self, value: T, headers: Mapping[str, str] | None = None) -> Content:
        """What `send()` takes: the data, its content type, and further headers."""
        try:
            data = self._encode(value)
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            raise UsageError(f"{type(value).__name__} cannot be sent as {self.content_type}: {error}") from error
        return Content(data, checked_headers({**(headers or {}), CONTENT_TYPE: self.content_type}))

    def unpack(self, message: Message) -> T:
        """The value in a message. One that says no content type is read all the same."""
        said = message.content_type
        if said is not None and said != self.content_type:
            raise WrongContent(f"the message of {message.sender} is {said}, not {self.content_type}: use its codec")
        try:
            return self._decode(message.data)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise WrongContent(f"the message of {message.sender} is no {self.content_type}: {error}") from error

    def shaped(self, to: Callable[[T], U], back: Callable[[U], T], content_type: str = "") -> Codec[U]:
        """Return a codec of another type that is made of this one's values: `JSON.shaped(Order.from_json,
        Order.to_json)`."""
        encode, decode = self._encode, self._decode
        return Codec(
            content_type or self.content_type, lambda value: encode(back(value)), lambda data: to(decode(data))
        )


def _msgpack() -> Any:
    try:
        return import_module("msgpack")
    except ModuleNotFoundError as error:
        raise UsageError(missing_extra("ordercast.MSGPACK", error)) from None


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _bytes_alone(value: bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("give bytes")
    return value


BYTES: Final[Codec[bytes]] = Codec("application/octet-stream", _bytes_alone, _bytes_alone)
TEXT: Final[Codec[str]] = Codec("text/plain", str.encode, bytes.decode)
JSON: Final[Codec[Any]] = Codec("application/json", _json_bytes, json.loads)
MSGPACK: Final[Codec[Any]] = Codec(
    "application/msgpack",
    lambda value: bytes(_msgpack().packb(value)),
    lambda data: _msgpack().unpackb(data, strict_map_key=False),
)
