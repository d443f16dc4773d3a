"""Journal: the thread that writes. It takes what has come, seals it, appends it, and syncs once for all of it.

The event loop never waits for a disk: it hands over drafts, and is told when they are safe. While one sync runs, the
next batch gathers; `pause_s` makes batches larger still.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from ordercast.archive.files import GroupFiles
from ordercast.archive.pen import Draft

ROOM = 64 << 20  # bytes that wait for the disk; more has to wait outside
T = TypeVar("T")


class Journal:
    def __init__(self, pause_s: float = 0.01) -> None:
        self._pause_s = pause_s
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[tuple[Callable[[], object], int, asyncio.Future[object] | None]] = deque()
        self._wake = threading.Condition()
        self._files: set[GroupFiles] = set()
        self._is_closed = False
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._waiting = 0  # bytes
        self.written = 0  # bytes, in all
        self.syncs = 0
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ordercast journal", daemon=True)
        self._thread.start()

    def write(self, files: GroupFiles, drafts: Sequence[Draft]) -> None:
        """In the archiver's own history."""
        size = sum(len(part) for draft in drafts for part in draft.parts)

        def job() -> None:
            now = time.time_ns()
            for draft in drafts:
                files.append(draft.branch, [draft.seal(now)], draft.start, is_own=True)

        self._put(files, job, size, None)

    def put(self, files: GroupFiles, job: Callable[[], object]) -> None:
        """On the thread, behind everything that was handed over before."""
        self._put(files, job, 0, None)

    async def do(self, files: GroupFiles, job: Callable[[], T], size: int = 0) -> T:
        """On the thread, behind everything that was handed over before. Returns when its effects are safe."""
        future: asyncio.Future[object] = self._loop.create_future()
        self._put(files, job, size, future)
        return await future  # type: ignore[return-value]

    async def room(self) -> None:
        await self._has_room.wait()
        if self.failure is not None:
            raise self.failure

    def _put(
        self, files: GroupFiles, job: Callable[[], object], size: int, future: asyncio.Future[object] | None
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
            if not self._is_closed:
                time.sleep(self._pause_s)
            with self._wake:
                jobs, self._jobs = self._jobs, deque()
                files = list(self._files)
            try:
                results = [(job(), future) for job, _, future in jobs]
                for one in files:
                    one.sync()
            except BaseException as error:
                self._tell(self._fail, error, jobs)
                return
            self.syncs += 1
            self._tell(self._done, results, sum(size for _, size, _ in jobs))

    def _tell(self, what: Callable[..., None], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *arguments)

    def _done(self, results: list[tuple[object, asyncio.Future[object] | None]], size: int) -> None:
        with self._wake:
            self._waiting -= size
        self.written += size
        if self._waiting <= ROOM // 2:
            self._has_room.set()
        for result, future in results:
            if future is not None and not future.done():
                future.set_result(result)

    def _fail(
        self, error: BaseException, jobs: deque[tuple[Callable[[], object], int, asyncio.Future[object] | None]]
    ) -> None:
        """A disk that does not write ends the archiver: what it says is safe has to be."""
        self.failure = error
        self._has_room.set()
        for _, _, future in [*jobs, *self._jobs]:
            if future is not None and not future.done():
                future.set_exception(error)
