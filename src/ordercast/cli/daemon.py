"""`ordercast daemon`: runs a node until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ordercast.cli.engine_option import OtherEngine
from ordercast.daemon.config.file import STATUS_PORT, load_config
from ordercast.daemon.config.node import (
    LOCAL_NODES_MAX,
    PORT,
    NetworkConfig,
    NodeConfig,
    StatusConfig,
    TraceConfig,
    TraceLevel,
)
from ordercast.daemon.logs import start_logging
from ordercast.daemon.participant import NodeFailed
from ordercast.daemon.run import run_daemon
from ordercast.daemon.systemd import Notifier
from ordercast.model.errors import UsageError
from ordercast.order.catalogue import live_entry_of

EXAMPLE = "Example: ordercast daemon --config /etc/ordercast/cluster.toml"
PORT_MAX = 65535 - 2 * LOCAL_NODES_MAX - 1  # so that all nodes of a machine find room above it

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
    clients_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve clients over TCP, too, instead of the file's port; 0: do not."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=PORT_MAX, help=f"Without a file: of the machine's nodes, {PORT} by default."),
    ] = None,
    engine: OtherEngine = None,
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
    until_eof: Annotated[
        bool, typer.Option("--until-eof", help="Leave also when stdin ends: for programs that start a daemon.")
    ] = False,
) -> int:
    """Run a node until SIGTERM or SIGINT, then leave in order. It serves clients meanwhile.

    Without --config it finds the other nodes on this machine by itself.
    """
    settings = _settings(config, name, port)
    if engine is not None:
        settings = replace(settings, engine=live_entry_of(engine).name)
    if status_port is not None:
        settings = replace(settings, status=replace(settings.status, port=status_port or None))
    if clients_port is not None:
        settings = replace(settings, clients=replace(settings.clients, port=clients_port or None))
    if trace is not None or trace_level is not None:
        settings = replace(settings, trace=_trace(settings.trace, trace, trace_level))
    start_logging(log.value)
    if until_eof:
        threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    try:
        asyncio.run(run_daemon(settings, Notifier()))
    except NodeFailed as error:
        _log.critical("%s", error, exc_info=error.__cause__)
        return 1
    return 0


def _end_with_stdin() -> None:
    """Whoever holds the other end has ended, or wants us to end."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _settings(file: Path | None, name: str | None, port: int | None) -> NodeConfig:
    """What the file says; without one, a node of this machine."""
    if file is not None:
        if port is not None:
            raise UsageError("--port is for a node without a file: with --config, network.port is in the file")
        return load_config(file, name)
    if name is not None:
        raise UsageError("--name needs --config: the nodes of one machine are called n1, n2, … by themselves")
    port = port or PORT
    return NodeConfig(network=NetworkConfig(port=port), status=StatusConfig(port=port + STATUS_PORT - PORT))


def _trace(config: TraceConfig, folder: Path | None, level: TraceLevel | None) -> TraceConfig:
    if level is None:
        level = TraceLevel.CONTROL if config.level is TraceLevel.OFF else config.level
    return replace(config, level=level, folder=folder or config.folder)
