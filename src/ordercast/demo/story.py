"""What happens in the demo, chapter by chapter. Each waits for what it has caused, and says what was seen.

Everything is real: processes, sockets, clients, a `kill -9`. Only the network is ours (`relay.py`), so that a host can
be cut off without root.
"""

from __future__ import annotations

import asyncio
import time

from ordercast.cli.event_text import listed
from ordercast.demo.bursts import traffic
from ordercast.demo.crew import ACCOUNTS, CHAT, GROUPS, ORDERS, SHARED, Crew, count_of
from ordercast.demo.dictionaries import Audit, size_of
from ordercast.demo.log import Kind
from ordercast.demo.rates import Reached
from ordercast.demo.script import Script
from ordercast.demo.settling import compare, end, settle
from ordercast.demo.stage import FIRST, Stage
from ordercast.demo.waiting import NotSettled
from ordercast.groups.names import meeting_of
from ordercast.model.quantities import size_text
from ordercast.replicated.replica import NotPrimary

VICTIM, ISLAND, LATE = "n3", "n2", "n4"
MAINLAND = ("n1", "n3")


async def perform(stage: Stage, script: Script) -> tuple[Audit, Reached]:
    await start(stage)
    await join(stage, script)
    reached = await traffic(stage, script)
    await kill(stage, script)
    await come_back(stage, script)
    await cut_off(stage, script)
    await heal(stage, script)
    await join_late(stage, script)
    audit = await settle(stage)
    await end(stage)
    return audit, reached


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
        where = meeting_of(group) if group == ACCOUNTS else group
        members = await stage.crews["n1"].members[0].client.members(where)
        stage.log.tell(Kind.GROUP, f"{group}: {listed(members)}", *FIRST)
    began = time.monotonic()
    first, text = stage.crews["n1"], "x" * script.value_size
    async with stage.news.bounded("the dictionary has its first values"):
        await asyncio.gather(*(first.book_surely(text) for _ in range(script.values)))
    size = size_text(size_of(first.accounts.machine.entries))
    took = time.monotonic() - began
    stage.log.tell(Kind.STATE, f"{ACCOUNTS}: {script.values} large values set, {size}, confirmed in {took:.2f} s", "n1")


async def kill(stage: Stage, script: Script) -> None:
    host, witness = stage.hosts[VICTIM], stage.crews["n1"]
    assert host.process is not None
    stage.log.chapter(f"{VICTIM} dies, with its clients. The two others are still a majority.")
    stage.log.tell(Kind.FAULT, f"kill -9 {host.process.pid}", VICTIM)
    killed_at, began = await stage.hosts.kill(host), time.monotonic()
    booking = _begin(witness)
    await stage.crew_goes(host)
    seen_at = await stage.are_in_view("n1", "n2")
    await _confirmed(stage, booking)
    took = time.monotonic() - began
    stage.log.tell(Kind.VIEW, f"the view without {VICTIM} came {seen_at - killed_at:.2f} s after the kill", "n1", "n2")
    what = f"a command called right after the kill was confirmed after {took:.2f} s: it waited, and was not lost"
    stage.log.tell(Kind.STATE, f"{ACCOUNTS}: {what}", "n1")
    await stage.go_on(script.steady_s)
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
    await stage.go_on(script.steady_s)
    _tell_progress(stage)


async def cut_off(stage: Stage, script: Script) -> None:
    host, island, main = stage.hosts[ISLAND], stage.crews[ISLAND], stage.crews["n1"]
    stage.log.chapter(f"The network splits: {ISLAND} alone on one side. Both sides go on, and one is a majority.")
    stage.log.tell(Kind.FAULT, f"cut off: the relay drops every datagram from and to {ISLAND}", ISLAND)
    cut_at, began = time.time(), time.monotonic()
    await stage.hosts.cut_off(host)
    booking = _begin(main)
    seen_at = max(await stage.are_in_view(*MAINLAND), await stage.are_in_view(ISLAND))
    await _confirmed(stage, booking)
    took = time.monotonic() - began
    stage.log.tell(Kind.VIEW, f"both sides had their views {seen_at - cut_at:.2f} s after the cut", *FIRST)
    what = f"a command called right after the cut was confirmed after {took:.2f} s, on the side of the majority"
    stage.log.tell(Kind.STATE, f"{ACCOUNTS}: {what}", "n1")
    await _refusal(stage, island)
    await stage.go_on(script.steady_s)
    _tell_read(stage, island, main)
    _tell_progress(stage)


async def _refusal(stage: Stage, island: Crew) -> None:
    """The minority takes no writes."""
    async with stage.news.bounded(f"{island.replica_name} refuses a write"):
        while True:
            try:
                await island.book()
            except NotPrimary as error:
                stage.tally.refused += 1
                if error.is_uncertain:
                    continue
                text = f"{island.replica_name}: a write is REFUSED, nobody will ever apply it: {error}"
                stage.log.tell(Kind.STATE, text, ISLAND)
                return
            raise NotSettled(f"{island.replica_name} is cut off, and its write was confirmed all the same")


def _tell_read(stage: Stage, island: Crew, main: Crew) -> None:
    """Its copy is served, with its age."""
    age, latest = island.accounts.age, main.accounts.age
    apples = count_of(island.accounts.get(SHARED))
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
    await stage.go_on(script.steady_s)
    await stage.quiet()
    audit = compare(stage)
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
        await crew.book_surely()
    took = (time.monotonic() - began) * 1e3
    text = f"{crew.replica_name} takes part: a command of its own was confirmed after {took:.1f} ms"
    stage.log.tell(Kind.STATE, text, LATE)
    crew.work()
    await stage.go_on(script.steady_s)
    _tell_progress(stage)


def _begin(crew: Crew) -> asyncio.Task[None]:
    """A command that is called now."""
    booking = asyncio.create_task(crew.book_surely())
    booking.add_done_callback(lambda task: task.cancelled() or task.exception())  # who waits for it gets it anyway
    return booking


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
