"""A query that copies one group to another, as a process that can be killed.

python -m tests.pipeline.copy_query ARCHIVE ADDRESS CHECKPOINT ROWS-OF-A-BATCH
"""

from __future__ import annotations

import sys

from ordercast.pipeline.session import open_session


def main(archive: str, at: str, checkpoint: str, rows: str) -> None:
    with open_session(
        "copy", "local[2,4]", {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    ) as spark:
        source = spark.readStream.format("ordercast").options(
            subscribe="in", startingPlace="earliest", maxRowsPerTrigger=rows, minPartitions="2"
        )
        query = (
            source.load(archive)
            .select("data")
            .writeStream.format("ordercast")
            .options(group="out", sink_id="copy", at=at, checkpointLocation=checkpoint, timeout_s="60")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
