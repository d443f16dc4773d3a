"""The archive: how fast it writes and reads, whether it keeps up with a saturated ring, and how soon it is back.

    python -m bench.archive [--size MB] [--seconds S] [--json FILE]

`files` writes and reads in this process, without a network. `ring` runs one daemon, an archiver and a client as
processes of their own on loopback: the client sends as fast as it may, and the archiver has to have it all. `recovery`
kills the archiver with -9 after so much was written, and takes the time until the files are open again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rig.programs import cpu_seconds, kill

from ordercast.api.connect import connect
from ordercast.archive.branches import Cause, branch_of
from ordercast.archive.files import GroupFiles
from ordercast.archive.layout import group_folder
from ordercast.archive.pen import Pen
from ordercast.archive.places import NO_VIEW, Place
from ordercast.archive.reader import Archive
from ordercast.archive.reading import GroupReader
from ordercast.cli.daemons import ordercast_command
from ordercast.model.events import Batch
from ordercast.model.ids import ConfigurationId, Places, ProcessId

SIZES = (100, 1024, 1350, 65_536)
RUN = 500  # messages of a run
PORT = 25_900
PATIENCE_S = 300.0


def timed(work: Callable[[], int]) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds, and what it gives."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = work()
    return time.perf_counter() - wall, time.process_time() - cpu, count


def write_files(folder: Path, size: int, total: int) -> int:
    files = GroupFiles(group_folder(folder, "bench"))
    branch = branch_of("bench", Cause.ROOT, NO_VIEW, ("a@n1",), ())
    files.begin(branch, is_own=True)
    pen = Pen()
    pen.go_on(Place(branch.name, 0), files.state(Place(branch.name, 0)))
    run = max(1, min(RUN, (1 << 20) // size))
    payloads = [os.urandom(size) for _ in range(run)]
    count = 0
    while count * size < total:
        places = Places(ConfigurationId(8, ProcessId(1)), count // 10 + 1, 0, 10, 0)
        pen.write(Batch(("bench",), "a@n1", payloads, bytes([4]) * run, places))
        count += run
        _hand_over(files, pen)
    pen.flush()
    _hand_over(files, pen)
    files.close()
    return count


def _hand_over(files: GroupFiles, pen: Pen) -> None:
    for draft in pen.drafts:
        files.append(draft.branch, [draft.seal(time.time_ns())], draft.start, is_own=True)
    if pen.drafts:
        files.sync()
    pen.drafts = []


def read_frames(folder: Path) -> int:
    reader = GroupReader(folder, "bench")
    return sum(run.count for stretch in reader.stretches() for frame in reader.frames(stretch) for run in frame.runs())


def reopen(folder: Path) -> int:
    """What an archiver does first: cut off what is torn."""
    GroupFiles(folder).close()
    return 0


def bench_files(size: int, total: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ordercast-bench-") as name:
        folder = Path(name)
        wall, cpu, count = timed(lambda: write_files(folder, size, total))
        read_wall, read_cpu, read = timed(lambda: read_frames(folder))
        assert read == count
        one_wall, one_cpu, ones = timed(lambda: sum(1 for _ in Archive(folder).read("bench")))
        assert ones == count
        recovery, _, _ = timed(lambda: reopen(group_folder(folder, "bench")))
    mb = count * size / 1e6
    return {
        "size": size,
        "write_mb_s": mb / wall,
        "write_mb_cpu_s": mb / cpu,
        "write_us": 1e6 * cpu / count,
        "read_mb_s": mb / read_wall,
        "read_mb_cpu_s": mb / read_cpu,
        "read_one_us": 1e6 * one_cpu / count,
        "one_wall_s": one_wall,
        "recovery_s": recovery,
    }


class Ring:
    """One daemon and one archiver."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / "cluster.toml"
        file.write_text(
            f'cluster = "bench {os.getpid()}"\n[network]\ntransport = "unicast"\nport = {PORT}\n[state]\n'
            f'folder = "state"\n[clients]\nfolder = "."\n[nodes.n1]\nid = 1\naddress = "127.0.0.1"\n'
        )
        self.at = f"unix://{folder}/n1.sock"
        self.daemon = self._start("daemon", "--config", str(file), "--name", "n1")
        until((folder / "n1.sock").exists, "the daemon does not start")
        self.archiver = self.archive()

    def archive(self) -> subprocess.Popen[bytes]:
        return self._start("archive", "bench", "--dir", str(self.folder / "archive"), "--at", self.at)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ordercast_command(*arguments), stdout=subprocess.DEVNULL, stderr=(self.folder / "log").open("ab")
        )

    def end(self) -> None:
        kill((self.archiver, self.daemon))


