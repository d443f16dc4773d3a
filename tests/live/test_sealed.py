"""Sealed nodes on real sockets, and somebody beside them who has no key: reads, repeats, forges, joins."""

from __future__ import annotations

import asyncio
import os
import struct
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from ordercast import Node, UsageError
from ordercast.daemon.config.node import SecurityConfig
from ordercast.daemon.key_file import from_clear, new_key_file, read_key_file, with_new_key, without_key, write_key_file
from ordercast.model.inputs import Lane
from ordercast.order.ring.config import RingConfig
from ordercast.sealing.opener import SealRefusal
from ordercast.sealing.own import SealingEnded
from ordercast.wire.head import CLEAR, cluster_id_from
from ordercast.wire.header import MessageKind
from tests.live.stage import entered, joined, live, local, messages_until, quick_ring, view_with
from tests.live.stranger import Stranger


def _key(folder: Path, name: str = "key") -> SecurityConfig:
    new_key_file(folder / name)
    return SecurityConfig(key=folder / name)


def _views(node: Node) -> int:
    return len(node.host.counters.views)


async def _together(stack: AsyncExitStack, ring: RingConfig, security: SecurityConfig) -> list[Node]:
    nodes = await entered(stack, ring, "n1", "n2", "n3", security=security)
    await joined(nodes, "orders")
    return nodes


async def _says(speaker: Node, listeners: list[Node], text: bytes) -> None:
    await speaker.send("orders", text)
    for listener in listeners:
        assert [message.data for message in await messages_until(listener, text)][-1] == text


@live
async def test_nobody_reads_what_is_sealed_and_nothing_repeated_or_forged_counts(tmp_path: Path) -> None:
    ring = quick_ring()
    with Stranger() as stranger:
        async with AsyncExitStack() as stack:
            nodes = await _together(stack, ring, _key(tmp_path))
            await _says(nodes[0], nodes, b"a secret that nobody hears")
            heard = stranger.heard()
            cluster = cluster_id_from(ring.cluster)
            assert heard and not any(b"a secret" in packet or cluster in packet for packet in heard)
            before = [_views(node) for node in nodes]
            for packet in heard:  # again, with a bit changed, with another key, cut short, to everybody and to each
                changed = bytearray(packet)
                changed[-1] ^= 1
                for forged in (packet, bytes(changed), packet[:3] + b"\x00" + packet[4:], packet[:30], packet[:17]):
                    stranger.tell_all(forged)
                    for node in (1, 2, 3):
                        stranger.tell(node, forged)
            leave = struct.pack(">2sBBH8sQB", b"oC", 3, 0, 39, cluster, nodes[1].host.process, MessageKind.LEAVE)
            stranger.tell_all(leave + bytes(16))
            await _says(nodes[1], nodes, b"after the attack")
            assert [_views(node) for node in nodes] == before
            refused = [node.host.sealing.opener.refused for node in nodes if node.host.sealing is not None]
            for why in (SealRefusal.OLD, SealRefusal.FORGED, SealRefusal.CLEAR, SealRefusal.STRANGE):
                assert sum(each[why] for each in refused) > 0, why


@live
async def test_who_has_another_key_or_none_stays_outside(tmp_path: Path) -> None:
    ring = quick_ring()
    async with AsyncExitStack() as stack:
        nodes = await _together(stack, ring, _key(tmp_path))
        for security in (_key(tmp_path, "other"), SecurityConfig(insecure=True)):
            outside = await stack.enter_async_context(Node(local(ring, security=security), name="outside"))
            before = [dict(node.host.sealing.opener.refused) for node in nodes if node.host.sealing is not None]
            while before == [dict(node.host.sealing.opener.refused) for node in nodes if node.host.sealing is not None]:
                await _says(nodes[0], nodes, os.urandom(8))
            assert outside.host.members == (outside.host.process,)
            assert outside.host.process not in nodes[0].host.members


@live
async def test_keys_change_under_load_and_nobody_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_key_file(path, from_clear())
    async with AsyncExitStack() as stack:
        nodes = await _together(stack, quick_ring(), SecurityConfig(key=path))
        before, sent = [_views(node) for node in nodes], 0
        for _ in range(2):  # from clear to a key, and from that to another
            wanted = read_key_file(path).ring.wanted
            for node in nodes:
                node.host.rekey(read_key_file(path).ring)
            while any(node.host.sealing is None or node.host.sealing.keys.used != wanted for node in nodes):
                await _says(nodes[sent % 3], nodes, b"%d" % sent)
                sent += 1
            ring = read_key_file(path).ring
            retired = without_key(replace(read_key_file(path), ring=ring.using(wanted)))
            for node in nodes:
                node.host.rekey(retired.ring)
            await _says(nodes[sent % 3], nodes, b"%d" % sent)
            sent += 1
            write_key_file(path, with_new_key(retired))
        assert [_views(node) for node in nodes] == before


@live
async def test_a_clear_cluster_is_sealed_by_restarting_its_nodes_one_after_the_other(tmp_path: Path) -> None:
    """Whoever starts with the key hears those who have it before those who have none, and goes on with all of them."""
    path, ring, sent = tmp_path / "key", quick_ring(), 0
    write_key_file(path, from_clear())
    async with AsyncExitStack() as stack:
        nodes = await _together(stack, ring, SecurityConfig(insecure=True))
        for place, name in enumerate(("n1", "n2", "n3")):
            await nodes[place].close()
            node = Node(local(ring, security=SecurityConfig(key=path)), name=name)
            nodes[place] = await stack.enter_async_context(node)
            await node.join("orders")
            await view_with(node, *(node.name for node in nodes), group="orders")
            layers = [node.host.sealing for node in nodes[: place + 1] if node.host.sealing is not None]
            told = [layer.stats.presences for layer in layers]
            while any(layer.stats.presences == count for layer, count in zip(layers, told, strict=True)):
                assert place == 2 or all(layer.keys.used == CLEAR for layer in layers)
                await _says(nodes[sent % 3], nodes, b"%d" % sent)
                sent += 1
        while any(layer.keys.used == CLEAR for layer in layers):
            await _says(nodes[sent % 3], nodes, b"%d" % sent)
            sent += 1


@live
async def test_a_fork_does_not_seal(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(Node(local(quick_ring(), security=_key(tmp_path)), name="n1"))
        sealing = node.host.sealing
        assert sealing is not None
        child = os.fork()
        if child == 0:
            try:
                sealing.own.presence((1, bytes(32)), bytes(8), b"", (0,), Lane.DATA)
            except SealingEnded:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, child, 0))[1]) == 7


@live
async def test_a_key_file_that_others_can_read_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    security = _key(tmp_path)
    assert security.key is not None
    security.key.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        await Node(local(quick_ring(), security=security)).start()
