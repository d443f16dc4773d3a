"""The Spark source over an archive: as a table and as a stream, with Java."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ordercast.archive.branches import Cause, Stretch, branch_of
from ordercast.archive.entries import Item
from ordercast.archive.files import GroupFiles
from ordercast.archive.layout import group_folder, segments_of
from ordercast.archive.places import NO_VIEW, Place
from ordercast.archive.reading import Lost
from ordercast.model.errors import UsageError
from ordercast.model.events import Batch
from ordercast.model.headers import header_block
from ordercast.model.ids import SECOND
from tests.unit.archive.stories import batch, view
from tests.unit.archive.test_files import ROOT, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark
COUNT = 1000


def story(start: int, count: int) -> list[Item]:
    items: list[Item] = [view(start, "a@n1", "b@n2")]
    items += [
        batch(b"%d" % number, b"and %d" % number, seq=number) for number in range(start + 1, start + count // 2 + 1)
    ]
    return items


class Grown:
    """An archive that grows when the test says so."""

    def __init__(self, folder: Path, group: str = "orders") -> None:
        self.folder = folder
        self.group = group
        self.last = 0

    def grow(self, count: int = COUNT) -> None:
        """One view, and so many messages."""
        files = GroupFiles(group_folder(self.folder, self.group))
        root = branch_of(self.group, Cause.ROOT, NO_VIEW, ("a@n1",), ())
        write(files, root, story(self.last + 1, count), after=self.last, segment_size=20_000)
        files.close()
        self.last += count + 1


@pytest.fixture
def grown(tmp_path: Path) -> Grown:
    archive = Grown(tmp_path / "archive")
    archive.grow()
    return archive


def read(spark: SparkSession, grown: Grown, **options: str) -> DataFrame:
    return spark.read.format("ordercast").options(**options).load(str(grown.folder))


def test_an_archive_is_a_table(spark: SparkSession, grown: Grown) -> None:
    rows = read(spark, grown, minPartitions="3").orderBy("number", "position").collect()
    assert [row.number for row in rows] == list(range(2, COUNT + 2))
    assert (bytes(rows[0].data), rows[0].sender, rows[0].service, rows[0].groups) == (
        b"2",
        "alice@n1",
        "agreed",
        ["orders"],
    )
    assert (rows[0].kind, rows[0].group, rows[0].position.number) == ("message", "orders", 2)
    everything = read(spark, grown, includeViews="true").where("kind = 'view'").collect()
    assert [row.members for row in everything] == [["a@n1", "b@n2"]]
    assert read(spark, grown, startingPlace="900").count() == COUNT + 2 - 900
    assert read(spark, grown, startingPlace=f"{ROOT.name}:900").count() == COUNT + 1 - 900


def test_a_query_names_the_columns_that_it_needs(spark: SparkSession, grown: Grown) -> None:
    some = spark.read.format("ordercast").schema("data BINARY, number BIGINT").load(str(grown.folder))
    assert some.columns == ["data", "number"]
    payloads = [data for seq in range(2, COUNT // 2 + 2) for data in (b"%d" % seq, b"and %d" % seq)]
    assert sorted((row.number, bytes(row.data)) for row in some.collect()) == list(enumerate(payloads, 2))
    places = "position STRUCT<origin_seq: BIGINT, origin_rep: BIGINT, number: BIGINT, slot: INT>, groups ARRAY<STRING>"
    row = spark.read.format("ordercast").schema(places).load(str(grown.folder)).first()
    assert row is not None and (row.position.number, row.groups) == (2, ["orders"])


def test_several_groups_at_once(spark: SparkSession, grown: Grown) -> None:
    Grown(grown.folder, "prices").grow(100)
    counts = {row.group: row["count"] for row in read(spark, grown).groupBy("group").count().collect()}
    assert counts == {"orders": COUNT, "prices": 100}
    assert read(spark, grown, subscribe="prices").count() == 100


def test_groups_are_found_by_a_pattern_and_options_have_the_names_of_kafka(spark: SparkSession, grown: Grown) -> None:
    Grown(grown.folder, "prices").grow(100)
    Grown(grown.folder, "orders.eu").grow(10)
    found = read(spark, grown, subscribePattern="orders.*", startingOffsets="earliest")
    counts = {row.group: row["count"] for row in found.groupBy("group").count().collect()}
    assert counts == {"orders": COUNT, "orders.eu": 10}


def test_headers_are_a_column(spark: SparkSession, tmp_path: Path) -> None:
    files = GroupFiles(group_folder(tmp_path, "orders"))
    root = branch_of("orders", Cause.ROOT, NO_VIEW, ("a@n1",), ())
    headed = [header_block({"trace": "7", "kind": "new"}) + b"one", header_block({}) + b"two"]
    said = Batch(("orders",), "alice@n1", headed, [4, 4], batch(b"", b"").places, is_headed=True)
    write(files, root, [said, batch(b"three", seq=2)])
    files.close()
    rows = spark.read.format("ordercast").load(str(tmp_path)).orderBy("number").collect()
    assert [(bytes(row.data), row.headers, row.row) for row in rows] == [
        (b"one", {"trace": "7", "kind": "new"}, 0),
        (b"two", {}, 0),
        (b"three", None, 0),
    ]


def test_a_group_that_comes_later_is_read_from_its_beginning(grown: Grown) -> None:
    """Without Java: unless groups are named, a stream looks for new ones."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveStreamReader

    schema = StructType([StructField("data", BinaryType())])
    stream = ArchiveStreamReader({"path": str(grown.folder), "subscribePattern": ".*"}, schema)
    begin = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    Grown(grown.folder, "prices").grow(100)
    end = stream.latestOffset(begin, ReadAllAvailable())
    sizes = {one.group: one.stretch.last - one.stretch.first + 1 for one in stream.partitions(begin, end)}
    assert sizes == {"prices": 101}


