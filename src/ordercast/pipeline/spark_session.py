"""One quiet Spark session per command.

`open_session` is the only place that makes a session. It looks first whether PySpark and Java are there, and says in
one sentence what to install. Java's own words go to a file, which is read only when the session does not start. When a
session is open already, as in a notebook or in the tests, it is lent and left open.

A master that is not on this machine gets the package itself with the session: what runs in the executors is exactly
what the command runs. The executors need Python with pyarrow and numpy of their own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
JAVA_MIN = 17
PYSPARK_MIN = (4, 2)
_EXTRA = "pip install 'ordercast[spark]'"
_JAVA_FIX = f"install Java {JAVA_MIN} or newer (Debian: apt install openjdk-17-jre-headless), or set JAVA_HOME to it"

# Both loggers: the second speaks whatever the first allows.
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""


def missing_for_spark() -> str | None:
    """Why there can be no session here, with the fix, in one sentence; None when there can be one."""
    if find_spec("pyspark") is None:
        return f"Spark is not installed: {_EXTRA}"
    import pyspark

    version = tuple(int(number) for number in re.findall(r"\d+", pyspark.__version__)[:2])
    if version < PYSPARK_MIN:
        needed = ".".join(map(str, PYSPARK_MIN))
        return f"PySpark {pyspark.__version__} is too old, Ordercast needs {needed} or newer: {_EXTRA}"
    for module in ("pyarrow", "numpy", "pandas"):
        if find_spec(module) is None:
            return f"Spark needs the Python package {module}: {_EXTRA}"
    return _missing_java()


def _missing_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        return f"Spark needs Java, and there is none: {_JAVA_FIX}"
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        where = f"JAVA_HOME is {home}, but {java}" if home else java
        return f"{where} does not run: {_JAVA_FIX}"
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None:
        return f"{java} does not tell its version: {_JAVA_FIX}"
    if int(found[1]) < JAVA_MIN:
        return f"{java} is Java {found[1]}, which is too old for Spark: {_JAVA_FIX}"
    return None


@contextmanager
def open_session(
    name: str, master: str | None = None, options: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session on this master, `LOCAL_MASTER` unless one is named; it ends with the block.

    `options` are Spark's own and win over ours. UsageError says in one sentence why there is no session.
    """
    problem = missing_for_spark()
    if problem is not None:
        raise UsageError(problem)
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield _lent(active, master)
        return
    with tempfile.TemporaryDirectory(prefix="ordercast-spark-", ignore_cleanup_errors=True) as folder:
        session = _started(name, master or LOCAL_MASTER, options or {}, Path(folder))
        try:
            yield session
        finally:
            _stop(session)


def is_local(master: str) -> bool:
    """Whether its tasks run in this very process tree."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def _lent(session: SparkSession, master: str | None) -> SparkSession:
    current = session.sparkContext.master
    if master is not None and master != current:
        raise UsageError(
            f"this process has a Spark session on {current} already: leave --master out, or end that session first"
        )
    return session


def _started(name: str, master: str, options: Mapping[str, str], folder: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    _set_environment(master)
    builder = SparkSession.builder.appName(f"ordercast {name}").master(master)
    for key, value in {**_options(master, folder), **options}.items():
        builder = builder.config(key, value)
    said = folder / "java.log"
    try:
        with _errors_to(said):
            session: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise UsageError(_no_session(master, error, said)) from error
    if not is_local(master):
        session.sparkContext.addPyFile(str(_package(folder)))
    return session


def _set_environment(master: str) -> None:
    if is_local(master):
        os.environ["PYSPARK_PYTHON"] = sys.executable  # else the first python3 on the path, which may lack pyarrow
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _options(master: str, folder: Path) -> dict[str, str]:
    log = folder / "log4j2.properties"
    log.write_text(_LOG4J)
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile=file:{log}",
        "spark.driver.memory": "2g",
    }
    if is_local(master):
        options["spark.driver.bindAddress"] = "127.0.0.1"
        options["spark.python.unix.domain.socket.enabled"] = "true"
    return options


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Whatever process is started here keeps this file as its standard error: some words of Java's no option stops."""
    sys.stderr.flush()
    before = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _no_session(master: str, error: Exception, said: Path) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    with suppress(OSError):
        lines = [line.strip() for line in said.read_text(errors="replace").splitlines() if line.strip()]
        text = next((line for line in reversed(lines) if "rror" in line or "xception" in line), text)
    fix = "check --conf, and that Java runs" if is_local(master) else "check the address, and that the master runs"
    return f"Spark does not start on {master} ({text[:300]}): {fix}"


def _package(folder: Path) -> Path:
    """This package as a zip file, for the executors."""
    root = Path(__file__).parents[1]
    path = folder / "ordercast.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted(root.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                archive.write(source, Path("ordercast", source.relative_to(root)))
    return path


def _stop(session: SparkSession) -> None:
    """Ends Java too: the next command of this process may ask for other options."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    with suppress(Exception):  # it may be gone already, which is what is wanted
        session.stop()
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()
            process = getattr(gateway, "proc", None)
            if process is not None:
                process.stdin.close()
                process.wait(30)
    SparkContext._gateway = None
    SparkContext._jvm = None
