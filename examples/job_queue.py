"""A job queue whose workers may die. What a worker had taken when it was killed is done by another.

    python examples/job_queue.py --name w1 --daemon n1 --voters w1@n1,w2@n2,w3@n3 work
    python examples/job_queue.py --name me --daemon n1 --voters w1@n1,w2@n2,w3@n3 put 'gzip big.log' 'make report'
    python examples/job_queue.py --name me --daemon n1 --voters w1@n1,w2@n2,w3@n3 wait

A job is a command line. It is done at least once: a worker may die after the command and before it says so. The job's
number ($JOB) is the same for whoever does it, and later jobs have greater ones: what must not happen twice checks it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import ordercast
from ordercast.replicated import Job, Majority, NotPrimary, Queue, QueueFront, Replica


@dataclass(frozen=True)
class Place:
    """Where this program belongs."""

    daemon: str | None
    name: str
    voters: tuple[str, ...]

    @asynccontextmanager
    async def queue(self) -> AsyncIterator[QueueFront]:
        async with (
            ordercast.connect(self.daemon, name=self.name, reconnect=True) as me,
            Replica(me, "jobs", Queue(), quorum=Majority(dict.fromkeys(self.voters, 1))) as jobs,
        ):
            await jobs.ready()
            yield jobs


async def put(place: Place, lines: Sequence[str], tell: Callable[[str], None]) -> None:
    async with place.queue() as jobs:
        for line in lines:
            tell(f"job {await jobs.put(line)}: {line}")


async def work(place: Place, tell: Callable[[str], None]) -> None:
    """Until it is cancelled, or killed."""
    async with place.queue() as jobs:
        tell("ready")
        while True:
            try:
                job = await jobs.take()
            except NotPrimary:
                await jobs.ready()
                continue
            await _do(jobs, job, tell)


async def _do(jobs: QueueFront, job: Job, tell: Callable[[str], None]) -> None:
    tell(f"job {job.number} begins")
    process = await asyncio.create_subprocess_shell(
        str(job.value), env={**os.environ, "JOB": str(job.number)}, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    while True:
        try:
            is_ours = await jobs.acknowledge(job)
        except NotPrimary:
            await jobs.ready()
            continue
        break
    tell(f"job {job.number} is done: {code}" if is_ours else f"job {job.number} was given to somebody else meanwhile")


async def wait(place: Place, tell: Callable[[str], None]) -> None:
    """Until nothing waits and nothing is underway."""
    async with place.queue() as jobs:
        watch = jobs.watch()
        while len(jobs) or jobs.taken:
            await anext(watch)
        tell("nothing is left to do")


def main() -> None:
    parser = argparse.ArgumentParser(description="A job queue whose workers may die.")
    parser.add_argument("--daemon", help="where it is: a name, unix:///PATH or tcp://HOST:PORT")
    parser.add_argument("--name", required=True)
    parser.add_argument("--voters", required=True, help="full names of those who keep the queue: w1@n1,w2@n2,w3@n3")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("work")
    actions.add_parser("wait")
    actions.add_parser("put").add_argument("lines", nargs="+")
    options = parser.parse_args()
    place = Place(options.daemon, options.name, tuple(options.voters.split(",")))

    def tell(text: str) -> None:
        print(text, flush=True)

    try:
        if options.action == "put":
            asyncio.run(put(place, options.lines, tell))
        else:
            asyncio.run((work if options.action == "work" else wait)(place, tell))
    except ordercast.Error as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
