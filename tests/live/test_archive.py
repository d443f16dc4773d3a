"""Archivers of live daemons: what they hold is what was sent, the same at all, over restarts and broken connections."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ordercast import Client, UsageError, connect
from ordercast.archive.archiver import Archiver, Options
from ordercast.archive.branches import Cause
from ordercast.archive.entries import record_bytes
from ordercast.archive.files import GroupFiles
from ordercast.archive.places import Place
from ordercast.archive.reader import Archive
from ordercast.archive.statements import DonorAddress, Kind, Statement, statement_bytes
from ordercast.archive.transfer import ASK, BLOCK, CATALOGUE, END
from ordercast.daemon.sockets.sealed_streams import answer_sealed
from ordercast.disk import writer
from ordercast.model.events import Message, View
from ordercast.model.ids import MILLISECOND
from ordercast.order.catalogue import DEFAULT
from tests.live.local_daemons import Cable, daemons, live


@asynccontextmanager
async def cluster(folder: Path, *names: str, engine: str = DEFAULT) -> AsyncIterator[dict[str, str]]:
    """Daemons that have found each other."""
    async with daemons(folder, *names, engine=engine) as at:
        await together(at)
        yield at


async def together(at: dict[str, str]) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect(address)) for address in at.values()]
        for client in clients:
            await client.join("meeting")
        async for event in clients[0]:
            if isinstance(event, View) and len(event.members) == len(clients):
                return


@asynccontextmanager
async def archiving(
    folder: Path, at: str, *groups: str, tell: Callable[[str], None] = lambda text: None, **options: object
) -> AsyncIterator[Archiver]:
    """Settled when it is entered."""
    chosen = Options(at=at, sync_pause_s=0.001, **options)  # type: ignore[arg-type]
    async with Archiver(folder, groups or ("orders",), chosen, tell) as archiver, asyncio.TaskGroup() as tasks:
        task = tasks.create_task(archiver.run())  # if it fails, so does the test
        for group in groups or ("orders",):
            await settled(archiver, group)
        yield archiver
        task.cancel()


async def settled(archiver: Archiver, group: str = "orders") -> None:
    while archiver.keeper(group).place is None:  # noqa: ASYNC110 (it has no event for it)
        await asyncio.sleep(0.005)


async def has(archive: Archive, data: bytes, group: str = "orders") -> None:
    """Until this message is in it."""
    async for entry in archive.follow(group, "earliest"):
        if isinstance(entry.entry, Message) and entry.entry.data == data:
            return


def payloads(archive: Archive, group: str = "orders") -> list[bytes]:
    return [entry.entry.data for entry in archive.read(group) if isinstance(entry.entry, Message)]


def records(archive: Archive, group: str = "orders") -> list[bytes]:
    return [record_bytes(entry.place, entry.entry, entry.commit) for entry in archive.read(group, is_raw=True)]


@live
async def test_an_archive_holds_what_was_sent_in_order(tmp_path: Path) -> None:
    async with cluster(tmp_path, "n1", "n2") as at, archiving(tmp_path / "a", at["n1"]), connect(at["n2"]) as me:
        sent = [f"order {number}".encode() for number in range(500)]
        await me.send_many("orders", sent)
        await me.send("orders", b"last", confirm=True)
        archive = Archive(tmp_path / "a")
        await has(archive, b"last")
        assert payloads(archive) == [*sent, b"last"]
        assert [entry.place.number for entry in archive.read("orders")] == list(range(1, 503))


@pytest.mark.parametrize("engine", [DEFAULT, "tree"])
@live
async def test_two_archivers_hold_the_same_bytes(tmp_path: Path, engine: str) -> None:
    async with (
        cluster(tmp_path, "n1", "n2", engine=engine) as at,
        connect(at["n2"]) as me,
        archiving(tmp_path / "a", at["n1"], segment_size=4096),
    ):
        await me.send_many("orders", [b"before %d" % number for number in range(300)])
        async with archiving(tmp_path / "b", at["n2"]):
            await me.send_many("orders", [b"with %d" % number for number in range(300)])
            await me.send("orders", b"last", confirm=True)
            one, other = Archive(tmp_path / "a"), Archive(tmp_path / "b")
            await has(one, b"last")
            await has(other, b"last")
            assert records(one) == records(other)
            assert len(payloads(one)) == 601
            assert one.tip("orders") == other.tip("orders")


@live
async def test_a_restart_goes_on_without_gap_or_duplicate_when_another_archiver_was_there(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path, "n1", "n2") as at,
        connect(at["n2"]) as me,
        archiving(tmp_path / "b", at["n2"]),
    ):
        for life in range(3):
            async with archiving(tmp_path / "a", at["n1"]):
                await me.send("orders", b"life %d" % life, confirm=True)
                await has(Archive(tmp_path / "a"), b"life %d" % life)
            await me.send_many("orders", [b"away %d %d" % (life, number) for number in range(50)], confirm=True)
        async with archiving(tmp_path / "a", at["n1"]):
            await me.send("orders", b"last", confirm=True)
            one, other = Archive(tmp_path / "a"), Archive(tmp_path / "b")
            await has(one, b"last")
            await has(other, b"last")
            assert records(one) == records(other)
            assert len(one.group("orders").tree()) == 1
            assert len(payloads(one)) == 3 * 51 + 1


@live
async def test_alone_a_restart_says_that_there_is_a_gap(tmp_path: Path) -> None:
    async with cluster(tmp_path, "n1") as at, connect(at["n1"]) as me:
        async with archiving(tmp_path / "a", at["n1"]):
            await me.send("orders", b"first", confirm=True)
            await has(Archive(tmp_path / "a"), b"first")
        await me.send("orders", b"missed", confirm=True)
        async with archiving(tmp_path / "a", at["n1"]):
            await me.send("orders", b"last", confirm=True)
            archive = Archive(tmp_path / "a")
            await has(archive, b"last")
            kinds = [type(entry.entry).__name__ for entry in archive.read("orders")]
            assert kinds == ["View", "Message", "Gap", "View", "Message"]
            causes = [branch.cause for branch in archive.group("orders").tree().values()]
            assert causes == [Cause.ROOT, Cause.ROOT]
            assert [entry.place.number for entry in archive.read("orders")] == [1, 2, 3, 4, 5]


@live
async def test_a_broken_connection_is_a_restart(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path, "n1", "n2") as at,
        Cable(at["n1"], tmp_path / "cable.sock") as cable,
        connect(at["n2"]) as me,
        archiving(tmp_path / "b", at["n2"]),
        archiving(tmp_path / "a", cable.address) as archiver,
    ):
        await me.send("orders", b"first", confirm=True)
        cable.cut()
        await me.send_many("orders", [b"%d" % number for number in range(200)], confirm=True)
        await me.send("orders", b"last", confirm=True)
        one, other = Archive(tmp_path / "a"), Archive(tmp_path / "b")
        await has(one, b"last")
        while one.tip("orders") != other.tip("orders"):  # noqa: ASYNC110 (files have no events)
            await asyncio.sleep(0.01)
        assert archiver.keeper("orders").place is not None
        assert records(one) == records(other)
        assert payloads(one) == [b"first", *(b"%d" % number for number in range(200)), b"last"]


@live
async def test_a_disk_that_is_full_while_the_connection_breaks_loses_nothing(tmp_path: Path) -> None:
    """While it waits for room it reads nothing. It is disconnected, misses something, and takes that from another."""
    right, is_full = GroupFiles.append, True

    def append(self: GroupFiles, *arguments: Any, **more: Any) -> None:
        if is_full and self.folder.is_relative_to(tmp_path / "a"):
            raise OSError(errno.ENOSPC, "No space left on device")
        right(self, *arguments, **more)

    async with (
        cluster(tmp_path, "n1", "n2") as at,
        Cable(at["n1"], tmp_path / "cable") as cable,
        connect(at["n2"]) as me,
        archiving(tmp_path / "b", at["n2"]),
        archiving(tmp_path / "a", cable.address) as archiver,
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(GroupFiles, "append", append)
            patch.setattr(writer, "ROOM", 1000)
            for part in range(5):
                await me.send_many("orders", [b"%d" % part * 1000] * 100, confirm=True)
                cable.cut()
            is_full = False
            await me.send("orders", b"last", confirm=True)
            for name in ("a", "b"):
                await has(Archive(tmp_path / name), b"last")
        expected = [b"%d" % part * 1000 for part in range(5) for _ in range(100)]
        assert payloads(Archive(tmp_path / "a")) == payloads(Archive(tmp_path / "b")) == [*expected, b"last"]
        assert archiver.journal.failure is None


@live
async def test_several_groups_have_archives_of_their_own(tmp_path: Path) -> None:
    async with cluster(tmp_path, "n1") as at, connect(at["n1"]) as me, archiving(tmp_path / "a", at["n1"], "x", "y"):
        await me.send("x", b"1")
        await me.send(["x", "y"], b"2")
        await me.send("y", b"3", confirm=True)
        archive = Archive(tmp_path / "a")
        await has(archive, b"3", "y")
        await has(archive, b"2", "x")
        assert archive.groups() == ["x", "y"]
        assert (payloads(archive, "x"), payloads(archive, "y")) == ([b"1", b"2"], [b"2", b"3"])


@live
async def test_an_archiver_for_which_all_waited_too_long_comes_back_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk is slow for a while. Nobody waits for it for ever, and it misses what was sent until it is back."""
    for module in ("session.client_half", "api.client_state"):
        monkeypatch.setattr(f"ordercast.{module}.RECEIVE_CREDIT", 100_000)
    hold: dict[str, Any] = {"queue_size_max": 1 << 20, "hold_ns": 300 * MILLISECOND}
    told: list[str] = []
    is_slow = True
    async with daemons(tmp_path, "n1", **hold) as at, connect(at["n1"]) as me:
        async with archiving(tmp_path / "a", at["n1"], tell=told.append) as archiver:
            room = archiver.journal.room

            async def slow_room() -> None:
                await asyncio.sleep(0.5 if is_slow else 0)
                await room()

            archiver.journal.room = slow_room  # type: ignore[method-assign]
            number = 0
            while not any("everybody waited for it" in text for text in told):
                await me.send_many("orders", [b"%d" % each + bytes(1000) for each in range(number, number + 100)])
                number += 100
            is_slow = False
            await me.send("orders", b"when all is well again", confirm=True)
            while not any(text.startswith("connected again") for text in told):  # noqa: ASYNC110 (nor for that)
                await asyncio.sleep(0.005)
            await settled(archiver)
            await me.send("orders", b"last", confirm=True)
            archive = Archive(tmp_path / "a")
            await has(archive, b"last")
        numbers = [int(data[:-1000]) for data in payloads(archive) if len(data) > 1000]
        assert numbers == sorted(set(numbers))


