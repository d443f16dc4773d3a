"""Clients of daemons, over unix sockets and TCP, in asyncio and in blocking form; everything in this process."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import (
    SAFE,
    Client,
    ConnectionLost,
    Left,
    Message,
    Node,
    NodeConfig,
    Reason,
    Reconnected,
    UsageError,
    View,
)
from ordercast.api.blocking import BlockingClient
from ordercast.daemon.clients.server import ClientServer
from ordercast.daemon.config.node import ClientsConfig
from ordercast.daemon.host import GroupHost
from ordercast.groups.names import GROUPS_MAX
from ordercast.model.ids import NodeId
from ordercast.session.client_half import RECEIVE_CREDIT
from ordercast.session.daemon_half import SEND_CREDIT
from tests.live.local_daemons import daemons
from tests.live.stage import (
    Daemon,
    alone,
    daemon,
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

# Talking to one another


@pytest.mark.parametrize("way", ["unix", "tcp"])
@live
async def test_clients_of_one_daemon_talk(tmp_path: Path, way: str) -> None:
    async with daemon(tmp_path) as here:
        address = getattr(here, way)
        async with ordercast.connect(address, name="alice") as alice, ordercast.connect(address) as other:
            assert (alice.name, other.name) == ("alice@n1", "c2@n1")
            await joined((alice, other), "orders")
            position = await alice.send("orders", b"hello", SAFE, confirm=True)
            for member in (alice, other):
                message = (await messages_of(member, 1))[0]
                assert message == Message(("orders",), "alice@n1", b"hello", message.position, SAFE)
                assert message.position == position
            await other.send(alice.name, b"private")
            await other.send("orders", b"not for me", self_discard=True)
            await other.leave("orders")
            assert isinstance((await until(other, lambda event: True))[0], Left)
            seen = await until(alice, lambda event: isinstance(event, View))
            assert [event.data for event in seen if isinstance(event, Message)] == [b"private", b"not for me"]
            view = seen[-1]
            assert isinstance(view, View) and (view.reason, view.who) == (Reason.LEAVE, (other.name,))
            assert await alice.groups() == await other.groups() == {"orders": 1}
        await eventually(here.is_empty)


@live
async def test_clients_of_two_daemons_and_an_embedded_node_are_in_one_group(tmp_path: Path) -> None:
    ring = quick_ring()
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(daemon(tmp_path, local(ring)))
        second = await stack.enter_async_context(daemon(tmp_path, local(ring)))
        node = await stack.enter_async_context(Node(local(ring), name="embedded"))
        alice = await stack.enter_async_context(ordercast.connect(first.unix, name="alice"))
        bob = await stack.enter_async_context(ordercast.connect(second.tcp, name="bob"))
        alias = await stack.enter_async_context(ordercast.connect(second.unix, name="alice"))
        everybody = (node, alice, bob, alias)
        assert len({member.name for member in everybody}) == 4
        await eventually(lambda: len(node.host.members) == 3)
        await joined(everybody, "orders")
        for number, member in enumerate(everybody):
            await member.send_many("orders", [b"%d" % number] * 100, SAFE if number % 2 else ordercast.AGREED)
        seen = [await messages_of(member, 400) for member in everybody]
        assert seen[0] == seen[1] == seen[2] == seen[3]

        await stack.enter_async_context(ordercast.connect(first.unix))  # somebody who is in no group
        await alice.close()
        views = [await view_because(member, Reason.DISCONNECT) for member in (node, bob, alias)]
        assert views[0] == views[1] == views[2]
        assert (views[0].who, alice.name) == (("alice@n1",), "alice@n1")


@live
async def test_whole_batches_and_large_messages_pass(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.tcp) as one, ordercast.connect(here.unix) as two:
        await joined((one, two), "orders")
        largest = 16 << 20
        with pytest.raises(UsageError, match="is too large, at most 16,777,"):
            await one.send("orders", bytes(largest))
        payloads = [os.urandom(1000) * 16_000, b"", os.urandom(100) * 160_000, b"end"]
        reading = asyncio.create_task(messages_of(two, 4))
        await one.send_many("orders", payloads)
        assert [message.data for message in await reading] == payloads
        assert [message.data for message in await messages_of(one, 4)] == payloads


# Sending more than is taken


@live
async def test_what_was_sent_before_the_end_is_sent(tmp_path: Path) -> None:
    """A client that closes at once after sending much, with as much on its way to it."""
    for way in ("unix", "tcp"):
        async with daemon(tmp_path) as here, ordercast.connect(here.unix) as reader:
            await reader.join("orders")
            async with ordercast.connect(getattr(here, way)) as writer:
                await writer.join("orders")
                await writer.send_many("orders", [bytes(1000)] * 3000 + [b"end"])
            assert len(await messages_until(reader, b"end")) == 3001


@live
async def test_everybody_who_waits_for_credit_gets_some(tmp_path: Path) -> None:
    """Small messages of many tasks behind one that has used up the credit."""
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as me:
        await me.join("orders")
        large = me.send("orders", bytes(2 * SEND_CREDIT))
        small = [me.send("orders", b"%d" % number) for number in range(100)]
        await asyncio.gather(*map(asyncio.ensure_future, (large, *small)))
        seen = await messages_of(me, 101)
        assert {message.data for message in seen[1:]} == {b"%d" % number for number in range(100)}


@live
async def test_a_client_joins_while_it_has_not_read_for_long(tmp_path: Path) -> None:
    """What it joins comes behind all that it has not read."""
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as reader, ordercast.connect(here.unix) as writer:
        await reader.join("busy")
        size = RECEIVE_CREDIT // 100
        await writer.send_many("busy", [bytes(size)] * 250, confirm=True)
        await reader.join("other")
        await reader.leave("busy")
        await writer.send_many("other", [bytes(size)] * 250)
        seen = await messages_of(reader, 500)
        assert {message.groups for message in seen} == {("busy",), ("other",)}


@live
async def test_whoever_is_cancelled_leaves_the_client_usable(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as me:
        await me.join("check")
        for turns in range(1, 7):
            group = f"g{turns}"
            works: tuple[Any, ...] = (
                me.join(group),
                me.send(group, bytes(SEND_CREDIT), confirm=True),
                me.send_many(group, [bytes(1000)] * 2000, confirm=True),
                me.groups(),
                anext(aiter(me)),
                me.leave(group),
            )
            for work in works:
                task = asyncio.ensure_future(work)
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            assert group not in me.joined
            position = await me.send("check", b"%d" % turns, confirm=True)
            assert (await messages_until(me, b"%d" % turns))[-1].position == position
            assert await me.groups() == {"check": 1}


@live
async def test_confirmed_positions_are_those_at_which_the_messages_came(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as me:
        await me.join("a", "b")

        async def sends(number: int) -> tuple[bytes, object]:
            group, service = "ab"[number % 2], list(ordercast.Service)[1 + number % 5]
            return b"%d" % number, await me.send(group, b"%d" % number, service, confirm=True)

        confirmed = dict(await asyncio.gather(*(asyncio.create_task(sends(number)) for number in range(100))))
        assert {message.data: message.position for message in await messages_of(me, 100)} == confirmed


# In blocking form


def with_daemon(folder: Path, program: Callable[[Daemon], None], config: NodeConfig | None = None) -> None:
    """A blocking program beside a daemon."""

    async def work() -> None:
        async with daemon(folder, config) as here:
            await asyncio.to_thread(program, here)
            await eventually(here.is_empty)

    live(work)()


def test_a_blocking_program(tmp_path: Path) -> None:
    def program(here: Daemon) -> None:
        with ordercast.connect(here.tcp, name="script") as me:
            assert me.name == "script@n1"
            me.join("orders")
            with pytest.raises(UsageError, match="is in the group orders already"):
                me.join("orders")
            view = me.receive(10)
            assert isinstance(view, View) and view.members == ("script@n1",)
            with pytest.raises(TimeoutError):
                me.receive(0.01)
            position = me.send("orders", b"one", confirm=True)
            me.send_many("orders", [b"two", b"three"])
            message = me.receive()
            assert isinstance(message, Message) and (message.data, message.position) == (b"one", position)
            found = []
            for event in me:
                assert isinstance(event, Message)
                found.append(event.data)
                if len(found) == 2:
                    break
            assert found == [b"two", b"three"]
            assert me.groups() == {"orders": 1}
            me.leave("orders")
            assert isinstance(me.receive(10), Left)
        assert me.receive() is None
        with pytest.raises(UsageError, match="the client is closed"):
            me.send("orders", b"too late")

    with_daemon(tmp_path, program)


def test_several_threads_use_one_blocking_client(tmp_path: Path) -> None:
    def program(here: Daemon) -> None:
        with ordercast.connect(here.unix) as me:
            me.join("orders")
            failures: list[BaseException] = []

            def sends(thread: int) -> None:
                try:
                    for number in range(200):
                        me.send("orders", b"%d %d" % (thread, number), confirm=number % 50 == 0)
                except BaseException as error:
                    failures.append(error)

            threads = [threading.Thread(target=sends, args=(number,)) for number in range(5)]
            for thread in threads:
                thread.start()
            found: list[bytes] = []
            while len(found) < 1000:
                event = me.receive(30)
                if isinstance(event, Message):
                    found.append(event.data)
            for thread in threads:
                thread.join()
            assert not failures
            for number in range(5):
                own = [data for data in found if data.startswith(b"%d " % number)]
                assert own == [b"%d %d" % (number, each) for each in range(200)]

    with_daemon(tmp_path, program)


def test_a_blocking_reader_is_woken_when_another_thread_closes(tmp_path: Path) -> None:
    def program(here: Daemon) -> None:
        with ordercast.connect(here.unix) as me:
            seen: list[object] = []
            reader = threading.Thread(target=lambda: seen.append(me.receive()))
            reader.start()
            me.groups()
            me.close()
            reader.join(30)
            assert seen == [None]

    with_daemon(tmp_path, program)


# Names, and who may connect


@live
async def test_a_name_is_in_use_until_its_client_is_gone(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here:
        async with ordercast.connect(here.unix, name="alice") as alice:
            await alice.join("orders")
            with pytest.raises(UsageError, match="the name 'alice' is in use at n1: choose another"):
                await ordercast.connect(here.tcp, name="alice").__aenter__()
        for _ in range(20):
            async with ordercast.connect(here.unix, name="alice") as alice:
                await alice.join("orders")
                assert (await view_with(alice, alice.name)).reason is Reason.JOIN
        with pytest.raises(UsageError, match="client name"):
            ordercast.connect(here.unix, name="a b")
        await eventually(here.is_empty)


@live
async def test_the_daemon_finds_a_name_that_is_free(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, AsyncExitStack() as stack:
        for name in ("c2", "c3"):
            await stack.enter_async_context(ordercast.connect(here.unix, name=name))
        names = {(await stack.enter_async_context(ordercast.connect(here.unix))).name for _ in range(5)}
        assert len(names) == 5


@live
async def test_no_more_clients_than_may_be(tmp_path: Path) -> None:
    async with daemon(tmp_path, sessions_max=2) as here, ordercast.connect(here.unix) as one:
        async with ordercast.connect(here.tcp):
            for _ in range(3):  # those who are sent away are not counted
                with pytest.raises(UsageError, match="as many clients as it may: raise sessions_max"):
                    await ordercast.connect(here.unix).__aenter__()
        await eventually(lambda: len(here.server.connections) == 1)
        async with ordercast.connect(here.unix) as two:
            await joined((one, two), "orders")


@live
async def test_the_unix_socket_has_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    for mode in (0o600, 0o660, 0o666):
        async with daemon(tmp_path / f"{mode:o}", mode=mode) as here:
            path = tmp_path / f"{mode:o}" / "n1.sock"
            assert here.unix == f"unix://{path}"
            assert stat.S_IMODE(path.stat().st_mode) == mode
        assert not path.exists()


@live
async def test_a_socket_that_nobody_listens_to_is_replaced_and_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "n1.sock"
    async with GroupHost(alone()) as host:
        async with ClientServer(host, ClientsConfig(tmp_path)):
            os.link(path, tmp_path / "kept")
        (tmp_path / "kept").rename(path)  # as a daemon that was killed leaves it
        async with ClientServer(host, ClientsConfig(tmp_path)) as server:
            assert len(server.addresses) == 1  # TCP is served only where it is asked for
            with pytest.raises(UsageError, match="another daemon serves clients at"):
                await ClientServer(host, ClientsConfig(tmp_path)).__aenter__()
            async with ordercast.connect(str(server.addresses[0])) as client:
                await client.join("orders")
        path.write_text("a file")
        with pytest.raises(UsageError, match="is in the way, and not a socket"):
            await ClientServer(host, ClientsConfig(tmp_path)).__aenter__()
        assert path.read_text() == "a file"
        with pytest.raises(UsageError, match=r"clients cannot be served at .*; set folder in \[clients\]"):
            await ClientServer(host, ClientsConfig(path / "below")).__aenter__()


@live
async def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here:
        port = int(here.tcp.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"port {port}: the port is taken by another process"):
            await ClientServer(here.host, ClientsConfig(tmp_path / "other", port=port)).__aenter__()
        assert not (tmp_path / "other" / "n1.sock").exists()


@live
async def test_where_no_daemon_is_it_is_said_what_was_tried(tmp_path: Path) -> None:
    silent = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    wrong = {
        f"unix://{tmp_path}/none.sock": r"none\.sock: No such file or directory",
        f"tcp://127.0.0.1:{port}": f"tcp://127.0.0.1:{port}: the connection to the daemon broke: ",
        f"unix://{tmp_path}/a.sock unix://{tmp_path}/b.sock": r"a\.sock: .*; .*b\.sock: ",
        "tcp://127.0.0.1": "write tcp://HOST:PORT",
        "127.0.0.1:4700": "write tcp://127.0.0.1:4700",
    }
    for address, sentence in wrong.items():
        with pytest.raises(UsageError if "write" in sentence else ordercast.Unreachable, match=sentence):
            await ordercast.connect(address).__aenter__()
    with pytest.raises(UsageError, match="it is wait, drop, disconnect or hold"):
        ordercast.connect(slow="never")  # type: ignore[arg-type]
    silent.close()
    await silent.wait_closed()


@live
async def test_the_first_address_that_answers_is_taken(tmp_path: Path) -> None:
    nowhere = f"unix://{tmp_path}/none.sock"
    async with daemon(tmp_path) as here, ordercast.connect(f"{nowhere} {here.tcp} {here.unix}") as me:
        assert str(me.address) == here.tcp


@live
async def test_clients_ask_wrongly_and_stay_connected(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix, name="me") as me:
        await me.join("here")
        wrong: list[tuple[Any, str]] = [
            (me.join("here"), "me@n1 is in the group here already"),
            (me.join(*(f"g{number}" for number in range(GROUPS_MAX + 1))), "at most 100 groups"),
            (me.leave("other"), "me@n1 is not in the group other"),
            (me.send("a b", b""), "has ' ' in it"),
            (me.send([f"g{number}" for number in range(GROUPS_MAX + 1)], b""), "at most 100 groups, not to 101"),
            (me.send("here", bytes(17 << 20)), "is too large"),
        ]
        for work, sentence in wrong:
            with pytest.raises(UsageError, match=sentence):
                await work
        await me.send("here", b"fine")
        assert (await messages_of(me, 1))[0].data == b"fine"


# The end


async def lost(client: Client, sentence: str) -> None:
    """The stream ends with the reason, and so does everything else."""
    with pytest.raises(ConnectionLost, match=sentence):
        async for _ in client:
            pass
    for work in (client.send("orders", b""), client.join("new"), client.leave("orders"), client.groups()):
        with pytest.raises(ConnectionLost):
            await work


@live
async def test_a_daemon_that_ends_in_order_tells_its_clients(tmp_path: Path) -> None:
    async with AsyncExitStack() as outer:
        async with daemon(tmp_path) as here:
            client = await outer.enter_async_context(ordercast.connect(here.unix, name="alice"))
            await client.join("orders")
            await client.send("orders", b"before the end", confirm=True)
        assert (await messages_of(client, 1))[0].data == b"before the end"
        await lost(client, "the daemon n1 is being shut down")
        assert here.is_empty()


@live
async def test_a_daemon_whose_engine_fails_tells_its_clients_why(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here, ordercast.connect(here.unix) as client:
        await client.join("orders")
        waiting = asyncio.create_task(client.send_many("orders", [bytes(1000)] * 10_000, confirm=True))
        await asyncio.sleep(0)
        here.host.on_failure(OSError("no space left"))
        with pytest.raises(ConnectionLost, match="no space left"):
            await waiting
        await lost(client, "no space left")


@live
async def test_closing_twice_and_reading_after_the_end(tmp_path: Path) -> None:
    async with daemon(tmp_path) as here:
        async with ordercast.connect(here.unix) as client:
            await client.join("orders")
            await client.send("orders", b"kept", confirm=True)
            await client.close()
        await client.close()
        assert [event.data async for event in client if isinstance(event, Message)] == [b"kept"]
        with pytest.raises(ConnectionLost, match="there is no connection"):
            await client.send("orders", b"")


# Connecting again


def place(node: int = 7, **options: Any) -> NodeConfig:
    """A daemon that is found again where it was."""
    return local(quick_ring(), node=NodeId(node), **options)


@live
async def test_a_client_that_reconnects_is_in_its_groups_again_and_says_what_it_knows(tmp_path: Path) -> None:
    config = place()
    async with AsyncExitStack() as outer:
        async with daemon(tmp_path, config) as here:
            me = await outer.enter_async_context(ordercast.connect(here.unix, name="alice", reconnect=True))
            await me.join(*(f"g{number}" for number in range(GROUPS_MAX)))
            await me.join("orders", "left")
            await me.leave("left")
            position = await me.send("orders", b"before", confirm=True)
            here.host.on_failure(OSError("for a test"))
        works: list[Any] = [me.join("new"), me.leave("g0"), me.send("new", b"at last")]
        works += [me.join("twice"), me.leave("twice"), me.join("twice")]
        while_gone = [asyncio.create_task(work) for work in works]
        listing = asyncio.create_task(me.groups())
        await asyncio.sleep(0)
        async with daemon(tmp_path, replace(config)) as here:
            await asyncio.gather(*while_gone)
            assert len(await listing) <= GROUPS_MAX + 2
            seen = await until(me, lambda event: isinstance(event, Reconnected))
            again = seen[-1]
            assert isinstance(again, Reconnected)
            assert (again.name, again.last, again.unconfirmed) == ("alice@n7", position, 0)
            assert "for a test" in again.why
            assert (
                set(again.joined)
                == me.joined
                == {f"g{number}" for number in range(1, 100)} | {"orders", "new", "twice"}
            )
            views = await until(me, lambda event: isinstance(event, Message))
            members = {event.group: event.members for event in views if isinstance(event, View)}
            assert set(members.values()) == {("alice@n7",)} and set(members) <= me.joined
            await eventually(lambda: len(here.host.named.table) == len(me.joined))
            await me.send("orders", b"after", confirm=True)
            await messages_until(me, b"after")
            await me.close()
            await eventually(here.is_empty)


@live
async def test_what_was_not_confirmed_when_the_connection_broke_is_counted(tmp_path: Path) -> None:
    config = place()
    async with AsyncExitStack() as outer:
        async with daemon(tmp_path, config) as here:
            me = await outer.enter_async_context(ordercast.connect(here.unix, reconnect=True))
            async with Node(local(config.ring, inbox_size_max=1000), name="stubborn") as stubborn:
                await eventually(lambda: len(stubborn.host.members) == 2)
                await stubborn.join("orders")
                sending = asyncio.create_task(me.send_many("orders", [bytes(10_000)] * 500, confirm=True))
                await eventually(lambda: stubborn.inbox.is_behind)  # so that not all can be confirmed
                here.host.on_failure(OSError("for a test"))
                with pytest.raises(ConnectionLost, match="for a test"):
                    await sending
                stubborn.host.on_failure(OSError("over"))
        async with daemon(tmp_path, replace(config, ring=quick_ring())):
            again = (await until(me, lambda event: isinstance(event, Reconnected)))[-1]
            assert isinstance(again, Reconnected) and 0 < again.unconfirmed <= 500


@live
async def test_who_reconnects_finds_a_daemon_that_is_new_and_passes_over_one_where_its_name_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERCAST_FOLDER", str(tmp_path))
    told: list[str] = []
    async with AsyncExitStack() as outer:
        async with daemon(tmp_path, place()) as here:
            me = await outer.enter_async_context(ordercast.connect(name="alice", reconnect=True, on_lost=told.append))
            assert me.name == "alice@n7"
            second = await outer.enter_async_context(daemon(tmp_path, place(8)))
            await outer.enter_async_context(ordercast.connect(second.unix, name="alice"))
            with pytest.raises(UsageError, match="is in use at n8"):
                await outer.enter_async_context(ordercast.connect(second.unix, name="alice"))
            await outer.enter_async_context(daemon(tmp_path, place(9)))
            here.host.on_failure(OSError("for a test"))
        again = (await until(me, lambda event: isinstance(event, Reconnected)))[-1]
        assert isinstance(again, Reconnected) and again.name == me.name == "alice@n9"
        assert told == [again.why]


@pytest.mark.parametrize("form", ["asyncio", "blocking"])
@live
async def test_whoever_closes_while_it_looks_for_a_daemon_is_done_at_once(tmp_path: Path, form: str) -> None:
    async with daemon(tmp_path) as here:
        connecting = ordercast.connect(here.unix, reconnect=True)
        me: Client | BlockingClient
        me = await connecting.__aenter__() if form == "asyncio" else await asyncio.to_thread(connecting.__enter__)
    if isinstance(me, BlockingClient):
        await asyncio.to_thread(me.close)
        assert await asyncio.to_thread(me.receive) is None
        return
    await eventually(lambda: me.address is not None)
    waiting = [asyncio.create_task(work) for work in (me.send("orders", b""), me.join("orders"), me.groups())]
    await asyncio.sleep(0)
    await me.close()
    for task in waiting:
        with pytest.raises(ConnectionLost):
            await task
    assert [event async for event in me] == []


@live
async def test_an_operator_sees_the_clients_of_a_daemon(tmp_path: Path) -> None:
    async with (
        daemons(tmp_path, "n1") as at,
        ordercast.connect(at["n1"], name="alice", slow="drop") as alice,
        ordercast.connect(at["n1"], name="operator") as operator,
    ):
        await alice.join("orders")
        asking = asyncio.create_task(operator.manage({"do": "clients"}))
        await alice.send_many("orders", [b"buy"] * 50, confirm=True)
        told = await asking
        seen, asked = told["clients"]
        assert (told["daemon"], seen["name"], asked["name"]) == ("n1", "alice@n1", "operator@n1")
        assert (seen["groups"], seen["policy"], seen["sent"], seen["given"]) == (["orders"], "drop", 50, 50)
        assert 0 <= seen["sent_per_second"] <= 50 and not seen["is_holding"]
        assert seen["place"].startswith("user ") and seen["seconds"] > 0 and seen["waiting_max"] > 0
