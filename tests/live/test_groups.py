"""Embedded nodes with named groups, on the loopback interface of this machine."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from ordercast import (
    AGREED,
    CAUSAL,
    FIFO,
    RELIABLE,
    SAFE,
    Left,
    Message,
    Node,
    NodeFailed,
    Reason,
    Service,
    ThreadedNode,
    Transition,
    UsageError,
    View,
)
from ordercast.api.member import Member
from ordercast.daemon import participant
from ordercast.daemon.storage import FolderStorage
from ordercast.groups.envelope import Head, Kind, encode_head
from ordercast.groups.layer import disconnect_payload, join_payload, leave_payload
from ordercast.groups.names import GROUPS_MAX, daemon_of
from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import AlarmKind
from ordercast.model.events import Batch
from ordercast.model.ids import MILLISECOND, NodeId
from tests.live.stage import (
    alone,
    entered,
    eventually,
    joined,
    live,
    local,
    messages_of,
    messages_until,
    quick_ring,
    until,
    view_because,
    view_with,
)

# Groups


@live
async def test_everybody_sees_who_joins_and_leaves_and_why() -> None:
    async with AsyncExitStack() as stack:
        one, two, three = await entered(stack, quick_ring(), "a", "b", "c")
        for node in (one, two, three):
            await node.join("orders")
        first = await view_with(one, one.name)
        assert (first.reason, first.who, first.transitional) == (Reason.JOIN, (one.name,), (one.name,))
        second = await view_with(one, one.name, two.name)
        assert (second.reason, second.who, second.transitional) == (Reason.JOIN, (two.name,), (one.name,))
        same = await view_with(two, one.name, two.name)
        assert (same.id, same.transitional) == (second.id, (two.name,))
        for node in (one, two, three):
            await view_with(node, one.name, two.name, three.name)

        await two.leave("orders")
        assert isinstance((await until(two, lambda event: isinstance(event, Left)))[-1], Left)
        views = [await view_because(node, Reason.LEAVE) for node in (one, three)]
        assert views[0] == views[1]
        assert (views[0].members, views[0].who) == (tuple(sorted((one.name, three.name))), (two.name,))
        assert views[0].transitional == views[0].members

        await three.close()
        gone = await view_because(one, Reason.NETWORK)
        assert (gone.members, gone.who, gone.transitional) == ((one.name,), (), (one.name,))
        assert gone.why
        assert await one.groups() == {"orders": 1}


@live
async def test_a_node_that_fails_is_signalled_and_then_gone_from_the_view() -> None:
    async with AsyncExitStack() as stack:
        one, two = await entered(stack, quick_ring(), "a", "b")
        await joined((one, two), "orders")
        two.host.on_failure(RuntimeError("for a test"))
        with pytest.raises(NodeFailed, match="for a test"):
            await two.send("orders", b"nobody hears this")
        seen = await until(one, lambda event: isinstance(event, View))
        assert isinstance(seen[-2], Transition) and seen[-2].remaining == (one.name,)
        view = seen[-1]
        assert isinstance(view, View) and (view.members, view.reason) == ((one.name,), Reason.NETWORK)
        await one.send("orders", b"still here", SAFE)
        assert (await messages_of(one, 1))[0].data == b"still here"


@live
async def test_nodes_that_meet_tell_each_other_who_is_in_which_group() -> None:
    ring = quick_ring()
    async with Node(local(ring), name="a") as one:
        await one.join("orders", "mine")
        await view_with(one, one.name)
        async with Node(local(ring), name="b") as two:
            await two.join("orders", "theirs")
            view = await view_with(one, one.name, two.name)
            assert (view.group, view.transitional) == ("orders", (one.name,))
            assert await two.groups() == await one.groups() == {"mine": 1, "orders": 2, "theirs": 1}


def twins_told_at(node: Node) -> list[str]:
    return [alarm.text for _, alarm in node.host.counters.alarms if alarm.kind is AlarmKind.TWIN_NAMES]


@live
async def test_nodes_of_one_name_are_told_of_at_all_of_them() -> None:
    ring = quick_ring()
    async with Node(local(ring, name="same")) as one, Node(local(ring, name="same")) as two:
        await eventually(lambda: bool(twins_told_at(one) and twins_told_at(two)))
        (text,) = twins_told_at(one)
        assert text.startswith("2 processes are called same: ")
        assert twins_told_at(two) == [text]


@live
async def test_what_a_daemon_forges_is_ignored_by_all_alike_and_counted() -> None:
    ring = quick_ring()
    async with Node(local(ring), name="a") as one, Node(local(ring), name="b") as two:
        await joined((one, two), "orders")
        number, forger = two.host.open_session(two, "forger")
        hostile = Head(Kind.JOIN, "\x1b]0;PWNED\x07@n2", ("orders",))
        forged = (
            encode_head(hostile),
            join_payload("ghost@" + daemon_of(one.name), ["orders"]),
            leave_payload(one.name, ["orders"]),
            disconnect_payload(one.name),
            join_payload(forger, ["orders"]),
        )
        two.host.request(number, forged)
        view = await view_with(one, one.name, two.name, forger)
        assert await two.members("orders") == view.members == tuple(sorted((one.name, two.name, forger)))
        for node in (one, two):
            refused = {why: count for why, count in node.host.counters.refused.items() if "group" in why}
            assert refused == {
                "a group message whose head is wrong": 1,
                "a change of groups in the name of another daemon's client": 3,
            }


# Messages


@live
async def test_a_message_to_several_groups_comes_once_and_in_the_same_place_everywhere() -> None:
    async with AsyncExitStack() as stack:
        one, two, three = await entered(stack, quick_ring(), "a", "b", "c")
        await joined((one, two), "red")
        await joined((two, three), "blue")
        await one.send(("red", "blue", "red"), b"both")
        await one.send("red", b"end")
        await one.send("blue", b"end")
        seen = [await messages_until(node, b"end") for node in (one, two, three)]
        assert [[message.data for message in messages] for messages in seen] == [[b"both", b"end"]] * 3
        assert len({messages[0] for messages in seen}) == 1
        assert seen[0][0].groups == ("red", "blue")
        assert seen[0][0].sender == one.name


@live
async def test_a_message_to_one_member_by_name_is_private() -> None:
    async with AsyncExitStack() as stack:
        one, two, three = await entered(stack, quick_ring(), "a", "b", "c")
        await joined((one, two, three), "all")
        await one.send(two.name, b"for you alone")
        await one.send((three.name, "all"), b"once")
        await one.send("nobody@nowhere", b"lost")
        await one.send("all", b"end")
        seen = {node.name: [m.data for m in await messages_until(node, b"end")] for node in (one, two, three)}
        assert seen == {
            one.name: [b"once", b"end"],
            two.name: [b"for you alone", b"once", b"end"],
            three.name: [b"once", b"end"],
        }


@live
async def test_a_group_is_open_to_senders_who_are_not_in_it() -> None:
    async with AsyncExitStack() as stack:
        one, two = await entered(stack, quick_ring(), "a", "b")
        await one.join("orders")
        position = await two.send("orders", b"from outside", confirm=True)
        message = (await messages_of(one, 1))[0]
        assert (message.sender, message.position) == (two.name, position)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(aiter(two)), 0.01)


@live
async def test_whoever_does_not_want_its_own_message_back_does_not_get_it() -> None:
    async with AsyncExitStack() as stack:
        one, two = await entered(stack, quick_ring(), "a", "b")
        await joined((one, two), "orders")
        position = await one.send("orders", b"for the others", self_discard=True, confirm=True)
        await one.send("orders", b"for all")
        assert [message.data for message in await messages_until(one, b"for all")] == [b"for all"]
        seen = await messages_until(two, b"for all")
        assert [(message.data, message.position == position) for message in seen] == [
            (b"for the others", True),
            (b"for all", False),
        ]


@live
async def test_every_service_is_served_and_told() -> None:
    services = (RELIABLE, FIFO, CAUSAL, AGREED, SAFE)
    async with AsyncExitStack() as stack:
        nodes = await entered(stack, quick_ring(), "a", "b")
        await joined(nodes, "orders")
        for service in services:
            await nodes[0].send("orders", service.name.encode(), service)
        for node in nodes:
            seen = await messages_of(node, len(services))
            assert [(message.data.decode(), message.service) for message in seen] == [(s.name, s) for s in services]


@live
async def test_confirmed_positions_are_those_at_which_everybody_has_the_message() -> None:
    """Whatever services are mixed, and however many tasks send at once."""
    async with AsyncExitStack() as stack:
        nodes = await entered(stack, quick_ring(), "a", "b")
        await joined(nodes, "orders")
        services = (SAFE, RELIABLE, AGREED, FIFO)

        async def sends(node: Node, number: int) -> tuple[bytes, object]:
            data = b"%s %d" % (node.name.encode(), number)
            return data, await node.send("orders", data, services[number % 4], confirm=True)

        confirmed = dict(await asyncio.gather(*(sends(node, number) for number in range(40) for node in nodes)))
        for node in nodes:
            seen = await messages_of(node, 80)
            assert {message.data: message.position for message in seen} == confirmed
            assert [message.position for message in seen] == sorted(message.position for message in seen)
        many = await nodes[0].send_many("orders", [b"first", b"last"], confirm=True)
        assert (await messages_until(nodes[1], b"last"))[-1].position == many


@live
async def test_the_same_stream_comes_in_batches() -> None:
    async with Node(alone()) as node:
        await node.join("orders")
        await node.send_many("orders", [b"%d" % number for number in range(1000)])
        found: list[Message] = []
        async for piece in node.batches():
            if isinstance(piece, Batch):
                found += piece
            if len(found) == 1000:
                break
        assert [message.data for message in found] == [b"%d" % number for number in range(1000)]
        assert len({message.position for message in found}) == 1000


@live
async def test_a_message_of_the_largest_size_passes_and_one_byte_more_does_not() -> None:
    async with AsyncExitStack() as stack:
        one, two = await entered(stack, quick_ring(message_size_max=100_000, queue_size_max=200_000), "a", "b")
        await joined((one, two), "orders")
        with pytest.raises(UsageError, match=r"at most 99,\d+ go to these groups") as refused:
            await one.send("orders", bytes(100_000))
        fits = int(str(refused.value).partition("at most ")[2].split()[0].replace(",", ""))
        with pytest.raises(UsageError, match=f"{fits + 1:,} bytes is too large"):
            await one.send_many("orders", [b"", bytes(fits + 1)])
        await one.send("orders", bytes(fits))
        await one.send("orders", b"")
        assert [len(message.data) for message in await messages_of(two, 2)] == [fits, 0]


# What is wrong is said in a sentence, and changes nothing


@live
async def test_what_is_asked_for_wrongly_is_refused_in_a_sentence() -> None:
    async with Node(alone(), name="me") as node:
        await node.join("here")
        wrong: list[tuple[Any, str]] = [
            (node.join(), "name at least one group"),
            (node.join("here"), f"{node.name} is in the group here already"),
            (node.join("new", "here"), "is in the group here already"),
            (node.join("new", "a b"), "has ' ' in it"),
            (node.join(""), "at least one character"),
            (node.join("x" * 65), "at most 64"),
            (node.join("a@b"), "has '@' in it"),
            (node.join(cast(str, 7)), "is a str, not int"),
            (node.join(*(f"g{number}" for number in range(GROUPS_MAX + 1))), "at most 100 groups"),
            (node.leave("new"), f"{node.name} is not in the group new"),
            (node.leave(), "name at least one group"),
            (node.send("a b", b""), "has ' ' in it"),
            (node.send((), b""), "needs a group to go to"),
            (node.send([f"g{number}" for number in range(GROUPS_MAX + 1)], b""), "at most 100 groups, not to 101"),
            (node.send("here", cast(bytes, "text")), "bytes, not str: encode it first"),
            (node.send("here", b"", cast(Service, 77)), "not a service"),
            (node.send("here", b"", Service.UNRELIABLE), "not a service"),
            (node.send_many("here", cast(list[bytes], b"text")), "give a list of bytes"),
        ]
        for work, sentence in wrong:
            with pytest.raises(UsageError, match=sentence):
                await work
        await node.join("new")
        await node.send_many("here", [])
        await node.send("here", b"fine")
        assert (await messages_of(node, 1))[0].data == b"fine"


@live
async def test_a_bad_name_is_refused_before_anything_is_open() -> None:
    with pytest.raises(UsageError, match="client name"):
        await Node(alone(), name="a b").start()
    async with Node(alone(), name="x" * 32) as node:
        assert node.name.startswith("x" * 32 + "@")


@pytest.mark.parametrize("kind", [Node, ThreadedNode])
@live
async def test_whoever_is_not_running_says_so_and_remembers_nothing(kind: type[Node | ThreadedNode]) -> None:
    node = kind(alone())

    async def refused() -> None:
        for work in (node.join("a"), node.leave("a"), node.send("a", b""), node.groups()):
            with pytest.raises(UsageError, match="not running"):
                await work

    await refused()
    async with node:
        await node.join("a")
    assert node.joined == {"a"}
    await refused()


@live
async def test_whoever_waits_while_the_node_is_closed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant, "LEAVE_PATIENCE_S", 0.2)
    async with AsyncExitStack() as stack:
        one, two = await entered(stack, quick_ring(), "a", "b", inbox_size_max=10_000)
        await two.join("orders")  # and reads nothing: everybody waits
        sending = asyncio.create_task(one.send_many("orders", [bytes(10_000)] * 20_000))
        while not two.inbox.is_behind:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        joining = asyncio.create_task(one.join("other"))
        await asyncio.sleep(0)
        await one.close()
        for waiting in (sending, joining):
            with pytest.raises(NodeFailed, match="has left"):
                await waiting


@live
async def test_what_waits_when_the_node_is_closed_is_given_up_and_the_leave_is_orderly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ring = quick_ring(queue_size_max=20_000, message_size_max=10_000, visit_max=2, window=6)
    async with AsyncExitStack() as stack:
        one, two = await entered(stack, ring, "a", "b", inbox_size_max=10_000)
        await joined((one, two), "orders")
        sending = asyncio.create_task(one.send_many("orders", [bytes(1000)] * 1000, self_discard=True))
        await eventually(lambda: two.inbox.is_behind and one.host.requests_waiting > 0)
        closing = asyncio.create_task(one.close())
        seen = await until(two, lambda event: isinstance(event, View))
        await closing
        with pytest.raises(NodeFailed, match="has left"):
            await sending
        view = seen[-1]
        assert isinstance(view, View) and view.why == ChangeReason.LEFT.text
        assert [event async for event in one] == []
        assert not caplog.records  # nothing was handed to an engine that leaves


# Cancellation


async def is_usable(member: Member) -> None:
    if "check" not in member.joined:
        await member.join("check")
    await member.send("check", b"is anything lost?", SAFE, confirm=True)
    await messages_until(member, b"is anything lost?")


@pytest.mark.parametrize("kind", [Node, ThreadedNode])
@live
async def test_whoever_is_cancelled_leaves_everything_usable(kind: type[Node | ThreadedNode]) -> None:
    """After any number of turns of the event loop."""
    async with kind(alone()) as node:
        for turns in range(1, 7):
            group = f"g{turns}"
            for work in (
                node.join(group),
                node.send(group, b"perhaps", confirm=True),
                node.send_many(group, [b"perhaps"] * 1000, SAFE, confirm=True),
                anext(aiter(node)),
            ):
                task = asyncio.ensure_future(work)
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            assert group in node.joined
            leaving = asyncio.create_task(node.leave(group))
            for _ in range(turns):
                await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            assert group not in node.joined
            await node.join(group)
            await is_usable(node)
        assert await node.groups() == {**{f"g{turns}": 1 for turns in range(1, 7)}, "check": 1}


@pytest.mark.parametrize("kind", [Node, ThreadedNode])
@live
async def test_a_start_that_is_cancelled_leaves_nothing_open(
    kind: type[Node | ThreadedNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, goes_on = threading.Event(), threading.Event()

    class Slow(FolderStorage):
        def __init__(self, folder: Path, rings: Sequence[str]) -> None:
            began.set()
            goes_on.wait()
            super().__init__(folder, rings)

    monkeypatch.setattr(participant, "FolderStorage", Slow)
    config = local(quick_ring(), node=NodeId(43), state_folder=tmp_path)
    descriptors = len(os.listdir("/proc/self/fd"))
    starting = asyncio.create_task(kind(config).start())
    await asyncio.to_thread(began.wait)
    starting.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await asyncio.to_thread(lambda: FolderStorage(tmp_path).close())  # nobody else has it
    assert len(os.listdir("/proc/self/fd")) == descriptors


@live
async def test_joins_and_leaves_that_overtake_each_other_all_return() -> None:
    async with AsyncExitStack() as stack:
        one, two = await entered(stack, quick_ring(), "a", "b")
        works = [one.join("g"), one.leave("g"), one.join("g"), one.leave("g"), one.join("g")]
        await asyncio.gather(*(asyncio.create_task(work) for work in works))
        seen = await until(one, lambda event: isinstance(event, View))
        seen += await until(one, lambda event: isinstance(event, View))
        seen += await until(one, lambda event: isinstance(event, View))
        assert [type(event) for event in seen] == [View, Left, View, Left, View]
        assert await two.groups() == {"g": 1}


# Load


@live
async def test_several_tasks_send_at_once_and_each_keeps_its_order() -> None:
    async with AsyncExitStack() as stack:
        nodes = await entered(stack, quick_ring(queue_size_max=50_000, message_size_max=10_000), "a", "b")
        await joined(nodes, "orders")

        async def sends(node: Node, task: int) -> None:
            for number in range(0, 500, 50):
                await node.send_many("orders", [b"%d %d" % (task, number + more) for more in range(50)])

        sending = asyncio.gather(*(sends(nodes[task % 2], task) for task in range(8)))
        seen = await asyncio.gather(*(messages_of(node, 4000) for node in nodes))
        await sending
        assert seen[0] == seen[1]
        for task in range(8):
            own = [message.data for message in seen[0] if message.data.startswith(b"%d " % task)]
            assert own == [b"%d %d" % (task, number) for number in range(500)]


@live
async def test_senders_wait_for_a_reader_who_is_behind_and_nothing_is_lost() -> None:
    ring = quick_ring(queue_size_max=100_000, message_size_max=10_000)
    async with AsyncExitStack() as stack:
        one, two = await entered(stack, ring, "a", "b", inbox_size_max=100_000)
        await joined((one, two), "orders")
        sending = asyncio.create_task(one.send_many("orders", [bytes(1000)] * 5000, self_discard=True))
        while not two.inbox.is_behind:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert not sending.done()
        assert len(await messages_of(two, 5000)) == 5000
        await sending
        assert two.inbox.size == 0


@live
async def test_a_threaded_node_joins_while_its_program_has_not_read_for_long() -> None:
    ring = quick_ring()
    async with Node(local(ring), name="a") as one, ThreadedNode(local(ring), name="b") as two:
        await two.join("busy")
        await view_with(two, two.name)
        while len(one.host.members) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await one.send_many("busy", [bytes(10_000)] * 300, confirm=True)  # more than is carried over ahead
        await two.join("other")
        assert len(await messages_of(two, 300)) == 300
        await view_with(two, two.name, group="other")
        await two.leave("busy", "other")
        position = await two.send("busy", b"x", confirm=True)
        assert position is not None


@live
async def test_a_threaded_node_that_ends_by_itself_says_why_to_the_program() -> None:
    async with ThreadedNode(local(quick_ring(), inbox_size_max=1000, stall_ns=100 * MILLISECOND)) as node:
        await node.join("orders")
        with pytest.raises(NodeFailed, match="took none of its deliveries"):
            while True:
                await node.send_many("orders", [bytes(10_000)] * 10)
        with pytest.raises(NodeFailed, match="took none of its deliveries"):
            async for _ in node:
                pass
        with pytest.raises(NodeFailed, match="took none of its deliveries"):
            await node.join("other")
