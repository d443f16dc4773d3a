"""Everything that a simulation depends on beside its seed. One knob, one comment."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from enum import Enum

from ordercast.model.errors import UsageError
from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND
from ordercast.model.service import Service
from ordercast.networks.config import NetworksConfig
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.baselines.config import BaselineConfig
from ordercast.order.catalogue import EngineEntry, entry_of
from ordercast.order.gateways.config import GatewaysConfig
from ordercast.order.ring.config import RingConfig
from ordercast.order.sites.config import BETWEEN, SitesConfig
from ordercast.order.sizes import Sizes
from ordercast.order.tree.config import TreeConfig
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.plot import Aim
from ordercast.sim.sealed.options import SealedRun
from ordercast.sim.topology import (
    Attachments,
    Line,
    Link,
    Rate,
    attachment_problems,
    link_problems,
    rate_problems,
    segment_count,
    segments_of,
)
from ordercast.sim.users import STRUCTURES, TIMED
from ordercast.trace.records import STAMP_SIZE

# Short timeouts: virtual time is cheap, but every rotation of the token costs real time.
SIM_RING = RingConfig(
    packet_size_max=600,
    window=40,
    visit_max=12,
    backlog_max=200,
    token_retransmit_ns=8 * MILLISECOND,
    token_loss_ns=60 * MILLISECOND,
    join_ns=8 * MILLISECOND,
    consensus_ns=40 * MILLISECOND,
    announce_ns=25 * MILLISECOND,
    rest_ns=10 * MILLISECOND,
    linger_ns=MILLISECOND,
    hold_down_ns=60 * MILLISECOND,
    pause_ns=25 * MILLISECOND,
    fail_to_receive_rotations=30,
    accelerated_window=6,
)

SIM_ADAPTIVE = AdaptiveConfig(
    block=4,
    period=16,
    reach=2 * (4 * 128 * 4 + 8 * 8 * 4),
    ack_ns=4 * MILLISECOND,
    adapt_ns=10 * MILLISECOND,
    gap_ns=20 * MILLISECOND,
)

SIM_SITES = SitesConfig(
    delta_ns=20 * MILLISECOND,
    lazy_ns=60 * MILLISECOND,
    hello_ns=40 * MILLISECOND,
    gather_ns=15 * MILLISECOND,
    attempt_ns=150 * MILLISECOND,
    hold_down_ns=100 * MILLISECOND,
    better_ns=100 * MILLISECOND,
    record_ns=200 * MILLISECOND,
    stuck_ns=400 * MILLISECOND,
    prune=False,
    unlearn_ns=60 * MILLISECOND,
    links=replace(
        BETWEEN,
        packet_size=600,
        ack_ns=5 * MILLISECOND,
        tail_ns=8 * MILLISECOND,
        tail_max_ns=20 * MILLISECOND,
        nack_min_ns=MILLISECOND,
        nack_max_ns=10 * MILLISECOND,
        silence_ns=130 * MILLISECOND,
    ),
)

SIM_TREE = TreeConfig(
    open_gap_ns=3 * MILLISECOND, channel_window=8_000, entry_window=16_000, source_window=4_000, cargo_size=460
)

SIM_BASELINE = BaselineConfig()

# What engines cannot bear whose members never change.
HARMFUL = (
    "faults",
    "random_faults",
    "ambushes",
    "aim",
    "poison",
    "rosters",
    "loss",
    "duplication",
    "straggler",
    "ghost",
    "links",
    "is_fifo",
    "all_at_once",
)


class Delays(Enum):
    UNIFORM = "uniform"  # between the smallest and the largest
    EXPONENTIAL = (
        "exponential"  # above the smallest, with the mean of the uniform one, cut off at ten times the largest
    )


WITHIN = {
    "messages": (0, 10_000_000),
    "senders": (1, 1000),
    "groups": (1, 100),
    "replicas": (0, 10),
    "silent_members": (0, 100),
    **dict.fromkeys(
        (
            "clients",
            "rush",
            "replica_kills",
            "round_ambushes",
            "replica_hangs",
            "power_cuts",
            "random_faults",
            "ambushes",
        ),
        (0, 1000),
    ),
}
CHANCES = (
    *("loss", "duplication", "straggler", "ghost", "poison", "clock_drift"),
    *("pace_changes", "rudeness", "double_send", "transfer_trouble"),
)


RING_CONTROL, ORACLE = CONTROLS = ("ring", "oracle")  # of trees
ORACLE_NODES_MAX = 5_000
OF_ORACLES = frozenset(  # faults in which an oracle is no worse than a ring
    {
        *(FaultKind.CRASH, FaultKind.LOSE_DISK, FaultKind.RESTART, FaultKind.LEAVE, FaultKind.PAUSE),
        *(FaultKind.LOSSY, FaultKind.SLOW, FaultKind.BLOCK, FaultKind.MEND),
    }
)


@dataclass(frozen=True, slots=True)
class SimOptions:
    nodes: int = 5  # how many hosts
    engine: str = "ring"  # which ordering engine
    ring: RingConfig = SIM_RING  # the ring's timeouts and windows
    adaptive: AdaptiveConfig = SIM_ADAPTIVE  # slots, marks and adaptation of the adaptive engine
    baseline: BaselineConfig = SIM_BASELINE  # what the comparison engines can be set to

    sites: SitesConfig = SIM_SITES  # timers of the sites engine, and of its links
    site_links: tuple[tuple[int, int], ...] = ()  # pairs of sites that links join; none: all of them
    tree: TreeConfig = SIM_TREE  # windows and openings of the tree engine
    control: str = RING_CONTROL  # who orders what its processes say for control: their ring, or an oracle

    # What the applications do
    messages: int = 200  # submissions, spread over the time before the network heals, and some after
    rates: tuple[Rate, ...] = ()  # beside these, of the hosts named: so many per second, before the network heals
    topics: tuple[tuple[int, ...], ...] = ()  # the hosts that want each of them; if any, messages go to some of them
    topic_changes: int = 0  # how often a host begins or ceases to want a topic, before the network heals
    senders: int = 2  # clients per process
    size_min: int = STAMP_SIZE  # bytes of a message, uniform between
    size_max: int = 400
    large_messages: int = 0  # how many more, of `large_size` bytes
    large_size: int = 70_000
    services: tuple[Service, ...] = (Service.AGREED, Service.SAFE, Service.FIFO, Service.CAUSAL, Service.RELIABLE)
    saturation: int = 0  # after healing, all processes always have something to send until each was given this many
    saturation_size: int = 0  # bytes of each of these; 0: as many as fill a packet
    clients: int = 0  # names of clients per host; if any, `messages` are their deeds: join, leave, send, crash …
    groups: int = 3  # that clients join and send to
    rush: int = 0  # more deeds of clients around every fault, and as many after every new configuration
    pace_changes: float = 0.0  # chance that a deed of a client is to read faster, more slowly, or not at all
    rudeness: float = 0.0  # chance that it is to say something wrong
    prompt_clients: bool = False  # what goes between a client and its daemon takes no time, and arrives whole
    send_credit: int = 0  # bytes that a client may have under way to its daemon; 0: as many as usual
    receive_credit: int = 0  # and a daemon to its client
    client_queue: int = 0  # bytes that may wait for a client before its policy decides; 0: as many as usual
    hold_ns: int = 100 * MILLISECOND  # in which a client for which all wait must have read half of what waits
    memberships_max: int = 0  # groups that all clients of a daemon may be in together; 0: as many as usual
    replicas: int = 0  # names of replicas of one state per host; if any, `messages` are their deeds
    structure: str = "dictionary"  # what they replicate: a ready structure, and the number that it is made with
    replica_kills: int = 0  # replicas killed at chosen moments: in a round, during a transfer, when confirmed …
    replica_weights: tuple[int, ...] = ()  # voices of the first replica of each host; none: who held the state last
    transfer_trouble: float = 0.0  # chance that a piece of a state is lost, damaged, or ends its connection
    double_send: float = 0.0  # chance that a replica, not sure whether a command was sent, sends it again at once
    round_ambushes: int = 0  # cuts that strike when replicas have just got a view
    replica_hangs: int = 0  # replicas that say nothing for a while, from a view on or at any time
    journals: bool = False  # replicas with a voice keep a journal on disk
    power_cuts: int = 0  # of all hosts at once
    silent_members: int = 0  # others that join the replicas' group, and never say anything
    replica_patience_ns: int = 40 * MILLISECOND  # of replicas with one that does not say what it has
    early_ambush: bool = False  # one of them strikes before there is a state
    founders: int = 1  # hosts whose first replicas must be there at a beginning, when there are no weights

    # The network: every value holds for each directed link that `links` does not except
    delay_min_ns: int = 50 * MICROSECOND  # fastest hop
    delay_max_ns: int = 400 * MICROSECOND  # slowest hop that is not an outlier
    straggler: float = 0.0  # chance of a hop up to ten times as slow, 5 ms at least; later packets overtake it
    ghost: float = 0.0  # chance of a hop of up to `ghost_ns`: it arrives in another age
    ghost_ns: int = 200 * MILLISECOND
    delays: Delays = Delays.UNIFORM  # how the delay of a hop is distributed
    loss: float = 0.0  # chance of losing a packet
    duplication: float = 0.0  # chance of a second copy
    bandwidth: int = 0  # bits per second that a host can send; 0: no limit
    receive_buffer: int = 512  # packets that wait to be read; more are lost
    is_fifo: bool = True  # packets of one link keep their order unless they straggle
    attachments: Attachments = ()  # segments of each host, in the order of its attachments; none: all on segment 0
    links: tuple[Link, ...] = ()  # the exceptions
    networks: NetworksConfig = field(default_factory=NetworksConfig)  # how many each segment has, and how they are used
    lines: tuple[Line, ...] = ()  # the first of them, segment by segment, where they are unlike each other
    is_one_whole: bool = False  # faults leave one network whole: the view must not change, nor delivery wait for long

    # The hosts
    packet_ns: int = 2 * MICROSECOND  # processing of a data packet, once for all its copies
    byte_ns: int = 0  # more for each of its bytes
    token_ns: int = 10 * MICROSECOND  # processing of a token, once for all its copies, or of another control message
    send_ns: int = 0  # handing a packet to a network, for each copy of it
    receive_ns: int = 0  # taking one from a network, for each copy of it
    slow_hosts: tuple[tuple[int, float], ...] = ()  # (node, how many times longer its processing takes)
    disk_ns: int = 300 * MICROSECOND  # a write to stable storage, up to twice this
    clock_drift: float = 0.0  # clocks run up to this fraction fast or slow

    # Node lists
    rosters: tuple[tuple[int, ...], ...] = ()  # whom the file of each host names at first, version 1; none: everybody
    is_unicast: bool = False  # a packet for everybody goes to those on the list alone

    # Faults: scripted, then random ones
    faults: tuple[Fault, ...] = ()
    random_faults: int = 0  # how many more, drawn from the seed
    poison: float = 0.0  # chance that a control packet arrives behind a copy with a forged number, until healing
    ambushes: int = 0  # how many more that strike when a promise was just made or a ring just installed
    sealed: SealedRun | None = None  # packets are sealed, and somebody attacks them; None: they are clear
    aim: Aim | None = None  # what a plot aims at, which watches the run and chooses the moment
    fault_time_ns: int = 1 * SECOND  # the time in which submissions and random faults happen
    settle_ns: int = 4 * SECOND  # after healing everything must have settled within this
    all_at_once: bool = True  # hosts start together; otherwise one after the other

    @property
    def sizes(self) -> Sizes:
        """What every engine has in its configuration; for all of them it is in this table."""
        return self.ring

    def packet_size_max(self, *, is_link: bool) -> int:
        """Return how large a packet may be that a host sends to all, or to one other. Engines for comparison send
        messages whole."""
        if entry_of(self.engine).is_static:
            return sys.maxsize
        return max(self.sizes.packet_size_max, self.sites.links.packet_size if is_link else 0)

    @property
    def has_clients(self) -> bool:
        return bool(self.clients or self.replicas)

    @property
    def gateways(self) -> GatewaysConfig:
        """Nothing is filtered where no groups are above the engine: nobody there says what it wants."""
        return GatewaysConfig(filter=self.has_clients)

    @property
    def submissions(self) -> int:
        """How many messages applications are to submit; those with a Poisson rate on average."""
        at_rates = sum(rate.per_second * rate.active_for(self.fault_time_ns) for rate in self.rates) / SECOND
        return self.messages + self.large_messages + round(at_rates)

    @property
    def segments(self) -> int:
        """How many broadcast domains there are."""
        return segment_count(self.attachments)

    def segments_of(self, node: int) -> tuple[int, ...]:
        """The segments of one host, by attachment."""
        return segments_of(self.attachments, node)

    @property
    def _suits_oracle(self) -> bool:
        """Whether nothing happens that an oracle does not know of: it sees who lives, and knows no partitions."""
        is_plain = self.engine == "tree" and self.networks.count == 1 and not (self.rosters or self.sealed)
        return is_plain and not self.random_faults and all(fault.kind in OF_ORACLES for fault in self.faults)

    def validate(self) -> None:
        entry = entry_of(self.engine)
        nodes_max = ORACLE_NODES_MAX if self.control == ORACLE else entry.nodes_max
        rules = [
            (1 <= self.nodes <= nodes_max, f"nodes must be within 1..{nodes_max}"),
            (self.control in CONTROLS, f"control must be one of {', '.join(CONTROLS)}"),
            (self.control != ORACLE or self._suits_oracle, "the oracle is for trees, one network and crashes alone"),
            *self._engine_rules(entry),
            *(
                (low <= getattr(self, name) <= high, f"{name} must be within {low}..{high}")
                for name, (low, high) in WITHIN.items()
            ),
            (not (self.has_clients and self.saturation), "clients do not saturate: leave out one of the two"),
            (
                min(self.send_credit, self.receive_credit, self.client_queue, self.memberships_max) >= 0,
                "what clients may have must be at least 0",
            ),
            (self.hold_ns > 0, "hold_ns must be positive"),
            (not (self.clients and self.replicas), "clients and replicas do not mix: leave out one of the two"),
            (
                self.structure in (*STRUCTURES, *TIMED),
                f"there is no {self.structure!r}, there are: {', '.join((*STRUCTURES, *TIMED))}",
            ),
            (bool(self.replica_weights) or not self.journals, "journals need configured voices: give replica_weights"),
            (self.replica_patience_ns > 0, "replica_patience_ns must be positive"),
            (1 <= self.founders <= self.nodes, "founders must be within 1 and the number of hosts"),
            (
                not self.replica_weights or (len(self.replica_weights) == self.nodes and sum(self.replica_weights) > 0),
                "weights must be given for every host, some above zero",
            ),
            (
                STAMP_SIZE <= self.size_min <= self.size_max,
                f"sizes must rise from at least {STAMP_SIZE} bytes, which identify the message",
            ),
            (self.size_max <= self.sizes.message_size_max, "the largest size exceeds message_size_max"),
            (
                not self.saturation_size or STAMP_SIZE <= self.saturation_size <= self.sizes.message_size_max,
                f"saturation_size must be 0, or {STAMP_SIZE} bytes up to message_size_max",
            ),
            (bool(self.services), "at least one service is needed"),
            (0 < self.delay_min_ns <= self.delay_max_ns, "delays must be positive and rise"),
            *(
                (0 <= node < self.nodes, f"a slow host is node {node}, there are 0..{self.nodes - 1}")
                for node, _ in self.slow_hosts
            ),
            (not (self.has_clients and self.rates), "rates are of plain messages: leave out clients and replicas"),
            (
                not self.rosters or len(self.rosters) == self.nodes,
                "rosters must be given for every host, or for none",
            ),
            (
                bool(self.rosters) or all(fault.kind is not FaultKind.RELOAD for fault in self.faults),
                "reload is for hosts with node lists: give rosters",
            ),
            (all(factor > 0 for _, factor in self.slow_hosts), "a slow host's factor must be positive"),
            *((0 <= getattr(self, name) < 1, f"{name} is a chance: at least 0 and below 1") for name in CHANCES),
            (self.bandwidth >= 0, "bandwidth must be at least 0"),
            (self.receive_buffer >= 1, "receive_buffer must be at least 1"),
            (self.aim is None or self.nodes > 2, "a plot needs at least 3 hosts"),
            (
                self.sealed is None or not self.poison,
                "forgers of numbers know clear packets: leave out poison or sealed",
            ),
            (self.sealed is None or self.aim is None, "plots read clear packets: leave out aim or sealed"),
            (self.fault_time_ns > 0 and self.settle_ns > 0, "times must be positive"),
        ]
        problems = [text for holds, text in rules if not holds]
        problems += self._topology_problems(entry)
        problems += self.networks.problems(self.ring, self.nodes)
        if problems:
            raise UsageError("; ".join(problems))
        self.sizes.validate()

    def _engine_rules(self, entry: EngineEntry) -> list[tuple[bool, str]]:
        """What the engine can do, and which faults make sense for it."""
        unserved = [service.name.lower() for service in self.services if service not in entry.services]
        usual = SimOptions()
        harmful = [name for name in HARMFUL if getattr(self, name) != getattr(usual, name)]
        harmful += ["networks"] if self.networks.count > 1 else []
        return [
            (not unserved, f"the engine {entry.name!r} does not serve {' or '.join(unserved)} messages"),
            (
                not self.saturation or Service.AGREED in entry.services,
                f"saturation is of agreed messages, which the engine {entry.name!r} does not serve: leave it out",
            ),
            (bool(entry.groups) or not self.clients, f"the engine {entry.name!r} has no groups: leave out clients"),
            (bool(entry.replicas) or not self.replicas, f"the engine {entry.name!r} carries no replicated state"),
            (
                not (entry.is_static and harmful),
                f"the members of the engine {entry.name!r} never change and nothing is repaired: leave out "
                f"{', '.join(harmful)}",
            ),
        ]

    def _topology_problems(self, entry: EngineEntry) -> list[str]:
        """What is wrong with segments, links, rates, and with the faults that name them."""
        problems = list(attachment_problems(self.attachments, self.nodes, entry.attachments_max, entry.name))
        if problems:
            return problems
        delays = self.delay_min_ns, self.delay_max_ns
        packet_size = self.sizes.packet_size_max
        problems += link_problems(self.links, delays, self.attachments, self.nodes, packet_size)
        problems += rate_problems(self.rates, self.nodes)
        networks = self.networks.count
        problems += [text for fault in self.faults if (text := fault.problem(self.nodes, networks, self.attachments))]
        return problems
