"""`ordercast archive run`: keeps what is delivered to groups, until it is told to stop."""

from __future__ import annotations

import asyncio
import math
import signal
import sys
import time
from pathlib import Path
from typing import Any

from ordercast.archive.archiver import Archiver, Options
from ordercast.archive.places import checked_archived
from ordercast.cli.client_options import first_and_others
from ordercast.cli.event_text import counted
from ordercast.cli.plain import note, wipe
from ordercast.cli.quantities import duration_from, size_from
from ordercast.model.errors import UsageError
from ordercast.model.printable import json_text
from ordercast.model.quantities import size_text


def run(
    groups: list[str],
    folder: Path,
    at: str | None,
    name: str,
    wait: float | None,
    serve: str,
    keep_size: str,
    keep_time: str,
    segment_size: str,
    sync_every: str,
    as_json: bool,
) -> int:
    for group in groups:
        checked_archived(group)
    wait_s = math.inf if wait is None else wait
    options = Options(
        at=first_and_others(at, wait_s),
        name=name,
        wait_s=wait_s,
        serve=_host_and_port(serve),
        keep_size=size_from(keep_size) if keep_size else None,
        keep_s=duration_from(keep_time, default_unit="s") / 1e9 if keep_time else None,
        segment_size=size_from(segment_size),
        sync_pause_s=duration_from(sync_every, default_unit="ms") / 1e9,
    )
    try:
        asyncio.run(_archive(Archiver(folder, groups, options, _teller(as_json)), as_json))
    except (KeyboardInterrupt, asyncio.CancelledError):
        wipe()
    return 0


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"{text!r} is no address: write HOST:PORT, such as 10.0.0.1:4710")
    return host.strip("[]"), int(port)


def _teller(as_json: bool) -> Any:
    def tell(text: str) -> None:
        try:
            if as_json:
                sys.stdout.write(json_text({"time": time.time(), "text": text}) + "\n")
                sys.stdout.flush()
            else:
                note(text, always=True)
        except BrokenPipeError:
            raise
        except OSError:
            pass  # the log lies on a full disk, too

    return tell


async def _archive(archiver: Archiver, as_json: bool) -> None:
    async with archiver:
        task = asyncio.ensure_future(archiver.run())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        text = f"archiving to {archiver.folder} as {archiver.name}; Ctrl-C ends"
        _teller(True)(text) if as_json else note(text)
        try:
            await task
        except asyncio.CancelledError:
            note(f"written: {size_text(archiver.journal.written)} in {counted(archiver.journal.syncs, 'sync')}")
