"""Rights of clients at a live daemon: what each may do, what the others are told, and what a reload takes away."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import socket
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import ordercast
from ordercast import ConnectionLost, Left, UsageError
from ordercast.daemon.config.file import ConfigError, read_cluster
from ordercast.replicated import Counter, Majority, Replica
from ordercast.session.frames import Hello, SlowPolicy, encode_document, encode_hello, encode_names
from ordercast.session.pieces import FrameKind
from ordercast.session.rights import ANYBODY, AccessRule, Rights
from tests.live.stage import eventually, joined, live, messages_until, until
from tests.live.test_tls import client_file, made, serving

ORDERS = AccessRule(
    ("cert:orders-*",), names=("orders-*",), join=("orders", "prices/*"), send=("orders",), sessions=2, memberships=3
)
CLERK = AccessRule(("cert:clerk",), names=("*",), join=("*",), send=("*",), replicate=("accounts",), memory=1 << 20)


@live
async def test_each_client_does_what_it_may_and_is_told_what_it_may_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certs = made(tmp_path / "certs")
    orders, clerk, other = (client_file(certs, name) for name in ("orders-1", "clerk", "other"))
    caplog.set_level(logging.INFO, "ordercast.audit")
    async with serving(tmp_path, certs, ORDERS, CLERK) as (server, address):

        def connect(file: Path, name: str, slow: str = "wait") -> ordercast.Connecting:
            return ordercast.connect(address, name=name, credentials=file, slow=slow)  # type: ignore[arg-type]

        for file, name, slow, sentence in (
            (other, "x", "wait", r'cert:other has no rights here: write who = \["cert:other"\] in \[\[rights\]\]'),
            (orders, "boss", "wait", r'cert:orders-1 may not call itself boss: write names = \["boss"\]'),
            (clerk, "x", "hold", "cert:clerk may not have everybody wait for it"),
        ):
            with pytest.raises(UsageError, match=sentence):
                await connect(file, name, slow).__aenter__()
        async with connect(orders, "orders-a") as me, connect(clerk, "clerk") as boss:
            await joined((me, boss), "orders")
            with pytest.raises(UsageError, match=r'cert:orders-1 may not join wages: write join = \["wages"\]'):
                await me.join("wages")
            with pytest.raises(UsageError, match="cert:orders-1 may not send to wages"):
                await me.send("wages", b"1", confirm=True)
            await me.send("wages", b"2")  # nobody waits for it: the next who sends there is told
            await me.send("orders", b"in between", confirm=True)
            with pytest.raises(UsageError, match="cert:orders-1 may not send to wages"):
                await me.send("wages", b"3")
            with pytest.raises(UsageError, match="cert:orders-1 may not send to clerk@n1"):
                await me.send("clerk@n1", b"private", confirm=True)
            await boss.send(me.name, b"private", confirm=True)
            await me.join("prices/a", "prices/b")
            with pytest.raises(UsageError, match="the clients of cert:orders-1 are in 3 groups, and may be in 3"):
                await me.join("prices/c")
            async with connect(orders, ""):  # the daemon finds it a name
                with pytest.raises(UsageError, match="cert:orders-1 has 2 sessions at this daemon, as many as it may"):
                    await connect(orders, "orders-c").__aenter__()
            assert [m.data for m in await messages_until(boss, b"in between")] == [b"in between"]

            server.regrant((AccessRule(ORDERS.who, ORDERS.names, join=("prices/*",), send=("*",)),))
            gone = await until(me, lambda event: isinstance(event, Left))
            assert gone[-1] == Left("orders")
            with pytest.raises(UsageError, match="cert:orders-1 may not join orders"):
                await me.send("orders", b"4")
            await me.send("wages", b"now it may", confirm=True)
            assert sorted(me.joined) == ["prices/a", "prices/b"]
            with pytest.raises(ConnectionLost, match="cert:clerk has no rights here"):
                await until(boss, lambda event: False)
        denials = server.host.counters.clients.denials
        assert set(denials) >= {"connect", "names", "hold", "join", "send", "memberships", "sessions"}
    told = [record.getMessage() for record in caplog.records]
    assert sum("may not send to wages" in line for line in told) == 1  # three times within a minute
    assert any(line.startswith("orders-a@n1 connected: cert:orders-1, from 127.0.0.1") for line in told)


@live
async def test_replicas_and_force_need_rights_of_their_own(tmp_path: Path) -> None:
    certs = made(tmp_path / "certs")
    rule = Majority({"clerk@n1": 1, "b@n1": 1, "c@n1": 1})
    async with serving(tmp_path, certs, ORDERS, CLERK) as (server, address):
        async with ordercast.connect(address, credentials=client_file(certs, "orders-1")) as me:
            with pytest.raises(UsageError, match="cert:orders-1 may not have a replica of accounts"):
                await Replica(me, "accounts", Counter(), quorum=rule).__aenter__()
        async with AsyncExitStack() as stack:
            connecting = ordercast.connect(address, name="clerk", credentials=client_file(certs, "clerk"))
            holder = Replica(await stack.enter_async_context(connecting), "accounts", Counter(), quorum=rule)
            accounts = await stack.enter_async_context(holder)
            await holder.until(lambda: "some who must be here" in str(holder.status) or None)
            with pytest.raises(UsageError, match="cert:clerk may not force accounts to go on with some"):
                await holder.force()
            server.regrant((replace(CLERK, force=True),))
            await holder.force()
            assert await accounts.add(1) == 1
        assert server.host.counters.clients.denials["force"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="another user connects, which root alone can arrange")
@live
async def test_the_kernel_says_who_is_at_the_unix_socket_and_only_the_owner_changes_the_cluster() -> None:
    rule = AccessRule(("user:nobody",), names=("n*",), join=("orders",))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "n1.sock"
        path.parent.chmod(0o755)
        await _nobody_meets(rule, path)


async def _nobody_meets(rule: AccessRule, path: Path) -> None:
    async with serving(path.parent, None, rule) as (server, _):
        os.chmod(path, 0o666)
        boss = encode_hello(Hello("boss", SlowPolicy.WAIT, 1000))
        await _told_to_nobody(path, boss, b"user:nobody may not call itself boss")
        hello = encode_hello(Hello("n", SlowPolicy.WAIT, 1000))
        question = encode_document(FrameKind.MANAGE, {"do": "reload"})
        join = encode_names(FrameKind.JOIN, ("wages",))
        await _told_to_nobody(
            path, hello + join + question, b"user:nobody may not join wages", b"may not change the cluster"
        )
        async with ordercast.connect(f"unix://{path}", name="boss") as root:  # as before, whatever the rules
            await root.join("wages")
        assert set(server.host.counters.clients.denials) == {"names", "join", "manage"}


async def _told_to_nobody(path: Path, said: bytes, *sentences: bytes) -> None:
    """Wait until a daemon has told a user without rights of its own all of this."""
    sock = socket.socket(socket.AF_UNIX)
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        sock.connect(str(path))
    finally:
        os.seteuid(0)
    reader, writer = await asyncio.open_unix_connection(sock=sock)
    writer.write(said)
    answer = b""
    while not all(sentence in answer for sentence in sentences):
        more = await reader.read(1000)
        assert more, answer
        answer += more
    writer.close()


@live
async def test_memory_is_bounded_by_identity(tmp_path: Path) -> None:
    certs = made(tmp_path / "certs")
    async with serving(tmp_path, certs, CLERK) as (server, address):
        credentials = client_file(certs, "clerk")
        async with (
            ordercast.connect(f"unix://{tmp_path}/n1.sock") as sender,
            ordercast.connect(address, credentials=credentials) as reader,
        ):
            await joined((sender, reader), "orders")
            while not server.host.counters.clients.over_memory:
                await sender.send_many("orders", [bytes(60_000)] * 20, self_discard=True, confirm=True)
            with pytest.raises(
                ConnectionLost, match=r"the clients of cert:clerk take .* bytes of this daemon's memory"
            ):
                await until(reader, lambda event: False)


@live
async def test_a_bound_on_memory_that_is_taken_away_and_comes_back_counts_who_is_there(tmp_path: Path) -> None:
    free = AccessRule(("anybody",), names=("*",), join=("*",))
    bounded = replace(free, memory=1 << 20)
    async with serving(tmp_path, None, bounded) as (server, address):
        host, budget = server.host, server.door.budget_of(Rights((bounded,)).of(ANYBODY))
        assert budget is not None
        async with ordercast.connect(f"unix://{tmp_path}/n1.sock") as sender, AsyncExitStack() as stack:

            async def reader(name: str, size: int) -> asyncio.Transport:
                """Somebody who reads nothing, and has so much to read."""
                _, writer = await asyncio.open_connection(*address.rpartition("://")[2].split(":"))
                assert isinstance(writer.transport, asyncio.Transport)
                stack.callback(writer.transport.abort)
                hello = encode_hello(Hello(name, SlowPolicy.WAIT, 1000))
                writer.write(hello + encode_names(FrameKind.JOIN, (name,)))
                await eventually(lambda: host.named.table.members_of(name) == (f"{name}@n1",))
                await sender.send_many(name, [bytes(10_000)] * (size // 10_000), confirm=True)
                return writer.transport

            first = await reader("first", 800_000)
            owed = budget.size
            assert owed > 700_000
            server.regrant((free,))
            assert budget.size == 0
            server.regrant((bounded,))
            assert budget.size == owed, "nothing has changed since"
            server.regrant((free,))
            first.abort()
            await eventually(lambda: len(host.sessions) == 1)
            server.regrant((bounded,))
            assert budget.size == 0
            await reader("second", 600_000)
            assert 500_000 < budget.size < 700_000
            await reader("third", 600_000)
            assert 500_000 < budget.size < 700_000
            assert host.counters.clients.over_memory == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[rights]\n", "rights: write [[rights]], in two brackets"),
        ('[[rights]]\njoin = ["a"]\n', 'rights.0.who is missing: write who = ["user:alice"]'),
        ('[[rights]]\nwho = ["alice"]\n', '"alice" names nobody: write user:NAME'),
        ('[[rights]]\nwho = ["user:a"]\nsend = "orders"\n', '"orders" is not a list of names'),
        (
            '[[rights]]\nwho = ["user:a"]\njoins = ["a"]\n',
            "rights.0.joins is not a key: perhaps rights.0.join is meant",
        ),
    ],
)
def test_wrong_rules_are_told_when_the_file_is_read(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('cluster = "x"\n[nodes.a]\nid = 1\naddress = "127.0.0.1"\n' + text)
    with pytest.raises(ConfigError) as error:
        read_cluster(file)
    assert sentence in str(error.value)
