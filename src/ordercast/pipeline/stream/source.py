"""The Spark source: an archive of groups as a table, or as a stream.

    spark.readStream.format("ordercast").option("subscribe", "orders").load("/var/lib/ordercast/archive")

An offset is a place in the archive of each group. What lies between two places is the same for ever, whoever reads it
and how often, so a batch that is run again has the same rows.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from ordercast.archive.branches import Stretch
from ordercast.archive.places import Place, place_from
from ordercast.archive.reader import EARLIEST, LATEST, Archive
from ordercast.archive.reading import ArchiveFrame, GroupReader, Lost
from ordercast.model.errors import UsageError
from ordercast.model.quantities import duration_from
from ordercast.pipeline.stream.format import COLUMNS
from ordercast.pipeline.stream.options import named

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TRIGGER_DELAY = "15min"  # as Kafka's source has it
NOTHING = ""  # an offset before everything, in an archive that is empty
OPTIONS = (
    "path", "subscribe", "subscribePattern", "startingPlace", "endingPlace", "maxRowsPerTrigger", "minRowsPerTrigger",
    "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "includeViews",
)  # fmt: skip
OF_STREAMS = ("maxRowsPerTrigger", "minRowsPerTrigger", "maxTriggerDelay")
ALIASES = {
    "startingOffsets": "startingPlace",
    "endingOffsets": "endingPlace",
    "maxOffsetsPerTrigger": "maxRowsPerTrigger",
    "minOffsetsPerTrigger": "minRowsPerTrigger",
}  # Kafka's
Offsets = dict[str, str]  # by group, sorted: Spark compares offsets as text


class ArchivePartition(InputPartition):
    """Some numbers of one branch."""

    def __init__(self, group: str, stretch: Stretch) -> None:
        super().__init__((group, *stretch))
        self.group, self.stretch = group, stretch


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Which groups of an archive are read: those that are named, or all that match."""

    names: tuple[str, ...]
    pattern: re.Pattern[str] | None

    def found(self, archive: Archive) -> list[str]:
        """Return what is there now. UsageError when a group that is named is not."""
        for group in self.names:
            archive.group(group)
        there = self.names or archive.groups()
        return sorted(group for group in there if self.pattern is None or self.pattern.fullmatch(group))


def subscribed_from(given: Mapping[str, str]) -> Subscribed:
    text = given.get("subscribePattern")
    if text is not None and "subscribe" in given:
        raise UsageError("subscribe names groups and subscribePattern finds them: say one of the two")
    try:
        pattern = None if text is None else re.compile(text)
    except re.error as error:
        raise UsageError(f"subscribePattern={text!r} is no regular expression: {error}") from None
    return Subscribed(tuple(group.strip() for group in given.get("subscribe", "").split(",") if group.strip()), pattern)


