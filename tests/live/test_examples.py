"""The examples are programs that do what they say."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from email.message import Message
from pathlib import Path
from types import ModuleType

import pytest
from examples import board, job_queue, kv_store

from tests.live.local_daemons import daemons, live

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def running(*works: asyncio.Task[None]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


@pytest.mark.parametrize("program", [board, job_queue, kv_store])
def test_an_ordinary_mistake_is_one_sentence(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {
        board: ["--name", "a", "--founders", "a@n1"],
        job_queue: ["--name", "a", "--voters", "a@n1", "wait"],
        kv_store: ["--voters", "kv@n1"],
    }
    monkeypatch.setattr(sys, "argv", ["program", "--daemon", f"unix://{tmp_path}/n1.sock", *own[program]])
    with pytest.raises(SystemExit, match="no daemon can be reached"):
        program.main()


# The key-value store


async def ask(port: int, path: str, method: str = "GET", data: bytes | None = None) -> tuple[int, bytes, Message]:
    def fetch() -> tuple[int, bytes, Message]:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.read(), reply.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), error.headers

    return await asyncio.to_thread(fetch)


@live
async def test_the_key_value_store_answers_at_every_replica(tmp_path: Path) -> None:
    names = ["n1", "n2", "n3"]
    voters = [f"kv@{name}" for name in names]
    async with daemons(tmp_path, *names) as addresses, AsyncExitStack() as stack:
        ports: list[asyncio.Future[int]] = [asyncio.get_running_loop().create_future() for _ in names]
        stores = [
            asyncio.create_task(kv_store.serve(addresses[name], "kv", voters, 0, port.set_result))
            for name, port in zip(names, ports, strict=True)
        ]
        await stack.enter_async_context(running(*stores))
        one, two, three = await asyncio.gather(*ports)
        status, _, headers = await ask(one, "greeting", "PUT", b"hello")
        while status == 503:
            status, _, headers = await ask(one, "greeting", "PUT", b"hello")
        assert status == 204
        assert int(headers["X-Position"]) > 0
        for port in (one, two, three):
            status, body, headers = await ask(port, "greeting?latest")
            assert (status, body, headers["X-Current"]) == (200, b"hello", "yes")
        assert (await ask(two, "greeting"))[1] == b"hello"
        assert (await ask(three, ""))[1] == b"greeting\n"
        assert (await ask(two, "greeting", "DELETE"))[0] == 204
        assert (await ask(two, "greeting", "DELETE"))[0] == 404
        assert (await ask(one, "greeting?latest"))[0] == 404

        for store in stores[1:]:
            store.cancel()
        await asyncio.gather(*stores[1:], return_exceptions=True)
        status = 204
        while status != 503:  # until the one that is left has seen that it is alone
            status, body, headers = await ask(one, "k", "PUT", b"v")
        assert b"no quorum" in body or b"being asked" in body
        assert (await ask(one, "k"))[0] in (200, 404)


# The job queue


class Program:
    """The example as a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, name: str, daemon: str, voters: str, *action: str) -> Program:
        command = ["-m", "examples.job_queue", "--name", name, "--daemon", daemon, "--voters", voters, *action]
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable, *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, env=environment()
            )
        )

    async def line(self, *words: str) -> str:
        """The next line that has one of these words."""
        assert self.process.stdout is not None
        while line := (await self.process.stdout.readline()).decode():
            if any(word in line for word in words):
                return line.strip()
        raise AssertionError("it has ended")

    async def end(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        await self.process.communicate()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"}


@live
async def test_what_a_killed_worker_had_begun_is_done_by_another(tmp_path: Path) -> None:
    voters = "w1@n1,w2@n2,w3@n2"
    done = tmp_path / "done"
    async with daemons(tmp_path, "n1", "n2") as addresses, AsyncExitStack() as stack:
        workers = {}
        for name, daemon in (("w1", "n1"), ("w2", "n2"), ("w3", "n2")):
            workers[name] = await Program.start(name, addresses[daemon], voters, "work")
            stack.push_async_callback(workers[name].end, signal.SIGKILL)
        await asyncio.gather(*(worker.line("ready") for worker in workers.values()))
        place = job_queue.Place(addresses["n1"], "me", tuple(voters.split(",")))
        told: list[str] = []
        # The first to begin it never ends; whoever begins it again is quick.
        never = fifo(tmp_path)
        stack.callback(
            os.close, os.open(never, os.O_RDWR)
        )  # when it is closed, whoever still reads has come to the end
        line = (
            f"exec > /dev/null 2>&1; if mkdir {tmp_path / 'first'}; then read line < {never}; fi; echo $JOB >> {done}"
        )
        await job_queue.put(place, [line], told.append)
        number = told[0].split()[1].rstrip(":")
        begun = {asyncio.create_task(worker.line("begins")): worker for worker in workers.values()}
        first, waiting = await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
        await begun[first.pop()].end(signal.SIGKILL)
        second, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finished = await begun[second.pop()].line("is done")
        assert finished == f"job {number} is done: 0"
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await job_queue.wait(place, told.append)
        assert told[-1] == "nothing is left to do"
        assert done.read_text().split() == [number]


def fifo(folder: Path) -> Path:
    """Whoever reads it waits."""
    path = folder / "fifo"
    os.mkfifo(path)
    return path


# The board


class Keyboard:
    """What is typed, when it is typed."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self.lines.get()) is not None:
            yield line


class Screen:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = asyncio.Event()

    def show(self, text: str) -> None:
        self.lines.append(text)
        self._changed.set()

    async def shows(self, count: int) -> list[str]:
        while len(self.lines) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.lines


def numbered(*lines: str) -> Iterator[str]:
    return (f"{number:4} {line}" for number, line in enumerate(lines, 1))


@live
async def test_a_late_joiner_of_the_board_sees_what_was_written_before(tmp_path: Path) -> None:
    founders = ["alice@n1", "bob@n2"]
    async with daemons(tmp_path, "n1", "n2") as addresses, AsyncExitStack() as stack:
        keyboards = {name: Keyboard() for name in ("alice", "bob", "carol")}
        screens = {name: Screen() for name in keyboards}

        async def sit_down(name: str, daemon: str) -> None:
            task = board.take_part(
                addresses[daemon], name, founders, name != "carol", aiter(keyboards[name]), screens[name].show
            )
            await stack.enter_async_context(running(asyncio.create_task(task)))

        await sit_down("alice", "n1")
        await sit_down("bob", "n2")
        await keyboards["alice"].lines.put("hello")
        await screens["bob"].shows(1)
        await keyboards["bob"].lines.put("hi")
        await screens["alice"].shows(2)
        await sit_down("carol", "n2")
        history = ["alice@n1: hello", "bob@n2: hi"]
        assert await screens["carol"].shows(2) == list(numbered(*history))
        await keyboards["carol"].lines.put("what did I miss?")
        for screen in screens.values():
            assert await screen.shows(3) == list(numbered(*history, "carol@n2: what did I miss?"))
