"""The Spark job: traces in, one judgement per run out, without a shuffle.

Runs that fit one task are dealt out to the tasks by size, and each is judged where it is read (`judging.py`). A run
that is too large is judged by many tasks, in steps (`large.py`). Files are opened by the executors, so they must see
them under the same path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.pipeline.verify.clients.judging import Daemons
from ordercast.pipeline.verify.clients.large import judge_large_clients
from ordercast.pipeline.verify.facts import control_verdicts
from ordercast.pipeline.verify.judging import (
    Judgement,
    daemons_in,
    evidence_files,
    judge,
    judge_client_file,
    judge_order,
    unread,
    with_clients,
    with_replicas,
    write_live_evidence,
)
from ordercast.pipeline.verify.large import judge_large
from ordercast.pipeline.verify.live import ended_at, live_history, write_life
from ordercast.pipeline.verify.rows import JudgedWhole, TraceFile, Unsound
from ordercast.pipeline.verify.slicing import PART_ROWS
from ordercast.pipeline.verify.spread import Spread
from ordercast.pipeline.verify.states import judge_large_states
from ordercast.trace.arrow import TraceError
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.columns import signed
from ordercast.trace.folder import processes_in, traces_in
from ordercast.trace.parquet import RunInfo, evidence_path, read_info
from ordercast.trace.replica_rows import REPLICAS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_ROWS = 4_000_000  # a run of more is judged by many tasks
LIVE_SIZE = 32 << 20  # bytes; a larger folder of live traces is judged by many tasks
LOOK_SIZE = 8 << 20  # bytes; a smaller file is not asked how many rows it has
BIN_SIZE = 24 << 20  # bytes of traces in one task, about ten seconds of work
POLL_S = 0.5

Progress = Callable[[int, int], None]


def found_in(paths: Sequence[Path]) -> list[str]:
    """Every trace below these paths, each once. TraceError when there is none in one of them."""
    return list(dict.fromkeys(str(trace.absolute()) for path in paths for trace in traces_in(path)))


def verify(
    session: SparkSession,
    traces: Sequence[str],
    progress: Progress = lambda done, total: None,
    task_rows: int = TASK_ROWS,
    part_rows: int = PART_ROWS,
) -> list[Judgement]:
    """In the order of `traces`."""
    large = [trace for trace in traces if _is_large(trace, task_rows)]
    judgements: dict[str, Judgement] = {}
    with _watched(session, progress):
        spread = partial(spread_out, session)
        rest = [trace for trace in traces if trace not in set(large)]
        for judged in spread(_judge_all, _bins(rest, 4 * session.sparkContext.defaultParallelism)):
            judgements.update((judgement.path, judgement) for judgement in judged)
        for trace in large:
            large_one = judge_large_folder if Path(trace).is_dir() else _judge_large
            judgements[trace] = large_one(trace, spread, part_rows, task_rows)
    return [judgements[trace] for trace in traces]


def spread_out(session: SparkSession, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """One task for each."""
    if not items:
        return []
    return session.sparkContext.parallelize(list(items), len(items)).map(function).collect()


def _judge_all(paths: list[str]) -> list[Judgement]:
    return [judge(path) for path in paths]


def _is_large(trace: str, task_rows: int) -> bool:
    """Files that cannot be read are left to the task, which says why."""
    path = Path(trace)
    if path.is_dir():
        return task_rows < TASK_ROWS or _size(trace) > LIVE_SIZE
    return any(_count(file, task_rows) > task_rows for file in (path, *_beside(path)))


def _beside(path: Path) -> list[Path]:
    """The files of clients and replicas that are there."""
    return [file for table in (CLIENTS, REPLICAS) if (file := evidence_path(path, table)).is_file()]


def _count(file: Path, task_rows: int) -> int:
    """The rows of a file; 0 of one that is small, or cannot be read."""
    try:
        if file.stat().st_size < LOOK_SIZE and task_rows >= TASK_ROWS:
            return 0
        count: int = pq.read_metadata(file).num_rows
        return count
    except (OSError, pa.ArrowException):
        return 0


def _judge_large(trace: str, spread: Spread, part_rows: int, task_rows: int = 0) -> Judgement:
    """Each table of the run by itself: in parts when it is large."""
    path, info = Path(trace), RunInfo(0)
    try:
        info = read_info(path)
        found, files = _order(trace, info, spread, part_rows, task_rows), evidence_files(path, info)
        daemons: Daemons = spread(daemons_in, [trace])[0] if files else []
        return _with_evidence(found, files, daemons, (spread, part_rows, task_rows))
    except JudgedWhole as error:
        return unread(trace, f"{trace}: {error}", info)
    except Unsound as error:
        return unread(trace, f"{trace} is not a sound history ({error}): record the run again", info)
    except (TraceError, OSError, pa.ArrowException) as error:
        return unread(trace, str(error), info)


def _with_evidence(
    found: Judgement, files: dict[str, Path], daemons: Daemons, how: tuple[Spread, int, int]
) -> Judgement:
    spread, part_rows, task_rows = how
    if CLIENTS.name in files:
        file = files[CLIENTS.name]
        if pq.read_metadata(file).num_rows > task_rows:
            found = with_clients(found, *judge_large_clients(str(file), daemons, spread, part_rows))
        else:
            found = with_clients(found, *spread(partial(judge_client_file, daemons=daemons), [file])[0])
    if REPLICAS.name in files:
        found = with_replicas(found, *judge_large_states(files[REPLICAS.name], daemons, spread))
    return found


def judge_large_folder(trace: str, spread: Spread, part_rows: int, task_rows: int = 0) -> Judgement:
    """Live traces: each process is brought into columns by a task, then the run is judged in parts as any other."""
    folder = Path(trace)
    try:
        with _scratch(folder) as scratch:
            found = spread(partial(write_life, scratch, ended_at(folder)), processes_in(folder))
            lives = sorted((one for one in found if one is not None), key=lambda one: signed(one.life.process))
            live = live_history(folder, lives)
            verdicts, deliveries = control_verdicts(live.controls, set()), sum(one.deliveries for one in lives)
            if not live.has_holes:
                paths = tuple(one.path for one in lives)
                verdicts = judge_large(paths, TraceFile(paths).groups, spread, part_rows, live=live).verdicts
            order = Judgement(trace, live.run.info, live.count, deliveries, verdicts, "parts")
            files = spread(partial(write_live_evidence, place=Path(scratch)), [folder])[0]
            return _with_evidence(order, files, live.daemons, (spread, part_rows, task_rows))
    except Unsound as error:
        return unread(trace, f"{trace} is not a sound history ({error}): record the run again")
    except (TraceError, OSError, pa.ArrowException) as error:
        return unread(trace, str(error))


def _scratch(folder: Path) -> TemporaryDirectory[str]:
    """A hidden folder among the traces, where all who see them see it; elsewhere when nothing may be written there."""
    try:
        return TemporaryDirectory(prefix=".verify-", dir=folder)
    except OSError:
        return TemporaryDirectory(prefix="ordercast-verify-")


def _order(trace: str, info: RunInfo, spread: Spread, part_rows: int, task_rows: int) -> Judgement:
    file = TraceFile(trace)
    if file.count <= task_rows:
        return cast(Judgement, spread(partial(judge_order, info=info), [trace])[0])
    found = judge_large(trace, file.groups, spread, part_rows)
    return Judgement(trace, info, found.events, found.deliveries, found.verdicts, "parts")


def _bins(traces: Sequence[str], count_min: int) -> list[list[str]]:
    """The largest first, each into the bin that is emptiest."""
    sizes = {trace: _size(trace) for trace in traces}
    count = min(len(traces), max(count_min, sum(sizes.values()) // BIN_SIZE))
    bins: list[list[str]] = [[] for _ in range(count)]
    filled = [(0, number) for number in range(count)]
    for trace in sorted(traces, key=lambda trace: -sizes[trace]):
        size, number = heappop(filled)
        bins[number].append(trace)
        heappush(filled, (size + sizes[trace], number))
    return bins


def _size(trace: str) -> int:
    path = Path(trace)
    try:
        files = path.rglob("*") if path.is_dir() else [path, *_beside(path)]
        return sum(file.stat().st_size for file in files)
    except OSError:
        return 0


@contextmanager
def _watched(session: SparkSession, progress: Progress) -> Iterator[None]:
    """Tells how many tasks are done, of those that are known."""
    tracker, is_over = session.sparkContext.statusTracker(), Event()

    def watch() -> None:
        while not is_over.wait(POLL_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            progress(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
