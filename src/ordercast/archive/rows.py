"""Rows that a sink sends to a group, each exactly once. Pure.

A task sends its rows in parts, tagged with batch, partition, attempt and number; it may die, run twice, or be run
again. When Spark commits the batch, one marker names the attempt of each partition that won, and how many parts it has.
Where the marker stands in the order, there stand the rows, if everything that it names came before it and if no marker
of this batch or of a later one was there; everything else is as if it had never been sent. All who read the same order
decide alike, whatever was sent twice.

What has to be remembered for that: the last batch of every sink, and where the parts lie that are not committed yet. It
is a function of what was delivered, it goes with every segment of an archive, and so survives whatever the archive
survives.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple

from ordercast.archive.entries import Outcome, SinkCommit
from ordercast.archive.frames import lengths_bytes, lengths_from
from ordercast.archive.places import UNREADABLE, Place, place_from
from ordercast.model.errors import UsageError, WireError

PART, MARKER = b"P", b"M"
HEAD: Final = Struct("!cQIIIBB")  # kind, batch, partition, part, rows, sizes of the attempt's and the query's name
assert HEAD.size == 23
BATCH_MAX, PARTITION_MAX = (1 << 64) - 1, (1 << 32) - 1
OPEN_MAX = 100_000  # parts of one sink that are not committed; more of them are not kept, and their batch is incomplete
SINKS_MAX = 10_000  # that are remembered; the one that has not committed for longest is forgotten first


class Part(NamedTuple):
    query: str  # which of those that may use the sink's name
    batch: int
    partition: int
    attempt: str  # unique for every attempt of every task, over all restarts
    number: int  # from 0
    rows: Sequence[bytes]


class Marker(NamedTuple):
    query: str
    batch: int
    winners: tuple[tuple[int, str, int], ...]  # partition, attempt, number of parts


def part_bytes(part: Part) -> bytes:
    attempt, query = part.attempt.encode(), part.query.encode()
    head = HEAD.pack(PART, part.batch, part.partition, part.number, len(part.rows), len(attempt), len(query))
    return b"".join((head, attempt, query, lengths_bytes(array("I", map(len, part.rows))), *part.rows))


def marker_bytes(marker: Marker) -> bytes:
    document = {"query": marker.query, "batch": marker.batch, "winners": sorted(marker.winners)}
    return MARKER + json.dumps(document, separators=(",", ":")).encode()


def marker_from(data: bytes) -> Marker:
    """WireError when it is none."""
    try:
        found = json.loads(data[1:])
        winners = tuple((int(partition), str(attempt), int(parts)) for partition, attempt, parts in found["winners"])
        marker = Marker(str(found["query"]), int(found["batch"]), winners)
    except UNREADABLE as error:
        raise WireError(f"this is no marker: {error}") from None
    if not 0 <= marker.batch <= BATCH_MAX:
        raise WireError(f"this is no marker: there is no batch {marker.batch}")
    for partition, _, parts in winners:
        if not 0 <= partition <= PARTITION_MAX or parts < 0:
            raise WireError(f"this is no marker: there cannot be {parts} parts of partition {partition}")
    return marker


def part_from(data: bytes, *, with_rows: bool = True) -> Part:
    """WireError when it is none."""
    try:
        kind, batch, partition, number, count, attempt_size, query_size = HEAD.unpack_from(data)
        at = HEAD.size + attempt_size
        attempt, query = data[HEAD.size : at].decode(), data[at : at + query_size].decode()
    except (StructError, UnicodeDecodeError) as error:
        raise WireError(f"this is no part: {error}") from None
    at += query_size
    if kind != PART or len(data) < at + 4 * count:
        raise WireError("this is no part")
    lengths = lengths_from(data[at : at + 4 * count])
    at += 4 * count
    if at + sum(lengths) != len(data):
        raise WireError("the lengths of rows are not those of their bytes")
    return Part(query, batch, partition, attempt, number, _rows(data, at, lengths) if with_rows else ())


def _rows(data: bytes, at: int, lengths: Iterable[int]) -> list[bytes]:
    return [data[start:end] for start, end in pairwise(accumulate(lengths, initial=at))]


_Key = tuple[int, int, str, int]  # batch, partition, attempt, part


@dataclass(slots=True)
class _Sink:
    query: str
    last: int = -1  # batch
    open: dict[_Key, Place] = field(default_factory=dict)


class Sinks:
    """What was seen of sinks, up to a place."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        self._sinks: dict[str, _Sink] = {}
        for name, found in (document or {}).items():
            parts = {(int(b), int(p), str(a), int(n)): place_from(place) for b, p, a, n, place in found["open"]}
            self._sinks[name] = _Sink(str(found["query"]), int(found["last"]), parts)

    def document(self) -> dict[str, Any]:
        """For JSON; the same at everybody who has seen the same."""
        return {
            name: {
                "query": sink.query,
                "last": sink.last,
                "open": [[*key, str(place)] for key, place in sorted(sink.open.items())],
            }
            for name, sink in self._sinks.items()
        }

    def last(self, sink: str) -> int | None:
        """The last batch that was committed."""
        found = self._sinks.get(sink)
        return None if found is None or found.last < 0 else found.last

    def take(self, sink: str, place: Place, data: bytes) -> SinkCommit | None:
        """A message of the sink, in order. None for a part, and for what makes no sense."""
        try:
            if data[:1] == MARKER:
                return self._commit(sink, marker_from(data))
            part = part_from(data, with_rows=False)
        except WireError:
            return None
        known = self._known(sink, part.query)
        if known.query == part.query and part.batch > known.last and len(known.open) < OPEN_MAX:
            known.open[part.batch, part.partition, part.attempt, part.number] = place
        return None

    def _known(self, name: str, query: str) -> _Sink:
        known = self._sinks.get(name)
        if known is None:
            while len(self._sinks) >= SINKS_MAX:
                del self._sinks[next(iter(self._sinks))]
            known = self._sinks[name] = _Sink(query)
        return known

    def _commit(self, name: str, marker: Marker) -> SinkCommit:
        sink = self._known(name, marker.query)
        if sink.query != marker.query:
            return SinkCommit(name, marker.batch, Outcome.FOREIGN)
        if marker.batch <= sink.last:
            return SinkCommit(name, marker.batch, Outcome.REPEATED)
        if sum(parts for _, _, parts in marker.winners) > len(sink.open):
            return SinkCommit(name, marker.batch, Outcome.INCOMPLETE)
        keys = [
            (marker.batch, partition, attempt, number)
            for partition, attempt, parts in sorted(marker.winners)
            for number in range(parts)
        ]
        if any(key not in sink.open for key in keys):
            return SinkCommit(name, marker.batch, Outcome.INCOMPLETE)
        places = tuple(sink.open[key] for key in keys)
        sink.last = marker.batch
        sink.open = {key: place for key, place in sink.open.items() if key[0] > marker.batch}
        self._sinks[name] = self._sinks.pop(name)  # it has committed last
        return SinkCommit(name, marker.batch, Outcome.COMMITTED, places)


