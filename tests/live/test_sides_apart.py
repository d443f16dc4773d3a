"""Replicas of daemons that are cut off from each other, or all killed at once: who goes on, and with what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import ordercast
from ordercast.demo.hosts import Hosts
from ordercast.demo.waiting import News
from ordercast.replicated import Dictionary, DictionaryFront, EverySide, Majority, NotPrimary, Replica, Side
from tests.live.local_daemons import live

NAMES = ("n1", "n2", "n3")


class Cluster:
    def __init__(self, hosts: Hosts, news: News, stack: AsyncExitStack) -> None:
        self.hosts, self.news = hosts, news
        self._stack = stack

    async def replica(self, name: str, quorum: EverySide | Majority) -> DictionaryFront:
        client = ordercast.connect(self.hosts[name].clients, name="kv", reconnect=True)
        member = await self._stack.enter_async_context(client)
        return await self._stack.enter_async_context(Replica(member, "board", Dictionary(), quorum=quorum))

    async def together(self, *names: str) -> None:
        hosts = [self.hosts[name] for name in names]
        await self.news.until(
            lambda: all(host.members == names and host.serves for host in hosts), f"{names} are together and serve"
        )


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    with TemporaryDirectory(prefix="sides") as folder:
        traces = Path(folder) / "traces"
        traces.mkdir()
        news = News()
        hosts = Hosts(Path(folder), traces, len(NAMES), news, lambda *_: None, lambda *_: None)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(hosts.close)
            await hosts.open_network()
            await hosts.start(*hosts.all)
            made = Cluster(hosts, news, stack)
            await made.together(*NAMES)
            yield made


async def set_at_last(front: DictionaryFront, key: str, value: str) -> None:
    """On a busy machine the ring may form once more just now."""
    while True:
        await front.ready()
        with suppress(NotPrimary):
            await front.set(key, value)
            return


async def until_they_have(fronts: Sequence[DictionaryFront], entries: dict[str, str]) -> None:
    for front in fronts:
        watch = front.watch()
        while dict(front.items()) != entries:
            await anext(watch)


@live
async def test_every_side_goes_on_and_they_are_united_when_they_meet() -> None:
    merged: list[Sequence[Side[Dictionary]]] = []

    def all_entries(sides: Sequence[Side[Dictionary]]) -> Dictionary:
        merged.append(sides)
        united = Dictionary()
        for side in sides:
            united.entries.update(side.state.entries)
        return united

    async with cluster() as made:
        fronts = {name: await made.replica(name, EverySide(all_entries)) for name in NAMES}
        for front in fronts.values():
            await front.ready()
        await fronts["n1"].set("before", "all")
        await until_they_have(list(fronts.values()), {"before": "all"})
        merged.clear()  # one that began alone may have been merged before
        await made.hosts.cut_off(made.hosts["n3"])
        await made.together("n1", "n2")
        await made.together("n3")
        await asyncio.gather(fronts["n1"].set("left", "n1"), fronts["n3"].set("right", "n3"))
        await made.hosts.heal()
        entries = {"before": "all", "left": "n1", "right": "n3"}
        await until_they_have(list(fronts.values()), entries)
        await fronts["n3"].set("after", "all")
        await until_they_have(list(fronts.values()), {**entries, "after": "all"})
        (sides,) = merged
        assert sorted(side.members for side in sides) == [("kv@n1", "kv@n2"), ("kv@n3",)]


@live
async def test_when_all_daemons_are_killed_and_come_back_the_replicas_go_on_with_what_they_had() -> None:
    async with cluster() as made:
        quorum = Majority({f"kv@{name}": 1 for name in NAMES})
        fronts = [await made.replica(name, quorum) for name in NAMES]
        for front in fronts:
            await front.ready()
        await fronts[0].set("before", "all")
        await until_they_have(fronts, {"before": "all"})
        for host in made.hosts.all:
            await made.hosts.kill(host)
        await made.hosts.start(*made.hosts.all)
        await made.together(*NAMES)
        await set_at_last(fronts[1], "after", "all")
        await until_they_have(fronts, {"before": "all", "after": "all"})
