"""CallbackQueue: the application is called with each event as it comes, in the turn of the packet that brought it.

No inbox, no future and no task lie between, and nothing waits: the function may not block. How long it took is counted,
and what it raises is reported to the event loop; neither ends anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter_ns

from ordercast.api.inbox import Inbox, Queue
from ordercast.model.errors import UsageError
from ordercast.model.events import Event, Piece
from ordercast.model.ids import MILLISECOND
from ordercast.session.counters import CallbackCounters

OnMessage = Callable[[Event], None]
SLOW_NS = MILLISECOND  # a call that took longer is counted as slow: everybody waits for a member meanwhile


class CallbackQueue(Queue[Piece, Event]):
    def __init__(self, inbox: Inbox[Piece, Event], call: OnMessage) -> None:
        super().__init__(inbox)
        self.is_wanted = True
        self.counters = CallbackCounters()
        self._call = call

    def put(self, piece: Piece, size: int) -> None:
        counters, call = self.counters, self._call
        start = perf_counter_ns()
        for event in self._inbox.events_of(piece):
            try:
                call(event)
            except Exception as error:
                self._report(error, event)
            now = perf_counter_ns()
            counters.calls += 1
            if now - start > counters.longest_ns:
                counters.longest_ns = now - start
            if now - start > SLOW_NS:
                counters.slow += 1
            start = now
        self._inbox.took(size)

    def take(self) -> Piece | None:
        raise UsageError("events go to on_message, and not into the stream: read a group apart, or give no on_message")

    def _report(self, error: Exception, event: Event) -> None:
        self.counters.raised += 1
        kind = type(event).__name__
        told = f"on_message raised {type(error).__name__} at a {kind}, which counts as delivered: {error}"
        asyncio.get_running_loop().call_exception_handler({"message": told, "exception": error})