def united(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Where sides come together: what any of them has seen."""
    merged: dict[str, Any] = {}
    for document in documents:
        for name, found in document.items():
            known = merged.setdefault(name, {"query": found["query"], "last": -1, "open": []})
            if known["query"] != found["query"]:
                known = merged[name] = max(known, found, key=lambda one: (one["last"], one["query"]))
                continue
            parts = [part for part in [*known["open"], *found["open"]] if part[0] > max(known["last"], found["last"])]
            last = max(known["last"], found["last"])
            merged[name] = {"query": known["query"], "last": last, "open": sorted(parts)}
    return merged


class Receiver:
    """For members of a group who read it live: gives the rows of sinks where they stand, each once.

    `document` is what has to be stored together with what was done with the rows; the next life begins with it. Parts
    that are not committed are held in memory, and not stored: a batch whose parts came before a restart is sent again
    only if its marker was refused, so a receiver that restarts while a batch is under way reads it from an archive.
    """

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        self._sinks = Sinks(document)
        self._parts: dict[Place, bytes] = {}
        self._number = 0

    @property
    def document(self) -> dict[str, Any]:
        return {name: found | {"open": []} for name, found in self._sinks.document().items()}

    def take(self, sink: str, data: bytes) -> Iterator[bytes]:
        self._number += 1
        place = Place("0" * 16, self._number)
        commit = self._sinks.take(sink, place, data)
        if data[:1] == PART:
            self._parts[place] = data
        if commit is not None:
            for part in commit.parts:
                yield from part_from(self._parts[part]).rows
            kept = {Place(*place_from(p[-1])) for found in self._sinks.document().values() for p in found["open"]}
            self._parts = {at: part for at, part in self._parts.items() if at in kept}


def checked_winners(winners: Iterable[tuple[int, str, int]]) -> tuple[tuple[int, str, int], ...]:
    """One attempt for each partition."""
    chosen = tuple(sorted(winners))
    if len({partition for partition, _, _ in chosen}) != len(chosen):
        raise UsageError("a marker names one attempt for each partition")
    return chosen
