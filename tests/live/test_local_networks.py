"""Nodes on the loopback interface with two networks, which there are two sets of ports: no privilege is needed."""

from __future__ import annotations

import os
import threading
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from ordercast import Node, ThreadedNode
from ordercast.daemon.config.node import NetworkConfig, NodeConfig
from ordercast.daemon.status.advice import advised
from ordercast.daemon.status.report import status_of
from ordercast.model.effects import Alarm, AlarmKind
from ordercast.networks.config import NetworksConfig, Replication
from tests.live.stage import eventually, joined, live, messages_of, quick_ring
from tests.ports import free_ports

RED, BLUE, GREEN = free_ports(), free_ports(), free_ports()


def config(style: Replication, second: int = BLUE) -> NodeConfig:
    """Whose second network has these ports."""
    return NodeConfig(
        ring=replace(quick_ring(), cluster=f"networks {os.getpid()} {style.value}"),
        network=NetworkConfig(port=RED, name="red"),
        more_networks=(NetworkConfig(port=second, name="blue"),),
        redundancy=NetworksConfig(replication=style),
    )


@pytest.mark.parametrize("style", [Replication.ACTIVE, Replication.PASSIVE])
@live
async def test_nodes_with_two_networks_come_together_and_talk(style: Replication) -> None:
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Node(config(style), name=name)) for name in ("a", "b", "c")]
        await joined(nodes, "room")
        for number in range(50):
            await nodes[number % 3].send("room", f"{number}".encode())
        heard = [[message.data for message in await messages_of(node, 50)] for node in nodes]
        assert heard[0] == heard[1] == heard[2] and len(set(heard[0])) == 50
        status = status_of(nodes[0].host)
        assert [(network.name, network.state) for network in status.networks] == [("red", "good"), ("blue", "good")]
        assert all(network.packets_received for network in status.networks)
        assert {lane.name for lane in status.sockets.lanes} == {
            "token on red",
            "data on red",
            "token on blue",
            "data on blue",
        }


@live
async def test_a_network_that_two_nodes_do_not_share_is_found_and_the_application_is_told() -> None:
    """The second node has other ports for blue: they meet on red alone."""
    told: list[Alarm] = []
    async with AsyncExitStack() as stack:
        one = Node(config(Replication.ACTIVE), name="a", on_alarm=told.append)
        other = Node(config(Replication.ACTIVE, GREEN), name="b")
        nodes = [await stack.enter_async_context(node) for node in (one, other)]
        await joined(nodes, "room")
        await eventually(lambda: any(alarm.kind is AlarmKind.NETWORK_FAULTY for alarm in told))
        assert {alarm.network for alarm in told} == {1} and "blue is faulty" in told[0].text
        await nodes[1].send("room", b"still here")
        assert [message.data for message in await messages_of(nodes[0], 1)] == [b"still here"]
        assert any("blue is faulty" in warning for warning in advised(status_of(one.host)).warnings)


@live
async def test_a_node_with_a_thread_of_its_own_tells_alarms_on_the_loop_that_started_it() -> None:
    """One node has a second network, the other has not: each is told once that the other is set up differently, and the
    one with two finds that nobody is on the second."""
    told: list[tuple[Alarm, threading.Thread]] = []
    alone = replace(config(Replication.ACTIVE), more_networks=(), redundancy=NetworksConfig())
    heard: list[Alarm] = []
    async with AsyncExitStack() as stack:
        one = ThreadedNode(
            config(Replication.ACTIVE),
            name="a",
            on_alarm=lambda alarm: told.append((alarm, threading.current_thread())),
        )
        other = Node(alone, name="b", on_alarm=heard.append)
        for node in (one, other):
            await stack.enter_async_context(node)
        await eventually(lambda: any(alarm.kind is AlarmKind.NETWORK_FAULTY for alarm, _ in told))
        await eventually(lambda: bool(heard))
    differences = [alarm for alarm, _ in told if alarm.kind is AlarmKind.CONFIGURATION_MISMATCH]
    assert len(differences) == 1 and "networks, replication or copies" in differences[0].text
    assert [alarm.kind for alarm in heard] == [AlarmKind.CONFIGURATION_MISMATCH]
    assert {thread for _, thread in told} == {threading.current_thread()}
