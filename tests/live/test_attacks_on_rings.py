"""Attacks on a ring by somebody who knows everything but the key: ids of cluster, ring and members, numbers and rounds.

Numbers are those of the list in `test_attacks.py`. None changes a view, ends a process, adds or loses a message.
That the packets are what they should be is shown by the same attack on a cluster in the clear.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from ordercast import Message, Node, View
from ordercast.daemon.config.node import SecurityConfig
from ordercast.daemon.key_file import new_key_file
from ordercast.groups.layer import data_head
from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import Incarnation, NodeId, ProcessId, Seq, TokenSeq, process_id_from
from ordercast.model.service import Service
from ordercast.wire.codec import encode
from ordercast.wire.head import cluster_id_from
from ordercast.wire.header import Heading
from ordercast.wire.messages import Announcement, Join, Leave, Token
from ordercast.wire.run import build_data
from tests.live.stage import entered, joined, live, quick_ring
from tests.live.stranger import Stranger

HUGE = (1 << 62) - 3


class Scene:
    """Three nodes, and what a stranger knows of them."""

    def __init__(self, nodes: list[Node], stranger: Stranger, cluster: bytes) -> None:
        self.nodes, self.stranger, self.cluster = nodes, stranger, cluster
        self.ring = nodes[0].host.engine.configuration.id
        self.members = nodes[0].host.engine.configuration.members
        self.views = [len(node.host.counters.views) for node in nodes]
        self.history: list[list[tuple[str, bytes]]] = [[] for _ in nodes]

    def tell_everywhere(self, packet: bytes) -> None:
        self.stranger.tell_all(packet)
        for node in (1, 2, 3):
            self.stranger.tell(node, packet)

    def token(self, **changes: object) -> Token:
        plain = Token(
            *(self.ring, self.members[0], TokenSeq(0), 0, Seq(0), Seq(0), ProcessId(0), (), 0, 100, 0, 0, False, 0)
        )
        return replace(plain, **changes)  # type: ignore[arg-type]

    def join(self, sender: ProcessId, **changes: object) -> Join:
        everybody = tuple(sorted(self.members))
        plain = Join(*(self.ring, sender, 1, self.ring.seq, everybody, (), 0, ChangeReason.STARTED, ProcessId(0), ()))
        return replace(plain, **changes)  # type: ignore[arg-type]

    async def goes_on(self) -> None:
        """Everybody sends, and all get all of it, in one order, and nothing else; no view has changed."""
        texts = [b"%d after" % number for number in range(len(self.nodes))]
        for node, text in zip(self.nodes, texts, strict=True):
            await node.send("orders", text, confirm=True)
        for node, history in zip(self.nodes, self.history, strict=True):
            while not set(texts) <= {data for _, data in history}:
                event = await anext(node)
                assert not isinstance(event, View), event
                if isinstance(event, Message):
                    history.append((event.sender, event.data))
        assert self.history[0] == self.history[1] == self.history[2]
        assert sorted(data for _, data in self.history[0]) == sorted(texts)
        assert [len(node.host.counters.views) for node in self.nodes] == self.views
        assert all(node.host.is_running for node in self.nodes)


def poisoned_join(scene: Scene) -> list[bytes]:
    """A4: numbers that would be stored."""
    joins = [
        scene.join(sender, number=number, ring_seq=seq)
        for sender in scene.members
        for number, seq in ((HUGE, HUGE), (10**6, scene.ring.seq), (2, scene.ring.seq + (1 << 31)))
    ]
    return [encode(scene.cluster, join) for join in joins]


def forged_data(scene: Scene) -> list[bytes]:
    """A5: messages in anybody's name, under the next numbers."""
    heading = Heading(scene.cluster, scene.ring, scene.members)
    payload = data_head("boss@n1", ("orders",)) + b"sell everything"
    packets = []
    for me in scene.members:
        for seq in range(1, 106):
            entry = (1, len(payload), int(Service.AGREED), payload)
            run = build_data(heading, 0, [entry], me, Seq(seq), 1, seq)
            packets.append(bytes(run.data))
    return packets


def stalling_tokens(scene: Scene) -> list[bytes]:
    """A6: somebody is behind, says the token; tried for many hops."""
    tokens = [scene.token(token_seq=TokenSeq(seq), behind=1, sender=scene.members[seq % 3]) for seq in range(400)]
    return [encode(scene.cluster, token) for token in tokens]


def poisoned_clock(scene: Scene) -> list[bytes]:
    """A7: a timestamp that nobody may exceed."""
    tokens = [scene.token(token_seq=TokenSeq(seq), timestamp=HUGE, sender=scene.members[seq % 3]) for seq in range(400)]
    return [encode(scene.cluster, token) for token in tokens]


def ghost(scene: Scene) -> list[bytes]:
    """A8: a node with an impossible port."""
    me = process_id_from(NodeId(32767), Incarnation(5))
    everybody = tuple(sorted((*scene.members, me)))
    said = Announcement(scene.ring, me, (me,), everybody)
    return [encode(scene.cluster, said), encode(scene.cluster, scene.join(me, candidates=everybody))] * 6


