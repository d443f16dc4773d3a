"""`ordercast status`: what a running node says of itself, read over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from rich.console import Console

from ordercast.cli.commands.options import STATUS_HERE
from ordercast.cli.status_drawing import status_line, status_page
from ordercast.cli.terminal import output, write_json
from ordercast.daemon.config.defaults import LOOPBACK, STATUS_PORT, host_and_port
from ordercast.daemon.status.bearer import read_bearer_file
from ordercast.model.errors import Error, UsageError
from ordercast.model.printable import json_text
from ordercast.session.addresses import CHOSEN

TIMEOUT_S = 5.0
ANSWER_SIZE_MAX = 16 << 20
WATCH_EVERY_S = 1.0
VARIABLE = "ORDERCAST_STATUS_TOKEN"


def status(address: str, watch: bool, everybody: bool, as_json: bool) -> int:
    if everybody:
        from ordercast.cli.status_all import status_all

        return status_all(address, watch, as_json)
    host, port = place_of(address)
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


def place_of(address: str) -> tuple[str, int]:
    """Return where the status is: at an address, or, of a name that is no host's, where the node of this machine knows
    a node of this name to serve it."""
    if address == STATUS_HERE:
        return _own_place()
    host, port = place_from(address)
    if ":" in address or "." in address or _is_host(host):
        return host, port
    unknown = f"{host} is no host, and no node that is known here: give HOST:PORT, or see `ordercast status --all`"
    try:
        places = {node["name"]: node["status"] for node in fetch(*_own_place())["everybody"]}
    except UsageError:
        raise UsageError(unknown) from None
    if places.get(host) is None:
        raise UsageError(unknown)
    return place_from(places[host])


def _own_place() -> tuple[str, int]:
    """Return where a node of this machine serves its status: at the usual place, or where a daemon that clients find
    says so. Whoever names a folder of sockets means the daemons that are there."""
    usual = LOOPBACK, STATUS_PORT
    if CHOSEN not in os.environ and _is_served(usual):
        return usual
    from ordercast.cli.cluster import ask

    try:
        told = ask(None, {"do": "places"})["status"]
    except Error:
        return usual
    return usual if told is None else place_from(told)


def _is_served(place: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(place, TIMEOUT_S):
            return True
    except OSError:
        return False


def _is_host(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True


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

    with Live(status_page(first, is_watched=True), console=console, screen=True, auto_refresh=False) as live:
        for document in documents:
            page = str(document) if isinstance(document, UsageError) else status_page(document, is_watched=True)
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


def _shown() -> dict[str, str]:
    """Return the header with the token of the file that the environment names."""
    file = os.environ.get(VARIABLE)
    return {"Authorization": f"Bearer {read_bearer_file(Path(file).expanduser())}"} if file else {}


class Unanswered(UsageError):
    """There is no document: how it was silent in a word or two, and in a sentence."""

    def __init__(self, kind: str, remark: str, text: str = "") -> None:
        super().__init__(text or remark)
        self.kind = kind
        self.remark = remark


def fetch(host: str, port: int, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """The document; Unanswered says why there is none."""
    place = host_and_port(host, port)
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    is_reached = False
    try:
        connection.connect()
        is_reached = True
        where = host_and_port(connection.sock.getpeername()[0], port)  # by address: a name would have to be configured
        connection.request("GET", "/status", headers={"Connection": "close", "Host": where, **_shown()})
        answer = connection.getresponse()
        text = answer.read(ANSWER_SIZE_MAX)
    except ConnectionRefusedError as error:
        raise Unanswered(
            "ended",
            "nothing listens there",
            f"nothing listens at {place}: start a daemon there, or give the address of its status",
        ) from error
    except TimeoutError as error:
        kind, remark = (
            ("hangs", "it is reached, and says nothing") if is_reached else ("not reached", "it is not reached")
        )
        raise Unanswered(kind, remark, f"{place} does not answer within {timeout_s:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or error
        raise Unanswered("not reached", str(why), f"{place} cannot be read: {why}") from error
    finally:
        connection.close()
    if answer.status == HTTPStatus.UNAUTHORIZED:
        raise UsageError(f"{place} shows its status to those who have its token: name the file of it in ${VARIABLE}")
    try:
        document = json.loads(text)
        if answer.status != 200 or "configuration" not in document:
            raise ValueError
    except (ValueError, TypeError):
        remark = "what listens there is not an Ordercast node"
        raise Unanswered("another program", remark, f"what listens at {place} is not an Ordercast node") from None
    assert isinstance(document, dict)
    return document
