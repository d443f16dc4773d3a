"""A folder of live traces as one history, with an honest statement of what is not in it.

The nodes of a cluster write into one folder or into several below it. `read_live` puts their sequences together
(`merge.py`), adds what `cluster.jsonl` says, and works out how each life ended:

- it left, or its writer closed the trace: everything is there;
- it was killed, as a later life of the same node proves, or `cluster.jsonl` says: it crashed where its trace stops, and
  the last moments before that are missing (`Gap.TAIL`);
- else nobody knows whether it still runs (`Gap.END`), and the record is not complete.

When `cluster.jsonl` says that the run ended, what came after is left out, and whoever has something in its trace from
after that time was running then, completely recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ordercast.model.ids import Instant, NodeId, ProcessId, incarnation_of, node_of, process_text
from ordercast.trace.arrow import TraceError
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.cluster import CLUSTER_FILE, ClusterEvent, ClusterEventKind, read_cluster_events
from ordercast.trace.evidence_folder import history_in
from ordercast.trace.live_file import FileName, file_name_from
from ordercast.trace.live_life import LiveLife, events_of, evidence_of, survey_of
from ordercast.trace.merge import Stream, merged
from ordercast.trace.parquet import RunInfo, read_info, run_path, runs_in, write_run
from ordercast.trace.records import Crashed, Ended, Event, Gap, Healed, Saturated, Unrecorded
from ordercast.trace.replica_records import ReplicaEvent
from ordercast.trace.replica_rows import REPLICAS

_FOREVER = (1 << 63) - 1


def traces_in(folder: Path) -> list[Path]:
    """What there is to judge: the files of runs, and the folder itself when it holds live traces."""
    if folder.is_file() and file_name_from(folder) is not None:
        raise TraceError(f"{folder} is the trace of one process alone: give the folder with those of the whole cluster")
    has_live = folder.is_dir() and bool(_live_paths(folder))
    try:
        return [*runs_in(folder), *([folder] if has_live else [])]
    except TraceError:
        if has_live:
            return [folder]
        raise


def _live_paths(folder: Path) -> list[tuple[FileName, Path]]:
    try:
        paths = sorted(folder.rglob("live-*.arrows"))
    except OSError as error:
        raise TraceError(f"the folder {folder} cannot be read: {error.strerror}; check its permissions") from error
    return [(name, path) for path in paths if (name := file_name_from(path)) is not None]


@dataclass(frozen=True, slots=True)
class LiveRun:
    """One history of a whole cluster. `events` may be asked for again, and reads the files again."""

    folder: Path
    info: RunInfo
    lives: list[LiveLife]
    ends: dict[ProcessId, list[Event]]  # what comes after the events of each life
    strangers: list[Event]  # members of views that have no trace
    cluster: list[Event]
    until: int = _FOREVER  # when the run ended, as `cluster.jsonl` says

    def evidence(self, count: Callable[[int], None]) -> Iterator[Event]:
        """What is judged: the events without notes, of which `count` is told how many there are."""
        return self.events(lambda life: evidence_of(life, self.until, count))

    def events(self, read: Callable[[LiveLife], Iterable[Event]] = events_of) -> Iterator[Event]:
        """`read` gives what is to be put together of each process."""
        submitted: dict[Stream, int] = {}
        for life in self.lives:
            submitted.update(life.submitted)
        nodes = sorted({node_of(life.process) for life in self.lives})
        sequences = [self.strangers, self.cluster, *(self._node(node, read) for node in nodes)]
        at, is_complete = Instant(0), True
        for event in merged(sequences, submitted):
            at = event.at
            if isinstance(event, Ended):
                break
            is_complete &= not (isinstance(event, Unrecorded) and event.gap is Gap.END)
            yield event
        yield Ended(at, is_complete)

    @property
    def clients(self) -> list[ClientEvent]:
        """What clients were told; nothing when nobody recorded it."""
        return history_in(self.folder, CLIENTS)

    @property
    def replicas(self) -> list[ReplicaEvent]:
        """What replicas did, likewise."""
        return history_in(self.folder, REPLICAS)

    def gaps(self) -> list[str]:
        """Sentences on what is missing of the daemons."""
        events = [*self.strangers, *(event for life in self.lives for event in self._beginning(life))]
        events += [event for end in self.ends.values() for event in end]
        return [event.why for event in events if isinstance(event, Unrecorded)]

    def _node(self, node: NodeId, read: Callable[[LiveLife], Iterable[Event]]) -> Iterator[Event]:
        """One life after the other, whatever the clock said."""
        for life in self.lives:
            if node_of(life.process) == node:
                yield from self._beginning(life)
                yield from read(life)
                yield from self.ends[life.process]

    def _beginning(self, life: LiveLife) -> list[Event]:
        at = Instant(life.started_at or 0)
        result: list[Event] = []
        if life.missing is not None:
            why = f"the trace of {life.text} has a hole: {life.missing}"
            result.append(Unrecorded(at, life.process, Gap.EVENTS, why))
        if not life.is_full:
            why = f"{life.text} was recorded at level control, without messages"
            result.append(Unrecorded(at, life.process, Gap.MESSAGES, why))
        return result


def read_live(folder: Path) -> LiveRun:
    """Surveys the folder; TraceError names the file that cannot be read, and why."""
    return assembled(folder, [life for paths in processes_in(folder) if (life := survey_of(paths)) is not None])


def processes_in(folder: Path) -> list[dict[int, Path]]:
    """The files of each process, by number."""
    if not folder.is_dir() or not _live_paths(folder):
        raise TraceError(
            f"there are no live traces (live-*.arrows) in {folder}: give the folder that the nodes write to"
        )
    result: dict[tuple[str, int], dict[int, Path]] = {}
    for name, path in _live_paths(folder):
        paths = result.setdefault((name.name, name.incarnation), {})
        if name.number in paths:
            raise TraceError(
                f"{path} and {paths[name.number]} claim to be the same part of a trace: remove one of them"
            )
        paths[name.number] = path
    return list(result.values())


def assembled(folder: Path, surveyed: Iterable[LiveLife]) -> LiveRun:
    """The run of these processes, with what `cluster.jsonl` says."""
    lives = sorted((life for life in surveyed if life.started_at or life.missing), key=lambda life: life.process)
    if not lives:
        raise TraceError(f"the folder {folder} holds live traces, but nothing was recorded in them yet")
    by_digest = {life.digest: life for life in lives if life.is_full}
    if len(by_digest) > 1:
        one, other = (f"{life.text}, in {life.files[0][0]}," for life in list(by_digest.values())[:2])
        raise TraceError(
            f"{one} and {other} were recorded by different versions of Ordercast, whose digests of messages cannot be "
            "compared: keep the traces of each version in a folder of its own"
        )
    said = _Said(folder, read_cluster_events(folder), lives)
    ends = {life.process: _end_of(life, said) for life in lives}
    info = RunInfo(0, None, {"live": [process_text(life.process) for life in lives]})
    return LiveRun(folder, info, lives, ends, _strangers(lives, folder), said.events(), said.ended_at)


def _strangers(lives: list[LiveLife], folder: Path) -> list[Event]:
    known = {life.process for life in lives}
    named = {member for life in lives for member in life.members} - known
    at = Instant(min(life.started_at or 0 for life in lives))
    return [
        Unrecorded(at, process, Gap.END, f"{process_text(process)} is a member of views, but has no trace in {folder}")
        for process in sorted(named)
    ]


def _end_of(life: LiveLife, said: _Said) -> list[Event]:
    """What follows on the last event of a life."""
    at, process = Instant(life.last_at), life.process
    if life.has_departed or life.last_at > said.ended_at:
        return []
    if life.is_ended is False:  # nobody knows how the process ended, if it did
        why = f"the trace of {life.text} was given up by its writer, whose disk did not keep up or was full"
        given_up: list[Event] = [Unrecorded(at, process, Gap.END, why)]
        return [*given_up, Crashed(at, process)] if said.names_crash_of(life) else given_up
    is_gone = life.is_ended is True or said.has_crashed(life)
    end: list[Event] = []
    if not is_gone:
        why = f"the trace of {life.text} has no end: is it still running, or was it killed?"
        end.append(Unrecorded(at, process, Gap.END, why))
    elif life.is_ended is None:
        why = f"{life.text} was killed, and what it did last is not in its trace"
        end.append(Unrecorded(at, process, Gap.TAIL, why))
    return [*end, Crashed(at, process)] if is_gone else end


class _Said:
    """What `cluster.jsonl` says, with names looked up."""

    def __init__(self, folder: Path, events: list[ClusterEvent], lives: list[LiveLife]) -> None:
        self._path = folder / CLUSTER_FILE
        self._events = events
        self._lives = lives
        self.ended_at = min((event.at for event in events if event.kind is ClusterEventKind.ENDED), default=_FOREVER)
        self._crashed = {
            self._process(name, event.at)
            for event in events
            if event.kind is ClusterEventKind.CRASHED and event.at <= self.ended_at
            for name in event.processes or ()
        }

    def names_crash_of(self, life: LiveLife) -> bool:
        return life.process in self._crashed

    def has_crashed(self, life: LiveLife) -> bool:
        """By the end of the run. A later life of the node proves it."""
        return self.names_crash_of(life) or any(
            node_of(other.process) == node_of(life.process)
            and other.process > life.process
            and (other.started_at or 0) <= self.ended_at
            for other in self._lives
        )

    def events(self) -> list[Event]:
        """Yield the events of the whole cluster, up to the end."""
        result: list[Event] = []
        for event in sorted(self._events, key=lambda event: event.at):
            at = Instant(event.at)
            if event.at > self.ended_at:
                break
            if event.kind is ClusterEventKind.HEALED:
                result.append(Healed(at, self._alive(event)))
            elif event.kind is ClusterEventKind.SATURATED:
                result.append(Saturated(at, self._named(event), event.begins))
            elif event.kind is ClusterEventKind.ENDED:
                result.append(Ended(at))
        return result

    def _alive(self, event: ClusterEvent) -> tuple[ProcessId, ...]:
        if event.processes is not None:
            return self._named(event)
        return tuple(
            life.process
            for life in self._lives
            if (life.started_at or 0) <= event.at and not (self._is_gone(life) and life.last_at < event.at)
        )

    def _is_gone(self, life: LiveLife) -> bool:
        return life.has_departed or life.is_ended is True or self.has_crashed(life)

    def _named(self, event: ClusterEvent) -> tuple[ProcessId, ...]:
        return tuple(self._process(name, event.at) for name in event.processes or ())

    def _process(self, text: str, at: int) -> ProcessId:
        """`n2` is the life that ran at this time, `n2'5` the one of this incarnation."""
        named = [life for life in self._lives if life.name == text]
        if named:
            return max((life for life in named if (life.started_at or 0) <= at), default=named[0], key=_age).process
        for life in self._lives:
            if text == f"{life.name}'{incarnation_of(life.process)}":
                return life.process
        raise TraceError(
            f"{self._path} speaks of {text}, which has no trace in the folder: correct or remove that line"
        )


def _age(life: LiveLife) -> ProcessId:
    return life.process


# Compaction


def compact(run: LiveRun, out: Path) -> Path:
    """One Parquet file of the whole history; an earlier one of the same processes is replaced."""
    number = 1
    while run_path(out, number).exists() and read_info(run_path(out, number)).options != run.info.options:
        number += 1
    return write_run(out, RunInfo(number, None, run.info.options), run.events(), run.clients, run.replicas)
