"""What happens in the demo, chapter by chapter. Each waits for what it has caused, and says what was seen.

Everything is real: processes, sockets, clients, a `kill -9`. Only the network is ours (`relay.py`), so that a host can
be cut off without root.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from ordercast.cli.demo.crew import ACCOUNTS, CHAT, GROUPS, LAST, ORDERS, SHARED, Crew, count_of
from ordercast.cli.demo.dictionaries import Audit, audit_of, size_of
from ordercast.cli.demo.log import Kind
from ordercast.cli.demo.rates import Reached, median_ms
from ordercast.cli.demo.stage import FIRST, Stage
from ordercast.cli.demo.waiting import NotSettled
from ordercast.cli.event_text import counted, listed
from ordercast.model.quantities import size_text
from ordercast.model.service import Service
from ordercast.replicated.replica import NotPrimary
from ordercast.trace.client_records import ClientEvent
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.replica_records import ReplicaEvent

VICTIM, ISLAND, LATE = "n3", "n2", "n4"
MAINLAND = ("n1", "n3")


@dataclass(frozen=True, slots=True)
class Script:
    """How much happens."""

    values: int = 128  # large ones in the dictionary, so that a transfer of the state takes a moment
    value_size: int = 64 << 10
    steady_s: float = 2.0  # of traffic in each chapter, so that a person can follow
    burst_messages: int = 1_500  # of each of the six clients in groups
    burst_commands: int = 1_500  # of each of the three replicas
    at_once: int = 50


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the judges get, beside the daemons' traces."""

    clients: list[ClientEvent]
    replicas: list[ReplicaEvent]
    audit: Audit
    reached: Reached


async def perform(stage: Stage, script: Script) -> Evidence:
    await start(stage)
    await join(stage, script)
    reached = await traffic(stage, script)
    await kill(stage, script)
    await come_back(stage, script)
    await cut_off(stage, script)
    await heal(stage, script)
    await join_late(stage, script)
    audit = await settle(stage)
    clients, replicas = await end(stage)
    return Evidence(clients, replicas, audit, reached)


async def start(stage: Stage) -> None:
    stage.log.chapter(
        "Three daemons start, each a process of its own. All datagrams between them go through a relay, one more "
        "process: it will cut a daemon off by dropping them, which needs no root.",
    )
    await stage.hosts.open_network()
    hosts = [stage.hosts[name] for name in FIRST]
    await stage.hosts.start(*hosts)
    for host in hosts:
        assert host.process is not None
        stage.log.tell(Kind.LIFE, f"starts: process {host.process.pid}, at {host.address}", host.name)
    await stage.are_in_view(*FIRST)
    await stage.news.until(lambda: all(host.serves for host in hosts), "the daemons serve clients")


async def join(stage: Stage, script: Script) -> None:
    stage.log.chapter(
        f"At each daemon three clients connect: one in the group {CHAT}, one in {ORDERS}, and a replica of the "
        f"dictionary {ACCOUNTS}. Two of its three replicas are a majority.",
    )
    await stage.crew_comes(*(stage.hosts[name] for name in FIRST))
    await stage.is_ready(*stage.crews.values())
    stage.tells_members = True
    for group in (*GROUPS, ACCOUNTS):
        members = await stage.crews["n1"].members[0].client.members(group)
        stage.log.tell(Kind.GROUP, f"{group}: {listed(members)}", *FIRST)
    began = time.monotonic()
    first, text = stage.crews["n1"], "x" * script.value_size
    async with stage.news.bounded("the dictionary has its first values"):
        await asyncio.gather(*(first.book(text) for _ in range(script.values)))
    size = size_text(size_of(first.accounts.plain.machine.entries))
    took = time.monotonic() - began
    stage.log.tell(Kind.STATE, f"{ACCOUNTS}: {script.values} large values set, {size}, confirmed in {took:.2f} s", "n1")


