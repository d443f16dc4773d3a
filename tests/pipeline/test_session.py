"""A session in an environment that is not activated: workers run the Python in which Ordercast is installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ordercast.pipeline.spark_session import missing_for_spark

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(missing_for_spark() is not None, reason=str(missing_for_spark())),
]

PROGRAM = """
import ordercast.spark
spark = ordercast.spark.session(master="local[1]", spark__ui__enabled="false")
print("problem:", ordercast.spark.worker_problem(spark))
try:
    spark.read.format("ordercast").option("subscribe", "orders").load("/does/not/exist").collect()
except Exception as error:
    print("there is no archive in /does/not/exist" in str(error))
spark.stop()
"""


@pytest.mark.long
def test_workers_run_this_python_whatever_the_path_says() -> None:
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "SPARK_CONF_DIR") if name in os.environ}
    environment = kept | {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["problem: None", "True"], done.stderr
