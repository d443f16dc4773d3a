"""Writing a live stream: items are gathered on an event loop, and written by a thread in batches.

`LiveStream` is what recordings of daemons (`live.py`), clients and replicas (`recording.py`) have in common. Nothing is
dropped in silence: when the disk fails, or falls so far behind that memory would fill, the recording ends, `error` says
why, and the trace says that it has no end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

import pyarrow as pa

from ordercast.model.ids import Instant, incarnation_of
from ordercast.trace.arrow import TraceError, reason_of
from ordercast.trace.journal import Journal
from ordercast.trace.live_file import FULL, FileName, LiveInfo, file_name_from, journal_path
from ordercast.trace.private_files import make_private_folder, open_private
from ordercast.trace.records import Ended

MIB = 1 << 20
PIECE_SIZE = MIB  # gathered so much, it is handed over without being asked, while the processor has it in its cache
BEHIND_SIZE_MAX = 64 * MIB  # what may wait for the writer
EVENT_SIZE = 200  # bytes that an event is taken to hold
CLOSE_PATIENCE_S = 10.0
OFFSET_LOOKS = 5

ItemT = TypeVar("ItemT")


class Gatherer(Protocol):
    """Makes rows of items."""

    def add(self, items: list[Any]) -> None:
        """Take these; nothing of them is kept that the rows do not need."""

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the rows of all that was added since the last table."""


class LiveStream(Generic[ItemT]):
    """Items of one recording. All methods but `close` return at once."""

    def __init__(self, files: Files, gatherer: Gatherer) -> None:
        self._writer = _Writer(files, gatherer)
        self._items: list[ItemT | Ended] = []
        self._gathered_size = 0
        self._given_size = 0
        self._is_recording = True
        self._error: str | None = None

    @property
    def error(self) -> str | None:
        """Why the recording has ended before its time, in one sentence; None while all is well."""
        return self._error or self._writer.error

    @property
    def waiting_size(self) -> int:
        """Bytes that were handed over and are not written yet."""
        return self._given_size - self._writer.taken_size

    def flush(self) -> None:
        """Have written what was gathered. Call it a few times a second: what is not written dies with the process."""
        self._hand_over(is_last=True)

    def _hand_over(self, *, is_last: bool) -> None:
        """`is_last`: what was handed over since the last time is written now, as one batch."""
        if self._items or is_last:
            self._given_size += self._gathered_size
            self._writer.give(self._items, self._gathered_size, is_last=is_last)
            self._items, self._gathered_size = [], 0

    def close(self) -> None:
        """The process ends here. Waits for the disk, so not for the event loop."""
        if self._is_recording:
            self._add(Ended(Instant(time.monotonic_ns())), EVENT_SIZE)
            self._is_recording = False
        self._hand_over(is_last=True)
        self._writer.close()

    def _add(self, item: ItemT | Ended, size: int) -> None:
        if not self._is_recording or self._writer.error is not None:
            return
        self._items.append(item)
        self._gathered_size += size
        if self._gathered_size > PIECE_SIZE:
            self._hand_over(is_last=False)
        if self.waiting_size > BEHIND_SIZE_MAX:
            self._give_up()

    def _give_up(self) -> None:
        self._is_recording = False
        self._error = (
            f"the disk of {self._writer.folder} is too slow for the trace, over {BEHIND_SIZE_MAX // MIB} MiB wait; "
            "the recording has ended: use a faster disk or level control"
        )
        self._items.append(Ended(Instant(time.monotonic_ns()), complete=False))
        self._hand_over(is_last=True)


class _Writer:
    """The thread. What it is given is written in that order."""

    def __init__(self, files: Files, gatherer: Gatherer) -> None:
        self.folder = files.folder
        self.error: str | None = None
        self.taken_size = 0
        self.journal = files.journal
        self._files = files
        self._gatherer = gatherer
        self._has_rows = False  # something was gathered, and not written yet
        self._queue: SimpleQueue[tuple[list[Any], int, bool] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="ordercast trace", daemon=True)
        self._thread.start()

    def give(self, items: list[Any], size: int, *, is_last: bool) -> None:
        self._queue.put((items, size, is_last))

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join(CLOSE_PATIENCE_S)
        if self._thread.is_alive():
            self.error = f"the disk of {self.folder} does not answer: the end of the trace may be missing"

    def _run(self) -> None:
        while (given := self._queue.get()) is not None:
            items, size, is_last = given
            self._protected(partial(self._take, items, is_last))
            del given, items  # else they would be here until the next come
            self.taken_size += size
        self._protected(self._files.finish)

    def _protected(self, work: Callable[[], None]) -> None:
        """A trace that fails must not take the node with it."""
        if self.error is not None:
            return
        try:
            work()
        except OSError as error:
            where = f"{self.folder} cannot be written to: {reason_of(error)}"
            self.error = f"the trace in {where}; the recording has ended: make room or choose another folder"
            self._files.abandon()
        except Exception as error:
            self.error = f"the recording has ended, this is a fault of Ordercast: {type(error).__name__}: {error}"
            self._files.abandon()

    def _take(self, items: list[Any], is_last: bool) -> None:
        if items:
            self._gatherer.add(items)
            self._has_rows = True
        if is_last and self._has_rows:
            table = self._gatherer.table(self._files.schema())
            self._files.write(table.combine_chunks().to_batches()[0])
            self._has_rows = False


