"""`ordercast daemon`: runs a node until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

from ordercast.daemon.config.file import STATUS_PORT, load_config
from ordercast.daemon.config.node import (
    PORT,
    NodeConfig,
    SecurityConfig,
    StatusConfig,
    TraceConfig,
    TraceLevel,
)
from ordercast.daemon.logs import start_logging
from ordercast.daemon.loop import daemon_loop
from ordercast.daemon.participant import NodeFailed
from ordercast.daemon.run import run_daemon
from ordercast.daemon.systemd import Notifier
from ordercast.model.errors import UsageError
from ordercast.order.catalogue import live_entry_of

_log = logging.getLogger(__name__)


def daemon(
    config: Path | None,
    name: str | None,
    status_port: int | None,
    clients_port: int | None,
    port: int | None,
    key: Path | None,
    engine: str | None,
    log: str,
    trace: Path | None,
    trace_level: TraceLevel | None,
    until_eof: bool,
) -> int:
    settings = _settings(config, name, port)
    if engine is not None:
        settings = replace(settings, engine=live_entry_of(engine).name)
    if key is not None:
        settings = replace(settings, security=SecurityConfig(key.absolute()))
    if status_port is not None:
        settings = replace(settings, status=replace(settings.status, port=status_port or None))
    if clients_port is not None:
        settings = replace(settings, clients=replace(settings.clients, port=clients_port or None))
    if trace is not None or trace_level is not None:
        settings = replace(settings, trace=_trace(settings.trace, trace, trace_level))
    start_logging(log)
    if until_eof:
        threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    try:
        with asyncio.Runner(loop_factory=daemon_loop) as runner:
            runner.run(run_daemon(settings, Notifier()))
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
    return NodeConfig(status=StatusConfig(port=port + STATUS_PORT - PORT)).beside(None, port)


def _trace(config: TraceConfig, folder: Path | None, level: TraceLevel | None) -> TraceConfig:
    if level is None:
        level = TraceLevel.CONTROL if config.level is TraceLevel.OFF else config.level
    return replace(config, level=level, folder=folder or config.folder)
