"""`ordercast daemon`: runs a node until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ordercast.daemon.config import NodeConfig, StatusConfig, TraceConfig, TraceLevel
from ordercast.daemon.config_file import STATUS_PORT, load_config
from ordercast.daemon.logs import start_logging
from ordercast.daemon.participant import NodeFailed
from ordercast.daemon.run import run_daemon
from ordercast.daemon.systemd import Notifier
from ordercast.model.errors import UsageError

EXAMPLE = "Example: ordercast daemon --config /etc/ordercast/cluster.toml"

_log = logging.getLogger(__name__)


class LogStyle(Enum):
    TEXT = "text"
    JSON = "json"


def daemon(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The cluster in TOML; without it, the nodes of this machine.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Which of the file's nodes; by default the one that this host is.")
    ] = None,
    status_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Of status and metrics over HTTP, instead of the file's; 0: none."),
    ] = None,
    log: Annotated[LogStyle, typer.Option(help="Lines for people, or JSON lines, on stderr.")] = LogStyle.TEXT,
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a trace into this folder, instead of the file's.")
    ] = None,
    trace_level: Annotated[
        TraceLevel | None,
        typer.Option(
            help="What is traced: nothing, views and alarms, or every message; control when --trace is given."
        ),
    ] = None,
) -> int:
    """Run a node until SIGTERM or SIGINT, then leave the ring in order.

    Without --config it finds the other nodes on this machine by itself.
    """
    settings = _settings(config, name, status_port, trace, trace_level)
    start_logging(log.value)
    try:
        asyncio.run(run_daemon(settings, Notifier()))
    except NodeFailed as error:
        _log.critical("%s", error, exc_info=error.__cause__)
        return 1
    return 0


def _settings(
    file: Path | None, name: str | None, status_port: int | None, trace: Path | None, level: TraceLevel | None
) -> NodeConfig:
    """What the file says, and the command line over it."""
    if file is not None:
        config = load_config(file, name)
    elif name is not None:
        raise UsageError("--name needs --config: the nodes of one machine are called n1, n2, … by themselves")
    else:
        config = NodeConfig(status=StatusConfig(port=STATUS_PORT))
    if status_port is not None:
        config = replace(config, status=replace(config.status, port=status_port or None))
    if trace is not None or level is not None:
        config = replace(config, trace=_trace(config.trace, trace, level))
    return config


def _trace(config: TraceConfig, folder: Path | None, level: TraceLevel | None) -> TraceConfig:
    if level is None:
        level = TraceLevel.CONTROL if config.level is TraceLevel.OFF else config.level
    return replace(config, level=level, folder=folder or config.folder)
