"""The end of the demo: the traffic ends, the dictionaries are compared, everybody hears everybody, and all go."""

from __future__ import annotations

import time

from ordercast.cli.event_text import counted
from ordercast.demo.crew import ACCOUNTS, CHAT, LAST, ORDERS
from ordercast.demo.dictionaries import Audit, audit_of
from ordercast.demo.hosts import ViewSeen
from ordercast.demo.log import Kind
from ordercast.demo.stage import Stage, host_of
from ordercast.model.service import Service
from ordercast.trace.cluster import append_cluster_event


async def settle(stage: Stage) -> Audit:
    """No fault comes any more: what is sent from here on must reach everybody."""
    stage.log.chapter("The traffic ends. The dictionaries are compared, and the daemons leave in order.")
    await stage.quiet()
    append_cluster_event(stage.hosts.traces, "healed", alive=[host.name for host in stage.hosts.running])
    await _say_last_words(stage)
    audit = compare(stage)
    for name, digest in audit.digests.items():
        crew = stage.crews[host_of(name)]
        what = f"{counted(audit.commands[name], 'command')}, {len(crew.accounts):,} keys, digest {digest}"
        stage.log.tell(Kind.STATE, f"{ACCOUNTS}: {what}", crew.host.name)
    for crew in stage.crews.values():
        crew.replica.say_known()
    append_cluster_event(stage.hosts.traces, "settled")
    return audit


async def _say_last_words(stage: Stage) -> None:
    """Everybody hears everybody, and says who is where, in one view. A view that comes in between is nobody's fault on
    a busy machine: then it is done again. The calm is known, and recorded, only afterwards."""
    clients, attempt = stage.records.clients, 0
    while True:
        attempt += 1
        names = tuple(host.name for host in stage.hosts.running)
        await stage.are_in_view(*names)
        views, calm_at = stage.hosts.views, time.time_ns()
        await _hear_everybody(stage, b"%s%d " % (LAST, attempt), views)
        async with stage.news.bounded("everybody says who is in which group"):
            known = await clients.known(*(crew.members[0] for crew in stage.crews.values()))
        if views == stage.hosts.views:
            append_cluster_event(stage.hosts.traces, "calm", at=calm_at)
            for event in known:
                clients.tell(event)
            return


async def _hear_everybody(stage: Stage, words: bytes, views: list[ViewSeen | None]) -> None:
    """Wait until everybody has heard everybody, unless the views change: then not everybody need hear everything."""
    members = [(crew, member) for crew in stage.crews.values() for member in crew.members]
    for _, member in members:
        async with stage.news.bounded("the last words are sent"):
            await member.send(CHAT, ORDERS, filler=words + member.client.name.encode(), service=Service.SAFE)
    expected = {words + member.client.name.encode() for _, member in members}
    await stage.news.until(
        lambda: (
            all(crew.last.get(member.client.name, set()) >= expected for crew, member in members)
            or views != stage.hosts.views
        ),
        "everybody has the last words of everybody",
    )


async def end(stage: Stage) -> None:
    stage.tells_members = False
    async with stage.news.bounded("the clients leave"):
        for crew in stage.crews.values():
            await crew.go()
    stage.crews.clear()
    await stage.hosts.leave(reversed(stage.hosts.running))
    append_cluster_event(stage.hosts.traces, "ended")
    stage.log.flush()


def compare(stage: Stage) -> Audit:
    """While nobody writes."""
    dictionaries = {crew.replica_name: crew.accounts.machine.entries for crew in stage.crews.values()}
    commands = {crew.replica_name: crew.accounts.age.commands for crew in stage.crews.values()}
    return audit_of(dictionaries, commands, stage.records.confirmed)
