"""A query that copies the group `in` to `out`, also as a process that can be killed.

python -m tests.pipeline.copy_query ARCHIVE ADDRESS CHECKPOINT OPTIONS

OPTIONS are JSON: `rows` of a batch; `crash`, a point at which something is killed (`crash_points`); `goes_on`, to copy
what comes until the process is killed, and to start again whenever the query fails, as a supervisor would.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from ordercast.pipeline.spark_session import open_session
from tests.conftest import SPARK_OPTIONS
from tests.pipeline.crash_points import CrashingSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Spark gives its own Python process ten seconds to start, which no option changes: on a busy machine that may need
# another try, and says nothing about us.
NO_WORKER = "failed to connect back"
TIMEOUT_S = "5"  # a commit waits so long for an archiver that has died


def start_copy(
    spark: SparkSession, archive: str, at: str, checkpoint: str, *, rows: int, crash: str = "", goes_on: bool = False
) -> StreamingQuery:
    source = spark.readStream.format("ordercast").options(
        subscribe="in", startingPlace="earliest", maxRowsPerTrigger=str(rows), minPartitions="2"
    )
    writer = source.load(archive).select("data").writeStream
    writer = writer.options(group="out", sinkId="copy", at=at, checkpointLocation=checkpoint, timeoutSeconds=TIMEOUT_S)
    if crash:
        spark.dataSource.register(CrashingSource)
        writer = writer.format(CrashingSource.name()).option("crash", crash)
    else:
        writer = writer.format("ordercast")
    return (writer if goes_on else writer.trigger(availableNow=True)).start()


def main(archive: str, at: str, checkpoint: str, text: str) -> None:
    options = json.loads(text)
    with open_session("copy", "local[2,4]", SPARK_OPTIONS) as spark:
        while True:
            query = start_copy(spark, archive, at, checkpoint, **options)
            try:
                query.awaitTermination()
                return
            except Exception as error:
                if not options.get("goes_on") and NO_WORKER not in str(error):
                    raise
                sys.stderr.write(f"again, because {error}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
