"""Requests that wait for their replies. A request says in a header which one it is, a reply to which one it belongs; a
reply is sent to the client that asked, by name. One that nobody waits for any more is dropped."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

from ordercast.api.awaited import new_future
from ordercast.model.content import Content
from ordercast.model.errors import UsageError
from ordercast.model.events import Batch, Message
from ordercast.model.headers import NO_HEADERS, REPLY, REQUEST, Headers, checked_headers, header_block
from ordercast.session.payloads import Sendable, checked_payloads


class Inquiries:
    """Requests of one member."""

    def __init__(self, new_promise: Callable[[], Any] = new_future) -> None:
        self._new = new_promise
        self._me = secrets.token_hex(8)  # a client that comes later under the same name gets no reply of ours
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Message]] = {}

    def new(self, data: Sendable, headers: Mapping[str, str] | None) -> tuple[str, bytes, asyncio.Future[Message]]:
        """Return its name, what is to be sent, and who waits."""
        number = f"{self._me}.{next(self._numbers)}"
        payload = _payload(data, headers, {REQUEST: number})
        future = self._waiting[number] = self._new()
        return number, payload, future

    def forget(self, number: str) -> None:
        self._waiting.pop(number, None)

    def without_replies(self, batch: Batch) -> Iterator[Batch]:
        """Hand out the replies in a batch, and yield the rest of it in order."""
        start = 0
        for index, message in enumerate(batch):
            number = message.headers.get(REPLY)
            if number is None:
                continue
            if (future := self._waiting.get(number)) is not None and not future.done():
                future.set_result(message)
            if start < index:
                yield batch.part(start, index)
            start = index + 1
        if start < len(batch):
            yield batch.part(start, len(batch))

    def fail(self, error: Exception) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
                future.exception()  # seen: who waits for it gets it anyway


def reply_content(message: Message, data: Sendable, headers: Mapping[str, str] | None) -> bytes:
    number = message.headers.get(REQUEST)
    if number is None:
        raise UsageError(f"the message of {message.sender} wants no reply: look at its wants_reply, or send one")
    return _payload(data, headers, {REPLY: number})


def _payload(data: Sendable, headers: Mapping[str, str] | None, own: Mapping[str, str]) -> bytes:
    content = data if isinstance(data, Content) else Content(checked_payloads([data])[0], NO_HEADERS)
    common = checked_headers(headers) if headers else Headers()
    return header_block({**common, **content.headers, **own}) + content.data
