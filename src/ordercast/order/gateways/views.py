"""Views of the network: ids that carry their past, who comes along, and why.

A view is made where the parts with members have changed, and at the front of an ended ring of which some halves are not
known, though all their members may have left before: elsewhere more of its packets may be known. A birth and the
removal of the ring whose place it takes make one view. Its id rises at every process, and is equal where the past is
equal: its tag is a digest of the ids of the views before (of all sides, if it is a merge), of its place, of its parts
and of those who are lost there. So members of one view have delivered the same since the view before, and whoever has
the same view never differs in what follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.items import NOBODY_ELSE, LogicalRing, Processes, TopologyPart
from ordercast.order.gateways.known import Known
from ordercast.order.stamped.lanes import Stamp

DIGEST_BITS = 47  # of a tag; before them stands which of the views at one tick it is
COUNT_BITS = 63 - DIGEST_BITS
VIEW_STEP = 2  # between two views lies the transitional configuration that leads to the later one


@dataclass(frozen=True, slots=True)
class NetworkView:
    """Who is in the network from one place of the order on."""

    id: ConfigurationId
    previous: ConfigurationId
    stamp: Stamp
    members: Processes
    rings: tuple[TopologyPart, ...]  # the parts with members, sorted by ring
    transitional: Processes  # who comes from the same view: truthful and mutual, at a merge perhaps too small
    reason: ChangeReason
    follows: bool = True  # what has this very stamp came before; otherwise it comes next
    number: int = 0  # of the views at this very place, how many came before
    # Members have left, and a ring will be born that they are not on: for users, the view before this one ends there.
    is_provisional: bool = False
    sources: Processes = NOBODY_ELSE  # members of all rings that are parts, even if none of them counts any more

    @property
    def place(self) -> Stamp:
        """Where it lies: just behind what has this stamp."""
        tick, tag, seq = self.stamp
        return (tick, tag, seq if self.follows else seq - 1)

    @property
    def shape(self) -> PartShapes:
        return tuple((part.ring.id, part.members) for part in self.rings)


PartShapes = tuple[tuple[ConfigurationId, Processes], ...]


@dataclass(slots=True)
class _Change:
    """What has changed at one place, and is not a view yet."""

    stamp: Stamp
    reason: ChangeReason
    sides: tuple[ConfigurationId, ...] | None = None  # of a merge: the views of all sides
    strangers: Processes = NOBODY_ELSE  # members who come from elsewhere, though they were in the view
    lost: Processes = NOBODY_ELSE  # of a ring that has ended: nothing more is known of these
    is_birth: bool = False  # a ring was born here, or one has gone without a successor
    returning: ProcessId | None = None  # takes over the view of the others


class Views:
    """The views that one process goes through."""

    __slots__ = ("_change", "_has_borne", "_known", "common", "current", "installed")

    def __init__(self, known: Known) -> None:
        self._known = known
        self._change: _Change | None = None
        self._has_borne = False  # a ring was born since members have left
        self.current = self._first()
        self.installed = self.current.members  # of the last view that users had
        # What the others call it: whoever came alone to a merge has another past, and another id, until it is back.
        self.common = self.current.id

    @property
    def is_pending(self) -> bool:
        """Whether parts have changed since the last view was made."""
        return self._change is not None

    def leave(self, stamp: Stamp, reason: ChangeReason, lost: Processes = NOBODY_ELSE) -> None:
        """Note that members have left at a place."""
        assert self._change is None, "members leave at a place of their own"
        self._change = _Change(stamp, reason, lost=lost)

    def bear(self, stamp: Stamp) -> None:
        """Note that a ring has taken its predecessor's place."""
        self._has_borne = True
        self.remove(stamp)

    def remove(self, stamp: Stamp) -> None:
        """Note that a ring has gone of which nothing is left."""
        if self._change is None:
            self._change = _Change(stamp, ChangeReason.RING_REFORMED, is_birth=True)

    def merge(self, ring: LogicalRing) -> None:
        """Note that the parts of several sides are one from here on: called before the parts are joined."""
        assert self._change is None, "a merge is at a place of its own"
        known = self._known
        sides = {topology.view for topology in ring.topologies}
        companions = self._companions(ring)
        known.occurred[Occurrence.NETWORK_SELF_MERGE] += len({side.view for side in ring.topologies}) == 1
        known.occurred[Occurrence.NETWORK_ALONE_AT_MERGE] += len(companions) == 1 < len(known.members)
        strangers = known.members - companions
        self._change = _Change(ring.birth, ChangeReason.RINGS_MERGED, tuple(sorted(sides)), strangers, is_birth=True)

    @property
    def is_alone(self) -> bool:
        """Whether this process has come to a merge from a view that no side of it was in, and is not back."""
        return self.current.id != self.common

    def come_back(self, process: ProcessId, stamp: Stamp) -> None:
        """Note that a process that came alone to a merge is in the view of the others from a place on."""
        members, me = self._known.members, self._known.me
        if process in members:
            strangers = frozenset((process,)) if process != me else members - {me}
            self._change = _Change(stamp, ChangeReason.RINGS_MERGED, strangers=strangers, returning=process)

    def _companions(self, ring: LogicalRing) -> Processes:
        """Return who surely comes to a merge from my view: whom the speakers of the sides in my view can hear, less
        those whom another side counts as its own. Whoever is not among them comes alone."""
        me, mine = self._known.me, self.current.id
        along = NOBODY_ELSE.union(*(side.reachable for side in ring.topologies if side.view == mine))
        halves = {half.ring: half.members for half in ring.halves}
        for side in ring.topologies:
            if side.view != mine:
                along -= side.reachable | halves[side.ring]
        return along if me in along else frozenset((me,))

    def settle(self) -> NetworkView | None:
        """Make the view of what has changed at one place, if it makes a difference."""
        change, self._change = self._change, None
        if change is None:
            return None
        rings = self._rings()
        shape = tuple((part.ring.id, part.members) for part in rings)
        old, members = self.current, self._known.members
        is_provisional = self._is_provisional(change)
        is_needed = change.sides is not None or change.lost or change.returning is not None
        is_needed = is_needed or (old.is_provisional and not is_provisional)
        if not is_needed and shape == self.current.shape:
            return None
        reason = change.reason
        if reason is ChangeReason.RING_REFORMED and not old.members <= members:
            reason = ChangeReason.RING_SPLIT
        view = NetworkView(
            self._name(change, shape),
            old.id,
            change.stamp,
            members,
            rings,
            (old.members & members) - change.strangers,
            reason,
            change.stamp <= self._known.place,
            is_provisional=is_provisional,
            sources=NOBODY_ELSE.union(*(self._known.rings[ring].members for ring in self._known.parts)),
        )
        self.current = replace(view, number=old.number + 1) if view.place == old.place else view
        if not is_provisional:
            self.installed, self._has_borne = members, False
        return self.current

    def _is_provisional(self, change: _Change) -> bool:
        """Tell whether those who have left may still deliver what comes next in the view before: until a ring is born
        without them, and each ring that they were on has ended in one, for all it brings lies below."""
        if change.sides is not None:
            return False
        if not change.is_birth:
            return change.returning is None or self.current.is_provisional
        if self.current.is_provisional and not self._has_borne:
            return True
        known, left = self._known, self.installed - self._known.members
        return any(
            not left.isdisjoint(known.rings[ring].members)
            and not any(after.id in known.born for after in known.successors(ring))
            for ring in known.parts
        )

    def _name(self, change: _Change, shape: PartShapes) -> ConfigurationId:
        """Return the id of the next view, and note what the others call it."""
        old, before = self.current.id, self.common
        sides = (before,) if change.sides is None else change.sides
        lost = change.lost if change.returning is None else frozenset((change.returning,))
        self.common = view_id(sides, change.stamp, shape, lost)
        if change.returning == self._known.me or (old == before and before in sides):
            return self.common
        past = (old,) if change.sides is None else sorted({*sides, old})
        return view_id(past, change.stamp, shape, lost)

    def _rings(self) -> tuple[TopologyPart, ...]:
        rings = self._known.rings
        return tuple(
            TopologyPart(rings[ring], members) for ring, members in sorted(self._known.parts.items()) if members
        )

    def _first(self) -> NetworkView:
        rings = self._rings()
        shape = tuple((part.ring.id, part.members) for part in rings)
        name = view_id((), self._known.place, shape)
        members = self._known.members
        return NetworkView(name, name, self._known.place, members, rings, members, ChangeReason.STARTED)