HOSTILE_NAMES = ["{outside}", "../../OUTSIDE", "..", "0" * 16, "0" * 15 + "/"]


@live
@pytest.mark.parametrize("name", HOSTILE_NAMES)
async def test_a_hostile_archiver_makes_nobody_write_outside_the_folder(tmp_path: Path, name: str) -> None:
    """She says where to fetch from, and her catalogue has a branch of a name that she chose."""
    outside = tmp_path / "OUTSIDE"
    branch = {"name": name.format(outside=outside), "cause": "root", "parents": [], "view": "0.0:0.0", "who": []}
    catalogue = json.dumps({"tree": {"0" * 16: branch}, "spans": {"0" * 16: [1, 9]}}).encode()
    asked = asyncio.Event()
    told: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question, answer = await answer_sealed(reader, writer, bytes(32))
        await question.readexactly(ASK.unpack(await question.readexactly(ASK.size))[0])
        answer.write(BLOCK.pack(CATALOGUE, len(catalogue)) + catalogue + BLOCK.pack(END, 0))
        writer.close()
        asked.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    address = DonorAddress(host, port, bytes(32))
    async with server, cluster(tmp_path, "n1") as at, connect(at["n1"], name="mallory") as mallory:
        await mallory.meet("$archive/orders")  # as if she were an archiver
        async with (
            Archiver(tmp_path / "deep" / "a", ["orders"], Options(at=at["n1"]), told.append) as archiver,
            asyncio.TaskGroup() as tasks,
        ):
            task = tasks.create_task(archiver.run())
            view = await _view_with(mallory, archiver.name)
            settled_there = Statement(Kind.SETTLED, view.id, Place("0" * 16, 9), 1, address=address)
            await mallory.send("$archive/orders", statement_bytes(settled_there))
            await asked.wait()
            while not any("its catalogue cannot be read" in text for text in told):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            await mallory.leave("$archive/orders")
            await settled(archiver)  # it goes on by itself
            task.cancel()
    assert not outside.exists()
    (path,) = _below(tmp_path, "branch.json")
    assert path.is_relative_to(tmp_path / "deep" / "a" / "orders")
    assert re.fullmatch("[0-9a-f]{16}", path.parent.name) and path.parent.name != "0" * 16