async def traffic(stage: Stage, script: Script) -> Reached:
    stage.log.chapter("All send: steadily first, one command at a time, then as fast as it goes.")
    tally, crews = stage.tally, list(stage.crews.values())
    tally.command_ns.clear()
    stage.work()
    await _steadily(stage, script)
    command_ms, message_ms = median_ms(tally.command_ns), median_ms(tally.message_ns)
    stage.log.tell(
        Kind.RATE,
        f"one at a time: a command is confirmed after {_ms(command_ms)}, a message has its place in the order after "
        f"{_ms(message_ms)} (medians of {len(tally.command_ns):,} and {len(tally.message_ns):,})",
    )
    messages, deliveries = await _burst_of_messages(stage, script, crews)
    commands = await _burst_of_commands(stage, script, crews)
    return Reached(messages, deliveries, commands, command_ms, message_ms)


async def _burst_of_messages(stage: Stage, script: Script, crews: list[Crew]) -> tuple[float, float]:
    each = script.burst_messages // script.at_once * script.at_once
    delivered, began = stage.tally.delivered, time.monotonic()
    async with stage.news.bounded("the messages of the burst are sent"):
        await asyncio.gather(*(crew.shout(each, script.at_once) for crew in crews))
    expected = each * len(crews)
    await stage.news.until(
        lambda: all(crew.burst[m.client.name] == expected for crew in crews for m in crew.members),
        "everybody has all messages of the burst",
    )
    took = time.monotonic() - began
    total = expected * len(GROUPS)
    deliveries = stage.tally.delivered - delivered
    stage.log.tell(
        Kind.RATE,
        f"{total:,} messages of 100 bytes to two groups in {took:.2f} s: {total / took:,.0f} messages/s, "
        f"{deliveries / took:,.0f} deliveries/s",
    )
    return total / took, deliveries / took


async def _burst_of_commands(stage: Stage, script: Script, crews: list[Crew]) -> float:
    began, before = time.monotonic(), stage.tally.confirmed
    async with stage.news.bounded("the commands of the burst are confirmed"):
        await asyncio.gather(*(crew.book_many(script.burst_commands, script.at_once) for crew in crews))
    took = time.monotonic() - began
    total = stage.tally.confirmed - before
    rate = total / took
    how = f"{script.at_once} at once at each replica"
    stage.log.tell(Kind.RATE, f"{total:,} commands confirmed in {took:.2f} s: {rate:,.0f} commands/s, {how}")
    return rate


async def kill(stage: Stage, script: Script) -> None:
    host, witness = stage.hosts[VICTIM], stage.crews["n1"]
    assert host.process is not None
    stage.log.chapter(f"{VICTIM} dies, with its clients. The two others are still a majority.")
    stage.log.tell(Kind.FAULT, f"kill -9 {host.process.pid}", VICTIM)
    killed_at, began = await stage.hosts.kill(host), time.monotonic()
    booking = asyncio.create_task(witness.book())
    await stage.crew_goes(host)
    seen_at = await stage.are_in_view("n1", "n2")
    await _confirmed(stage, booking)
    took = time.monotonic() - began
    stage.log.tell(Kind.VIEW, f"the view without {VICTIM} came {seen_at - killed_at:.2f} s after the kill", "n1", "n2")
    what = f"a command called right after the kill was confirmed after {took:.2f} s: it waited, and was not lost"
    stage.log.tell(Kind.STATE, f"{ACCOUNTS}: {what}", "n1")
    await _steadily(stage, script)
    _tell_progress(stage)


async def come_back(stage: Stage, script: Script) -> None:
    host = stage.hosts[VICTIM]
    stage.log.chapter(f"{VICTIM} is started again: a new process that remembers nothing.")
    await stage.hosts.start(host)
    assert host.process is not None
    stage.log.tell(Kind.LIFE, f"starts: process {host.process.pid}", VICTIM)
    await stage.are_in_view(*FIRST)
    await stage.news.until(lambda: host.serves, f"{VICTIM} serves clients")
    await stage.crew_comes(host)
    await stage.is_ready(stage.crews[VICTIM])
    stage.crews[VICTIM].work()
    await _steadily(stage, script)
    _tell_progress(stage)