@dataclass(slots=True)
class Plan:
    """What the options say. UsageError when they say nothing that can be done."""

    archive: Archive
    subscribed: Subscribed
    groups: list[str]  # as they are now
    starts: Mapping[str, str]
    ends: Mapping[str, str]
    rows_max: int | None
    rows_min: int
    delay_ns: int  # for which a batch waits for `rows_min` entries
    partitions_min: int
    records_max: int
    fails_on_loss: bool
    with_views: bool
    columns: list[str]
    of_streams: list[str]  # options that a table has no use for

    def look(self) -> None:
        """See which groups there are by now. One that was not there before is read from its beginning."""
        self.groups = self.subscribed.found(self.archive)

    def end_of(self, group: str) -> Place | None:
        """Return the place of the last entry that a table has of a group: a place, a number, or what is there now."""
        text = self.ends.get(group, LATEST)
        if text == LATEST:
            return self.archive.tip(group)
        if not text.isdecimal():
            return self._named(text)
        number, there = int(text), self.archive.group(group).stretches()
        found = next((one.branch for one in there if one.first <= number <= one.last), None)
        if found is None and there and number < there[0].first:
            return Place(there[0].branch, there[0].first - 1)
        if found is None and there:
            raise UsageError(
                f"endingPlace={text}: the archive has {group} up to {there[-1].last}; write latest for all"
            )
        return None if found is None else Place(found, number)

    @staticmethod
    def _named(text: str) -> Place:
        try:
            return place_from(text)
        except UsageError:
            raise UsageError(f"endingPlace={text!r} is no place: write latest, a number or BRANCH:NUMBER") from None

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> list[ArchivePartition]:
        stretches = [(group, one) for group in self.groups for one in self.stretches(group, start, end)]
        total = sum(one.last - one.first + 1 for _, one in stretches)
        each = max(1, min(self.records_max, total // self.partitions_min))
        return [
            ArchivePartition(group, Stretch(one.branch, first, min(one.last, first + each - 1)))
            for group, one in stretches
            for first in range(one.first, one.last + 1, each)
        ]

    def stretches(self, group: str, start: Mapping[str, str], end: Mapping[str, str]) -> list[Stretch]:
        """What lies between two offsets. An offset that knows nothing of a group, or knew it empty, is before all that
        there ever was of it."""
        if not end.get(group):
            return []
        reader, last = self.archive.group(group), place_from(end[group])
        known = place_from(start[group]) if start.get(group) else None
        if self.fails_on_loss:
            return reader.between(known or reader.beginning(last), last)
        first = known or self.archive.place(group, EARLIEST)
        if first is None:
            return []
        with suppress(Lost):
            return reader.between(first, last)
        with suppress(Lost):
            return [one for one in (_behind(one, first) for one in reader.stretches(last)) if one is not None]
        return []

    def waiting(self, group: str, start: Mapping[str, str], end: Mapping[str, str]) -> int:
        """Return how many entries of a group lie between two offsets."""
        return sum(one.last - one.first + 1 for one in self.stretches(group, start, end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        from ordercast.pipeline.stream.rows import batches_of

        assert isinstance(partition, ArchivePartition)
        reader = GroupReader(self.archive.folder, partition.group)
        frames = reader.frames(partition.stretch) if self.fails_on_loss else _kept(reader, partition.stretch)
        yield from batches_of(
            reader,
            frames,
            with_views=self.with_views,
            columns=self.columns,
            fails_on_loss=self.fails_on_loss,
        )


def _kept(reader: GroupReader, stretch: Stretch) -> Iterator[ArchiveFrame]:
    """Yield what is there still: some of it may be gone since the batch was planned."""
    rest: Stretch | None = stretch
    while rest is not None:
        try:
            for frame in reader.frames(rest):
                rest = rest._replace(first=frame.header.last + 1)
                yield frame
            return
        except Lost:
            rest = reader.kept_behind(rest)


def _behind(stretch: Stretch, place: Place) -> Stretch | None:
    first = max(stretch.first, place.number + 1)
    return Stretch(stretch.branch, first, stretch.last) if first <= stretch.last else None


def plan_from(options: Mapping[str, str], columns: Iterable[str] = COLUMNS) -> Plan:
    given = named(options, OPTIONS, ALIASES, "reading")
    if "path" not in given:
        raise UsageError('say where the archive lies: .load("/var/lib/ordercast/archive")')
    archive, subscribed = Archive(Path(given["path"])), subscribed_from(given)
    groups = subscribed.found(archive)
    if not groups and subscribed.pattern is not None and archive.groups():
        there = ", ".join(archive.groups())
        raise UsageError(f"no group of the archive matches {subscribed.pattern.pattern!r}: there are {there}")
    if not groups:
        raise UsageError(f"the archive in {archive.folder} has no groups yet")
    rows_max, rows_min = _count(given, "maxRowsPerTrigger"), _count(given, "minRowsPerTrigger") or 1
    if rows_max is not None and rows_min > rows_max:
        raise UsageError(f"minRowsPerTrigger={rows_min} is more than maxRowsPerTrigger={rows_max}: no batch would do")
    return Plan(
        archive,
        subscribed,
        groups,
        _each(given, "startingPlace", groups),
        _each(given, "endingPlace", groups),
        rows_max,
        rows_min,
        _delay(given),
        _count(given, "minPartitions") or 1,
        _count(given, "maxRecordsPerPartition") or 250_000,
        _yes(given, "failOnDataLoss", True),
        _yes(given, "includeViews", False),
        list(columns),
        [name for name in OF_STREAMS if name in given],
    )


def columns_of(schema: StructType) -> list[str]:
    """Return the columns that a query asks for: all, or what it has named with `.schema()`."""
    for field in schema.fields:
        name, kind = field.name, field.dataType.simpleString()
        if COLUMNS.get(name) != kind:
            there = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
            raise UsageError(f"there is no column {name} {kind} in an archive: name some of {there}")
    return schema.names


def _each(given: Mapping[str, str], name: str, groups: list[str]) -> dict[str, str]:
    """One place for all, or as JSON one for each group."""
    text = given.get(name, "")
    if not text.startswith("{"):
        return dict.fromkeys(groups, text) if text else {}
    try:
        places = {str(group): str(place) for group, place in json.loads(text).items()}
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{name}={text!r} is no JSON of groups and places: {error}") from None
    for group in places:
        if group not in groups:
            raise UsageError(f"{name} names {group!r}, which is not read here: there are {', '.join(groups)}")
    return places


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is not None and (not text.isdigit() or not int(text)):
        raise UsageError(f"{name}={text!r} is no number of at least 1")
    return int(text) if text is not None else None


def _delay(given: Mapping[str, str]) -> int:
    """Return `maxTriggerDelay` in nanoseconds. Kafka's source writes minutes as `15m`."""
    text = given.get("maxTriggerDelay", TRIGGER_DELAY)
    try:
        return duration_from(f"{text}in" if text.endswith("m") else text)
    except UsageError:
        raise UsageError(f"maxTriggerDelay={text!r} is no duration: write one such as 30s or 15min") from None


def _yes(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise UsageError(f"{name}={text!r} is neither true nor false")
    return text == "true"


def check_options(options: Mapping[str, str]) -> None:
    """UsageError, as soon as somebody loads it, says what is wrong with the options."""
    if any(name.lower() == "path" for name in options):
        plan_from(options)


class ArchiveBatchReader(DataSourceReader):
    """Everything from `startingPlace` (earliest) to `endingPlace` (what is there now)."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._plan = plan_from(options, columns_of(schema))
        if self._plan.of_streams:
            raise UsageError(f"{', '.join(self._plan.of_streams)}: for a stream, and this is a table")

    def partitions(self) -> list[ArchivePartition]:
        plan = self._plan
        start = {group: _text(plan.archive.place(group, plan.starts.get(group, EARLIEST))) for group in plan.groups}
        end = {group: _text(plan.end_of(group)) for group in plan.groups}
        return plan.partitions(start, end) or [ArchivePartition(plan.groups[0], Stretch("", 1, 0))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield from self._plan.read(partition)


class ArchiveStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """From `startingPlace` (latest) on.

    Spark asks more than once where a stream begins, also when it runs the first batch again after a crash, and writes
    down only where batches end. So the first batch of a stream from the latest place is empty: it writes that down.
    """

    def __init__(
        self, options: Mapping[str, str], schema: StructType, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._plan = plan_from(options, columns_of(schema))
        if self._plan.ends:
            raise UsageError("endingPlace: for a table, and this is a stream; trigger(availableNow=True) ends one")
        self._clock = clock
        self._batch_at: int | None = None  # when the last batch was found; nothing is waited for before the first
        self._cap: Offsets | None = None
        self._initial: Offsets | None = None
        self._is_noted = all(self._plan.starts.get(group, LATEST) != LATEST for group in self._plan.groups)

    def initialOffset(self) -> Offsets:
        if self._initial is None:
            self._initial = {group: self._start(group) for group in self._plan.groups}
        return self._initial

    def _start(self, group: str) -> str:
        """Where a group begins; the latest place is the one up to which this life reads, if it reads no further.
        UsageError when nothing is there yet from which it could begin: it would be another place in another life."""
        archive, text = self._plan.archive, self._plan.starts.get(group, LATEST)
        if text == LATEST and self._cap is not None:
            return self._cap[group]
        place, tip = archive.found(group, text), archive.tip(group)
        if text not in (EARLIEST, LATEST) and (place is None or (tip is not None and _is_behind(place, tip))):
            end = "is empty" if tip is None else f"ends with {tip}"
            raise UsageError(
                f"startingPlace={text}: nothing is there yet from which a stream could begin, for the archive of "
                f"{group} {end}; write latest for what comes from now on"
            )
        return _text(place)

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._plan.rows_max
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._cap = self._tips()

    def _tips(self) -> Offsets:
        return {group: _text(self._plan.archive.tip(group)) for group in self._plan.groups}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        if not self._is_noted:
            self._is_noted = True
            if start == self._initial:
                return start
        if self._cap is None:
            self._plan.look()
        tips = {group: _not_below(start.get(group), tip) for group, tip in (self._cap or self._tips()).items()}
        if self._is_early(start, tips):
            return start
        if tips != start:
            self._batch_at = self._clock()
        if not isinstance(limit, ReadMaxRows):
            return tips
        shares = self._shares(start, tips, limit.max_rows)
        return {group: self._at_most(group, start, tips, shares[group]) for group in tips}

    def _shares(self, start: Offsets, tips: Offsets, rows: int) -> dict[str, int]:
        """Share out the rows of a batch: what one group has no entries for, the others get. Each has one at least."""
        waiting = {group: self._plan.waiting(group, start, tips) for group in tips}
        shares: dict[str, int] = {}
        for group in sorted(waiting, key=waiting.__getitem__):
            left = rows - sum(min(share, waiting[done]) for done, share in shares.items())
            shares[group] = max(1, left // (len(tips) - len(shares)))
        return shares

    def _is_early(self, start: Offsets, tips: Offsets) -> bool:
        """Whether a batch has too few entries yet, and may wait for more: one that takes what is there does not."""
        plan = self._plan
        if self._batch_at is None or self._cap is not None or self._clock() - self._batch_at >= plan.delay_ns:
            return False
        return plan.rows_min > 1 and sum(plan.waiting(group, start, tips) for group in tips) < plan.rows_min

    def reportLatestOffset(self) -> Offsets:
        return self._tips()

    def _at_most(self, group: str, start: Offsets, tips: Offsets, count: int) -> str:
        """The place so many numbers behind the start, or the tip."""
        for stretch in self._plan.stretches(group, start, tips):
            size = stretch.last - stretch.first + 1
            if count <= size:
                return str(Place(stretch.branch, stretch.first + count - 1))
            count -= size
        return tips[group]

    def partitions(self, start: Offsets, end: Offsets) -> list[ArchivePartition]:
        if not self._is_noted and start == self._initial:
            return []  # the first batch once more, in another life: the latest place is a later one now
        return self._plan.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield from self._plan.read(partition)

    def commit(self, end: Offsets) -> None:
        """The archive keeps what its retention says, not what a query has read: others read it too."""

    def stop(self) -> None:
        """Nothing is held."""


def _not_below(start: str | None, tip: str) -> str:
    """Return the tip, or the start when the branch does not reach so far: a copy of the archive lags behind, say."""
    if start and (not tip or _is_behind(place_from(start), place_from(tip))):
        return start
    return tip


def _is_behind(place: Place, tip: Place) -> bool:
    return place.branch == tip.branch and place.number > tip.number


def _text(place: Place | None) -> str:
    return NOTHING if place is None else str(place)
