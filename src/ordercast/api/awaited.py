"""What somebody waits for: a future of an event loop, or, for a thread that reads its socket itself, a `Awaited`."""

from __future__ import annotations

import asyncio
from typing import Any


def new_future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


class Awaited:
    """A future without an event loop: whoever waits for it looks at it after each reading of the socket. Its methods
    are those of a future; the lock of the client guards it."""

    __slots__ = ("_error", "_is_done", "_result")

    def __init__(self) -> None:
        self._is_done = False
        self._result: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        return self._is_done

    def set_result(self, result: Any) -> None:
        self._is_done, self._result = True, result

    def set_exception(self, error: BaseException) -> None:
        self._is_done, self._error = True, error

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result