def ended(query: StreamingQuery) -> bool:
    """False when Spark has not seen its own Python process within ten seconds, which no option changes: on a machine
    that is very busy it has to be tried again."""
    try:
        assert query.awaitTermination(200)
    except Exception as error:
        if "failed to connect back" in str(error):
            return False
        raise
    return True


def test_a_stream_goes_on_where_it_was(spark: SparkSession, grown: Grown, tmp_path: Path) -> None:
    from ordercast.spark import lag

    def run() -> bool:
        stream = (
            spark.readStream.format("ordercast")
            .options(startingPlace="earliest", maxRowsPerTrigger="600", minPartitions="2")
            .load(str(grown.folder))
        )
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        if not ended(query):
            return False
        assert query.lastProgress is None or query.lastProgress.numInputRows <= 600
        assert lag(query.lastProgress) == {"orders": 0}
        return True

    for _ in range(2):
        while not run():
            pass
        numbers = sorted(row.number for row in spark.read.parquet(str(tmp_path / "out")).select("number").collect())
        views = {1, *range(COUNT + 2, grown.last + 1, COUNT + 1)}
        assert numbers == [number for number in range(1, grown.last + 1) if number not in views]
        grown.grow()


def test_a_stream_from_the_latest_place_begins_there_whatever_comes_meanwhile(grown: Grown) -> None:
    """Without Java: Spark asks for the beginning again before it plans the first batch, and in another life."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveStreamReader

    def reader() -> ArchiveStreamReader:
        return ArchiveStreamReader({"path": str(grown.folder)}, StructType([StructField("data", BinaryType())]))

    first = reader()
    begin = first.initialOffset()
    grown.grow()
    noted = first.latestOffset(first.initialOffset(), ReadAllAvailable())
    assert first.initialOffset() == noted == begin
    assert first.partitions(first.initialOffset(), noted) == []
    second = reader()  # the first batch was not done
    assert second.initialOffset() != begin
    assert second.partitions(second.initialOffset(), noted) == []
    end = second.latestOffset(noted, ReadAllAvailable())
    assert sum(one.stretch.last - one.stretch.first + 1 for one in second.partitions(noted, end)) == COUNT + 1


def test_what_comes_between_the_cap_and_the_first_batch_is_read_by_the_next_life(grown: Grown) -> None:
    """Without Java: `availableNow` from the latest place, while the archive grows."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveStreamReader

    def reader() -> ArchiveStreamReader:
        return ArchiveStreamReader({"path": str(grown.folder)}, StructType([StructField("data", BinaryType())]))

    first, limit = reader(), ReadAllAvailable()
    first.prepareForTriggerAvailableNow()
    tip = grown.last
    grown.grow()
    begin = first.initialOffset()
    assert begin == {grown.group: str(Place(ROOT.name, tip))}
    noted = first.latestOffset(begin, limit)
    assert first.latestOffset(noted, limit) == noted == begin
    second = reader()
    second.prepareForTriggerAvailableNow()
    end = second.latestOffset(noted, limit)
    assert sum(one.stretch.last - one.stretch.first + 1 for one in second.partitions(noted, end)) == COUNT + 1