def view_id(
    before: Iterable[ConfigurationId], stamp: Stamp, shape: PartShapes, lost: Processes = NOBODY_ELSE
) -> ConfigurationId:
    """Return the id of a view: above all that came before, and with their digest."""
    past = list(before)
    number = max([stamp[0] << COUNT_BITS, *(view_number(view) + VIEW_STEP for view in past)])
    parts = [(tuple(ring), sorted(members)) for ring, members in shape]
    return id_from(number, [tuple(view) for view in past], stamp, parts, sorted(lost))


def id_from(number: int, *past: object) -> ConfigurationId:
    """Return the id of a configuration: its tick, then which one it is at this tick and a digest of its past."""
    digest = blake2b(repr(past).encode("ascii"), digest_size=8).digest()
    tick, count = divmod(number, 1 << COUNT_BITS)
    tag = count << DIGEST_BITS | int.from_bytes(digest, "big") >> (64 - DIGEST_BITS)
    return ConfigurationId(tick, ProcessId(tag))


def view_number(view: ConfigurationId) -> int:
    """Return the tick of a configuration and which one it is there, in one number."""
    return view.seq << COUNT_BITS | view.representative >> DIGEST_BITS


def view_text(view: ConfigurationId) -> str:
    """Return the id of a view for people: its tick, its number there, and the end of its digest."""
    tick, count = divmod(view_number(view), 1 << COUNT_BITS)
    return f"{tick}.{count // VIEW_STEP}-{view.representative & 0xFFFF:04x}"
