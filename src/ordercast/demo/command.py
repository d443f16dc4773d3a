"""`ordercast demo`: a real cluster on this machine that loses a member, splits, merges and grows, and is judged.

relay, hosts       the daemons as processes, and the network between them, which can be cut
crew               the clients of a daemon: in groups, and with a replica of a dictionary
stage              all that runs, and what is seen of it
story              what happens, chapter by chapter; `bursts` and `settling` are two of them
log, display       what is told of it
judging, on_spark  the verdicts of the checkers, and of Spark on traces that are kept
result             the end
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ordercast.cli.terminal import complain, output, wipe, write_json
from ordercast.demo.dictionaries import Audit
from ordercast.demo.display import Display, Teller
from ordercast.demo.judging import judge_all
from ordercast.demo.log import Log
from ordercast.demo.on_spark import judge_on_spark
from ordercast.demo.rates import Reached
from ordercast.demo.result import Result, draw_on_spark, draw_result, draw_ways_on
from ordercast.demo.script import Script
from ordercast.demo.stage import Stage
from ordercast.demo.story import perform
from ordercast.demo.waiting import News, NotSettled
from ordercast.model.errors import ConnectionLost, UsageError
from ordercast.model.printable import json_text
from ordercast.replicated.replica import ReplicaEnded
from ordercast.trace.private_files import make_private_folder

TRACES = "traces"
RESULT = "result.json"
REPORT = "report"
REASON_S = 2.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def demo(keep: Path | None, as_json: bool) -> int:
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError(f"{keep} is not an empty folder: give --keep a new one")
    console = Console(quiet=True) if as_json else output()
    result = show(console, keep, Script())
    if as_json:
        write_json(result.document())
    return 0 if result.is_valid else 1


def show(console: Console, keep: Path | None, script: Script) -> Result:
    """All of it, from the first process to the verdict. Whatever happens, nothing that it started outlives it."""
    folder = Path(tempfile.mkdtemp(prefix="ordercast-demo-"))  # short: sockets are in it
    try:
        traces = (keep or folder) / TRACES
        make_private_folder(traces)
        result = _play_and_judge(console, folder, traces, keep, script)
        return result if keep is None else _kept(console, keep, result)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _kept(console: Console, keep: Path, result: Result) -> Result:
    traces = keep / TRACES
    if result.error is None:
        console.print()
        with _interruptible(), console.status("Spark …") as status:
            result = replace(result, on_spark=judge_on_spark(traces, keep / REPORT, status.update))
        draw_on_spark(console, result.on_spark)
    text = json_text(result.document(), indent=2)
    (keep / RESULT).write_text(text + "\n", encoding="utf-8")
    draw_ways_on(console, traces)
    return result


def _play_and_judge(console: Console, folder: Path, traces: Path, keep: Path | None, script: Script) -> Result:
    kept = None if keep is None else traces
    log = Log(Teller(console).tell)
    try:
        played = asyncio.run(_play(console, Stage(folder, traces.absolute(), log, News()), script))
    except NotSettled as error:
        complain(str(error))
        return Result(log.entries, log.seconds, error=str(error), traces=kept)
    if played is None:
        raise KeyboardInterrupt
    audit, reached = played
    console.print()
    with _interruptible(), console.status("the judges read what was recorded …"):
        panels = judge_all(traces, audit)
    result = Result(log.entries, log.seconds, panels, reached, audit.digests, traces=kept)
    draw_result(console, result)
    return result


async def _play(console: Console, stage: Stage, script: Script) -> tuple[Audit, Reached] | None:
    """None when a signal came. Everything that runs is ended first, in any case."""
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    assert me is not None
    came: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        came.append(number)
        wipe()
        me.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    showing = asyncio.create_task(Display(console, stage).run())
    try:
        return await perform(stage, script)
    except (ConnectionLost, ReplicaEnded) as error:
        await _tell_failure(stage.news)
        raise NotSettled(f"a client has lost its daemon: {error}") from error
    except asyncio.CancelledError:
        if not came:
            raise
        return None
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        await stage.close()


async def _tell_failure(news: News) -> None:
    """Raises why, if that is known in a moment: a daemon's end is heard of later than its clients are cut off."""
    with suppress(TimeoutError):
        async with asyncio.timeout(REASON_S):
            await news.until(lambda: False, "it is known why")


@contextmanager
def _interruptible() -> Iterator[None]:
    """All signals that end the demo end it as Ctrl-C does, also when no event loop runs."""

    def on_signal(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = [signal.signal(number, on_signal) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)