async def cut_off(stage: Stage, script: Script) -> None:
    host, island, main = stage.hosts[ISLAND], stage.crews[ISLAND], stage.crews["n1"]
    stage.log.chapter(f"The network splits: {ISLAND} alone on one side. Both sides go on, and one is a majority.")
    stage.log.tell(Kind.FAULT, f"cut off: the relay drops every datagram from and to {ISLAND}", ISLAND)
    cut_at, began = time.time(), time.monotonic()
    await stage.hosts.cut_off(host)
    booking = asyncio.create_task(main.book())
    seen_at = max(await stage.are_in_view(*MAINLAND), await stage.are_in_view(ISLAND))
    await _confirmed(stage, booking)
    took = time.monotonic() - began
    stage.log.tell(Kind.VIEW, f"both sides had their views {seen_at - cut_at:.2f} s after the cut", *FIRST)
    what = f"a command called right after the cut was confirmed after {took:.2f} s, on the side of the majority"
    stage.log.tell(Kind.STATE, f"{ACCOUNTS}: {what}", "n1")
    await _refusal(stage, island)
    await _steadily(stage, script)
    _tell_read(stage, island, main)
    _tell_progress(stage)


async def _refusal(stage: Stage, island: Crew) -> None:
    """The minority takes no writes."""
    async with stage.news.bounded(f"{island.replica_name} refuses a write"):
        while True:
            try:
                await island.book()
            except NotPrimary as error:
                if error.is_uncertain:
                    continue
                text = f"{island.replica_name}: a write is REFUSED: {error}. Nobody has applied it, and nobody will"
                stage.log.tell(Kind.STATE, text, ISLAND)
                return
            raise NotSettled(f"{island.replica_name} is cut off, and its write was confirmed all the same")


def _tell_read(stage: Stage, island: Crew, main: Crew) -> None:
    """Its copy is served, with its age."""
    age, latest = island.accounts.plain.age, main.accounts.plain.age
    apples = count_of(island.accounts.plain.get(SHARED))
    if age.is_current:
        raise NotSettled(f"{island.replica_name} is cut off, and says that its copy is current")
    text = (
        f"{island.replica_name}: a read is served, {SHARED} is {apples} apples, as it was after {age.commands:,} "
        f"commands, not current ({main.replica_name} has {latest.commands:,} by now)"
    )
    stage.log.tell(Kind.STATE, text, ISLAND)


async def heal(stage: Stage, script: Script) -> None:
    stage.log.chapter(f"The network heals. The sides merge, and {ISLAND} fetches what it lacks.")
    healed_at = time.time()
    await stage.hosts.heal()
    text = f"the relay carries everything again; it had dropped {stage.hosts.dropped:,} datagrams"
    stage.log.tell(Kind.REPAIR, text, ISLAND)
    merged_at = await stage.are_in_view(*FIRST)
    await stage.is_ready(stage.crews[ISLAND])
    stage.log.tell(Kind.VIEW, f"merged {merged_at - healed_at:.2f} s after the network had healed", *FIRST)
    await _steadily(stage, script)
    await stage.quiet()
    audit = _audit(stage)
    equal, present = audit.verdicts()
    stage.log.tell(Kind.STATE, f"{ACCOUNTS}, compared while nobody writes: {equal.sentence}", *FIRST)
    stage.log.tell(Kind.STATE, f"{ACCOUNTS}: {present.sentence}", *FIRST)
    stage.work()


