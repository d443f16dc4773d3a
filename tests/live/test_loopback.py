"""Nodes on the loopback interface of this machine: no namespaces, no privileges, several nodes in one process.

Each test has a cluster name of its own, so that other tests on the same machine are strangers to it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from ordercast import NodeConfig, NodeFailed, Service, ThreadedNode, UsageError
from ordercast.api.raw import RawEvents as Events
from ordercast.api.raw import RawMessage as Message
from ordercast.api.raw import RawNode as Node
from ordercast.checker import Checkers, Outcome
from ordercast.daemon import slots
from ordercast.daemon.config.node import Peer, SecurityConfig, TraceConfig, TraceLevel
from ordercast.daemon.host import GroupHost
from ordercast.daemon.storage import FolderStorage
from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import AlarmKind
from ordercast.model.ids import MILLISECOND, NodeId, ProcessId
from ordercast.model.promises import Promise
from ordercast.order.engine import CONFIGURATION_SEQ_KEY
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.folder import read_live
from ordercast.trace.records import StorageTurned
from tests.live import stage
from tests.live.stage import PATIENCE_S, alone, joined, live, local, quick_ring, run


async def view_of(stream: Events, *members: ProcessId) -> Configuration:
    """The next regular view that has all of these."""
    async for event in stream:
        if (
            isinstance(event, Configuration)
            and event.kind is ConfigurationKind.REGULAR
            and set(members) <= set(event.members)
        ):
            return event
    raise AssertionError("the stream has ended")


async def messages_of(stream: Events, wanted: int) -> list[Message]:
    found: list[Message] = []
    while len(found) < wanted:
        event = await anext(stream)
        if isinstance(event, Message):
            found.append(event)
    return found


async def started(stack: AsyncExitStack, *configs: NodeConfig | None) -> tuple[list[Node], list[Events]]:
    """Nodes that have come together, and their streams from there on."""
    nodes = [await stack.enter_async_context(Node(config)) for config in configs]
    streams = [node.stream() for node in nodes]
    everybody = [node.process for node in nodes]
    await asyncio.gather(*(view_of(stream, *everybody) for stream in streams))
    return nodes, streams


# What must work at once


def test_three_nodes_without_configuration() -> None:
    """Others may run on this machine without configuration, too: they are in the same ring."""

    async def work() -> None:
        async with AsyncExitStack() as stack:
            nodes, streams = await started(stack, None, None, None)
            mine = {b"from %d" % node.process for node in nodes}
            for node in nodes:
                await node.submit(b"from %d" % node.process, Service.SAFE)
            seen = []
            for stream in streams:
                found: list[Message] = []
                while len(found) < 3:
                    found += [message for message in await messages_of(stream, 1) if message.data in mine]
                seen.append(found)
            assert seen[0] == seen[1] == seen[2]
            assert {message.sender for message in seen[0]} == {node.process for node in nodes}

    run(work())


def test_threaded_nodes_go_on_while_the_program_is_busy() -> None:
    async def work() -> None:
        ring = quick_ring()
        async with ThreadedNode(local(ring)) as one, ThreadedNode(local(ring)) as two:
            await joined((one, two), "work")
            counters = two.node.host.counters
            before = counters.messages_delivered
            await one.send_many("work", [b"%d" % number for number in range(100)])
            # Nothing runs on this loop until the other node has delivered all of it.
            end = time.monotonic() + PATIENCE_S
            while counters.messages_delivered < before + 100:
                assert time.monotonic() < end
                time.sleep(0.001)  # noqa: ASYNC251
            for node in (one, two):
                assert [message.data for message in await stage.messages_of(node, 100)] == [
                    b"%d" % n for n in range(100)
                ]

    run(work())


def test_a_leave_is_told_from_a_failure() -> None:
    async def work() -> None:
        ring = quick_ring()
        async with AsyncExitStack() as stack:
            nodes, streams = await started(stack, local(ring), local(ring), local(ring))
            await nodes[2].submit(b"last words")
            await nodes[2].leave()
            for stream in streams[:2]:
                assert (await messages_of(stream, 1))[0].data == b"last words"
                view = await view_of(stream)
                assert view.reason is ChangeReason.LEFT
                assert set(view.members) == {node.process for node in nodes[:2]}
            with pytest.raises(UsageError, match="not running"):
                await nodes[2].submit(b"too late")
            assert [event.data async for event in streams[2] if isinstance(event, Message)] == [b"last words"]

    run(work())


def test_traces_of_nodes_in_one_process_are_judged(tmp_path: Path) -> None:
    async def work() -> None:
        ring, trace = quick_ring(), TraceConfig(TraceLevel.FULL, tmp_path)
        async with AsyncExitStack() as stack:
            nodes, streams = await started(stack, *(local(ring, trace=trace) for _ in range(3)))
            for number in range(50):
                for node in nodes:
                    await node.submit(b"%d" % number, Service.SAFE if number % 2 else Service.AGREED)
            for stream in streams:
                await messages_of(stream, 150)
            append_cluster_event(tmp_path, "healed")
            append_cluster_event(tmp_path, "ended")

    run(work())
    checkers = Checkers()
    for event in read_live(tmp_path).events():
        checkers.observe(event)
    untested = {each.promise for each in checkers.verdicts() if each.outcome is Outcome.NOT_EXERCISED}
    assert untested <= {Promise.FAIRNESS, Promise.VIRTUAL_SYNCHRONY}, (
        "nobody is saturated; all may come together at once"
    )
    assert checkers.verdict().outcome is Outcome.VALID, checkers.verdict().sentence


# What is in the way is said, and nothing is left behind


async def refused(config: NodeConfig, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        await Node(config).start()


def test_a_port_that_is_taken() -> None:
    async def work() -> None:
        config = local(quick_ring(), node=NodeId(40))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", config.me().token_port))
            await refused(config, f"port {config.me().token_port} .* is taken by another process")
        async with Node(config):
            pass

    run(work())


def test_an_address_that_is_not_ours() -> None:
    async def work() -> None:
        peers = (Peer(NodeId(1), "n1", "192.0.2.1"),)
        config = local(quick_ring(), node=NodeId(1), peers=peers, security=SecurityConfig(insecure=True))
        await refused(config, r"192\.0\.2\.1 is not an address of this host")

    run(work())


def test_a_state_folder_that_cannot_be_used(tmp_path: Path) -> None:
    async def work() -> None:
        (tmp_path / "file").write_text("not a folder")
        ring = quick_ring()
        await refused(local(ring, node=NodeId(41), state_folder=tmp_path / "file"), "cannot be used")
        async with Node(local(ring, node=NodeId(41), state_folder=tmp_path / "folder")):
            await refused(local(ring, node=NodeId(42), state_folder=tmp_path / "folder"), "in use by another node")
        async with Node(local(ring, node=NodeId(42), state_folder=tmp_path / "folder")):
            pass

    run(work())


def test_a_trace_folder_that_cannot_be_used(tmp_path: Path) -> None:
    async def work() -> None:
        (tmp_path / "file").write_text("not a folder")
        config = local(quick_ring(), node=NodeId(43), state_folder=tmp_path / "state")
        trace = TraceConfig(TraceLevel.FULL, tmp_path / "file")
        await refused(local(config.ring, node=NodeId(43), state_folder=tmp_path / "state", trace=trace), "not a folder")
        async with Node(config):
            pass

    run(work())


# A node that ends by itself says why


def test_a_disk_that_fails_does_not_end_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        ring = quick_ring()
        async with Node(local(ring, state_folder=tmp_path)) as node:
            stream = node.stream()
            await view_of(stream, node.process)

            def fails(*_: object) -> None:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(os, "fdatasync", fails)
            # Another node comes, so the next ring's number must be stored.
            async with Node(local(ring)) as other:
                await view_of(stream, node.process, other.process)
                await node.submit(b"heard all the same")
                assert [message.data for message in await messages_of(stream, 1)] == [b"heard all the same"]
                told = {alarm.kind: alarm.text for _, alarm in node.counters.alarms}
                assert f"the state folder {tmp_path} cannot be written: No space left" in told[AlarmKind.STORAGE_FAILED]
                assert AlarmKind.WITHOUT_STORAGE in told and not node.storage_status().is_used
                monkeypatch.undo()
                while not node.storage_status().is_used:  # noqa: ASYNC110 (the whole test is bounded in time)
                    await asyncio.sleep(0.01)
                assert AlarmKind.STORAGE_REPAIRED in [alarm.kind for _, alarm in node.counters.alarms]

    run(work())


def test_a_disk_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses nothing, and does not answer. The node goes on, and can end."""

    async def work() -> None:
        ring, answers = quick_ring(), threading.Event()
        async with Node(local(ring, state_folder=tmp_path)) as node:
            stream = node.stream()
            await view_of(stream, node.process)
            monkeypatch.setattr(os, "fdatasync", lambda _: answers.wait())
            async with Node(local(ring)) as other:
                await view_of(stream, node.process, other.process)
                told = [alarm.kind for _, alarm in node.counters.alarms]
                assert AlarmKind.WITHOUT_STORAGE in told and AlarmKind.STORAGE_FAILED not in told
                assert node.storage_status().error is None and not node.storage_status().is_used
                answers.set()
                while not node.storage_status().is_used:  # noqa: ASYNC110 (the whole test is bounded in time)
                    await asyncio.sleep(0.01)
            answers.clear()
        answers.set()

    run(work())