@live
async def test_who_is_no_archiver_cannot_speak_to_archivers(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path, "n1") as at,
        connect(at["n1"], name="mallory") as mallory,
        Archiver(tmp_path / "a", ["orders"], Options(at=at["n1"])) as archiver,
        asyncio.TaskGroup() as tasks,
    ):
        task = tasks.create_task(archiver.run())
        await settled(archiver)
        with pytest.raises(UsageError, match="archivers meet there"):
            await mallory.send("$archive/orders", b"rubbish")
        await mallory.send("orders", b"last")
        await has(Archive(tmp_path / "a"), b"last")
        task.cancel()


def _below(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.rglob(pattern))


async def _view_with(client: Client, name: str) -> View:
    async for event in client:
        if isinstance(event, View) and name in event.members:
            return event
    raise AssertionError("the stream has ended")


@live
async def test_an_archive_is_for_its_owner_alone(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir(0o755)
    told: list[str] = []
    async with cluster(tmp_path, "n1") as at, connect(at["n1"]) as me:
        for folder in (tmp_path / "new" / "a", open_folder):
            options = Options(at=at["n1"], sync_pause_s=0.001)
            async with Archiver(folder, ["orders"], options, told.append) as archiver, asyncio.TaskGroup() as tasks:
                task = tasks.create_task(archiver.run())
                await settled(archiver)
                await me.send("orders", str(folder).encode())
                await has(Archive(folder), str(folder).encode())
                task.cancel()
    paths = [path for folder in ("new", "open") for path in _below(tmp_path / folder, "*")]
    assert {path.suffix for path in paths} >= {".segment", ".index", ".json"}
    modes = {str(path): stat.S_IMODE(path.stat().st_mode) for path in [*paths, tmp_path / "new"]}
    assert {name: mode for name, mode in modes.items() if mode not in (0o600, 0o700)} == {}
    assert stat.S_IMODE(open_folder.stat().st_mode) == 0o755, "who made it may have had a reason"
    (remark,) = [text for text in told if "chmod" in text]
    assert remark.startswith(f"{open_folder} is open to other users of this machine (0755): chmod 700 ")
