"""What a driver may ask of a TreeNode, and what the answers rest on: the state of one process of a forest."""

from __future__ import annotations

from collections.abc import Callable

from ordercast.model.configuration import Configuration
from ordercast.model.ids import (
    MAIN,
    Attachment,
    ConfigurationId,
    Instant,
    NodeId,
    ProcessId,
    Seq,
)
from ordercast.model.inputs import Lane
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.order.engine import EngineStats, Membership, ObservedEngine
from ordercast.order.layered import InnerRing
from ordercast.order.links.config import LinkConfig
from ordercast.order.sizes import Sizes
from ordercast.order.traffic import Traffic
from ordercast.order.tree.bundle import Bundle
from ordercast.order.tree.config import TreeConfig
from ordercast.order.tree.control import decode_control
from ordercast.order.tree.course import Course
from ordercast.order.tree.delivering import Delivering, Spot
from ordercast.order.tree.exchange import TreeExchange
from ordercast.order.tree.flowing import TreeFlow
from ordercast.order.tree.loads import Loads
from ordercast.order.tree.managing import Manager
from ordercast.order.tree.observed import TreeSeen, nothing_seen, tree_seen
from ordercast.order.tree.promised import ENGINE, GROUPS, PROMISED, REPLICAS, SERVICES
from ordercast.order.tree.saying import Saying
from ordercast.order.tree.source import TreeSource
from ordercast.wire.head import cluster_id_from

CONTROL = "control"  # the name of the inner ring
SPARE = 2  # the control stream's room is shared: users may fill all but one part in so many
EXCHANGE = "TreeExchange"
MakeCourse = Callable[[ProcessId, Configuration, TreeConfig, TreeSource, Delivering], Course]


class TreeFacts:
    def __init__(
        self,
        node: NodeId,
        sizes: Sizes,
        config: TreeConfig,
        links: LinkConfig,
        control: InnerRing,
        observed: ObservedEngine,  # the engine for control, as status displays see it
    ) -> None:
        config.validate()
        links.validate()
        self._node = node
        self._sizes = sizes
        self._config = config
        self._link_config = links
        self._control = control
        self._observed = observed
        self.promises = Promises(
            ENGINE, PROMISED, SERVICES, sizes.message_size_max, prunes=True, groups=GROUPS, replicas=REPLICAS
        )
        self._cluster = cluster_id_from(sizes.cluster, ENGINE)
        self.make_course: MakeCourse = Course  # and the next: a witness puts its own here
        self.make_exchange = TreeExchange
        self.read_control = decode_control
        self._course: Course | None = None
        self._exchange: TreeExchange | None = None
        self._next: Configuration | None = None  # of the control stream, while the exchange lasts
        self._ahead: list[tuple[Spot, ProcessId, int, int, bytes]] = []  # what it has brought meanwhile
        self._is_regular = True  # the control stream is in a regular configuration
        self._bundle: Bundle | None = None
        self._manager = Manager(config)
        self._saying = Saying(control)
        self._loads = Loads(config.load_gap_ns)
        self._flow = TreeFlow(self._saying, self._manager, self._loads, sizes.queue_size_max // SPARE)
        self._wants_room = 0
        self._is_leaving = self._has_left = False

    @property
    def process(self) -> ProcessId:
        return self._me

    @property
    def _course_now(self) -> Course:
        assert self._course is not None, "the engine is started"
        return self._course

    @property
    def course(self) -> Course | None:
        """The configuration that is installed, for a witness."""
        return self._course

    @property
    def is_regular(self) -> bool:
        """Whether the control stream is in a regular configuration, for a witness."""
        return self._is_regular

    def observed(self, now: Instant) -> TreeSeen:
        """What can be seen of the forest from this process."""
        if self._course is None:
            return nothing_seen(self._me)
        links = {} if self._bundle is None else self._bundle.figures()
        return tree_seen(self._course, self._flow.story, links, now)

    @property
    def traffic(self) -> Traffic:
        return self._observed.traffic

    @property
    def configuration(self) -> Membership:
        if self._course is None:
            return self._observed.configuration
        view = self._course.configuration
        return Membership(view.id, view.members)

    @property
    def state_name(self) -> str:
        return EXCHANGE if self._exchange is not None else self._observed.state_name

    @property
    def is_ready(self) -> bool:
        return self._exchange is None and self._observed.is_ready

    @property
    def is_gone(self) -> bool:
        return self._has_left and self._observed.is_gone

    @property
    def stats(self) -> EngineStats:
        return self._observed.stats

    @property
    def roster(self) -> Roster | None:
        return self._observed.roster

    def roster_differences(self, now: Instant) -> list[str]:
        return self._observed.roster_differences(now)

    def stalled(self, now: Instant) -> str | None:
        return self._observed.stalled(now)

    @property
    def is_without_storage(self) -> bool:
        return self._observed.is_without_storage

    def next_deadline(self) -> Instant | None:
        deadlines = [self._control.next_deadline()]
        if self._bundle is not None and self._exchange is None:
            deadlines += [self._bundle.next_deadline(), self._manager.next_deadline(self._course_now)]
        return min((at for at in deadlines if at is not None), default=None)

    def room(self) -> int:
        return max(0, self._sizes.queue_size_max - self._source.size)

    def want_room(self, size: int) -> None:
        self._wants_room = max(self._wants_room, min(size, self._sizes.queue_size_max))

    def is_idle(self) -> bool:
        course, bundle = self._course, self._bundle
        if course is None or bundle is None or self._exchange is not None or not self._saying.is_empty:
            return False
        is_calm = course.opened > 0 and course.is_idle and self._source.is_empty and bundle.is_quiet
        return is_calm and self._control.is_idle()

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        return self._control.first_lane()

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        return self._observed.holds(ring, seq)

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        return None  # forgers know the packets of a ring that stands alone

    def check_invariants(self, *, thorough: bool = True) -> None:
        self._control.check_invariants(thorough=thorough)
        if thorough and self._course is not None and self._bundle is not None:
            self._course.check_invariants()
            self._bundle.check_invariants()

    _me: ProcessId
    _source: TreeSource