def until(is_so: Callable[[], bool], what: str) -> float:
    began = time.perf_counter()
    while not is_so():
        if time.perf_counter() - began > PATIENCE_S:
            raise SystemExit(f"bench: {what}")
        time.sleep(0.005)
    return time.perf_counter() - began


def bench_ring(size: int, seconds: float) -> dict[str, Any]:
    """As fast as one client sends; the archiver has everything when the last message is safe on disk."""
    with tempfile.TemporaryDirectory(prefix="ordercast-bench-") as name:
        ring = Ring(Path(name))
        try:
            archive = Archive(ring.folder / "archive")
            until(lambda: tip_of(archive) is not None, "the archiver does not begin")
            start = _number(archive)
            with connect(ring.at, name="load") as me:
                payloads = [os.urandom(size)] * max(1, min(1000, (1 << 19) // size))
                sent, began, cpu = 0, time.perf_counter(), cpu_seconds(ring.archiver.pid)
                while time.perf_counter() - began < seconds:
                    me.send_many("bench", payloads)
                    sent += len(payloads)
                me.send("bench", b"last", confirm=True)
                ordered = time.perf_counter() - began
                until(lambda: _number(archive) >= start + sent + 1, "the archiver does not come along")
                safe = time.perf_counter() - began
            used = cpu_seconds(ring.archiver.pid) - cpu
        finally:
            ring.end()
    return {
        "size": size,
        "per_s": sent / ordered,
        "mb_s": sent * size / ordered / 1e6,
        "behind_s": safe - ordered,
        "archiver_us": 1e6 * used / sent,
        "archiver_cores": used / safe,
    }


def tip_of(archive: Archive) -> Place | None:
    try:
        return archive.tip("bench")
    except Exception:
        return None


def _number(archive: Archive) -> int:
    tip = tip_of(archive)
    return 0 if tip is None else tip.number


def bench_recovery(total: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ordercast-bench-") as name:
        ring = Ring(Path(name))
        try:
            archive = Archive(ring.folder / "archive")
            until(lambda: tip_of(archive) is not None, "the archiver does not begin")
            with connect(ring.at, name="load") as me:
                payloads = [os.urandom(8192)] * 64
                for _ in range(total // (8192 * 64)):
                    me.send_many("bench", payloads)
                me.send("bench", b"last", confirm=True)
            ring.archiver.send_signal(signal.SIGKILL)
            ring.archiver.wait()
            folder = group_folder(ring.folder / "archive", "bench")
            size = sum(path.stat().st_size for path in folder.glob("*/*.segment"))
            opened, _, _ = timed(lambda: reopen(folder))
            before = _number(archive)
            began = time.perf_counter()
            ring.archiver = ring.archive()
            until(lambda: _number(archive) > before, "the archiver does not come back")
            back = time.perf_counter() - began
        finally:
            ring.end()
    return {"written_mb": size / 1e6, "open_s": opened, "process_to_first_entry_s": back}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=200, help="MB of each file row")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--recovery", type=int, default=1000, help="MB that are written before the kill")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"load": os.getloadavg()[0], "files": [], "ring": []}
    print(f"load average {results['load']:.1f} on {os.cpu_count()} cores")
    print("files   size      write MB/s (per CPU s)   us/message    read MB/s (per CPU s)   one by one us")
    for size in SIZES:
        row = bench_files(size, options.size * 1_000_000)
        results["files"].append(row)
        print(
            f"        {size:6}    {row['write_mb_s']:8.0f} ({row['write_mb_cpu_s']:6.0f})        {row['write_us']:8.2f}"
            f"     {row['read_mb_s']:8.0f} ({row['read_mb_cpu_s']:6.0f})      {row['read_one_us']:8.2f}"
        )
    print("ring    size    messages/s       MB/s   behind s   archiver us/message   archiver cores")
    for size in SIZES[:3]:
        row = bench_ring(size, options.seconds)
        results["ring"].append(row)
        print(
            f"        {size:6}  {row['per_s']:10,.0f}   {row['mb_s']:8.1f}   {row['behind_s']:8.2f}"
            f"   {row['archiver_us']:12.2f}   {row['archiver_cores']:16.2f}"
        )
    results["recovery"] = recovery = bench_recovery(options.recovery * 1_000_000)
    print(
        f"recovery after kill -9 with {recovery['written_mb']:,.0f} MB: files open in {recovery['open_s']:.2f} s, "
        f"the process writes again after {recovery['process_to_first_entry_s']:.2f} s"
    )
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
