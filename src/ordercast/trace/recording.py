"""Recording what the clients and replicas of one program see, into the folder of the daemons' traces.

    recorder = Recorder(folder, "till-3")
    recorder.client(Connected(now(), client, "till@n3"))
    recorder.close()

Clients of groups are recorded by `api/recorded_client.py`, replicas by `replicated/recorded.py`. Each table is a stream
of its own (`clients-<name>-…`, `replicas-<name>-…`), begun with its first event. Events are gathered, and written in
batches by a thread; times are those of the monotonic clock, which all programs of a host share.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Generic

import pyarrow as pa

from ordercast.model.ids import MILLISECOND, Instant, ProcessId
from ordercast.trace.arrow import TraceError, evidence_table, reason_of
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.event_rows import EventT, EventTable
from ordercast.trace.live_file import CONTROL, LiveInfo
from ordercast.trace.live_writer import EVENT_SIZE, MIB, Files, LiveStream
from ordercast.trace.replica_records import ReplicaEvent
from ordercast.trace.replica_rows import REPLICAS
from ordercast.trace.tail import Tail

FLUSH_NS = 200 * MILLISECOND
FILE_SIZE_MAX = 256 * MIB
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def now() -> Instant:
    return Instant(time.monotonic_ns())


class Recorder:
    """One per program. `survives_kill`: every event is on its way to the disk before anything follows from it, which
    costs a system call each; for programs that are killed on purpose."""

    def __init__(self, folder: Path, name: str, *, survives_kill: bool = False) -> None:
        self._folder, self._name, self._survives_kill = folder, name, survives_kill
        self._clients: EvidenceStream[ClientEvent] | None = None
        self._replicas: EvidenceStream[ReplicaEvent] | None = None

    @property
    def error(self) -> str | None:
        """Why a recording has ended before its time; None while all is well."""
        streams = [stream for stream in (self._clients, self._replicas) if stream is not None]
        return next((stream.error for stream in streams if stream.error is not None), None)

    def client(self, event: ClientEvent) -> None:
        """Something that a client asked for or was told. TraceError when the stream cannot be begun."""
        if self._clients is None:
            self._clients = EvidenceStream(self._folder, self._name, CLIENTS, self._survives_kill)
        self._clients.tell(event)

    def replica(self, event: ReplicaEvent) -> None:
        """Something that a replica did, or its caller was told. TraceError when the stream cannot be begun."""
        if self._replicas is None:
            self._replicas = EvidenceStream(self._folder, self._name, REPLICAS, self._survives_kill)
        self._replicas.tell(event)

    def close(self) -> None:
        """Everything is written. Waits for the disk."""
        for stream in (self._clients, self._replicas):
            if stream is not None:
                stream.close()


class EvidenceStream(LiveStream[EventT], Generic[EventT]):
    """One table of a program."""

    def __init__(self, folder: Path, name: str, table: EventTable[EventT], survives_kill: bool) -> None:
        info = LiveInfo(name, ProcessId(time.time_ns() // MILLISECOND), CONTROL, 0, 0, table.name, _clock())
        self._table = table
        self._told = self._flushed = 0  # events, and how many of them were to be written
        self._gathered: list[EventT] = []  # on the writer's side
        self._written = 0
        self._last_flush = now()
        self._turns: list[int] = []  # for each batch that waits for the writer, the tail that was begun then
        self._turned = 0  # the same of the batch that was written last
        files = Files(folder, info, FILE_SIZE_MAX, 0)
        super().__init__(files, self)
        try:
            self._tail = Tail(table, folder, files.info) if survives_kill else None
        except OSError as error:
            raise TraceError(f"the trace cannot be written to {folder}: {reason_of(error)}") from error

    def tell(self, event: EventT) -> None:
        if not self._is_recording or self.error is not None:
            return
        if self._tail is not None:
            self._tail.put(event, self._told)
        self._told += 1
        self._add(event, EVENT_SIZE)
        if event.at - self._last_flush > FLUSH_NS:  # type: ignore[attr-defined]
            self.flush()

    def flush(self) -> None:
        self._last_flush = now()
        if self._tail is not None and self._told > self._flushed:
            self._turns.append(self._tail.turn())
        self._flushed = self._told
        super().flush()

    def close(self) -> None:
        super().close()
        if self._tail is not None and self.error is None:
            self._tail.remove()

    # The writer's side

    def add(self, items: list[EventT]) -> None:
        """Take these events."""
        self._gathered += items

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the rows of what was added. The batch before this one is on disk, and needs no tail."""
        if self._tail is not None:
            self._tail.forget(self._turned)
            self._turned = self._turns.pop(0) if self._turns else self._turned
        events, self._gathered = self._gathered, []
        first, self._written = self._written, self._written + len(events)
        return evidence_table(events, self._table, schema, 0, first)


def _clock() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""
