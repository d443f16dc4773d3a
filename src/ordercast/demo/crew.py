"""The clients of one daemon in the demo: a person who chats, a till that sells, and a replica of the accounts.

All they do and are told is recorded for the judges. When their daemon dies they are gone with it, as on a host that
loses its power.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import ordercast
from ordercast.api.recorded_client import RecordedClient, RecordedClients, recorded
from ordercast.demo.hosts import DemoHost
from ordercast.demo.rates import Tally
from ordercast.model.errors import ConnectionLost
from ordercast.model.events import Event, Message, View
from ordercast.model.service import Service
from ordercast.replicated.chained import chained
from ordercast.replicated.effects import Changed, Progress
from ordercast.replicated.quorum import Majority
from ordercast.replicated.recorded import RecordedReplica
from ordercast.replicated.replica import NotPrimary, ReplicaEnded
from ordercast.replicated.structures.dictionary import Dictionary, DictionaryFront
from ordercast.replicated.structures.fields import Value, optional_bytes, value_bytes
from ordercast.trace.recording import Recorder
from ordercast.trace.records import STAMP_SIZE

CHAT, ORDERS, ACCOUNTS = "chat", "orders", "accounts"
GROUPS = (CHAT, ORDERS)
PEOPLE = ("alice", "bob", "carol", "dave")
SHARED = "stock"  # a key that all replicas compare and set
TICK_S = 0.05  # between two turns of steady traffic
LINES = 4  # messages of a client in one turn
BURST = b"burst"
LAST = b"last "


@dataclass(frozen=True, slots=True)
class Ears:
    """Whom a crew tells what its members see."""

    view: Callable[[str, View], None]  # by whom
    changed: Callable[[str, Changed], None]
    progress: Callable[[str, Progress], None]
    wake: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Records:
    """What is recorded of all crews."""

    recorder: Recorder
    clients: RecordedClients
    tally: Tally
    confirmed: dict[str, str]  # keys that are set once, with what was confirmed for them


class Crew:
    def __init__(self, host: DemoHost, quorum: Majority, records: Records, ears: Ears) -> None:
        self.host = host
        self.burst: Counter[str] = Counter()  # messages of a burst that came back to their sender, by member
        self.last: dict[str, set[bytes]] = {}  # last words that came, by member
        self.members: list[RecordedClient] = []  # the person and the till
        self.is_here = False  # all joined
        self.replica: RecordedReplica[DictionaryFront]
        self.accounts: DictionaryFront
        self._quorum, self._records, self._ears = quorum, records, ears
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._traffic: list[asyncio.Task[None]] = []
        self._is_over = False
        self._number = 0

    @property
    def replica_name(self) -> str:
        return f"kv@{self.host.name}"

    # Coming and going

    async def come(self) -> None:
        """All join their groups. The replica may still lack the state."""
        person = PEOPLE[self.host.number - 1]
        for name, groups in ((person, (CHAT,)), ("till", (ORDERS,))):
            member = await self._member(name)
            self.members.append(member)
            await member.join(*groups)
        client = await self._stack.enter_async_context(ordercast.connect(self.host.clients, name="kv"))

        def on_changed(changed: Changed) -> None:
            self._ears.changed(client.name, changed)
            self._ears.wake()

        tell = self._records.recorder.replica
        self.replica = RecordedReplica(
            tell, client, ACCOUNTS, chained(Dictionary), quorum=self._quorum, on_changed=on_changed
        )
        self.accounts = await self._stack.enter_async_context(self.replica)
        self._tasks.append(asyncio.create_task(self._watch(client.name)))
        self.is_here = True

    async def _member(self, name: str) -> RecordedClient:
        full = f"{name}@{self.host.name}"
        return await recorded(self._records.clients, self.host.clients, name, on_event=lambda e: self._hear(full, e))

    def _hear(self, who: str, event: Event) -> None:
        if isinstance(event, View):
            self._ears.view(who, event)
        elif isinstance(event, Message):
            self._records.tally.delivered += 1
            words = event.data[STAMP_SIZE:]
            if words.startswith(BURST) and event.sender == who:
                self.burst[who] += 1
            elif words.startswith(LAST):
                self.last.setdefault(who, set()).add(words)
            else:
                return
        self._ears.wake()

    async def _watch(self, who: str) -> None:
        async for progress in self.replica.watch(Progress):
            self._ears.progress(who, progress)

    async def gone(self) -> None:
        """Its daemon is dead: everybody's connection broke."""
        await self.quiet()
        await asyncio.gather(*(member.reading for member in self.members))
        await self._close()

    async def go(self) -> None:
        """In order."""
        await self.quiet()
        for member in self.members:
            await member.close()
        await self._close()

    async def _close(self) -> None:
        with suppress(ConnectionLost, ReplicaEnded):
            await self._stack.aclose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Steady traffic

    def work(self) -> None:
        self._is_over = False
        person, till = self.members
        jobs = (self._talk(person), self._sell(till), self._keep_accounts())
        self._traffic = [asyncio.create_task(job) for job in jobs]

    def stop(self) -> None:
        """At once."""
        for task in self._traffic:
            task.cancel()

    async def quiet(self) -> None:
        """What was begun is finished, or was lost with the daemon."""
        self._is_over = True
        traffic, self._traffic = self._traffic, []
        for result in await asyncio.gather(*traffic, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, ConnectionLost | ReplicaEnded):
                raise result

    async def _talk(self, person: RecordedClient) -> None:
        tally = self._records.tally
        while not self._is_over:
            await person.send_many(CHAT, fillers=[b"how are things?"] * (LINES - 1), service=Service.AGREED)
            began = time.monotonic_ns()
            await person.send(CHAT, filler=b"and over there?", service=Service.AGREED, confirm=True)
            tally.message_ns.append(time.monotonic_ns() - began)
            tally.sent += LINES
            await asyncio.sleep(TICK_S)

    async def _sell(self, till: RecordedClient) -> None:
        """Safe: whoever reads an order knows that all have it. One in a while is for both groups."""
        while not self._is_over:
            await till.send_many(ORDERS, fillers=[b"3 apples"] * (LINES - 1), service=Service.SAFE)
            await till.send(ORDERS, CHAT, filler=b"sold out!", service=Service.SAFE)
            self._records.tally.sent += LINES
            await asyncio.sleep(TICK_S)

    async def _keep_accounts(self) -> None:
        """One command at a time; one that was refused waits for a primary component."""
        turn = 0
        while not self._is_over:
            turn += 1
            try:
                await self._deed(turn)
            except NotPrimary:
                self._records.tally.refused += 1
                await self._until_primary()
            await asyncio.sleep(TICK_S / 5)

    async def _deed(self, turn: int) -> None:
        tally = self._records.tally
        if turn % 7 == 0:
            stock = await self.accounts.latest(SHARED)
            self.replica.look(value_bytes(SHARED), optional_bytes(stock))
            tally.reads += 1
        elif turn % 5 == 0:
            stock = self.accounts.get(SHARED)
            await self.accounts.compare_and_set(SHARED, stock, f"{count_of(stock) + 1} apples")
            tally.confirmed += 1
        else:
            began = time.monotonic_ns()
            await self.book()
            tally.command_ns.append(time.monotonic_ns() - began)

    async def _until_primary(self) -> None:
        ready = asyncio.create_task(self.accounts.ready())
        try:
            while not (ready.done() or self._is_over):
                await asyncio.wait((ready,), timeout=TICK_S)
            if ready.done():
                await ready
        finally:
            ready.cancel()
            await asyncio.gather(ready, return_exceptions=True)

    async def book(self, text: str = "") -> None:
        """Set a key that is never set again. Returns when that is confirmed; NotPrimary when it was refused."""
        self._number += 1
        key, value = f"{self.host.name}/{self.replica.life}/{self._number}", f"{self._number} {text}"
        await self.accounts.set(key, value)
        self._records.tally.confirmed += 1
        self._records.confirmed[key] = value

    async def book_surely(self, text: str = "") -> None:
        """As often as need be: a busy machine may lose its primary component for a moment."""
        while True:
            try:
                await self.book(text)
                return
            except NotPrimary:
                self._records.tally.refused += 1
                await self.accounts.ready()

    async def synced(self) -> None:
        """The copy here has everything that was confirmed to anybody."""
        while True:
            try:
                await self.accounts.synced()
                return
            except NotPrimary:
                await self.accounts.ready()

    # As fast as it goes

    async def shout(self, messages: int, at_once: int) -> None:
        """Both members, to their groups."""
        services = ((CHAT, Service.AGREED), (ORDERS, Service.SAFE))
        await asyncio.gather(
            *(self._shout(member, group, service, messages, at_once)
              for member, (group, service) in zip(self.members, services, strict=True))
        )  # fmt: skip

    async def _shout(self, member: RecordedClient, group: str, service: Service, messages: int, at_once: int) -> None:
        fillers = [BURST + bytes(75)] * at_once
        for _ in range(messages // at_once):
            await member.send_many(group, fillers=fillers, service=service)
            self._records.tally.sent += at_once

    async def book_many(self, commands: int, at_once: int) -> None:
        for _ in range(commands // at_once):
            await asyncio.gather(*(self.book_surely() for _ in range(at_once)))


def count_of(stock: Value | None) -> int:
    """Return the count in a value such as `42 apples`."""
    return 0 if stock is None else int(str(stock).split()[0])
