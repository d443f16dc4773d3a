"""The catalogue of engines: one entry for each, with everything that others have to know of it.

Daemon, simulator, campaigns, status and command line ask here. What belongs to a higher layer (a section of the status,
of a report) is kept there under the engine's name; a test sees that no engine lacks any of it. An engine's own modules
are imported when it is made: a daemon runs one of them, and starts sooner without the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import AlarmKind
from ordercast.model.errors import UsageError
from ordercast.model.ids import MAIN, ConfigurationId
from ordercast.model.notes import Occurrence
from ordercast.model.promises import TOTALLY_ORDERED_GROUPS, GroupPromise, Promise, ReplicaPromise
from ordercast.model.service import Service
from ordercast.order.adaptive import promised as adaptive
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.traffic import ADAPTIVE_TRAFFIC
from ordercast.order.baselines import base as static
from ordercast.order.baselines.all_ack import AllAck
from ordercast.order.baselines.atop import Atop
from ordercast.order.baselines.base import Static
from ordercast.order.baselines.causal import Causal
from ordercast.order.baselines.config import BaselineConfig
from ordercast.order.baselines.sequencer import Sequencer
from ordercast.order.baselines.timestamps import Timestamps
from ordercast.order.baselines.two_phase import TwoPhase
from ordercast.order.engine import ObservedEngine
from ordercast.order.gateways import promised as gateways
from ordercast.order.gateways.config import GatewaysConfig
from ordercast.order.links.config import near
from ordercast.order.membership.states import moves
from ordercast.order.ring import promised as ring
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.traffic import RING_TRAFFIC
from ordercast.order.setup import ONE_DOMAIN, Setup, SitePlaces
from ordercast.order.sites import promised as sites
from ordercast.order.sites.config import SitesConfig
from ordercast.order.traffic import Traffic
from ordercast.order.tree import promised as tree
from ordercast.order.tree.config import TreeConfig
from ordercast.wire.head import cluster_id_from

if TYPE_CHECKING:
    from ordercast.order.tree.node import TreeNode

DEFAULT = "ring"
CONTROL_SIZE_MAX, CONTROL_HEAD = 16 << 20, 4096  # of one message on the control stream of a tree; its head at most


@dataclass(frozen=True, slots=True)
class EngineEntry:
    name: str
    make: Callable[[Setup], ObservedEngine]
    choose: str  # when to choose it; for `ordercast engines`, as the next two
    gives: str
    costs: str

    promises: frozenset[Promise]
    services: frozenset[Service]
    traffic: Traffic  # what its packets are
    early: frozenset[Service] = frozenset()  # services that it delivers before their place in the order
    groups: frozenset[GroupPromise] = TOTALLY_ORDERED_GROUPS  # what named groups on it promise; none: it has none
    replicas: frozenset[ReplicaPromise] = frozenset(ReplicaPromise)  # likewise, replicated state

    tables: Mapping[str, type[Any]] = field(default_factory=lambda: {"ring": RingConfig})  # of its configuration
    is_live: bool = True  # daemons may run it; otherwise the simulator alone
    nodes_max: int = 64  # in a simulation
    attachments_max: int = 1  # of one process: rings, segments or links that it is on at a time
    has_links: bool = False  # its processes speak on links: a daemon opens a third port
    is_layered: bool = False  # its rings lie above several networks, each by itself; not the whole engine
    has_late_places: bool = False  # of messages that their own process is not owed: it may hear of others before
    is_static: bool = False  # its members never change, nothing is repaired: a run has no loss and no faults

    id_text: Callable[[ConfigurationId], str] | None = None  # of a configuration; None: its seq and representative

    # What can happen to it, and must in a swarm
    moves: frozenset[tuple[str, str]] = frozenset()  # between its states
    reasons: tuple[ChangeReason, ...] = ()  # why a membership is given up
    attempts: tuple[ChangeReason, ...] = ()  # why a view over several sites is attempted
    occurrences: tuple[Occurrence, ...] = ()
    alarms: frozenset[AlarmKind] = frozenset()

    @property
    def overtakes(self) -> bool:
        """Places of one process's messages may be known in another order than that of sending."""
        return bool(self.early) or Promise.TOTAL_ORDER not in self.promises or self.has_late_places

    @property
    def has_sites(self) -> bool:
        """A process is in a site, on its first attachment, and speaks to others' over a wide area, on its second."""
        return self.has_links and self.attachments_max > 1