def test_an_offset_is_never_below_the_one_before(grown: Grown) -> None:
    """Without Java: a copy of the archive may lag behind the one that was read."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveStreamReader

    reader = ArchiveStreamReader({"path": str(grown.folder)}, StructType([StructField("data", BinaryType())]))
    start = {grown.group: str(Place(ROOT.name, grown.last + 1))}
    for limit in (ReadAllAvailable(), ReadMaxRows(100)):
        assert reader.latestOffset(start, limit) == start
    grown.grow()
    assert reader.latestOffset(start, ReadAllAvailable()) == {grown.group: str(Place(ROOT.name, grown.last))}


def test_a_stream_does_not_begin_beyond_the_last_entry(grown: Grown) -> None:
    """Without Java: it would have rows from before that, and others when its first batch is run again."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveBatchReader, ArchiveStreamReader

    columns = StructType([StructField("data", BinaryType())])
    (GroupFiles(group_folder(grown.folder, "empty"))).close()

    def given(text: str, group: str = grown.group) -> dict[str, str]:
        return {"path": str(grown.folder), "subscribe": group, "startingPlace": text}

    number = grown.last + 1
    for text in (str(number), "99999", f"{ROOT.name}:{number}", "9.n1:1.0", "2999-01-01T00:00:00+00:00"):
        with pytest.raises(UsageError, match=f"startingPlace={re.escape(text)}: nothing is there yet .* ends with"):
            ArchiveStreamReader(given(text), columns).initialOffset()
        if ":" not in text:
            assert sum(one.stretch.last for one in ArchiveBatchReader(given(text), columns).partitions()) == 0
    with pytest.raises(UsageError, match="the archive of empty is empty; write latest"):
        ArchiveStreamReader(given("7", "empty"), columns).initialOffset()
    for text in (str(grown.last), f"{ROOT.name}:{grown.last - 1}"):
        begin = ArchiveStreamReader(given(text), columns).initialOffset()
        assert begin == {grown.group: str(Place(ROOT.name, grown.last - 1))}
    assert ArchiveStreamReader(given("earliest", "empty"), columns).initialOffset() == {"empty": ""}


