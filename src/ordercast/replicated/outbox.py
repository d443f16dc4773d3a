"""Outbox: what a replica has to send to its group, and the task that sends it through its member."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from ordercast.api.member import Member
from ordercast.model.errors import ConnectionLost
from ordercast.model.service import Service


class Outbox:
    def __init__(self, member: Member, group: str, on_failed: Callable[[Exception], None]) -> None:
        """`on_failed`: nothing will be sent any more."""
        self._member = member
        self._group = group
        self._on_failed = on_failed
        self._waiting: list[bytes] = []
        self._has_some = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._sending = asyncio.get_running_loop().create_task(self._send_all())

    def put(self, payloads: Iterable[bytes]) -> None:
        self._waiting.extend(payloads)
        self._has_some.set()

    def clear(self) -> None:
        """Nothing that was not sent yet is of use."""
        self._waiting.clear()

    async def stop(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send_all(self) -> None:
        """What waits goes out together: the busier, the fewer calls."""
        while True:
            await self._has_some.wait()
            payloads, self._waiting = self._waiting, []
            self._has_some.clear()
            try:
                if payloads:
                    await self._member.send_many(self._group, payloads, Service.SAFE)
            except ConnectionLost:
                pass  # the stream says so too, and then all that matters is sent again
            except Exception as error:
                self._on_failed(error)
                return
