"""Codecs: values come back, and what is something else is said in a sentence."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast import BYTES, JSON, MSGPACK, TEXT, Codec, Content, Message, Service, UsageError, WrongContent
from ordercast.model.ids import NO_POSITION


@dataclass(frozen=True)
class Order:
    what: str
    count: int


ORDERS: Codec[Order] = JSON.shaped(lambda value: Order(**value), asdict, "application/vnd.order+json")


def message(content: Content) -> Message:
    return Message(("orders",), "alice@n1", content.data, NO_POSITION, Service.AGREED, content.headers)


@pytest.mark.parametrize(
    ("codec", "value"),
    [(BYTES, b"\0"), (TEXT, "größer"), (JSON, {"buy": [3, None]}), (ORDERS, Order("tea", 3))],
)
def test_values_come_back(codec: Codec[Any], value: object) -> None:
    sent = codec.pack(value, {"trace": "7"})
    assert sent.headers == {"trace": "7", "content-type": codec.content_type}
    assert codec.unpack(message(sent)) == value


def test_another_content_is_refused_with_both_names() -> None:
    with pytest.raises(WrongContent, match="of alice@n1 is text/plain, not application/json: use its codec"):
        JSON.unpack(message(TEXT.pack("{}")))
    assert JSON.unpack(message(Content(b"{}"))) == {}  # nothing is said


def test_data_that_is_none_is_refused() -> None:
    with pytest.raises(WrongContent, match="of alice@n1 is no application/json"):
        JSON.unpack(message(Content(b"{")))
    with pytest.raises(WrongContent, match="of alice@n1 is no application/json"):
        JSON.unpack(message(Content(b"[" * 200_000)))  # whoever reads goes on
    with pytest.raises(WrongContent, match=r"of alice@n1 is no application/vnd\.order"):
        ORDERS.unpack(message(Content(b'{"what": "tea"}')))
    with pytest.raises(UsageError, match="set cannot be sent as application/json"):
        JSON.pack({3})
    endless: list[object] = []
    endless.append([endless])
    with pytest.raises(UsageError, match="list cannot be sent as application/json"):
        JSON.pack(endless)
    with pytest.raises(UsageError, match="str cannot be sent as application/octet-stream: give bytes"):
        BYTES.pack("text")  # type: ignore[arg-type]


def test_msgpack_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(UsageError, match=r"MSGPACK needs msgpack: install it with `pip install 'ordercast\[msgpack\]'"):
        MSGPACK.pack(3)
    fake = SimpleNamespace(packb=lambda value: repr(value).encode(), unpackb=lambda data, strict_map_key: eval(data))
    monkeypatch.setitem(sys.modules, "msgpack", fake)
    assert MSGPACK.unpack(message(MSGPACK.pack({1: "a"}))) == {1: "a"}