def test_a_batch_waits_for_its_least_rows_and_no_longer_than_it_may(grown: Grown) -> None:
    """Without Java, with a clock of the test's."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveStreamReader

    now = 0
    options = {"path": str(grown.folder), "startingPlace": "earliest", "minOffsetsPerTrigger": "600"}
    options["maxTriggerDelay"] = "1m"
    columns, limit = StructType([StructField("data", BinaryType())]), ReadAllAvailable()
    reader = ArchiveStreamReader(options, columns, lambda: now)
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert first != reader.initialOffset()
    grown.grow(400)
    now = 59 * SECOND
    assert reader.latestOffset(first, limit) == first
    now = 60 * SECOND
    second = reader.latestOffset(first, limit)
    assert second != first
    grown.grow(600)
    assert reader.latestOffset(second, limit) != second
    third = reader.latestOffset(second, limit)
    grown.grow(2)
    assert reader.latestOffset(third, limit) == third
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(third, limit) != third


def test_what_one_group_has_no_entries_for_the_others_get(grown: Grown) -> None:
    """Without Java."""
    from pyspark.sql.streaming.datasource import ReadMaxRows
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveStreamReader

    few = Grown(grown.folder, "few")
    few.grow(100)
    columns = StructType([StructField("data", BinaryType())])
    reader = ArchiveStreamReader({"path": str(grown.folder), "startingPlace": "earliest"}, columns)
    start, sizes = reader.initialOffset(), []
    while (end := reader.latestOffset(start, ReadMaxRows(600))) != start:
        sizes.append(sum(one.stretch.last - one.stretch.first + 1 for one in reader.partitions(start, end)))
        start = end
    assert sizes == [600, few.last + grown.last - 600]


def test_there_are_as_many_tasks_as_wanted_and_what_goes_meanwhile_is_passed_over(grown: Grown) -> None:
    """Without Java: retention may take what a batch was planned with."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveBatchReader, ArchivePartition

    given, columns = (
        {"path": str(grown.folder), "minPartitions": "300"},
        StructType([StructField("data", BinaryType())]),
    )
    strict = ArchiveBatchReader(given, columns)
    lenient = ArchiveBatchReader({**given, "failOnDataLoss": "false"}, columns)
    first, *_, last = lenient.partitions()
    assert len(strict.partitions()) == len(lenient.partitions()) >= 300
    files = GroupFiles(group_folder(grown.folder, grown.group))
    assert files.retain(size_max=1, older_than=None)
    files.close()
    with pytest.raises(Lost):
        list(strict.read(first))
    assert list(lenient.read(first)) == [] and sum(batch.num_rows for batch in lenient.read(last)) > 0
    left = last.stretch.last - files_begin(grown) + 1
    everything = ArchivePartition(grown.group, Stretch(last.stretch.branch, 1, last.stretch.last))
    assert sum(batch.num_rows for batch in lenient.read(everything)) == left > 0, "what is kept of it is read"


def files_begin(grown: Grown) -> int:
    (begin, *_), *_ = segments_of(group_folder(grown.folder, grown.group) / ROOT.name)
    return begin


def test_what_was_removed_before_a_first_read_is_missed(grown: Grown) -> None:
    """Without Java: of a group that was empty, or not there, when the stream began. `earliest` is the first that is
    kept, if it is asked for."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveBatchReader, plan_from

    end = {grown.group: str(Place(ROOT.name, grown.last))}
    options = {"path": str(grown.folder)}
    for start in ({}, {grown.group: ""}):
        assert sum(one.stretch.last for one in plan_from(options).partitions(start, end)) == grown.last
    files = GroupFiles(group_folder(grown.folder, grown.group))
    assert files.retain(size_max=1, older_than=None)
    files.close()
    for start in ({}, {grown.group: ""}):
        with pytest.raises(Lost, match=f"{ROOT.name}:1 of orders is not kept any more, only from"):
            plan_from(options).partitions(start, end)
        (left,) = plan_from({**options, "failOnDataLoss": "false"}).partitions(start, end)
        assert left.stretch == Stretch(ROOT.name, files_begin(grown), grown.last)
    earliest = ArchiveBatchReader(options, StructType([StructField("data", BinaryType())]))
    assert [one.stretch for one in earliest.partitions()] == [left.stretch]


def test_what_another_archive_has_is_passed_over_when_it_is_gone(grown: Grown) -> None:
    """Without Java: the folder was emptied, and the checkpoint knows a branch that is not there."""
    from ordercast.pipeline.stream.source import plan_from

    gone = {grown.group: f"{0:016x}:5"}, {grown.group: f"{0:016x}:9"}
    options = {"path": str(grown.folder)}
    with pytest.raises(Lost, match="there is no branch"):
        plan_from(options).partitions(*gone)
    assert plan_from({**options, "failOnDataLoss": "false"}).partitions(*gone) == []


def test_a_table_ends_where_it_is_told(grown: Grown) -> None:
    """Without Java."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.source import ArchiveBatchReader

    folder, columns = str(grown.folder), StructType([StructField("data", BinaryType())])

    def last(end: str) -> int:
        reader = ArchiveBatchReader({"path": folder, "endingOffsets": end}, columns)
        return max(one.stretch.last for one in reader.partitions())

    branch = ArchiveBatchReader({"path": folder}, columns).partitions()[0].stretch.branch
    assert [last("latest"), last("7"), last(f"{branch}:5")] == [grown.last, 7, 5]
    assert last("0") == 0
    with pytest.raises(Lost, match=r"there is no branch 0+ in the archive of"):
        last(f"{0:016x}:1")
    with pytest.raises(UsageError, match="is no place"):
        last("soon")
    with pytest.raises(UsageError, match=f"up to {grown.last}; write latest for all"):
        last("99999")


