"""Simulated connections between clients and their daemons."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

from ordercast.sim.pipe import Pipe


class Time:
    def __init__(self) -> None:
        self.now = 0
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def schedule(self, at: int, action: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heappush(self._queue, (at, self._count, action, arguments))

    def step(self) -> None:
        self.now, _, action, arguments = heappop(self._queue)
        action(*arguments)


def _pipe() -> tuple[Time, Pipe, list[bytes | None]]:
    time, arrived = Time(), list[bytes | None]()
    return time, Pipe(time, Random(1), arrived.append, lambda: arrived.append(None)), arrived


def test_a_pipe_is_empty_when_its_end_has_arrived_and_not_before() -> None:
    time, pipe, arrived = _pipe()
    pipe.write(b"x")
    pipe.finish()
    time.step()
    assert (arrived, pipe.is_empty) == ([b"x"], False)
    time.step()
    assert (arrived, pipe.is_empty) == ([b"x", None], True)


def test_a_pipe_that_breaks_loses_what_is_on_its_way_and_tells_the_end() -> None:
    time, pipe, arrived = _pipe()
    pipe.write(b"x")
    pipe.cut()
    assert not pipe.is_empty
    time.step()
    time.step()
    assert (arrived, pipe.is_empty) == ([None], True)