def _ring(setup: Setup) -> ObservedEngine:
    from ordercast.order.ring.node import RingNode

    return RingNode(setup.node, setup.ring, verbose=setup.verbose, beneath=setup.beneath, other_engines=setup.others)


def _gateways_view_text(view: ConfigurationId) -> str:
    from ordercast.order.gateways.views import view_text

    return view_text(view)


def _gateways(setup: Setup) -> ObservedEngine:
    from ordercast.order.gateways.node import GatewayNode

    return GatewayNode(
        setup.node,
        setup.ring,
        setup.domains or ONE_DOMAIN,
        verbose=setup.verbose,
        other_engines=setup.others,
        domain_names=setup.domain_names,
        node_names=setup.node_names,
        chosen=setup.tables["gateways"],
    )


def _adaptive(setup: Setup) -> ObservedEngine:
    """A configuration has no more members than the reach suits; nothing is missed that another network still brings."""
    from ordercast.order.adaptive.node import AdaptiveNode

    adaptive: AdaptiveConfig = setup.tables["adaptive"]
    members_max = min(setup.ring.members_max, max(1, adaptive.members_suited))
    return AdaptiveNode(
        setup.node,
        replace(setup.ring, members_max=members_max),
        replace(adaptive, ask_ns=max(adaptive.ask_ns, setup.overtaken_ns)),
        verbose=setup.verbose,
        beneath=setup.beneath,
        other_engines=setup.others,
    )


def _sites(setup: Setup) -> ObservedEngine:
    from ordercast.order.sites.node import SitesNode

    return SitesNode(
        setup.node,
        setup.ring,
        setup.tables["sites"],
        SitePlaces((setup.domains or ONE_DOMAIN)[0], setup.beyond),
        verbose=setup.verbose,
        other_engines=setup.others,
    )


def _tree(setup: Setup) -> ObservedEngine:
    from ordercast.order.ring.node import RingNode

    ring = RingNode(
        setup.node,
        _for_control(setup.ring),
        verbose=setup.verbose,
        beneath=setup.beneath,
        other_engines=setup.others,
        engine=tree.ENGINE,
    )
    return tree_over(setup, ring)


def tree_over(setup: Setup, control: ObservedEngine) -> TreeNode:
    """Return the engine of trees, with this engine for control."""
    from ordercast.order.layered import InnerRing
    from ordercast.order.tree.facts import CONTROL
    from ordercast.order.tree.node import TreeNode

    config: TreeConfig = setup.tables["tree"]
    links = replace(near(config.link_patience_ns), packet_size=setup.ring.packet_size_max)
    return TreeNode(setup.node, setup.ring, config, links, InnerRing(control, MAIN, CONTROL), control)


def _for_control(ring: RingConfig) -> RingConfig:
    """A report names everything that is not stable, and a user's message travels with a head: the control stream takes
    more at a time than users may send."""
    size = max(CONTROL_SIZE_MAX, ring.message_size_max + CONTROL_HEAD)
    return replace(ring, message_size_max=size, queue_size_max=max(ring.queue_size_max, 2 * size))


def _static(engine: type[Static], gives: str, costs: str) -> EngineEntry:
    """Return the entry of a comparison engine."""
    return EngineEntry(
        engine.name,
        engine,
        "for comparison, in the simulator",
        gives,
        f"{costs}; no faults, no change of members, no safe messages",
        engine.promised,
        engine.services,
        engine.traffic,
        groups=frozenset(),
        replicas=frozenset(),
        tables={"ring": RingConfig, "baseline": BaselineConfig},
        is_live=False,
        is_static=True,
        moves=static.MOVES,
    )