def test_options_are_refused_when_they_are_loaded(grown: Grown) -> None:
    """Without Java: a stream would tell it only when it runs, in somebody else's traceback."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    from ordercast.pipeline.stream.format import OrdercastSource
    from ordercast.pipeline.stream.source import ArchiveBatchReader, ArchiveStreamReader

    folder, columns = str(grown.folder), StructType([StructField("data", BinaryType())])
    assert OrdercastSource({"path": folder}).schema()
    with pytest.raises(UsageError, match="is no duration"):
        OrdercastSource({"path": folder, "maxTriggerDelay": "soon"}).schema()
    with pytest.raises(UsageError, match="endingPlace: for a table"):
        ArchiveStreamReader({"path": folder, "endingPlace": "x:1"}, columns)
    with pytest.raises(UsageError, match="maxRowsPerTrigger: for a stream"):
        ArchiveBatchReader({"path": folder, "maxOffsetsPerTrigger": "5"}, columns)


def test_wrong_options_are_one_sentence(grown: Grown, tmp_path: Path) -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    from ordercast.pipeline.stream.source import columns_of, plan_from

    folder = str(grown.folder)
    for options, sentence in (
        ({}, "say where the archive lies"),
        ({"path": str(tmp_path / "nowhere")}, "there is no archive in"),
        ({"path": folder, "subscribe": "other"}, "the group other has no archive in .*: there are orders"),
        ({"path": folder, "maxRowsPerTrigger": "many"}, "is no number"),
        ({"path": folder, "minRowsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "more than maxRowsPerTrigger=8"),
        ({"path": folder, "maxTriggerDelay": "soon"}, "maxTriggerDelay='soon' is no duration"),
        ({"path": folder, "failOnDataLoss": "perhaps"}, "neither true nor false"),
        ({"path": folder, "startingOfsets": "earliest"}, "ordercast has no option 'startingOfsets' for reading: there"),
        ({"path": folder, "startingOffsets": "1", "startingPlace": "1"}, "twice: startingOffsets is another name"),
        ({"path": folder, "startingPlace": '{"ordres": "1"}'}, "startingPlace names 'ordres', which is not read here"),
        ({"path": folder, "minPartitions": "0"}, "minPartitions='0' is no number of at least 1"),
        ({"path": folder, "subscribe": "orders", "subscribePattern": "o.*"}, "say one of the two"),
        ({"path": folder, "subscribePattern": "p.*"}, "no group of the archive matches 'p.*': there are orders"),
        ({"path": folder, "subscribePattern": "("}, "is no regular expression"),
    ):
        with pytest.raises(UsageError, match=sentence):
            plan_from(options)
    for field in (StructField("text", StringType()), StructField("number", StringType())):
        with pytest.raises(
            UsageError, match=f"there is no column {field.name} string in an archive: name some of group"
        ):
            columns_of(StructType([field]))