async def begun(host: GroupHost) -> None:
    """It has a ring of its own, whose seq is stored."""
    while host.engine.state_name != "Operational":  # noqa: ASYNC110 (the whole test is bounded in time)
        await asyncio.sleep(0.01)


def test_a_life_without_storage_does_not_bind_the_next(tmp_path: Path) -> None:
    """Its rings are not stored, the next life is numbered lower, and the traces say why that is sound."""

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    async def work() -> None:
        ring, traces = quick_ring(), TraceConfig(TraceLevel.CONTROL, tmp_path / "traces")
        forgetful = local(ring, node=NodeId(44), state_folder=tmp_path / "state", trace=traces)
        async with GroupHost(forgetful) as host:
            await begun(host)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(slots, "_write_at", refuse)
                for node in (45, 46):
                    async with GroupHost(local(ring, node=NodeId(node), trace=traces)):
                        while len(host.members) < 2:  # noqa: ASYNC110 (the whole test is bounded in time)
                            await asyncio.sleep(0.01)
                    while len(host.members) > 1:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                assert not host.storage_status().is_used
                last = host.engine.configuration.id.seq
                await host.leave()
        async with GroupHost(forgetful) as host:
            await begun(host)
            assert host.engine.configuration.id.seq < last

    run(work())
    events = list(read_live(tmp_path / "traces").events())
    assert [event.in_use for event in events if isinstance(event, StorageTurned)] == [False]
    checkers = Checkers([Promise.VIEW_MONOTONY])
    for event in events:
        checkers.observe(event)
    assert checkers.verdict().outcome is Outcome.VALID
    checkers = Checkers([Promise.VIEW_MONOTONY])
    for event in events:
        if not isinstance(event, StorageTurned):
            checkers.observe(event)
    assert checkers.verdict().outcome is Outcome.INVALID


