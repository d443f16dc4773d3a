"""DaemonLoop: the event loop of a daemon, whose own sockets are read inside `select`.

asyncio makes a handle of everything that can be read, and runs the handles after `select`. The daemon owns its loop, so
packets are read where the selector finds them: some ten calls less for each. Everything else is an event of asyncio's
as ever. An embedded node is a guest of the program's loop, and has `add_reader`.
"""

from __future__ import annotations

import asyncio
import math
import select
from collections.abc import Callable, Mapping
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector, SelectorKey
from typing import Any

Read = Callable[[], None]
EVENTS_MAX = 256  # that one look brings; the rest comes with the next
READABLE = ~select.EPOLLOUT if hasattr(select, "epoll") else 0
WRITABLE = ~select.EPOLLIN if hasattr(select, "epoll") else 0


class ReadingSelector(BaseSelector):
    """Over epoll. Sockets with a function of their own are read at once; `select` tells of the others."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._keys: dict[int, SelectorKey] = {}
        self._readers: dict[int, Read] = {}
        self.on_error: Callable[[Exception], None] | None = None

    def read(self, fd: int, read: Read) -> None:
        """Call this whenever the socket can be read."""
        self._epoll.register(fd, select.EPOLLIN)
        self._readers[fd] = read

    def stop_reading(self, fd: int) -> None:
        if self._readers.pop(fd, None) is not None:
            with suppress(OSError):  # it was closed before, and is not looked at any more
                self._epoll.unregister(fd)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        seconds = -1.0 if timeout is None else 0.0 if timeout <= 0 else math.ceil(timeout * 1e3) * 1e-3
        found: list[tuple[SelectorKey, int]] = []
        try:
            ready = self._epoll.poll(seconds, EVENTS_MAX)
        except InterruptedError:
            return found
        for fd, happened in ready:
            if (read := self._readers.get(fd)) is not None:
                try:
                    read()
                except Exception as error:
                    if self.on_error is None:
                        raise
                    self.on_error(error)
            elif (key := self._keys.get(fd)) is not None:
                events = (EVENT_WRITE if happened & WRITABLE else 0) | (EVENT_READ if happened & READABLE else 0)
                if events & key.events:
                    found.append((key, events & key.events))
        return found

    # What every selector has

    def register(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        fd = _number(fileobj)
        if fd in self._keys or fd in self._readers:
            raise KeyError(f"{fileobj!r} is registered already")
        self._epoll.register(fd, _asked(events))
        key = self._keys[fd] = SelectorKey(fileobj, fd, events, data)
        return key

    def unregister(self, fileobj: Any) -> SelectorKey:
        key = self._keys.pop(_number(fileobj))
        with suppress(OSError):  # likewise
            self._epoll.unregister(key.fd)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        fd = _number(fileobj)
        before = self._keys[fd]
        if events != before.events:
            self._epoll.modify(fd, _asked(events))
        key = self._keys[fd] = SelectorKey(before.fileobj, fd, events, data)
        return key

    def close(self) -> None:
        self._epoll.close()
        self._keys.clear()
        self._readers.clear()

    def get_key(self, fileobj: Any) -> SelectorKey:
        return self._keys[_number(fileobj)]

    def get_map(self) -> Mapping[Any, SelectorKey]:
        return self._keys


class DaemonLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._reading = ReadingSelector()
        super().__init__(self._reading)
        self._reading.on_error = self._report

    def read_in_select(self, fd: int, read: Read) -> None:
        """As `add_reader`, and called where the selector finds that there is something."""
        self._reading.read(fd, read)

    def stop_reading(self, fd: int) -> None:
        self._reading.stop_reading(fd)

    def _report(self, error: Exception) -> None:
        self.call_exception_handler({"message": "an error while packets were read", "exception": error})


def daemon_loop() -> asyncio.AbstractEventLoop:
    """The loop that a daemon runs on: where there is no epoll, any."""
    return DaemonLoop() if hasattr(select, "epoll") else asyncio.new_event_loop()


def _number(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def _asked(events: int) -> int:
    return (select.EPOLLIN if events & EVENT_READ else 0) | (select.EPOLLOUT if events & EVENT_WRITE else 0)