async def join_late(stage: Stage, script: Script) -> None:
    host = stage.hosts[LATE]
    stage.log.chapter("A fourth daemon joins late. Its replica has a copy, and no voice in the majority.")
    await stage.hosts.start(host)
    assert host.process is not None
    stage.log.tell(Kind.LIFE, f"starts: process {host.process.pid}, at {host.address}", LATE)
    await stage.are_in_view(*FIRST, LATE)
    await stage.news.until(lambda: host.serves, f"{LATE} serves clients")
    await stage.crew_comes(host)
    crew = stage.crews[LATE]
    await stage.is_ready(crew)
    async with stage.news.bounded(f"a command of {crew.replica_name} is confirmed"):
        began = time.monotonic()
        await crew.book()
    took = (time.monotonic() - began) * 1e3
    text = f"{crew.replica_name} takes part: a command of its own was confirmed after {took:.1f} ms"
    stage.log.tell(Kind.STATE, text, LATE)
    crew.work()
    await _steadily(stage, script)
    _tell_progress(stage)


async def settle(stage: Stage) -> Audit:
    """No fault comes any more: what is sent from here on must reach everybody."""
    stage.log.chapter("The traffic ends. The dictionaries are compared, and the daemons leave in order.")
    await stage.quiet()
    append_cluster_event(stage.hosts.traces, "healed", alive=[host.name for host in stage.hosts.running])
    stage.records.clients.calm()
    members = [(crew, member) for crew in stage.crews.values() for member in crew.members]
    for _, member in members:
        words = LAST + member.client.name.encode()
        async with stage.news.bounded("the last words are sent"):
            await member.send(CHAT, ORDERS, filler=words, service=Service.SAFE)
    expected = {LAST + member.client.name.encode() for _, member in members}
    await stage.news.until(
        lambda: all(crew.last.get(member.client.name) == expected for crew, member in members),
        "everybody has the last words of everybody",
    )
    audit = _audit(stage)
    for name, digest in audit.digests.items():
        crew = stage.crews[name.partition("@")[2]]
        what = f"{counted(audit.commands[name], 'command')}, {len(crew.accounts.plain):,} keys, digest {digest}"
        stage.log.tell(Kind.STATE, f"{name}: {what}", crew.host.name)
    return audit


async def end(stage: Stage) -> tuple[list[ClientEvent], list[ReplicaEvent]]:
    crews = list(stage.crews.values())
    async with stage.news.bounded("everybody says who is in which group"):
        await stage.records.clients.ended(*(crew.members[0] for crew in crews))
    stage.records.replicas.end(*(crew.accounts for crew in crews))
    clients, replicas = list(stage.records.clients.events), list(stage.records.replicas.events)
    stage.tells_members = False
    async with stage.news.bounded("the clients leave"):
        for crew in crews:
            await crew.go()
    stage.crews.clear()
    await stage.hosts.leave(reversed(stage.hosts.running))
    append_cluster_event(stage.hosts.traces, "ended")
    stage.log.flush()
    return clients, replicas


def _audit(stage: Stage) -> Audit:
    dictionaries = {crew.replica_name: crew.accounts.plain.machine.entries for crew in stage.crews.values()}
    commands = {crew.replica_name: crew.accounts.plain.age.commands for crew in stage.crews.values()}
    return audit_of(dictionaries, commands, stage.records.confirmed)


async def _steadily(stage: Stage, script: Script) -> None:
    """Traffic for a while: for those who watch, and for more evidence."""
    await asyncio.sleep(script.steady_s)
    stage.news.check()


async def _confirmed(stage: Stage, booking: asyncio.Task[None]) -> None:
    async with stage.news.bounded("a command is confirmed"):
        await booking


def _tell_progress(stage: Stage) -> None:
    tally = stage.tally
    messages, commands = tally.now()
    stage.log.tell(
        Kind.RATE,
        f"steadily {messages:,.0f} messages/s and {commands:,.0f} commands/s; in all {tally.sent:,} messages sent, "
        f"{tally.confirmed:,} commands confirmed, {tally.refused:,} refused",
    )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} ms"
