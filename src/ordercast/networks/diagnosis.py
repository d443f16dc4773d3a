"""What broke, from what the members reported of a network, in the order in which they did. Pure.

The first report is where the fault was seen; reports by the word of another member are echoes. A little after its mark
every member says whom it does not hear on the network: who is heard by nobody cannot send, who hears nobody cannot
receive, and so on. (The paper leaves this to the reader of the reports, section 3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ordercast.model.ids import Instant, ProcessId
from ordercast.model.notes import Evidence, NetworkState, NetworkTurned

Naming = Callable[[ProcessId], str]


@dataclass(frozen=True, slots=True)
class NetworkReport:
    at: Instant
    process: ProcessId  # who reports
    turn: NetworkTurned


@dataclass(slots=True)
class Episode:
    """One fault of one network, from its first mark until every reporter thinks it good again, or the end."""

    network: int
    members: tuple[ProcessId, ...]  # of the configuration when it began
    reports: list[NetworkReport] = field(default_factory=list)
    deaf_to: dict[ProcessId, set[ProcessId]] = field(default_factory=dict)  # by reporter: whom it does not hear there
    marked: set[ProcessId] = field(default_factory=set)  # who thinks it faulty now, or is trying it
    said: set[ProcessId] = field(default_factory=set)  # who marked it at any time
    repaired_at: Instant | None = None

    @property
    def began_at(self) -> Instant:
        return self.reports[0].at

    def conclusion(self, name: Naming) -> str:
        deaf = {one: others for one, others in self.deaf_to.items() if others}
        silent = set().union(*deaf.values()) if deaf else set()
        everybody = set(self.members)
        if not deaf:
            return self._without_silence(name)
        mute = {one for one in silent if all(one in deaf.get(other, ()) for other in self.said - {one})}
        if silent == everybody and set(deaf) == everybody and mute == everybody:
            return "nobody hears anybody there: the network as a whole is down"
        if len(silent) == 1 and mute == silent:
            return f"nobody hears {_listed(silent, name)} there, and the others hear each other: it cannot send"
        if len(deaf) == 1 and silent == everybody - set(deaf):
            return f"{_listed(set(deaf), name)} hears nobody there, and the others hear each other: it cannot receive"
        for one in sorted(everybody):
            others = everybody - {one}
            if deaf.get(one) == others and all(deaf.get(other) == {one} for other in others):
                return f"{name(one)} and the others do not hear each other there: it is cut off from the network"
        pairs = "; ".join(f"{name(one)} does not hear {_listed(others, name)}" for one, others in sorted(deaf.items()))
        return f"some do not reach some others there: {pairs}"

    def _without_silence(self, name: Naming) -> str:
        first = self.reports[0]
        if self.repaired_at is None and not self.deaf_to:
            about = "" if first.turn.process is None else f" of {name(first.turn.process)}"
            return (
                f"first seen by {name(first.process)} ({first.turn.evidence.value}{about}); who hears whom was not told"
            )
        return "everybody hears everybody there: it loses packets, is slow, or was repaired at once"


def episodes(
    reports: Iterable[NetworkReport], members_at: Callable[[NetworkReport], tuple[ProcessId, ...]]
) -> list[Episode]:
    """Reports in the order of time."""
    open_: dict[int, Episode] = {}
    found: list[Episode] = []
    for report in reports:
        turn = report.turn
        episode = open_.get(turn.network)
        is_mark = turn.state is NetworkState.FAULTY and turn.evidence is not Evidence.UNHEARD
        if episode is None:
            if not is_mark:
                continue
            episode = open_[turn.network] = Episode(turn.network, members_at(report))
            found.append(episode)
        _add(episode, report)
        if not episode.marked:
            episode.repaired_at = report.at
            del open_[turn.network]
    return found


def _add(episode: Episode, report: NetworkReport) -> None:
    turn = report.turn
    episode.reports.append(report)
    if turn.state is NetworkState.GOOD:
        episode.marked.discard(report.process)
        return
    episode.marked.add(report.process)
    if turn.state is NetworkState.FAULTY:
        episode.said.add(report.process)
    if turn.evidence is Evidence.UNHEARD and turn.process is not None:
        episode.deaf_to.setdefault(report.process, set()).add(turn.process)


def _listed(processes: set[ProcessId], name: Naming) -> str:
    return ", ".join(name(process) for process in sorted(processes))
