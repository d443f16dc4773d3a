"""The format "ordercast": one name to read archives, as batches and as streams, and to write to groups.

Spark imports this in short-lived processes whenever it meets a format that it does not know: so it imports next to
nothing, and the rest when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ordercast.pipeline.stream.sink import GroupBatchWriter, GroupStreamWriter
    from ordercast.pipeline.stream.source import ArchiveBatchReader, ArchiveStreamReader

COLUMNS = {
    "group": "string",
    "branch": "string",
    "number": "bigint",
    "row": "bigint",
    "kind": "string",
    "groups": "array<string>",
    "position": "struct<origin_seq:bigint,origin_rep:bigint,number:bigint,slot:int>",
    "sender": "string",
    "service": "string",
    "data": "binary",
    "headers": "map<string,string>",
    "view": "string",
    "time": "timestamp",
    "members": "array<string>",
    "reason": "string",
}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


class OrdercastSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ordercast"

    def schema(self) -> str:
        from ordercast.pipeline.stream.source import check_options

        check_options(dict(self.options))  # a stream would tell it only when it runs
        return SCHEMA

    def reader(self, schema: StructType) -> ArchiveBatchReader:
        from ordercast.pipeline.stream.source import ArchiveBatchReader

        return ArchiveBatchReader(dict(self.options), schema)

    def streamReader(self, schema: StructType) -> ArchiveStreamReader:
        from ordercast.pipeline.stream.source import ArchiveStreamReader

        return ArchiveStreamReader(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> GroupBatchWriter:
        from ordercast.pipeline.stream.sink import GroupBatchWriter

        return GroupBatchWriter(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> GroupStreamWriter:
        from ordercast.pipeline.stream.sink import GroupStreamWriter

        return GroupStreamWriter(dict(self.options), schema)
