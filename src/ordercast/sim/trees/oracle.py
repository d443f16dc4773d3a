"""An oracle in the place of the control ring of trees: the world itself orders what is said, and says who is there.

A ring of thousands would be a simulation of its token alone. Here everything that is said within a moment has its place
at the end of it, at everybody; who begins, crashes or leaves is told by a new configuration. There are no partitions.
Everything else is the engine as it ships. Two things are worked out once, since they are the same at all: what control
messages say, and the forest that an opening makes of them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Deliver, Effect, Install, LeaveDone, Parcel
from ordercast.model.errors import UsageError
from ordercast.model.ids import (
    MAIN,
    MILLISECOND,
    NO_CONFIGURATION,
    SLOT_MAX,
    Attachment,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    node_of,
    process_id_from,
)
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.promises import Promise, Promises
from ordercast.model.roster import Roster
from ordercast.model.service import Service
from ordercast.order.catalogue import CONTROL_SIZE_MAX, tree_over
from ordercast.order.engine import Engine, EngineStats, Membership, granted
from ordercast.order.setup import Setup
from ordercast.order.traffic import Traffic
from ordercast.order.tree.control import Opening, decode_control
from ordercast.order.tree.course import Course, FollowingForest
from ordercast.order.tree.facts import MakeCourse
from ordercast.order.tree.node import TreeNode
from ordercast.sim.options import SimOptions
from ordercast.sim.world import World
from ordercast.trace.records import Crashed, Event

MOMENT_NS = MILLISECOND  # what is said within it has its place at its end
NOTICED_NS = 20 * MILLISECOND  # how long a crash stays unnoticed
STEP = 4  # between the numbers of two configurations, as a ring counts them
ROOM = 1 << 40  # bytes: nobody waits for an oracle
DUE = Instant(0)
REGULAR, TRANSITIONAL = ConfigurationKind.REGULAR, ConfigurationKind.TRANSITIONAL

Said = tuple[ProcessId, int, int, bytes]  # originator, sender, service, data
Forests = dict[tuple[ConfigurationId, int], tuple[Opening, FollowingForest]]


class Oracle:
    """Orders what all processes of one run say for control."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ends: dict[ProcessId, OracleEnd] = {}  # of those who live
        self._id = NO_CONFIGURATION  # of the configuration in which all are who are not new
        self._seq = 0  # of the last one
        self._numbers: dict[ConfigurationId, int] = {}  # of the last message in each
        self._said: list[Said] = []  # that have no place yet
        self._reason: ChangeReason | None = None  # why the members are others now
        self._is_due = False  # a moment has begun
        self._forests: Forests = {}
        self._read_control = lru_cache(maxsize=1 << 16)(decode_control)
        world.observers.append(self._observe)

    def make(self, options: SimOptions, node: NodeId) -> Engine:
        """Return the engine of one host."""
        return tree_over(Setup(node, {"ring": options.ring, "tree": options.tree}), OracleEnd(self, node))

    def sharing(self, make: Callable[[NodeId], Engine], node: NodeId) -> Engine:
        """Return an engine that takes from others what they have worked out alike."""
        engine = make(node)
        assert isinstance(engine, TreeNode)
        engine.make_course = partial(self._shared, engine.make_course)
        engine.read_control = self._read_control
        return engine

    def _shared(self, make: MakeCourse, *given: Any) -> Course:
        course = make(*given)
        course.following = partial(self._following, course)
        return course

    def _following(self, course: Course, opening: Opening) -> FollowingForest:
        key = course.configuration.id, opening.number
        known, found = self._forests.get(key, (None, None))
        if found is None or known != opening:
            found = course.forest_after(opening)
            self._forests[key] = opening, found
        return found

    # What its ends tell it

    def begin(self, end: OracleEnd) -> Configuration:
        """A process begins, alone at first."""
        self._ends[end.process] = end
        self._change(ChangeReason.MERGE)
        id, alone = self._next_id(end.process), (end.process,)
        end.configuration = Membership(id, alone)
        return Configuration(REGULAR, id, alone, NO_CONFIGURATION, alone, ChangeReason.STARTED, Position(id, 0, 0))

    def leave(self) -> None:
        self._change(ChangeReason.LEFT)

    def say(self, said: Sequence[Said]) -> None:
        self._said += said
        self._soon()

    def _observe(self, event: Event) -> None:
        if isinstance(event, Crashed) and self._ends.pop(event.process, None) is not None:
            self._world.schedule(self._world.now + NOTICED_NS, self._change, ChangeReason.TOKEN_LOST)

    def _change(self, reason: ChangeReason) -> None:
        self._reason = reason
        self._soon()

    def _soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._world.schedule(self._world.now + MOMENT_NS, self._tell)

    def _next_id(self, representative: ProcessId) -> ConfigurationId:
        self._seq += STEP
        return ConfigurationId(self._seq, representative)

    # What it tells them

    def _tell(self) -> None:
        """Give what was said its place, and then, if the members are others now, begin a configuration."""
        self._is_due = False
        self._deliver()
        if self._reason is not None:
            self._install(self._reason)
            self._reason = None
        for process, end in list(self._ends.items()):
            if end.inbox:
                self._world.schedule(self._world.now, self._world.hosts[node_of(process)].poke, process)
            if end.is_gone:
                del self._ends[process]

    def _deliver(self) -> None:
        """Whoever is with others hears the same as they do; who is alone hears itself."""
        said, self._said = self._said, []
        parcels: defaultdict[ConfigurationId, list[Parcel]] = defaultdict(list)
        for originator, sender, service, data in said:
            end = self._ends.get(originator)
            id = self._id if end is None else end.configuration.id
            if end is not None:
                end.unplaced -= 1
            number = self._numbers[id] = self._numbers.get(id, 0) + 1
            parcels[id].append((number, originator, [sender], [service], [data], 1, 0))
        delivers = {id: Deliver(id, id, some) for id, some in parcels.items()}
        for end in self._ends.values():
            if (deliver := delivers.get(end.configuration.id)) is not None:
                end.inbox.append(deliver)

    def _install(self, reason: ChangeReason) -> None:
        for end in self._ends.values():
            if end.is_leaving:
                end.inbox.append(LeaveDone())
                end.is_gone = True
        members = tuple(sorted(process for process, end in self._ends.items() if not end.is_gone))
        together = {self._ends[process].configuration for process in members}
        if not members or together == {Membership(self._id, members)}:
            return
        along: defaultdict[ConfigurationId, list[ProcessId]] = defaultdict(list)
        for process in members:
            along[self._ends[process].configuration.id].append(process)
        id = self._next_id(members[0])
        for process in members:
            end = self._ends[process]
            old = end.configuration.id
            with_me, last = tuple(along[old]), Position(old, self._numbers.get(old, 0), SLOT_MAX)
            end.inbox.append(Install(Configuration(TRANSITIONAL, id, with_me, old, with_me, reason, last)))
            end.inbox.append(Install(Configuration(REGULAR, id, members, old, with_me, reason, Position(id, 0, 0))))
            end.configuration = Membership(id, members)
        self._id, self._numbers = id, {}


