"""What one process knows of the network: rings, parts, where everybody is, and its own place in the order.

Every process keeps all of this, gateway or not, and derives births, deletions and transitions from it; nobody is told
them. What follows and is asked often (who is reachable, which parts are complete) is worked out once per change.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways import graph
from ordercast.order.gateways.ends import Ends
from ordercast.order.gateways.items import NOBODY_ELSE, EndItem, LogicalRing, Processes, domain_of
from ordercast.order.gateways.names import RingNames
from ordercast.order.gateways.streams import RingStream
from ordercast.order.stamped.lanes import NO_STAMP, Stamp

DEPARTED_MAX = 1000  # processes that are remembered, for nothing but to tell that nobody lost them
DELETED_MAX = 64  # rings that are remembered, for nothing but to tell that one is back


class Known:
    """The state that the modules of this engine share. Whoever changes ENDs, bases, parts or own rings says so."""

    def __init__(self, me: ProcessId, domains: tuple[int, ...]) -> None:
        self.me = me
        self.domains = domains
        self.clock = 0  # no tick that was heard of is above it
        self.need: Stamp = NO_STAMP  # somebody may wait for fronts up to here
        self.place: Stamp = NO_STAMP  # everything at or below it is done
        self.stable: Stamp = NO_STAMP  # everybody is past it
        self.rings: dict[ConfigurationId, LogicalRing] = {}
        self.names = RingNames()  # of these rings and their members
        self.parts: dict[ConfigurationId, Processes] = {}  # the topology: members that still count, by logical ring
        self.lost: dict[ConfigurationId, Processes] = {}  # of ended parts: members in no half known, who have left
        self.born: set[ConfigurationId] = set()
        self.deleted: deque[ConfigurationId] = deque(maxlen=DELETED_MAX)  # rings that were cut off
        self.departed: deque[ProcessId] = deque(maxlen=DEPARTED_MAX)  # who left in order
        self.merges: set[Stamp] = set()  # births of the merges in this process's past
        self.bases: dict[tuple[ProcessId, int], ConfigurationId] = {}
        self.own: dict[int, ConfigurationId] = {}  # the logical ring of each attachment, by domain
        self.merging: set[int] = set()  # domains whose physical ring has several logical rings
        self.ends = Ends()
        self.streams: dict[ConfigurationId, RingStream] = {}
        self.occurred: Counter[Occurrence] = Counter()  # whoever takes it empties it
        self.refused: list[str] = []  # why items counted nowhere; whoever takes it empties it
        self._heard: Processes | None = None
        self._complete: dict[ConfigurationId, bool] = {}
        self.version = 0

    @property
    def is_gateway(self) -> bool:
        return len(self.domains) > 1

    @property
    def members(self) -> Processes:
        """Everybody who counts in the topology."""
        return NOBODY_ELSE.union(*self.parts.values())

    def refuse(self, why: str | None) -> bool:
        """Note why an item is dropped, if it is; return whether it is."""
        if why is not None:
            self.refused.append(why)
        return why is not None

    def own_ring(self, domain: int) -> LogicalRing:
        return self.rings[self.own[domain]]

    def learn(self, ring: LogicalRing) -> None:
        """Hear of a ring; its stream begins at its birth."""
        if ring.id not in self.rings:
            self.rings[ring.id] = ring.bare()
            self.names.learn(ring)
            self.streams[ring.id] = RingStream(ring)

    def rebase(self, process: ProcessId, domain: int, ring: ConfigurationId) -> None:
        """Note where an attachment is, in the order: the newest ring counts."""
        if (process, domain) not in self.bases or ring > self.bases[process, domain]:
            self.bases[process, domain] = ring

    def changed(self) -> None:
        """Work out anew what follows, when it is asked."""
        self._heard = None
        self._complete.clear()
        self.version += 1

    @property
    def heard(self) -> Processes:
        """Who can be heard from here."""
        if self._heard is None:
            self._heard = graph.reachable(self.me, self.bases, self.ends)
        return self._heard

    def around(self, processes: Iterable[ProcessId]) -> Processes:
        """Return some processes and whoever can be heard from them, at this place of the order."""
        return graph.around(processes, self.bases, self.ends_in_order())

    def ends_in_order(self) -> list[EndItem]:
        """Return the ENDs of rings of the topology and of those that follow them. What a merge brings that is not born
        may be known here and not yet there, and counts nowhere."""
        reached = {*self.born, *self.parts}
        todo = list(reached)
        while todo:
            for end in self.ends.of(todo.pop()):
                if not end.successor.is_merge and end.successor.id not in reached:
                    reached.add(end.successor.id)
                    todo.append(end.successor.id)
        return [end for end in self.ends if end.ring in reached]

    def beyond(self, domain: int) -> Processes:
        """Return who can be heard over one attachment alone."""
        return graph.beyond(self.me, domain, self.bases, self.ends)

    def is_complete(self, ring: ConfigurationId) -> bool:
        """Whether nothing more can come of a ring."""
        answer = self._complete.get(ring)
        if answer is None:
            answer = self.own.get(domain_of(ring)) != ring and self.ends.is_complete(
                self.rings[ring], self.me, self.heard
            )
            self._complete[ring] = answer
        return answer

    def missing(self, ring: ConfigurationId) -> Processes:
        """Return the members of a complete ring of whom nothing is known beyond its front, and who have not left it."""
        halves = NOBODY_ELSE.union(*(end.half for end in self.ends.of(ring)))
        return self.rings[ring].members - halves - self.lost.get(ring, NOBODY_ELSE)

    def successors(self, ring: ConfigurationId) -> Iterable[LogicalRing]:
        return (end.successor for end in self.ends.of(ring))