ENGINES: dict[str, EngineEntry] = {
    entry.name: entry
    for entry in (
        EngineEntry(
            "ring",
            _ring,
            "many messages, many senders; the default",
            "highest throughput; the cost of a member does not grow with the senders",
            "latency grows with the members: half a rotation, two rotations for safe messages",
            ring.PROMISED,
            ring.SERVICES,
            RING_TRAFFIC,
            moves=moves.MOVES,
            reasons=ring.REASONS,
            occurrences=ring.OCCURRENCES,
            alarms=ring.ALARMS,
        ),
        EngineEntry(
            "adaptive",
            _adaptive,
            "few or uneven senders, latency matters; replicated state, locks, small commands",
            "agreed delivery in two hops, one for the busiest sender, and safe delivery in three, at any size",
            "about one small packet more for each message and each further sender; less throughput than a ring",
            adaptive.PROMISED,
            adaptive.SERVICES,
            ADAPTIVE_TRAFFIC,
            tables={"ring": RingConfig, "adaptive": AdaptiveConfig},
            moves=moves.MOVES,
            reasons=adaptive.REASONS,
            occurrences=adaptive.OCCURRENCES,
            alarms=adaptive.ALARMS,
        ),
        EngineEntry(
            "gateways",
            _gateways,
            "hosts on several switches or in several buildings",
            "one order over many rings, and nobody hears more than its own",
            "order waits for every ring of the network",
            gateways.PROMISED,
            gateways.SERVICES,
            RING_TRAFFIC,
            tables={"ring": RingConfig, "gateways": GatewaysConfig},
            attachments_max=64,
            id_text=_gateways_view_text,
            is_layered=True,
            has_late_places=True,
            moves=moves.MOVES,
            reasons=gateways.REASONS,
            occurrences=gateways.OCCURRENCES,
            alarms=gateways.ALARMS,
        ),
        EngineEntry(
            "sites",
            _sites,
            "daemons in several places far apart, one order over all of them",
            "one order and one view over rings joined by links of 10 to 200 ms; reliable and FIFO messages go at once",
            "agreed order waits for the slowest site, twice the distance and more, inside a site too",
            sites.PROMISED,
            sites.SERVICES,
            RING_TRAFFIC,
            early=sites.EARLY,
            tables={"ring": RingConfig, "sites": SitesConfig},
            attachments_max=2,
            has_links=True,
            is_layered=True,
            moves=sites.MOVES,
            reasons=sites.REASONS,
            attempts=sites.VIEW_REASONS,
            occurrences=sites.OCCURRENCES,
            alarms=sites.ALARMS,
        ),
        EngineEntry(
            "tree",
            _tree,
            "many small groups on many hosts, with neighbourhoods",
            "a message touches its members and those between them; a slow host delays its own groups only",
            "no total order over all groups; agreed messages of a lost host may be ordered again; joins take two steps",
            tree.PROMISED,
            tree.SERVICES,
            RING_TRAFFIC,
            groups=tree.GROUPS,
            replicas=tree.REPLICAS,
            tables={"ring": RingConfig, "tree": TreeConfig},
            has_links=True,
            moves=moves.MOVES,
            reasons=ring.REASONS,
            occurrences=tree.OCCURRENCES,
            alarms=ring.ALARMS,
        ),
        _static(Sequencer, "one member numbers all messages: agreed order in two hops", "one member carries all"),
        _static(Causal, "a message waits for what its sender had seen alone: one hop", "no total order"),
        _static(AllAck, "order without a word more than the messages", "latency of the slowest sender"),
        _static(Timestamps, "order in the time between two nulls and a hop", "nulls of everybody who is silent"),
        _static(TwoPhase, "everybody has a say in the order: three hops", "two rounds for every message"),
        _static(Atop, "the paper's adaptive order, with its kinds of dummies", "a dummy or two for every message"),
    )
}
LIVE = tuple(entry.name for entry in ENGINES.values() if entry.is_live)


def entry_of(name: str) -> EngineEntry:
    """UsageError when there is no such engine."""
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}; there are: {', '.join(ENGINES)}")
    return ENGINES[name]


def live_entry_of(name: str) -> EngineEntry:
    """UsageError when daemons cannot run this engine."""
    if name not in LIVE:
        why = f"{name!r} runs in the simulator alone" if name in ENGINES else f"there is no engine {name!r}"
        raise UsageError(f"{why}; daemons can run: {', '.join(LIVE)}")
    return ENGINES[name]


def neighbours_of(cluster: str, name: str) -> dict[bytes, str]:
    """Return the other engines that daemons of a cluster may run, by its id where all hear all on one network."""
    return {
        cluster_id_from(cluster, other, ONE_DOMAIN[0].name if ENGINES[other].is_layered else None): other
        for other in LIVE
        if other != name
    }


def tables_of(name: str, holder: object) -> dict[str, Any]:
    """The configuration tables of an engine, which `holder` has as attributes of their names."""
    return {table: getattr(holder, table) for table in entry_of(name).tables}
