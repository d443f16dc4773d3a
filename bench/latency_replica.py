"""One replica of `bench.latency`, in a network namespace of its own: tells when it is ready, and on `go`, if it is the
caller, sets entries one by one. Speaks the lines of `bench/live_node.py`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from typing import Any

import ordercast
from bench.live_node import config_from, tell
from ordercast.replicated import Dictionary, Majority, Replica

VALUE = b"x" * 100
PAUSE_S = 0.01  # between two commands, as at a hundred a second


async def work(task: dict[str, Any]) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    weights = {f"r@n{number}": 1 for number in range(1, task["members"] + 1)}
    async with (
        ordercast.Node(config_from(task), name="r") as node,
        Replica(node, "bench", Dictionary(), quorum=Majority(weights)) as entries,
    ):
        await entries.ready()
        while len(node.host.members) < int(task["members"]):  # noqa: ASYNC110 (seldom, and before anything is measured)
            await asyncio.sleep(0.05)
        tell({"ready": task["node"]})
        await lines.readline()  # go
        times: list[float] = []
        cpu, begun = time.process_time(), time.monotonic()
        while time.monotonic() < begun + float(task["seconds"]):
            await asyncio.sleep(PAUSE_S)
            if task["sends"]:
                sent = time.perf_counter()
                await entries.set(str(len(times) % 1000), VALUE)
                times.append(time.perf_counter() - sent)
        tell({"times_us": [each * 1e6 for each in times], "cpu": time.process_time() - cpu})
        await lines.readline()  # end


def main() -> None:
    task = json.loads(sys.stdin.readline())
    gc.freeze()
    asyncio.run(work(task))


if __name__ == "__main__":
    main()
