"""`on_message`: the application is called with each event, in order, in the turn of its packet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import Event, Message, Node, UsageError, View, connect
from ordercast.api import callback
from ordercast.daemon.status.advice import advised
from ordercast.daemon.status.report import status_of
from tests.live.local_daemons import daemons, live
from tests.live.stage import local, quick_ring


class Heard:
    """Remembers what it is called with."""

    def __init__(self, last: bytes) -> None:
        self.events: list[Event] = []
        self.is_done = asyncio.Event()
        self._last = last

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Message):
            if event.data == self._last:
                self.is_done.set()
            if event.data == b"bad":
                raise ValueError("a mistake of the application's")

    @property
    def said(self) -> list[bytes]:
        return [event.data for event in self.events if isinstance(event, Message)]


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(
        asyncio.BaseEventLoop, "call_exception_handler", lambda _, context: told.append(context), raising=True
    )
    return told


async def play(me: ordercast.Member, heard: Heard, errors: list[dict[str, Any]]) -> None:
    await me.join("orders")
    await me.send("orders", b"first", confirm=True)
    assert heard.said == [b"first"]  # called before the confirmation is told, without anybody who reads
    await me.send_many("orders", [b"bad", b"last"])
    await heard.is_done.wait()
    assert isinstance(heard.events[0], View) and heard.said == [b"first", b"bad", b"last"]
    counted = me.callback
    assert counted is not None and (counted.calls, counted.raised, counted.slow) == (4, 1, 4)
    (context,) = errors
    assert "on_message raised ValueError at a Message" in context["message"]
    with pytest.raises(UsageError, match="events go to on_message"):
        await me.receive()
    async with me.group("apart") as apart:
        assert isinstance(await apart.receive(30), View)
    assert len(heard.events) == 4


@live
async def test_a_client_is_called_with_each_event(
    tmp_path: Path, errors: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callback, "SLOW_NS", -1)
    heard = Heard(b"last")
    async with daemons(tmp_path, "n1") as at, connect(at["n1"], on_message=heard) as me:
        await play(me, heard, errors)


@live
async def test_a_node_is_called_with_each_event_and_its_status_tells_of_slow_calls(
    errors: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callback, "SLOW_NS", -1)
    heard = Heard(b"last")
    async with Node(local(quick_ring()), on_message=heard) as me:
        await play(me, heard, errors)
        status = advised(status_of(me.host))
        assert status.clients.callback == me.callback
        warnings = " ".join(status.warnings)
        assert "on_message took up to" in warnings and "has raised an exception 1 time" in warnings


def test_the_blocking_form_has_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="on_message needs an event loop"), connect("n1", on_message=print):
        pass
