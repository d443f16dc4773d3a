"""All that runs in the demo, and what is told of it as it happens: views of daemons, of groups, of the dictionary."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from ordercast.api.recorded_client import RecordedClients
from ordercast.cli.event_text import Roster, listed, verb
from ordercast.demo.crew import ACCOUNTS, Crew, Ears, Records
from ordercast.demo.dictionaries import size_of
from ordercast.demo.hosts import DemoHost, Hosts, ViewSeen
from ordercast.demo.log import Kind, Log
from ordercast.demo.rates import Tally
from ordercast.demo.waiting import News
from ordercast.model.events import View
from ordercast.model.quantities import size_text
from ordercast.replicated.effects import Changed, Progress, Reason
from ordercast.replicated.quorum import Majority
from ordercast.trace.recording import Recorder

FIRST = ("n1", "n2", "n3")
HOSTS = 4
PARTS = 4  # of a transfer that are told
_PASSING = (
    Reason.VIEW,
    Reason.ERA,
    Reason.SPOKEN,
    Reason.SIGNAL,
    Reason.CUT_OFF,
    Reason.LOST,
)  # what is known for a moment


@dataclass(slots=True)
class Transfer:
    """A state on its way to a replica."""

    began: float
    total: int  # bytes, as far as can be told from the others' copies
    parts_told: int = 0


class Stage:
    def __init__(self, folder: Path, traces: Path, log: Log, news: News) -> None:
        """`folder`: for files and sockets; `traces`: what daemons, clients and replicas record."""
        self.log, self.news = log, news
        self.hosts = Hosts(folder, traces, HOSTS, news, self._on_view, self._on_warning)
        recorder = Recorder(traces, "demo")
        clients = RecordedClients(recorder.client, self.hosts.process_of)
        self.records = Records(recorder, clients, Tally(), {})
        self.crews: dict[str, Crew] = {}
        self.tells_members = False  # who comes and goes in groups, one by one
        self._quorum = Majority({f"kv@{name}": 1 for name in FIRST})
        self._rosters: dict[str, Roster] = {}  # by reader
        self._transfers: dict[str, Transfer] = {}

    @property
    def tally(self) -> Tally:
        return self.records.tally

    # People and machines

    async def crew_comes(self, *hosts: DemoHost) -> None:
        ears = Ears(self._on_group_view, self._on_changed, self._on_progress, self.news.wake)
        for host in hosts:
            crew = self.crews[host.name] = Crew(host, self._quorum, self.records, ears)
            self._rosters = {who: roster for who, roster in self._rosters.items() if host_of(who) != host.name}
            async with self.news.bounded(f"the clients of {host.name} are in their groups"):
                await crew.come()

    async def crew_goes(self, host: DemoHost) -> None:
        """The crew goes with its daemon."""
        async with self.news.bounded(f"the clients of {host.name} see that it is dead"):
            await self.crews.pop(host.name).gone()

    async def are_in_view(self, *names: str) -> float:
        """All of these have a view of exactly themselves: since when, by the wall clock."""
        hosts = [self.hosts[name] for name in names]
        await self.news.until(
            lambda: all(host.members == names for host in hosts), f"{listed(names)} are in one view, without others"
        )
        return max(host.views[-1].at for host in hosts)

    async def is_ready(self, *crews: Crew) -> None:
        """Their copies are the state of a primary component."""
        for crew in crews:
            async with self.news.bounded(f"{crew.replica_name} has the state"):
                await crew.accounts.ready()

    async def quiet(self) -> None:
        """Nobody sends, and everybody has everything."""
        async with self.news.bounded("everything that was begun is finished"):
            await asyncio.gather(*(crew.quiet() for crew in self.crews.values()))
            await asyncio.gather(*(crew.synced() for crew in self.crews.values()))

    def work(self) -> None:
        for crew in self.crews.values():
            crew.work()

    async def go_on(self, seconds: float) -> None:
        """Traffic for a while: for those who watch, and for more evidence."""
        await asyncio.sleep(seconds)
        self.news.check()

    async def close(self) -> None:
        """Whatever is still there goes at once."""
        for crew in self.crews.values():
            crew.stop()
        await self.hosts.close()
        await asyncio.gather(*(crew.gone() for crew in self.crews.values()), return_exceptions=True)
        await asyncio.to_thread(self.records.recorder.close)

    # What is seen

    def _on_view(self, host: DemoHost, seen: ViewSeen) -> None:
        if not (seen.is_first and seen.members == (host.name,)):
            self.log.tell(Kind.VIEW, seen.text, host.name, wall=seen.at)

    def _on_warning(self, host: DemoHost, text: str) -> None:
        self.log.tell(Kind.WARNING, text, host.name)

    def _on_group_view(self, who: str, view: View) -> None:
        came, gone = self._rosters.setdefault(who, Roster()).changes(view)
        if not self.tells_members or who in came:
            return
        changes = []
        if gone:
            changes.append(f"{listed(gone)} {verb(gone, 'is', 'are')} out of reach")
        if came:
            changes.append(f"{listed(came)} came")
        text = f"{view.group}: {', '.join(changes) or 'nobody came or went'}; now {listed(view.members)}"
        self.log.tell(Kind.GROUP, text, host_of(who))

    def _on_changed(self, who: str, changed: Changed) -> None:
        if not self.tells_members or changed.reason in _PASSING:
            return
        state = "a primary component" if changed.is_primary else "NO primary component"
        holders = f"{listed(changed.holders)} {verb(changed.holders, 'has', 'have')} the state"
        self.log.tell(Kind.STATE, f"{ACCOUNTS}: {state}, {holders}: {changed.reason.value}", host_of(who))

    def _on_progress(self, who: str, progress: Progress) -> None:
        """Told by quarters."""
        if progress.trouble:
            self.log.tell(Kind.WARNING, f"{ACCOUNTS}: {progress.trouble}", host_of(who))
            return
        transfer = self._transfers.get(who)
        if transfer is None:
            total = size_of(self.crews[host_of(progress.donor)].accounts.machine.entries)
            transfer = self._transfers[who] = Transfer(time.monotonic(), total)
        if progress.is_done:
            took = time.monotonic() - transfer.began
            text = f"{who} has fetched all {size_text(progress.size)}, in {took:.2f} s"
            del self._transfers[who]
        elif progress.size >= transfer.total * (transfer.parts_told + 1) / PARTS and transfer.parts_told < PARTS - 1:
            transfer.parts_told += 1
            done = f"{size_text(progress.size)} of {size_text(transfer.total)}"
            text = f"{who} fetches the state from {progress.donor}: {done}"
        else:
            return
        self.log.tell(Kind.STATE, text, host_of(who))


def host_of(member: str) -> str:
    return member.partition("@")[2]
