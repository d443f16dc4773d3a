"""Who may be on a ring, as far as node lists (rosters) go. Pure questions; `hearing.py` asks them.

Rosters of several processes differ while a host is being added or removed. The rules, ours and not the paper's:

- A process whose node is not on my roster is a stranger: nothing that it says is listened to, and a person is told.
- Rings come together only when the roster of every process involved names all the others. Newcomers that were never on
  a ring with me wait, moreover, while anybody else could be on a ring with one side and not with the other: otherwise
  the first host with a new roster would leave the others for the newcomer.
- Who has a newer roster that dropped a node *tolerates* that node while somebody with an older roster still names it
  and is on a ring with it. Members are expelled when the rosters of all who remain have dropped them.
- Two rosters of one version with different nodes contradict each other: rings with such members stay apart. Addresses
  may differ: hosts can be reached by different ones from different places.
- A ring that stands is left alone by all of this, except for that expulsion.

Without a roster (`mine` is None) everybody is admitted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from ordercast.model.ids import NodeId, ProcessId, node_of, process_text
from ordercast.model.roster import NO_CLAIM, Claim, Entry, Roster

KNOWN_MAX = 512  # processes of whose rosters something is remembered
NAMES_MAX = 8  # that a sentence tells of many
ENTRIES_MAX = 1 << 14  # nodes of all rosters that are remembered as a whole


class Around(NamedTuple):
    """What is known of others when newcomers are judged."""

    heard: Collection[ProcessId] = ()  # by me
    incumbents: Collection[ProcessId] = ()  # newcomers that are on a ring with others: they may be tolerated


class Admission:
    __slots__ = ("_claims", "_companions", "_copies", "admitted", "former", "me", "mine")

    def __init__(self, me: ProcessId) -> None:
        self.me = me
        self.mine: Roster | None = None
        self.former: Roster | None = None  # the one before: most others still have it
        self.admitted: frozenset[NodeId] = frozenset()  # nodes of my roster that were on a ring with me
        self._companions: Collection[ProcessId] = ()  # who is on a ring with others, myself among them
        self._claims: dict[ProcessId, Claim] = {}  # of the rosters of others
        self._copies: dict[ProcessId, Roster] = {}  # as others sent them

    @property
    def claim(self) -> Claim:
        return NO_CLAIM if self.mine is None else self.mine.claim

    # What is learnt

    def adopt(self, roster: Roster, admitted: Iterable[NodeId] = ()) -> None:
        """This is my roster from now on."""
        self.mine, self.former = roster, self.mine
        self.admitted = frozenset(node for node in {*self.admitted, *admitted} if node in roster)

    def installed(self, members: Collection[ProcessId]) -> bool:
        """These are on a ring with me. True when some were not before."""
        self._companions = members if len(members) > 1 else ()
        if self.mine is None:
            return False
        nodes = {node_of(member) for member in members}
        fresh = {node for node in nodes if node in self.mine} - self.admitted
        self.admitted |= fresh
        return bool(fresh)

    def claimed(self, process: ProcessId, claim: Claim) -> None:
        """What a process says of its roster."""
        self._claims.pop(process, None)  # the oldest are forgotten first
        self._claims[process] = claim
        while len(self._claims) > KNOWN_MAX:
            oldest = next(iter(self._claims))
            del self._claims[oldest]
            self._copies.pop(oldest, None)

    def copied(self, process: ProcessId, roster: Roster) -> None:
        """A process has sent its whole roster."""
        self.claimed(process, roster.claim)
        self._copies.pop(process, None)
        self._copies[process] = roster
        size = sum(len(each.entries) for each in self._copies.values())
        while size > ENTRIES_MAX:  # anybody can send one: the oldest are forgotten first
            size -= len(self._copies.pop(next(iter(self._copies))).entries)

    # What is known of rosters

    def roster_of(self, process: ProcessId) -> Roster | None:
        """The roster of a process; None while it is not known."""
        if process == self.me:
            return self.mine
        claim = self._claims.get(process)
        for roster in (self.mine, self.former, self._copies.get(process)):
            if roster is not None and roster.claim == claim:
                return roster
        return None

    def is_differing(self, process: ProcessId) -> bool:
        """The process is known to have another roster than mine."""
        return self._claims.get(process, self.claim) != self.claim

    def is_at_odds(self, process: ProcessId) -> bool:
        """The process has another roster than mine, as far as known: not the same nodes at other addresses alone."""
        if self.mine is None or not self.is_differing(process):
            return False
        theirs = self.roster_of(process)
        return theirs is None or theirs.version != self.mine.version or self.is_contradicting(process)

    def entry(self, node: NodeId, heard: Collection[ProcessId] = ()) -> Entry | None:
        """Where a node receives: as my roster says, or the rosters of those who still name it."""
        rosters = [self.mine, self.former, *(self.roster_of(process) for process in sorted(heard))]
        return next((entry for roster in rosters if roster is not None and (entry := roster.entry(node))), None)

    def entry_by_itself(self, process: ProcessId) -> Entry | None:
        """What a process says of its own node."""
        roster = self._copies.get(process)
        return None if roster is None else roster.entry(node_of(process))

    def tolerated(self, heard: Collection[ProcessId]) -> tuple[Entry, ...]:
        """Nodes that my roster has dropped and an older one of somebody on my roster has not."""
        found: dict[NodeId, Entry] = {}
        for process in sorted(heard):
            roster = self._older_of(process)
            for entry in roster.entries if roster is not None and self.mine is not None else ():
                if self.mine is not None and entry.node not in self.mine:
                    found.setdefault(entry.node, entry)
        return tuple(found[node] for node in sorted(found))

    def _older_of(self, process: ProcessId) -> Roster | None:
        """The roster of a process on mine, if it is older than mine. (So nobody is tolerated on its own word.)"""
        if self.mine is None or node_of(process) not in self.mine:
            return None
        roster = self.roster_of(process)
        return roster if roster is not None and roster.version < self.mine.version else None

    # Questions

    def takes(self, process: ProcessId, heard: Collection[ProcessId]) -> bool:
        """Whether what this process says is listened to."""
        if self.mine is None or process == self.me or (node := node_of(process)) in self.mine:
            return True
        older = map(self._older_of, heard)
        return any(roster is not None and node in roster for roster in older)

    def admits(self, newcomers: Collection[ProcessId], ring: Collection[ProcessId], around: Around) -> bool:
        """Whether rosters allow that these newcomers come together with this ring."""
        if self.mine is None:
            return True
        together = [*ring, *newcomers]
        if self._contradict(ring, newcomers):
            return False
        lenient = {*self._companions, *around.incumbents}  # not who is only proposed: two newcomers at once stay two
        if not all(self._accepts(one, other, together, lenient) for one in together for other in together):
            return False
        return all(node_of(one) in self.admitted for one in newcomers) or not self._have_to_wait(
            newcomers, ring, around
        )

    def unlisted(self, proposed: Collection[ProcessId], ring: Collection[ProcessId]) -> list[ProcessId]:
        """Newcomers among those proposed whom my roster does not name, nor an older one of anybody proposed: those who
        still named them have failed meanwhile."""
        others = [process for process in proposed if process != self.me]
        newcomers = [process for process in others if process not in ring]
        return [process for process in newcomers if not self.takes(process, others)]

    def _contradict(self, ring: Collection[ProcessId], newcomers: Collection[ProcessId]) -> bool:
        rosters = {process: self.roster_of(process) for process in (*ring, *newcomers)}
        return any(_are_contradicting(rosters[one], rosters[other]) for one in ring for other in newcomers)

    def is_contradicting(self, process: ProcessId) -> bool:
        """The process is known to have other nodes than I in the same version."""
        return _are_contradicting(self.mine, self.roster_of(process))

    def _claim_of(self, process: ProcessId) -> Claim:
        return self.claim if process == self.me else self._claims.get(process, NO_CLAIM)

    def _accepts(
        self, one: ProcessId, other: ProcessId, together: Collection[ProcessId], lenient: Collection[ProcessId]
    ) -> bool:
        """Whether one can be on a ring with the other: its roster names it, or dropped it when others have not yet. Not
        as long as its roster is not known."""
        roster, node = self.roster_of(one), node_of(other)
        if one == other or roster is None or node in roster:
            return roster is not None
        if other not in lenient:
            return False
        older = (self.roster_of(third) for third in together if third not in (one, other))
        return any(third is not None and third.version < roster.version and node in third for third in older)

    def _have_to_wait(self, newcomers: Collection[ProcessId], ring: Collection[ProcessId], around: Around) -> bool:
        """Somebody else could be on a ring with one side, but not with the other: the two sides, which were never
        together, would keep one of them from where it belongs. Who is heard there and not here is judged there: rings
        come together when both sides want to, and whoever cannot be heard here must not keep them apart for ever."""
        assert self.mine is not None
        for other in around.heard:
            if other in ring or other in newcomers or node_of(other) not in self.mine:
                continue
            roster = self.roster_of(other)
            if roster is None:
                return True
            here, there = (all(node_of(one) in roster for one in side) for side in (ring, newcomers))
            if here != there and not self._contradict((other,), ring if here else newcomers):
                return True
        return False

    def dropped(self, members: Collection[ProcessId]) -> list[ProcessId]:
        """Members that my roster has dropped, when those of all who remain have dropped them too."""
        if self.mine is None:
            return []
        mine = self.mine
        gone = [member for member in members if member != self.me and node_of(member) not in mine]
        rosters = [self.roster_of(member) for member in members if member not in gone]
        nodes = [node_of(member) for member in gone]
        return gone if all(one is not None and not any(node in one for node in nodes) for one in rosters) else []

    # Sentences

    def name_of(self, process: ProcessId, heard: Collection[ProcessId] = ()) -> str:
        entry = self.entry(node_of(process), heard) or self.entry_by_itself(process)
        return process_text(process) if entry is None else entry.name

    def difference(self, process: ProcessId) -> str:
        """`beta has version 3 of the node list, we have 2: delta is missing here`."""
        assert self.mine is not None
        who, claim = self.name_of(process), self._claim_of(process)
        if claim == NO_CLAIM:
            return f"{who} has no node list, we have version {self.mine.version}"
        if claim.version == self.mine.version:
            what = "other nodes" if self.is_contradicting(process) else "other addresses"
            text = f"{who} has {what} than we in version {claim.version} of the node list"
        else:
            text = f"{who} has version {claim.version} of the node list, we have {self.mine.version}"
        theirs = self.roster_of(process)
        if theirs is None:
            return text
        parts = [
            *_listed("missing here", {e.node: e.name for e in theirs.entries if e.node not in self.mine}),
            *_listed("missing there", {e.node: e.name for e in self.mine.entries if e.node not in theirs}),
            *_listed("not the same in both", {e.node: e.name for e in self.mine.entries if _differs(e, theirs)}),
        ]
        return f"{text}: {', '.join(parts)}" if parts else f"{text}, with the same nodes"


def _are_contradicting(one: Roster | None, other: Roster | None) -> bool:
    if one is None or other is None or one.version != other.version or one.claim == other.claim:
        return False
    return _nodes(one) != _nodes(other)


def _nodes(roster: Roster) -> list[tuple[NodeId, str]]:
    return [(entry.node, entry.name) for entry in roster.entries]


def _differs(entry: Entry, other: Roster) -> bool:
    theirs = other.entry(entry.node)
    return theirs is not None and theirs != entry


def _listed(what: str, nodes: dict[NodeId, str]) -> list[str]:
    if not nodes:
        return []
    names = [nodes[node] for node in sorted(nodes)]
    if len(names) > NAMES_MAX:
        names = [*names[:NAMES_MAX], f"{len(names) - NAMES_MAX} more"]
    return [
        f"{' and '.join(names) if len(names) < 3 else ', '.join(names)} {'is' if len(names) == 1 else 'are'} {what}"
    ]
