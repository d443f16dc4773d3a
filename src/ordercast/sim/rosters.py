"""Node lists in a simulation: lists that differ for a while, drawn from the seed, and a witness of who was admitted.

The witness knows what each host was told its list is, and what was installed. It imports no engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ordercast.checker.verdict import Verdict
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import MAIN, ConfigurationId, NodeId, ProcessId, node_of
from ordercast.model.promises import RosterPromise
from ordercast.model.roster import Entry, Place, Roster
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.findings import Findings
from ordercast.sim.options import SimOptions
from ordercast.trace.records import Event, Installed, Started

FIRST = 1  # the version that hosts begin with
PORTS = 4701, 4700
OTHER_NAME = "other"  # of one node in a list that contradicts another of its version

Members = Collection[ProcessId]


def sim_roster(version: int, nodes: Sequence[int], variant: str = "") -> Roster:
    """A list of these hosts. Variants: `ordered`, made by an ordered change; `other`, with another name for one;
    `elsewhere`, with other addresses."""
    network = "10.0.1" if variant == "elsewhere" else "10.0.0"
    entries = [Entry(NodeId(node), f"n{node}", (Place(f"{network}.{node + 1}", *PORTS),)) for node in sorted(nodes)]
    if variant == "other":
        entries[0] = entries[0]._replace(name=OTHER_NAME)
    return Roster(version, tuple(entries), variant == "ordered")


def with_rosters(options: SimOptions, seed: int) -> SimOptions:
    """The same with node lists that change host by host, in any order, while the options' own faults strike."""
    rng = Random(f"rosters swarm {seed}")
    nodes = tuple(range(options.nodes))
    late = tuple(sorted(rng.sample(nodes, rng.choice((0, 1, 1, 2)))))  # added to the list while the others run
    first = tuple(node for node in nodes if node not in late)
    files = tuple(nodes if node in late else first for node in nodes)
    versions = [nodes, *(_next(nodes, rng) for _ in range(rng.randrange(0, 3)))]
    faults: list[Fault] = []
    for version, listed in enumerate(versions, FIRST + 1):
        variant = "ordered" if rng.random() < 0.3 else ""
        told = nodes if variant == "" else rng.sample(nodes, 1)  # the others hear of an ordered one
        for node in told:
            at = rng.randrange(0, options.fault_time_ns)
            its = "other" if variant == "" and rng.random() < 0.05 else variant
            faults.append(Fault(at, FaultKind.RELOAD, node=node, version=version, listed=listed, variant=its))
    faults = sorted(faults, key=lambda fault: (fault.at, fault.node))
    return replace(options, rosters=files, is_unicast=rng.random() < 0.5, faults=(*options.faults, *faults))


def _next(nodes: tuple[int, ...], rng: Random) -> tuple[int, ...]:
    """One or two hosts are taken off the list, or all are on it again."""
    gone = rng.sample(nodes, rng.choice((0, 1, 1, 2)))
    return tuple(node for node in nodes if node not in gone)


def last_roster(options: SimOptions) -> Roster:
    """What all hosts have in the end: everybody."""
    version = max([FIRST + 1, *(fault.version for fault in options.faults if fault.kind is FaultKind.RELOAD)])
    return sim_roster(version + 1, range(options.nodes))


class RosterWitness:
    """Judges who was taken in, from what hosts were told and what they installed; each membership by itself, where a
    process has several."""

    def __init__(self, *, sees_all: bool = True, is_told: bool = False) -> None:
        """`sees_all`: a process installs every configuration in which it was; with trees, not of their control.
        `is_told`: what processes install is not what they are members of, which `installed` tells."""
        self._is_told = is_told
        self._findings = Findings()
        self._judges: defaultdict[int, _Judge] = defaultdict(lambda: _Judge(self._findings, sees_all))  # by segment

    def observe(self, event: Event) -> None:
        if isinstance(event, Started):
            for judge in self._judges.values():
                judge.started(event.process)
        elif isinstance(event, Installed) and not self._is_told:
            view = event.configuration
            if view.kind is ConfigurationKind.REGULAR:
                self.installed(int(MAIN), event.process, view.id, view.members)

    def enlisted(self, segment: int, process: ProcessId, roster: Roster) -> None:
        """Hear that a process goes by this list."""
        self._judges[segment].enlisted(process, roster)

    def installed(self, segment: int, process: ProcessId, view: ConfigurationId, members: Members) -> None:
        """Hear of a regular configuration."""
        self._judges[segment].installed(process, view, members)

    def verdicts(self) -> list[Verdict]:
        return [self._findings.verdict(RosterPromise.ADMISSION)]


@dataclass(slots=True)
class _Judge:
    """Judges one membership."""

    findings: Findings
    sees_all: bool
    _lists: dict[ProcessId, list[Roster]] = field(default_factory=dict)  # that each had since its last configuration
    _before: dict[ProcessId, Members] = field(default_factory=dict)  # of the last regular view of each
    _companions: dict[ProcessId, set[ProcessId]] = field(
        default_factory=dict
    )  # with whom each was together in its life
    _came_with: dict[ConfigurationId, dict[ProcessId, Members]] = field(
        default_factory=dict
    )  # from which configuration
    _had: dict[ConfigurationId, dict[ProcessId, list[Roster]]] = field(default_factory=dict)

    def enlisted(self, process: ProcessId, roster: Roster) -> None:
        self._lists.setdefault(process, []).append(roster)

    def started(self, process: ProcessId) -> None:
        self._lists[process] = []

    def installed(self, process: ProcessId, view: ConfigurationId, members: Members) -> None:
        self._came_with.setdefault(view, {})[process] = self._before.get(process, frozenset())
        self._before[process] = members
        lists = self._lists.setdefault(process, [])
        rosters = self._had.setdefault(view, {})
        rosters[process] = list(lists)
        del lists[:-1]
        if rosters.keys() == set(members):
            self._judge(view, sorted(members), rosters)
            for member in members:
                self._companions.setdefault(member, set()).update(members)

    def _judge(self, view: ConfigurationId, members: list[ProcessId], rosters: dict[ProcessId, list[Roster]]) -> None:
        """Who came alone must be on the list of everybody else who was never together with it, and on somebody's; who
        came with others on somebody's. Members who were together may be together again, whatever their lists say by
        now: who is on any list still is not dropped, and expulsion follows when all have dropped it."""
        came_with = self._came_with[view]
        for member in members:
            others = [other for other in members if other != member]
            if any(member in came_with[other] for other in others):
                continue
            nameless = [other for other in others if not any(node_of(member) in roster for roster in rosters[other])]
            if others and nameless == others:
                self._found(member, view, "is on nobody's list")
            elif set(came_with[member]) == {member} and self.sees_all:
                for other in nameless:
                    if member not in self._companions.get(other, ()):
                        self._found(member, view, f"was taken in although it is not on the list of n{node_of(other)}")

    def _found(self, member: ProcessId, view: ConfigurationId, what: str) -> None:
        self.findings.add(RosterPromise.ADMISSION, what, member, view)