def test_an_application_that_takes_nothing_is_given_up() -> None:
    async def work() -> None:
        async with Node(local(quick_ring(), inbox_size_max=100, stall_ns=100 * MILLISECOND)) as node:
            stream = node.stream()
            await view_of(stream, node.process)
            await node.submit(bytes(1000))
            with pytest.raises(NodeFailed, match="took none of its deliveries"):
                while True:
                    await node.submit(b"is anybody there?")
                    await asyncio.sleep(0.01)
            # What was delivered before can still be read.
            assert (await messages_of(stream, 1))[0].data == bytes(1000)
            with pytest.raises(NodeFailed, match="took none of its deliveries"):
                async for _ in stream:
                    pass

    run(work())


# What an application may do wrong


@live
async def test_what_cannot_be_sent_is_refused_before_anything_is() -> None:
    async with Node(alone(message_size_max=1000, queue_size_max=5000)) as node:
        for payloads in ([b"good", bytes(1001)], [b"good", "text"], b"one", "text"):
            with pytest.raises(UsageError):
                await node.submit_many(cast(list[bytes], payloads))
        with pytest.raises(UsageError):
            await node.submit(b"x", cast(Service, 77))
        await node.submit_many([])
        words = bytearray(b"then")
        await node.submit(cast(bytes, memoryview(words)))
        words[:] = b"WHAT"
        found = await messages_of(node.stream(), 1)
    assert [message.data for message in found] == [b"then"]


