"""What a process does about node lists: takes a newer one, stores it, sends it to those who have another, refuses
strangers and tells a person. Who may be on a ring is decided in `admission.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING

from ordercast.model.effects import Alarm, AlarmKind, Enlisted, Persist
from ordercast.model.errors import UsageError, WireError
from ordercast.model.ids import SECOND, Instant, NodeId, ProcessId, node_of
from ordercast.model.inputs import Stored
from ordercast.model.notes import Occurrence, PacketDropped
from ordercast.model.roster import NO_CLAIM, Claim, Entry, Roster
from ordercast.order.membership.admission import Admission
from ordercast.wire.messages import RosterCopy
from ordercast.wire.reader import ByteReader
from ordercast.wire.roster import encode_roster, read_roster

if TYPE_CHECKING:
    from ordercast.order.membership.step import Step

ROSTER_KEY = "roster"
SIZE_MAX = 60_000  # bytes of a roster: it must fit in a packet
JUMP_MAX = 1 << 16  # versions that a roster of another member may be ahead of mine
REPEAT_NS = 60 * SECOND  # what goes on is told this often
PATIENCE_NS = 1 * SECOND  # so long a roster is waited for that would make the sentence clearer
MATTERS_MAX = 64  # that are remembered: more strangers than this are refused in silence
COPIES_RATE = 400_000  # bytes of copies that are read in a second, while many come
COPIES_MAX = 400_000  # and at once
FAREWELLS = 5  # announcements that a member has to leave by itself when all others have dropped it
SELDOM = 5  # announcements between two copies of the roster while some of its nodes are not here

_COUNT = struct.Struct(">H")


@dataclass(slots=True)
class _Matter:
    """Something to tell a person, again and again while it lasts."""

    process: ProcessId  # the life of the node with which it is
    since: Instant
    told_at: Instant | None = None

    def is_due(self, now: Instant, *, is_clear: bool) -> bool:
        if self.told_at is not None and now - self.told_at < REPEAT_NS:
            return False
        return is_clear or now - self.since >= PATIENCE_NS


@dataclass(slots=True)
class Rosters:
    admission: Admission
    _matters: dict[tuple[AlarmKind, NodeId, Claim], _Matter] = field(default_factory=dict)
    _reached: tuple[Entry, ...] = ()  # nodes beside those of the roster that the driver was told of
    _announcements: int = 0
    _dropped: dict[ProcessId, int] = field(default_factory=dict)  # members, and for how many announcements in a row
    _readable: int = COPIES_MAX  # bytes of copies that may be read now
    _read_at: int = 0  # the instant of the last look
    _stranger_at: Instant | None = None  # when one was last refused: it may want to know our list

    # Taking a roster

    def start(self, stored: Stored, step: Step) -> None:
        """What an earlier life stored."""
        data = stored.get(ROSTER_KEY)
        if data is None:
            return
        try:
            roster, admitted = _stored_from(data)
        except WireError as error:
            text = f"the stored node list is damaged ({error}): this node goes by its file until it is told another"
            step.alarm(Alarm(AlarmKind.STORAGE_DAMAGED, text, step.facts.me))
            return
        self.admission.adopt(roster, admitted)
        step.effects.append(Enlisted(roster))

    def enlist(self, roster: Roster, step: Step) -> None:
        """UsageError, and nothing changed, when this is not newer than what this process has."""
        mine = self.admission.mine
        if len(encode_roster(roster)) > SIZE_MAX:
            raise UsageError(f"a node list of {len(roster.entries)} nodes is too large: at most {SIZE_MAX} bytes")
        if mine is not None and roster.claim == mine.claim:
            return
        if mine is not None and roster.version == mine.version:
            raise UsageError(
                f"its nodes are not those of version {mine.version} of the node list, which this node has: "
                f"raise nodes_version to {mine.version + 1}"
            )
        if mine is not None and roster.version < mine.version:
            raise UsageError(
                f"it has version {roster.version} of the node list, this node has {mine.version} already: "
                "bring it up to date (`ordercast cluster list --toml` prints the list)"
            )
        self._adopt(roster, step)

    def _adopt(self, roster: Roster, step: Step) -> None:
        self.admission.adopt(roster)
        self._reached = self._to_be_reached(_around(step), step)
        self._matters.clear()
        step.occurred(Occurrence.ROSTER_ADOPTED)
        step.effects.append(Enlisted(roster, self._reached))
        self._store(step)

    def _store(self, step: Step) -> None:
        roster, admitted = self.admission.mine, sorted(self.admission.admitted)
        if roster is not None:
            nodes = b"".join(_COUNT.pack(node) for node in admitted)
            step.effects.append(Persist(ROSTER_KEY, encode_roster(roster) + _COUNT.pack(len(admitted)) + nodes))

    def installed(self, step: Step) -> None:
        """A ring is installed: its members are no newcomers any more."""
        if self.admission.installed(step.facts.installed.members):
            self._store(step)

    # What others say

    def is_stranger(self, process: ProcessId, step: Step) -> bool:
        """Whether nothing that this process says is listened to. A person is told of it."""
        admission = self.admission
        if admission.mine is None or node_of(process) in admission.mine:
            return False
        if process in step.facts.installed.members or admission.takes(process, _around(step)):
            return False
        self._stranger_at = step.now
        step.note(PacketDropped("a node that is not on this node's list"))
        step.occurred(Occurrence.STRANGER_REFUSED, process=process)
        entry = admission.entry_by_itself(process)
        if self._is_due(AlarmKind.UNLISTED_NODE, process, NO_CLAIM, step, is_clear=entry is not None):
            step.alarm(Alarm(AlarmKind.UNLISTED_NODE, _stranger_text(admission.mine, process, entry), process))
        return True

    def has_stranger(self, processes: Collection[ProcessId], step: Step) -> bool:
        """Whether one of these is a stranger."""
        return self.admission.mine is not None and any(self.is_stranger(process, step) for process in processes)

    def claimed(self, process: ProcessId, claim: Claim, step: Step) -> None:
        admission = self.admission
        admission.claimed(process, claim)
        if admission.mine is None or claim == admission.claim:
            return
        is_clear = admission.roster_of(process) is not None
        if not admission.is_at_odds(process):
            return
        if self._is_due(AlarmKind.NODE_LISTS_DIFFER, process, claim, step, is_clear=is_clear):
            text = f"{admission.difference(process)}; nobody is taken in or dropped until all lists agree"
            step.alarm(Alarm(AlarmKind.NODE_LISTS_DIFFER, text, process))

    def may_read(self, size: int, now: Instant) -> bool:
        """Whether a copy of so many bytes is worth a look: reading one takes far longer than sending one."""
        self._readable = min(COPIES_MAX, self._readable + (now - self._read_at) * COPIES_RATE // SECOND)
        self._read_at = now
        if size > self._readable:
            return False
        self._readable -= size
        return True

    def copied(self, copy: RosterCopy, step: Step, *, is_stranger: bool) -> None:
        """The roster of another process. One that was ordered is the cluster's, and the newest is everybody's."""
        admission, roster = self.admission, copy.roster
        admission.copied(copy.sender, roster)
        mine = admission.mine
        if is_stranger or mine is None or roster.version <= mine.version or not mine.version:
            return  # version 0: nodes of one machine without a file, which have no list and take none
        if node_of(step.facts.me) not in roster:
            if self._is_due(AlarmKind.REMOVED, copy.sender, roster.claim, step, is_clear=True):
                text = (
                    f"version {roster.version} of the node list at {admission.name_of(copy.sender)} does not have this "
                    "node, which was removed from the cluster: stop it, or add it again (`ordercast cluster add`)"
                )
                step.alarm(Alarm(AlarmKind.REMOVED, text, copy.sender))
        elif roster.is_ordered and roster.version - mine.version <= JUMP_MAX and roster.is_like(*mine.entries[:1]):
            step.occurred(Occurrence.ROSTER_LEARNT)
            self._adopt(roster, step)

    def _is_due(self, kind: AlarmKind, process: ProcessId, claim: Claim, step: Step, *, is_clear: bool) -> bool:
        node = node_of(process)
        matter = self._matters.get((kind, node, claim))
        if matter is None:
            if len(self._matters) >= MATTERS_MAX:
                self._matters = {
                    key: matter
                    for key, matter in self._matters.items()
                    if step.now - (matter.told_at or matter.since) < REPEAT_NS
                }
                if len(self._matters) >= MATTERS_MAX:
                    return False
            matter = self._matters[kind, node, claim] = _Matter(process, step.now)
        elif matter.process != process:  # a later life has time to show its roster, too
            matter.process, matter.since = process, step.now
        if not matter.is_due(step.now, is_clear=is_clear):
            return False
        matter.told_at = step.now
        return True

    # With every announcement

    def dropped_for_long(self, members: tuple[ProcessId, ...]) -> list[ProcessId]:
        """Members that the rosters of all others have dropped for some announcements: time for an orderly leave."""
        dropped = self.admission.dropped(members)
        self._dropped = {member: self._dropped.get(member, 0) + 1 for member in dropped}
        return [member for member in dropped if self._dropped[member] > FAREWELLS]

    def is_calm(self, step: Step) -> bool:
        """Whether all who are around have the same roster, and no member was dropped from it."""
        if self.admission.mine is None:
            return True
        return not self._dropped and not any(self.admission.is_differing(process) for process in _around(step))

    def announced(self, step: Step) -> None:
        """Send the roster to those who have another, and tell the driver whom else to reach."""
        admission, facts = self.admission, step.facts
        if admission.mine is None:
            return
        around = _around(step)
        reached = self._to_be_reached(around, step)
        if reached != self._reached:
            self._reached = reached
            step.effects.append(Enlisted(admission.mine, reached))
        self._announcements += 1
        if self._wants_copies(around, step):
            step.broadcast(RosterCopy(facts.installed.id, facts.me, admission.mine))

    def _to_be_reached(self, around: tuple[ProcessId, ...], step: Step) -> tuple[Entry, ...]:
        """Nodes beside those of my roster: whom others still name, and who is on my ring until it is expelled."""
        admission, known = self.admission, {entry.node: entry for entry in self._reached}
        found = {entry.node: entry for entry in admission.tolerated(around)}
        for node in map(node_of, step.facts.installed.members):
            if admission.mine is not None and node not in admission.mine and node not in found:
                entry = admission.entry(node, around) or known.get(node)
                found.update({node: entry} if entry is not None else {})
        return tuple(found[node] for node in sorted(found))

    def _wants_copies(self, around: tuple[ProcessId, ...], step: Step) -> bool:
        mine = self.admission.mine
        if any(self.admission.is_differing(process) for process in around):
            return True
        if self._stranger_at is not None and step.now - self._stranger_at < PATIENCE_NS:
            return True
        is_whole = mine is None or len(step.facts.installed.members) >= len(mine.entries) or not mine.version
        return not is_whole and self._announcements % SELDOM == 1


def _around(step: Step) -> tuple[ProcessId, ...]:
    """Whom I hear, and who is on my ring."""
    facts = step.facts
    heard = set(facts.hearing.heard(step.now)) | set(facts.installed.members)
    return tuple(sorted(heard - {facts.me}))


def _stored_from(data: bytes) -> tuple[Roster, list[NodeId]]:
    reader = ByteReader(data, what="a stored node list")
    roster = read_roster(reader)
    admitted = reader.numbers(reader.unpack(_COUNT)[0], "H")
    reader.end()
    return roster, [NodeId(node) for node in admitted]


def _stranger_text(mine: Roster, process: ProcessId, entry: Entry | None) -> str:
    node = node_of(process)
    if not mine.version:
        return f"node {node} was heard, and no such node can be on this machine: it is refused"
    if entry is None:
        return (
            f"node {node} is refused, it is not on this node's list, version {mine.version}: "
            f"`ordercast cluster add NAME {node} ADDRESS` admits it, or bring the file up to date and reload it"
        )
    place = entry.places[0]
    addresses = " ".join(each.address for each in entry.places)
    name = quote(entry.name)  # it says it itself, and people copy the command into a shell
    ports = f"--token-port {place.token_port} --data-port {place.data_port}"
    return (
        f"{entry.name} (node {node} at {place.address} port {place.token_port}, as it says itself) is refused, it is "
        f"not on this node's list, version {mine.version}: `ordercast cluster add {name} {node} {addresses} "
        f"{ports}` admits it, or bring the file up to date and reload it"
    )
