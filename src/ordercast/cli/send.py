"""`ordercast send`: sends text, the lines of stdin, or a file to groups."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from ordercast.api.blocking import BlockingClient
from ordercast.api.connect import connect
from ordercast.cli.client_options import checked_at, service_from
from ordercast.cli.event_text import counted, listed
from ordercast.cli.payload_text import place_document
from ordercast.cli.terminal import Meter, note, output, write_json
from ordercast.groups.names import AT, checked_destinations
from ordercast.model.errors import ConnectionLost, UsageError
from ordercast.model.ids import Position, node_of
from ordercast.model.service import Service

PORTION_SIZE = 1 << 18  # bytes that are sent between two looks at the progress
PORTION_MAX = 1000  # messages
READ_SIZE = 1 << 16


def send(
    groups: str,
    text: list[str] | None,
    file: Path | None,
    service: str,
    confirm: bool,
    count: int,
    at: str | None,
    name: str,
    wait: float | None,
    as_json: bool,
) -> int:
    destinations = checked_destinations([part for part in groups.split(",") if part] or groups)
    if text and file:
        raise UsageError("a text and --file exclude each other: send them one after the other")
    if count > 1 and not text and not file:
        raise UsageError("--count needs a text or --file: the lines of stdin are sent once")
    payload = _read(file) if file else " ".join(text).encode("utf-8", "surrogateescape") if text else None
    portions = _lines() if payload is None else _copies(payload, count)
    total = None if payload is None else count
    work = Sending(destinations, service_from(service), confirm)
    with connect(checked_at(at, wait), name=name, wait=wait) as me:
        work.send(me, portions, total)
        empty = _empty(me, destinations)
        node = "" if work.last is None or as_json else _node(me, work.last)
    if as_json:
        write_json(work.document(empty))
    else:
        _say(work, node)
    if empty:
        note(f"nobody is in {listed(empty)} now: a message reaches those who are there when it comes", always=True)
    return 0


class Sending:
    """What is sent, and how far it got."""

    def __init__(self, destinations: tuple[str, ...], service: Service, confirm: bool) -> None:
        self.destinations = destinations
        self.service = service
        self.sent = 0
        self.size = 0
        self.last: Position | None = None
        self.seconds = 0.0
        self._confirm = confirm

    def send(self, me: BlockingClient, portions: Iterator[list[bytes]], total: int | None) -> None:
        began = time.monotonic()
        with Meter("sending", total or 1) as meter:
            for portion in portions:
                try:
                    is_asked = self._confirm or not self.sent  # may it send there at all? The first answer says so
                    place = me.send_many(self.destinations, portion, self.service, confirm=is_asked)
                    self.last = place if self._confirm else None
                except ConnectionLost as error:
                    raise ConnectionLost(f"{error}; {self.sent:,} messages were sent before") from error
                self.sent += len(portion)
                self.size += sum(map(len, portion))
                if total is not None:
                    meter.show(self.sent, f"{self.sent:,} of {total:,}")
        self.seconds = time.monotonic() - began

    def document(self, empty: list[str]) -> dict[str, object]:
        return {
            "sent": self.sent,
            "bytes": self.size,
            "to": list(self.destinations),
            "empty": empty,
            "service": self.service.name.lower(),
            "position": None if self.last is None else place_document(self.last),
            "seconds": round(self.seconds, 6),
        }


def _node(me: BlockingClient, place: Position) -> str:
    """Return the name of the node in a place where the cluster's file calls it otherwise, for people to know it by."""
    try:
        nodes = me.manage({"do": "list"})["nodes"]
    except UsageError:
        return ""  # the daemon tells nobody of its nodes, or is too old for it
    node = node_of(place.origin.representative)
    return next((str(one["name"]) for one in nodes if one["id"] == node and one["name"] != f"n{node}"), "")


def _say(work: Sending, node: str) -> None:
    line = f"{counted(work.sent, 'message')} sent to {listed(work.destinations)}"
    if work.last is not None:
        whose = "its" if work.sent == 1 else "of the last one the"
        called = f" (n{node_of(work.last.origin.representative)} is {node})" if node else ""
        line += f"; {whose} place in the order is {work.last}{called}"
    if work.seconds > 1 and work.sent > 1:
        line += f" ({work.sent / work.seconds:,.0f} a second)"
    output().print(Text(line), soft_wrap=True)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error


def _copies(payload: bytes, count: int) -> Iterator[list[bytes]]:
    at_once = max(1, min(PORTION_MAX, PORTION_SIZE // (len(payload) + 1)))
    while count:
        portion = min(count, at_once)
        yield [payload] * portion
        count -= portion


def _lines() -> Iterator[list[bytes]]:
    """Yield the lines of stdin as they come: all that one read brings are sent together."""
    if sys.stdin.isatty():
        note("each line is a message; Ctrl-D ends")
    rest = b""
    while data := os.read(sys.stdin.fileno(), READ_SIZE):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _empty(me: BlockingClient, destinations: tuple[str, ...]) -> list[str]:
    """Groups in which nobody is: most likely a name was mistyped."""
    there = me.groups()
    return [name for name in destinations if AT not in name and name not in there]
