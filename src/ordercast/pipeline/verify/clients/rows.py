"""Rows of the table of clients as numpy columns: the messages that were sent, got and confirmed.

The rest (connections, views, signals, requests) is little and becomes events. A client is its place among all clients,
by process and session; texts are numbers that are equal when the texts are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.verify.positions import POSITION
from ordercast.pipeline.verify.rows import Flags, Ints, Rows, Unsound, goals_from, numbers_from, texts_from
from ordercast.trace.arrow import evidence_events
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.client_rows import CLIENTS
from ordercast.trace.columns import RowKind

SENT, GOT, CONFIRMED = int(RowKind.SENT), int(RowKind.GOT_MESSAGE), int(RowKind.GOT_CONFIRMATION)
MESSAGES = (SENT, GOT, CONFIRMED)
NUMBERING = ("process", "session", "n", "kind")
_STAMP = ("sender_process", "sender", "counter")
_CONTENT = ("digest", "service")
MESSAGE = (*NUMBERING, *_STAMP, *_CONTENT, "self_discard", "confirm", *POSITION, "name", "groups")
_NUMBERS = (*NUMBERING, *_STAMP, *_CONTENT, *POSITION)


@dataclass(frozen=True, slots=True)
class Said:
    """An event that is no message, with its number."""

    n: int
    event: ClientEvent


@dataclass(slots=True)
class Who:
    """All clients by process and session, so that each is its place."""

    processes: Ints  # of each client, as in the file: signed
    sessions: Ints
    _keys: Ints = field(init=False)
    _known: Ints = field(init=False)
    _width: int = field(init=False)

    def __post_init__(self) -> None:
        self._known = np.unique(self.processes)
        self._width = int(self.sessions.max(initial=0)) + 1
        self._keys = np.searchsorted(self._known, self.processes) * self._width + self.sessions

    def places(self, processes: Ints, sessions: Ints) -> tuple[Ints, Flags]:
        """Return the place of each, and whether there is such a client."""
        if not len(self._keys):
            return np.zeros(len(processes), np.int64), np.zeros(len(processes), np.bool_)
        process = np.minimum(np.searchsorted(self._known, processes), len(self._known) - 1)
        keys = process * self._width + np.clip(sessions, 0, self._width - 1)
        found = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        is_known = (self.processes[found] == processes) & (self.sessions[found] == sessions)
        return found, is_known


def is_message(table: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(table["kind"], value_set=pa.array(MESSAGES, table["kind"].type))


def said_in(table: pa.Table) -> list[Said]:
    """What is no message, in the order of the history. `table` has all columns. `Unsound` when a row cannot be read."""
    try:
        found = evidence_events(table.filter(pc.invert(is_message(table))), CLIENTS)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unsound(f"an event cannot be read: {error}") from error
    return [Said(n, event) for n, event in sorted(found.items())]


def client_messages(table: pa.Table, who: Who) -> Rows:
    """The messages of a table with the columns of `MESSAGE`: `client` and `sender` are places among all clients, `goal`
    and `name` texts. What lacks a stamp, a place or a client is `odd`."""
    chosen = table.filter(is_message(table))
    rows = Rows({name: numbers_from(chosen[name]) for name in _NUMBERS})
    kind, nulls = rows["kind"], {name: pc.is_null(chosen[name]).to_numpy() for name in MESSAGE}
    client, is_client = who.places(rows["process"], rows["session"])
    sender, is_sender = who.places(rows["sender_process"], rows["sender"])
    odd = ~is_client | ~is_sender | (rows["counter"] <= 0) | nulls["sender_process"] | nulls["process"]
    for name in (*_CONTENT, "groups"):
        odd |= nulls[name] & (kind != CONFIRMED)
    for name in POSITION:
        odd |= nulls[name] & (kind != SENT)
    columns = {
        "client": client,
        "sender": sender,
        "odd": odd.astype(np.int64),
        "name": texts_from(chosen["name"]),
        "goal": goals_from(chosen["groups"], rows.goals),
        **{name: _flags(chosen[name]) for name in ("self_discard", "confirm")},
    }
    kept = ("n", "kind", "counter", *_CONTENT, *POSITION)
    return Rows({name: rows[name] for name in kept} | columns, rows.goals)


def by_client(rows: Rows) -> Rows:
    """Return the rows of each client together, in its own order."""
    return rows.where(np.lexsort((rows["n"], rows["client"])))


def _flags(column: pa.ChunkedArray) -> Ints:
    return np.asarray(pc.fill_null(column, False).to_numpy(), np.int64)


def no_client_messages() -> Rows:
    names = ("n", "kind", "counter", *_CONTENT, *POSITION, "client", "sender", "odd", "name", "goal")
    return Rows({name: np.zeros(0, np.int64) for name in (*names, "self_discard", "confirm")})