class Files:
    """The files of one process, one after the other."""

    def __init__(self, folder: Path, info: LiveInfo, file_size_max: int, files_max: int) -> None:
        self.folder, self.info = folder, info
        self._file_size_max, self._files_max = file_size_max, files_max
        self._file: BinaryIO | None = None
        self._stream: pa.ipc.RecordBatchStreamWriter | None = None
        self.journal: Journal | None = None
        if "/" in info.name or not info.name or file_size_max < 1 or files_max < 0:
            raise TraceError(
                f"a trace of node '{info.name}' with files of {file_size_max} bytes, {files_max} of them, cannot be "
                "kept: the name must fit a file name, file_size_max be at least 1, files_max at least 0"
            )
        pa.array([0])  # with its first array pyarrow imports pandas, if it is there: not while the node is running
        try:
            make_private_folder(folder)
            self._open()
            if info.level == FULL:
                self.journal = Journal(journal_path(folder, info.name, info.process))
        except FileExistsError as error:
            what = "is not a folder" if not folder.is_dir() else f"has a trace of node '{info.name}' of this very start"
            raise TraceError(f"{folder} {what}: choose another folder") from error
        except OSError as error:
            self.abandon()
            raise TraceError(
                f"the trace cannot be written to {folder}: {reason_of(error)}; check its permissions or choose another"
            ) from error

    def schema(self) -> pa.Schema:
        if self._stream is None:
            self._open()
        return self.info.schema()

    def write(self, batch: pa.RecordBatch) -> None:
        """In one go: the file is flushed when the whole batch is in its buffer, or when that is full."""
        assert self._file is not None and self._stream is not None
        self._stream.write_batch(batch)
        self._file.flush()
        if self._file.tell() >= self._file_size_max:
            self.close()

    def finish(self) -> None:
        """Everything is written."""
        self.close()
        if self.journal is not None:
            self.journal.remove()

    def close(self) -> None:
        if self._file is not None and self._stream is not None:
            self._stream.close()
            self._file.close()
        self._file = self._stream = None

    def abandon(self) -> None:
        """Close it without an end, so that the trace does not look finished, and say that it was given up."""
        if self.journal is not None:
            self.journal.give_up()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._file = self._stream = None

    def _open(self) -> None:
        info = self.info
        self.info = replace(info, number=info.number + 1, wall_offset_ns=wall_offset_ns())
        name = FileName(info.name, incarnation_of(info.process), self.info.number, info.table)
        self._file = open(self.folder / str(name), "xb", buffering=MIB, opener=open_private)  # noqa: SIM115 (closed with the part)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._stream = pa.ipc.new_stream(self._file, self.info.schema(), options=options)
        self._file.flush()
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        """Remove the oldest files of this node, earlier lives too."""
        if self._files_max:
            named = [(name, path) for path in self.folder.iterdir() if (name := file_name_from(path)) is not None]
            mine = sorted(pair for pair in named if (pair[0].name, pair[0].table) == (self.info.name, self.info.table))
            for name, path in mine[: -self._files_max]:
                path.unlink(missing_ok=True)
                if name.incarnation != incarnation_of(self.info.process):
                    path.with_name(name.journal).unlink(missing_ok=True)


def wall_offset_ns() -> int:
    """Wall clock less monotonic clock. Whoever does not run between two looks at the clocks would be wrong by that
    time, and so would the order of everything in its trace: the quickest of a few looks counts."""
    looks = []
    for _ in range(OFFSET_LOOKS):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        looks.append((after - before, wall - (before + after) // 2))
    return min(looks)[1]