def farewells(scene: Scene) -> list[bytes]:
    """A16: Leaves in everybody's name, and Joins that call others failed."""
    leaves = [encode(scene.cluster, Leave(scene.ring, member)) for member in scene.members]
    first, second, third = sorted(scene.members)
    joins = [
        encode(scene.cluster, scene.join(sender, failed=(other,), number=9))
        for sender, other in ((first, second), (second, third), (third, first))
    ]
    return [*leaves, *joins]


def noise(scene: Scene) -> list[bytes]:
    """A20: as much as two seconds of it, in little time; `python -m rig.flood` has as much as it takes."""
    return [os.urandom(30) for _ in range(4000)]


ATTACKS = (poisoned_join, forged_data, stalling_tokens, poisoned_clock, ghost, farewells, noise)


async def _scene(stack: AsyncExitStack, stranger: Stranger, security: SecurityConfig) -> Scene:
    ring = quick_ring()
    nodes = await entered(stack, ring, "n1", "n2", "n3", security=security)
    await joined(nodes, "orders")
    return Scene(nodes, stranger, cluster_id_from(ring.cluster))


def _key(folder: Path) -> SecurityConfig:
    new_key_file(folder / "key")
    return SecurityConfig(folder / "key")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@live
async def test_no_attack_without_the_key_does_anything(attack: Callable[[Scene], list[bytes]], tmp_path: Path) -> None:
    with Stranger() as stranger:
        async with AsyncExitStack() as stack:
            scene = await _scene(stack, stranger, _key(tmp_path))
            key = scene.nodes[0].host.sealing.keys.used if scene.nodes[0].host.sealing is not None else 0
            for packet in attack(scene):
                scene.tell_everywhere(packet)
                scene.tell_everywhere(packet[:3] + bytes((key,)) + packet[4:])  # with a right head
            await scene.goes_on()


@pytest.mark.parametrize("attack", [forged_data, farewells], ids=lambda attack: attack.__name__)
@live
async def test_the_same_attack_on_a_cluster_in_the_clear_does_something(
    attack: Callable[[Scene], list[bytes]], tmp_path: Path
) -> None:
    with Stranger() as stranger:
        async with AsyncExitStack() as stack:
            scene = await _scene(stack, stranger, SecurityConfig(insecure=True))
            with pytest.raises(AssertionError):
                while True:
                    for packet in attack(scene):
                        scene.tell_everywhere(packet)
                    scene.history = [[] for _ in scene.nodes]
                    await scene.goes_on()


@live
async def test_a_recorded_start_that_is_sent_again_to_later_lives_does_nothing(tmp_path: Path) -> None:
    """A15: all that was multicast at the start of a cluster, played to one that started later with the same key."""
    security = _key(tmp_path)
    ring = quick_ring()
    with Stranger() as stranger:
        async with AsyncExitStack() as stack:
            nodes = await entered(stack, ring, "n1", "n2", "n3", security=security)
            await joined(nodes, "orders")
            recorded = stranger.heard()
        async with AsyncExitStack() as stack:
            nodes = await entered(stack, ring, "n1", "n2", "n3", security=security)
            await joined(nodes, "orders")
            scene = Scene(nodes, stranger, cluster_id_from(ring.cluster))
            for packet in (*recorded, *stranger.heard()) * 3:
                scene.tell_everywhere(packet)
            await scene.goes_on()
    assert len(recorded) > 10


INTRUDER = """
import asyncio, os, sys
from dataclasses import replace
from ordercast import Node, NodeConfig
from ordercast.daemon.config.node import NetworkConfig, SecurityConfig
from ordercast.daemon.sealed import AesGcm
from ordercast.model.ids import MILLISECOND
from ordercast.order.ring.config import RingConfig

async def warm_up():
    alone = NodeConfig(ring=RingConfig(cluster=f"warm {os.getpid()}"), network=NetworkConfig(port=int(sys.argv[2])))
    async with Node(replace(alone, security=SecurityConfig(insecure=True))) as node:
        await node.join("orders")

async def main():
    ring = RingConfig(cluster=sys.argv[1], consensus_ns=100 * MILLISECOND, announce_ns=40 * MILLISECOND)
    config = NodeConfig(ring=ring, network=NetworkConfig(port=int(sys.argv[2])))
    async with Node(config, name="nobody") as node:
        await node.join("orders")
        while not node.host.sealing.opener.refused:
            await node.send("any", b"", confirm=True)
        print(len(node.host.members), len(await node.members("orders")), flush=True)

AesGcm()
asyncio.run(warm_up())  # all that is imported late: the other user may not read where Python is
os.setgid(65534)
os.setuid(65534)
asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed: run the tests as root")
@live
async def test_another_user_of_the_machine_joins_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A9: `Node()` of another user, without a file on either side."""
    monkeypatch.setenv("ORDERCAST_FOLDER", str(tmp_path))
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    del environment["ORDERCAST_FOLDER"]
    environment.pop("XDG_RUNTIME_DIR", None)
    with Stranger() as stranger:
        async with AsyncExitStack() as stack:
            ring = quick_ring()
            nodes = await entered(stack, ring, "n1", "n2", "n3")
            await joined(nodes, "orders")
            scene = Scene(nodes, stranger, cluster_id_from(ring.cluster))
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", INTRUDER, ring.cluster, str(stranger.port)),
                env=environment,
                stdout=asyncio.subprocess.PIPE,
            )
            said, _ = await process.communicate()
            assert said.split() == [b"1", b"1"]
            await scene.goes_on()
