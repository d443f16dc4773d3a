"""Nodes of one machine without configuration: those of one user are together, those of others are strangers to them."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ordercast import Node, UsageError
from ordercast.daemon.config.node import SecurityConfig
from ordercast.daemon.key_file import new_key_file, read_key_file, user_key_file
from ordercast.daemon.management import rekey
from tests.live.stage import alone, entered, joined, live, local, messages_until, quick_ring


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this user has sockets and key."""
    monkeypatch.setenv("ORDERCAST_FOLDER", str(tmp_path / "one"))
    return tmp_path


async def refused(node: Node) -> None:
    """It has heard somebody who is a stranger to it."""
    sealing = node.host.sealing
    assert sealing is not None
    await node.join("any")
    while not sealing.opener.refused:
        await node.send("any", b"", confirm=True)


@live
async def test_nodes_of_one_user_are_sealed_and_together_without_configuration(home: Path) -> None:
    async with AsyncExitStack() as stack:
        nodes = await entered(stack, quick_ring(), "a", "b")
        await joined(nodes, "orders")
        await nodes[0].send("orders", b"sealed")
        await messages_until(nodes[1], b"sealed")
        key = read_key_file(user_key_file())
        assert user_key_file().parent == home / "one" and user_key_file().stat().st_mode & 0o777 == 0o600
        used = [node.host.sealing.keys.used for node in nodes if node.host.sealing is not None]
        assert used == [key.ring.used] * 2


@live
async def test_another_user_is_a_stranger(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = quick_ring()
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Node(local(ring), name="a"))
        monkeypatch.setenv("ORDERCAST_FOLDER", str(home / "other"))
        other = await stack.enter_async_context(Node(local(ring), name="b"))
        await asyncio.gather(refused(first), refused(other))
        assert first.host.members == (first.host.process,) and other.host.members == (other.host.process,)
        together = SecurityConfig(key=home / "one" / "key")
        third = await stack.enter_async_context(Node(local(ring, security=together), name="c"))
        await joined([first, third], "orders")


@live
async def test_many_that_start_at_once_have_one_key(home: Path) -> None:
    ring = quick_ring()
    nodes = [Node(local(ring), name=f"m{number}") for number in range(6)]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(node) for node in nodes))
        used = {node.host.sealing.keys.used for node in nodes if node.host.sealing is not None}
        assert used == {read_key_file(user_key_file()).ring.used}
        assert [path.name for path in await asyncio.to_thread(lambda: list((home / "one").iterdir()))] == ["key"]


@live
async def test_a_reload_makes_no_key(home: Path) -> None:
    async with Node(alone()) as node:
        assert node.host.sealing is not None
        before = node.host.sealing.keys
        await asyncio.to_thread(user_key_file().unlink)
        with pytest.raises(UsageError, match="there is no key file"):
            await rekey(node.host)
        assert node.host.sealing.keys == before


@live
async def test_a_file_that_lacks_the_key_in_use_is_taken_only_when_that_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "key"
    used = new_key_file(path).ring.used
    async with AsyncExitStack() as stack:
        nodes = await entered(stack, quick_ring(), "a", "b", security=SecurityConfig(key=path))
        await joined(nodes, "orders")
        sealing = nodes[1].host.sealing
        assert sealing is not None
        before = sealing.keys
        path.unlink()
        other = new_key_file(path).ring.used
        with pytest.raises(UsageError, match=rf"has {other}, and this node and those with it use {used}: .* --now"):
            await rekey(nodes[1].host)
        assert sealing.keys == before
        await rekey(nodes[1].host, at_once=True)
        assert sealing.keys.accepted == (other,)


@live
async def test_clear_packets_are_for_those_who_say_so(home: Path) -> None:
    async with Node(local(quick_ring(), security=SecurityConfig(insecure=True))) as node:
        assert node.host.sealing is None and not user_key_file().exists()


@live
async def test_a_folder_in_which_others_write_is_not_believed(home: Path) -> None:
    (home / "one").mkdir(mode=0o755)
    (home / "one").chmod(0o777)
    with pytest.raises(UsageError, match="others may write there"):
        await Node(alone()).start()
    (home / "one").chmod(0o755)
    (home / "one" / "key").write_text("")
    with pytest.raises(UsageError, match="chmod 600"):
        await Node(alone()).start()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
@live
async def test_a_folder_that_cannot_be_made_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERCAST_FOLDER", "/proc/nowhere")
    with pytest.raises(UsageError, match="ORDERCAST_FOLDER"):
        await Node(alone()).start()