@live
async def test_more_than_the_queue_holds_is_sent_in_portions_and_nobody_waits_for_ever() -> None:
    async with Node(alone(message_size_max=1000, queue_size_max=5000)) as node:
        payloads = [number.to_bytes(2, "big") * 300 for number in range(100)]
        sending = asyncio.create_task(node.submit_many(payloads))
        found = await messages_of(node.stream(), 100)
        await sending
        await asyncio.gather(*(node.submit(bytes(900)) for _ in range(50)))
    assert [message.data for message in found] == payloads


@live
async def test_whoever_stops_reading_goes_on_where_it_was() -> None:
    async with Node(alone()) as node:
        payloads = [b"%d" % number for number in range(10)]
        await node.submit_many(payloads)
        found: list[Message] = []
        while len(found) < 10:
            async for event in node.stream():
                if isinstance(event, Message):
                    found.append(event)
                    break
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(node.stream()), 0.01)
        await node.submit(b"later")
        found += await messages_of(node.stream(), 1)
    assert [message.data for message in found] == [*payloads, b"later"]


@live
async def test_a_stream_has_one_reader_at_a_time() -> None:
    async with Node(alone()) as node:
        await messages_of_none(node)
        first = asyncio.create_task(anext(node.stream()))
        await asyncio.sleep(0)
        with pytest.raises(UsageError):
            await anext(node.stream())
        await node.submit(b"for the first")
        event = await first
    assert isinstance(event, Message) and event.data == b"for the first"


async def messages_of_none(node: Node) -> None:
    """The first view is read."""
    assert isinstance(await anext(node.stream()), Configuration)


@live
async def test_ids_go_on_rising_from_the_number_that_any_engine_stored(tmp_path: Path) -> None:
    """One number for all engines; it had another name when the ring was the only one."""
    far = 40_000
    storage = FolderStorage(tmp_path)
    storage.write("ring_seq", far.to_bytes(8, "big"), lambda error: None)
    storage.close()
    seqs = [far]
    for _ in range(2):
        async with Node(replace(alone(), state_folder=tmp_path)) as node:
            while not node.engine.is_ready:  # noqa: ASYNC110 (the whole test is bounded in time)
                await asyncio.sleep(0.01)
            seqs.append(node.engine.configuration.id.seq)
        with closing(FolderStorage(tmp_path)) as kept:
            assert int.from_bytes(kept.stored[CONFIGURATION_SEQ_KEY], "big") >= seqs[-1]
    assert seqs == sorted(set(seqs))


@live
async def test_a_node_is_started_once() -> None:
    node = Node(alone())
    async with node:
        pass
    with pytest.raises(UsageError):
        await node.start()


@live
async def test_a_stored_number_that_cannot_be_true_is_told_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "ring_seq.kept").write_bytes(b"\xff" * 9)
    async with Node(replace(alone(), state_folder=tmp_path)) as node:
        assert AlarmKind.STORAGE_DAMAGED in [alarm.kind for _, alarm in node.counters.alarms]
        assert len(node.members) >= 1


@live
async def test_a_threaded_node_stops_the_senders_while_its_program_is_blocked() -> None:
    async with ThreadedNode(replace(alone(), inbox_size_max=1 << 20)) as node:
        await node.join("work")
        sending = asyncio.create_task(node.send_many("work", [bytes(1000)] * 20_000))
        while not node.node.inbox.is_behind:  # noqa: ASYNC110 (the whole test is bounded in time)
            await asyncio.sleep(0.01)
        assert len(await stage.messages_of(node, 20_000)) == 20_000
        await sending
