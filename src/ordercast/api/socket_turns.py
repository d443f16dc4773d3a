"""SocketTurns: threads that wait for something of one socket. One of them reads it, the others are told.

One lock guards the client's whole state. A thread that waits in `poll` does not hold it, so that others may send. What
changes the state without a reading calls `changed`, so that whoever waits looks again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ordercast.api.blocking_link import BlockingLink


class SocketTurns:
    def __init__(self) -> None:
        self.lock = threading.Condition(threading.Lock())
        self.link: BlockingLink | None = None  # that is read
        self.readings = 0  # of others than the keeper
        self.waiting = 0  # threads that are told by whoever reads
        self.is_read = False  # somebody waits at the socket
        self.is_over = False  # nobody reads any more
        self._is_kept = False  # who waits at the socket is the keeper, who makes room for others

    def wait(self, is_done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait, with the lock, which is free meanwhile. False when it took too long."""
        until = None if seconds is None else time.monotonic() + seconds
        left = seconds
        while not is_done():
            if until is not None and (left := until - time.monotonic()) <= 0:
                return False
            link = self.link
            if link is not None and link.is_open and not self.is_read and not self.is_over:
                self.readings += 1
                self._read(link, left)
                continue
            if self._is_kept and link is not None:
                link.nudge()
            self.waiting += 1
            try:
                self.lock.wait(left)
            finally:
                self.waiting -= 1
        return True

    def keep(self, link: BlockingLink, seconds: float) -> None:
        """The keeper's reading, with the lock: until there is something, somebody else wants to read, or so many
        seconds have passed."""
        self._is_kept = True
        try:
            self._read(link, seconds)
        finally:
            self._is_kept = False

    def may_keep(self, link: BlockingLink) -> bool:
        return link is self.link and link.is_open and not (self.waiting or self.is_read or self.is_over)

    def changed(self) -> None:
        """Let whoever waits look again. To be called with the lock."""
        if self.is_read and self.link is not None and self.link.is_open:
            self.link.nudge()
        self.lock.notify_all()

    def _read(self, link: BlockingLink, seconds: float | None) -> None:
        """One reading of the socket, when there is something."""
        self.is_read = True
        self.lock.release()
        try:
            link.wait(seconds)
        finally:
            self.lock.acquire()
            self.is_read = False
            if self.waiting:
                self.lock.notify_all()
        if link.is_open and not self.is_over:
            link.read()
