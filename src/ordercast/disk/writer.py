"""DiskWriter: the thread that writes. It does the jobs that have come, and syncs once for all of them.

The event loop never waits for a disk: it hands over jobs, and is told when what they wrote is safe. While one sync
runs, the next batch gathers; `pause_s` makes batches larger still. A disk that refuses a batch is waited for: the batch
is tried again as a whole, from what was safe, until it is written or the writer is closed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

ROOM = 64 << 20  # bytes that wait for the disk; more has to wait outside
RETRY_S, RETRY_MAX_S = 0.1, 5.0
REPEAT_S = 60.0  # how often it is said that the disk is waited for
T = TypeVar("T")

Jobs = deque[tuple[Callable[[], object], int, asyncio.Future[object] | None]]
Results = list[tuple[object, asyncio.Future[object] | None]]


class SafeFiles(Protocol):
    """Files that are written together."""

    def sync(self) -> object:
        """Everything that was written is safe."""

    def back(self) -> None:
        """After an OSError: everything is as it was when it was last safe."""


class DiskWriter:
    def __init__(
        self,
        pause_s: float = 0.01,
        tell: Callable[[str], None] = lambda text: None,
        relieve: Callable[[], None] = lambda: None,
    ) -> None:
        """`tell` gets a sentence when the disk does not write, and when it does again; `relieve` is called on the
        thread meanwhile, and may make room."""
        self._pause_s = pause_s
        self._say = tell
        self._relieve = relieve
        self._loop = asyncio.get_running_loop()
        self._jobs: Jobs = deque()
        self._wake = threading.Condition()
        self._files: set[SafeFiles] = set()
        self._is_closed = False
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._waiting = 0  # bytes
        self.written = 0  # bytes, in all
        self.syncs = 0
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ordercast disk", daemon=True)
        self._thread.start()

    def put(self, files: SafeFiles, job: Callable[[], object], size: int = 0) -> None:
        """On the thread, behind everything that was handed over before."""
        self._put(files, job, size, None)

    async def do(self, files: SafeFiles, job: Callable[[], T], size: int = 0) -> T:
        """On the thread, behind everything that was handed over before. Returns when its effects are safe."""
        return await self.promise(files, job, size)  # type: ignore[return-value]

    def promise(self, files: SafeFiles, job: Callable[[], object], size: int = 0) -> asyncio.Future[object]:
        """Do the same. The future has the result when the effects are safe."""
        future: asyncio.Future[object] = self._loop.create_future()
        self._put(files, job, size, future)
        return future

    async def room(self) -> None:
        await self._has_room.wait()
        if self.failure is not None:
            raise self.failure

    def _put(
        self, files: SafeFiles, job: Callable[[], object], size: int, future: asyncio.Future[object] | None
    ) -> None:
        if self.failure is not None:
            raise self.failure
        with self._wake:
            self._files.add(files)
            self._jobs.append((job, size, future))
            self._waiting += size
            self._wake.notify()
        if self._waiting > ROOM:
            self._has_room.clear()

    async def close(self) -> None:
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        await asyncio.to_thread(self._thread.join)

    # The thread

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._jobs and not self._is_closed:
                    self._wake.wait()
                if not self._jobs:
                    return
            if self._pause_s and not self._is_closed:
                time.sleep(self._pause_s)
            with self._wake:
                jobs, self._jobs = self._jobs, deque()
                files = list(self._files)
            results = self._written(jobs, files)
            if results is None:
                return
            self.syncs += 1
            self._tell(self._done, results, sum(size for _, size, _ in jobs))

    def _written(self, jobs: Jobs, files: list[SafeFiles]) -> Results | None:
        """Does all of them, and makes them safe; None when that cannot be done."""
        trouble: _Trouble | None = None
        while True:
            try:
                if trouble is not None:
                    for one in files:
                        one.back()
                results: Results = [(job(), future) for job, _, future in jobs]
                for one in files:
                    one.sync()
            except OSError as error:
                trouble = trouble or _Trouble()
                if (text := trouble.text(error)) is not None:
                    self._tell(self._say, text)
                if not self._wait(trouble):
                    self._give_up(files)
                    self._tell(self._fail, error, jobs)
                    return None
            except BaseException as error:
                self._tell(self._fail, error, jobs)
                return None
            else:
                if trouble is not None:
                    self._tell(self._say, f"the disk writes again, after {trouble.seconds:.0f} s: nothing is lost")
                return results

    @staticmethod
    def _give_up(files: list[SafeFiles]) -> None:
        for one in files:
            with suppress(OSError):
                one.back()

    def _wait(self, trouble: _Trouble) -> bool:
        """Waits until another try is worth it; False when the writer is closed."""
        with suppress(OSError):
            self._relieve()
        with self._wake:
            return not self._wake.wait_for(lambda: self._is_closed, trouble.next_pause())

    def _tell(self, what: Callable[..., None], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *arguments)

    def _done(self, results: Results, size: int) -> None:
        with self._wake:
            self._waiting -= size
        self.written += size
        if self._waiting <= ROOM // 2:
            self._has_room.set()
        for result, future in results:
            if future is not None and not future.done():
                future.set_result(result)

    def _fail(self, error: BaseException, jobs: Jobs) -> None:
        """What was handed over is not safe, and will not be."""
        self.failure = error
        self._has_room.set()
        for _, _, future in [*jobs, *self._jobs]:
            if future is not None and not future.done():
                future.set_exception(error)


class _Trouble:
    """A disk that does not write."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._said_at: float | None = None
        self._pause = RETRY_S

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since

    def next_pause(self) -> float:
        pause, self._pause = self._pause, min(RETRY_MAX_S, 2 * self._pause)
        return pause

    def text(self, error: OSError) -> str | None:
        """What is to be said now, at once and then now and then."""
        now = time.monotonic()
        if self._said_at is not None and now - self._said_at < REPEAT_S:
            return None
        is_first, self._said_at = self._said_at is None, now
        since = "" if is_first else f" for {self.seconds:.0f} s"
        why = error.strerror or error
        return f"the disk has not taken what has come{since} ({why}): make room; it is tried again until it is written"