class OracleEnd:
    """One process's end: an engine whose stream is the oracle's."""

    promises = Promises("oracle", frozenset(Promise), frozenset(Service), CONTROL_SIZE_MAX)
    traffic = Traffic()
    roster: Roster | None = None
    is_without_storage = False
    state_name = "Operational"

    def __init__(self, oracle: Oracle, node: NodeId) -> None:
        self._oracle = oracle
        self._node = node
        self.process = process_id_from(node, Incarnation(1))
        self.configuration = Membership(NO_CONFIGURATION, ())
        self.stats = EngineStats()
        self.inbox: deque[Effect] = deque()
        self.unplaced = 0  # messages of this process that have no place yet
        self.is_leaving = self.is_gone = False

    # What the enclosing engine asks

    @property
    def is_ready(self) -> bool:
        return bool(self.configuration.members)

    def is_idle(self) -> bool:
        return not self.inbox and not self.unplaced

    def next_deadline(self) -> Instant | None:
        return DUE if self.inbox else None

    def room(self) -> int:
        return ROOM

    def want_room(self, size: int) -> None:
        """There is always room."""

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return Lane.LINK

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        return True

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        return None

    def roster_differences(self, now: Instant) -> list[str]:
        return []

    def stalled(self, now: Instant) -> str | None:
        return None

    def check_invariants(self, *, thorough: bool = True) -> None:
        assert self.unplaced >= 0, "nothing has a place that was not said"

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        self.process = process_id_from(self._node, incarnation)
        return [Install(self._oracle.begin(self))]

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        said: list[Said] = []
        for one in submissions:
            payloads = [one.data] if isinstance(one, Submission) else one.payloads
            said += [(self.process, one.sender, int(one.service), data) for data in payloads]
        self.unplaced += len(said)
        self._oracle.say(said)
        return []

    def wake(self, now: Instant) -> list[Effect]:
        effects = list(self.inbox)
        self.inbox.clear()
        return effects

    def leave(self, now: Instant) -> list[Effect]:
        self.is_leaving = True
        self._oracle.leave()
        return []

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        return []

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        raise UsageError(f"no write of {key!r} is outstanding")

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        return granted(changes)

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
        raise UsageError("the oracle sees who is there: there is no node list")

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        return []
