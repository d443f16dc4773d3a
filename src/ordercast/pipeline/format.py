"""The format "ordercast": one name to read archives, as batches and as streams, and to write to groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from ordercast.pipeline.sink import GroupBatchWriter, GroupStreamWriter
from ordercast.pipeline.source import ArchiveBatchReader, ArchiveStreamReader
from ordercast.pipeline.source_rows import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class OrdercastSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ordercast"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> ArchiveBatchReader:
        return ArchiveBatchReader(dict(self.options))

    def streamReader(self, schema: StructType) -> ArchiveStreamReader:
        return ArchiveStreamReader(dict(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> GroupBatchWriter:
        return GroupBatchWriter(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> GroupStreamWriter:
        return GroupStreamWriter(dict(self.options), schema)
