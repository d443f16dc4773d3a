"""`ordercast status`: what a running node says of itself, read over HTTP."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from ordercast.cli.status_drawing import status_line, status_page
from ordercast.cli.terminal import output, write_json
from ordercast.daemon.config.defaults import LOOPBACK, STATUS_PORT, host_and_port
from ordercast.model.errors import UsageError
from ordercast.model.printable import json_text

TIMEOUT_S = 5.0
ANSWER_SIZE_MAX = 16 << 20
WATCH_EVERY_S = 1.0


def status(address: str, watch: bool, as_json: bool) -> int:
    host, port = place_from(address)
    first = fetch(host, port)
    if watch:
        _watch(output(), first, _documents(host, port), as_json)
        return 0
    if as_json:
        write_json(first)
    else:
        console = output()
        console.print(status_page(first))
    return 0 if first["configuration"]["is_ready"] else 1


def _documents(host: str, port: int) -> Iterator[dict[str, Any] | UsageError]:
    """One a second; what cannot be fetched is told and tried again, as a node may be restarted."""
    while True:
        time.sleep(WATCH_EVERY_S)
        try:
            yield fetch(host, port)
        except UsageError as error:
            yield error


def _watch(
    console: Console, first: dict[str, Any], documents: Iterator[dict[str, Any] | UsageError], as_json: bool
) -> None:
    """Redrawn on a terminal; elsewhere a line each."""
    if as_json or not console.is_terminal:
        _print_line(console, first, as_json)
        for document in documents:
            _print_line(console, document, as_json)
        return
    from rich.live import Live

    with Live(status_page(first), console=console, screen=True, auto_refresh=False) as live:
        for document in documents:
            page = str(document) if isinstance(document, UsageError) else status_page(document)
            live.update(page, refresh=True)


def _print_line(console: Console, document: dict[str, Any] | UsageError, as_json: bool) -> None:
    if isinstance(document, UsageError):
        text = json_text({"error": str(document)}) if as_json else str(document)
    else:
        text = json_text(document) if as_json else status_line(document)
    console.print(text, markup=False, soft_wrap=True)
    console.file.flush()


def place_from(address: str) -> tuple[str, int]:
    """`HOST`, `HOST:PORT`, `:PORT`, `[IPv6]:PORT`, with or without http://."""
    text = address.removeprefix("http://").rstrip("/").removesuffix("/status")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.endswith("]")):
        host, port = text, str(STATUS_PORT)
    host = host.strip("[]") or LOOPBACK
    if not port.isdecimal() or not 0 < int(port) <= 65535 or "/" in host:
        raise UsageError(f"{address!r} is not an address: write HOST:PORT, such as {LOOPBACK}:{STATUS_PORT}")
    return host, int(port)


def fetch(host: str, port: int) -> dict[str, Any]:
    """The document; UsageError says why there is none."""
    place = host_and_port(host, port)
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.connect()
        where = host_and_port(connection.sock.getpeername()[0], port)  # by address: a name would have to be configured
        connection.request("GET", "/status", headers={"Connection": "close", "Host": where})
        answer = connection.getresponse()
        text = answer.read(ANSWER_SIZE_MAX)
    except ConnectionRefusedError as error:
        raise UsageError(
            f"nothing listens at {place}: start a daemon there, or give the address of its status"
        ) from error
    except TimeoutError as error:
        raise UsageError(f"{place} does not answer within {TIMEOUT_S:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise UsageError(f"{place} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    finally:
        connection.close()
    try:
        document = json.loads(text)
        if answer.status != 200 or "configuration" not in document:
            raise ValueError
    except (ValueError, TypeError):
        raise UsageError(f"what listens at {place} is not an Ordercast node") from None
    assert isinstance(document, dict)
    return document
