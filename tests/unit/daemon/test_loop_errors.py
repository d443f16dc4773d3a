"""What the event loop cannot raise goes to the log, and is told once a minute where it goes on and on."""

from __future__ import annotations

import asyncio
import errno
import os

import pytest

from ordercast.daemon.loop_errors import REPEAT_S, LoopErrors

FULL = {"message": "socket.accept() out of system resource", "exception": OSError(errno.EMFILE, os.strerror(24))}


@pytest.fixture
def loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def test_a_lack_of_descriptors_is_one_sentence_a_minute(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    clock = 0.0
    handler = LoopErrors(lambda: clock)
    for _ in range(30):
        handler(loop, FULL)
    clock = REPEAT_S
    handler(loop, FULL)
    first, second = caplog.records
    assert "refuses it: Too many open files; raise the limit" in first.getMessage()
    assert "29 times more" in second.getMessage() and first.exc_info is None
    loop.close()


def test_anything_else_is_logged_with_what_is_known(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    LoopErrors()(loop, {"message": "a task was forgotten", "exception": ValueError("why")})
    LoopErrors()(loop, {"message": "something without an exception"})
    assert [record.getMessage() for record in caplog.records] == [
        "a task was forgotten",
        "something without an exception",
    ]
    assert caplog.records[0].exc_info is not None
    loop.close()
