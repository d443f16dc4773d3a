"""What an engine guarantees. Written to every trace: a checker judges what was promised and says NOT PROMISED of the
rest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ordercast.model.service import Service


class Promise(Enum):
    """One per checker; the value is the checker's name."""

    INTEGRITY = "integrity"
    NO_DUPLICATES = "no duplicates"
    SELF_DELIVERY = "self delivery"
    FIFO = "fifo order"
    CAUSAL = "causal order"
    TOTAL_ORDER = "total order"
    MULTIPLE_GROUP_ORDER = "multiple group order"  # instead of the former: one order among those who share groups
    AGREED_DELIVERY = "agreed delivery"
    SAFE_DELIVERY = "safe delivery"
    VIRTUAL_SYNCHRONY = "virtual synchrony"
    TRANSITIONAL_SETS = "transitional sets"
    TRUTHFUL_SETS = "truthful sets"  # of those who came along some may be missing, and nobody else is listed
    VIEW_AGREEMENT = "view agreement"
    VIEW_MONOTONY = "view monotony"
    WHOLE_MESSAGES = "whole messages"
    FAIRNESS = "fairness"
    LIVENESS = "liveness"


class GroupPromise(Enum):
    """What the groups guarantee to clients, whatever the engine: one per checker of `checker/groups/`."""

    INITIAL_VIEW = "groups: initial view"
    SELF_INCLUSION = "groups: self inclusion"
    VIEW_MONOTONY = "groups: view monotony"
    TRANSITIONAL_SETS = "groups: transitional sets"
    VIEW_AGREEMENT = "groups: view agreement"
    REACH = "groups: members in reach"
    NO_DUPLICATES = "groups: no duplicates"
    INTEGRITY = "groups: integrity"
    CONFIRMATIONS = "groups: confirmations"
    VIRTUAL_SYNCHRONY = "groups: virtual synchrony"
    SIGNALS = "groups: transitional signals"
    SANE_VIEWS = "groups: sane view delivery"
    FIFO = "groups: fifo order"
    CAUSAL = "groups: causal order"
    TOTAL_ORDER = "groups: total order"
    MULTIPLE_GROUP_ORDER = "groups: multiple group order"  # instead of the former, where an engine has no order of all
    AGREED_DELIVERY = "groups: agreed delivery"
    SAFE_DELIVERY = "groups: safe delivery"
    SELF_DELIVERY = "groups: self delivery"
    TERMINATION = "groups: termination of delivery"
    PRECISION = "groups: membership precision"


TOTALLY_ORDERED_GROUPS = frozenset(GroupPromise) - {GroupPromise.MULTIPLE_GROUP_ORDER}  # on most engines


class ReplicaPromise(Enum):
    """What a replicated state guarantees: one per checker of `checker/replicated/`."""

    SAME_COMMANDS = "replicas: same commands"
    ONCE = "replicas: every command once"
    CALL_ORDER = "replicas: in the order of calls"
    CONFIRMATIONS = "replicas: confirmed when applied"
    REFUSALS = "replicas: refused is never applied"
    DURABILITY = "replicas: nothing confirmed is lost"
    ONE_PRIMARY = "replicas: one primary component"
    LINEARISABLE = "replicas: linearisable"
    EXCLUSIVE = "replicas: a lock has one holder"
    BELIEFS = "replicas: none is current without the stream"
    LIVENESS = "replicas: a quorum goes on"


class NetworkPromise(Enum):
    """What several redundant networks guarantee together; judged in the simulator, which alone sees every packet."""

    TOKENS = "networks: tokens wait, once and not for long"
    SENDS = "networks: packets go where they should"
    NOTHING_TWICE = "networks: nothing is sent again that was not lost"
    NO_VIEW_CHANGE = "networks: a fault of a network is no change of view"
    DELAY = "networks: a fault of a network delays for a bounded time"


class RosterPromise(Enum):
    """What node lists guarantee; judged in the simulator, which alone knows the list of every process at any time."""

    ADMISSION = "node lists: nobody is taken in whom a member's list does not name"


class RestPromise(Enum):
    """Where and when the token of an idle ring rests; judged in the simulator, and named only when it is broken."""

    PLACE = "rest: the token rests with whoever sent last"
    COMPLETE = "rest: all have delivered everything first"


class SlotPromise(Enum):
    """How the adaptive engine's members use places; judged in the simulator, and named only when it is broken."""

    SLOTS = "slots: every place is its sender's, and used once"
    STREAMS = "slots: places rise, and what is given up stays so"
    MOVES = "slots: nobody passes a base before all have moved"
    FRONTIERS = "slots: what is known never falls, and is true"
    HOPS = "slots: agreed delivery takes two hops, safe delivery three, or four with gathered acknowledgements"
    STUCK = "slots: whoever waits for others' places asks for them"


class RingsPromise(Enum):
    """What the processes of a network of rings make of them; judged in the simulator, which sees every ring, and named
    only when it is broken."""

    TICKS = "rings: ticks rise along a ring and from one to the next, over restarts too"
    SAFE_RINGS = "rings: what is handed up as regular all members have"
    CARRIED = "rings: what is carried its own ring has handed up so"
    IN_ORDER = "rings: a gateway puts the packets of a source on a ring in order, each of them once"
    STATEMENTS = "rings: whoever is said to have something has it"
    SAFE = "rings: what is delivered as safe all members of the view have"
    SAME_EVENTS = "rings: what follows one view is the same at all"
    SAFE_IN_VIEW = "rings: what is safe in a view all who are in it deliver in it, or in what ends it"
    QUEUES = "rings: whoever has much to carry asks all to stop"
    PARTS = "rings: the parts of a view are rings that there are"
    PAST = "rings: nothing that nobody has forged comes in the past of the order"


class SitesPromise(Enum):
    """What the daemons of several sites do; judged in the simulator, which sees every tape and both ends of each link,
    and named only when it is broken."""

    LINES = "sites: everything below the line of a stream is here"
    GAP = "sites: when a ring ends lines move up to the first gap, and not beyond"
    PAST = "sites: what is passed in order no other stream can still bring something before"
    UPDATES = "sites: of the updates of a site the last one counts"
    NEEDS = "sites: a unit is for every site whose wants are not known"
    TREES = "sites: all have the same trees in one epoch of a view"
    ROUTES = "sites: what the parent of a site has is there, or on its way"
    HELD = "sites: nothing is delivered in order between the beginning of an attempt and the view"
    ACKNOWLEDGED = "sites: whoever says its state has what its site has acknowledged"
    ATTEMPTS = "sites: a view is installed with what its members said for it, when all were ready"
    COMMITS = "sites: commits of companions are kept until the next view, and no longer"
    BEYOND = "sites: beyond the line messages are delivered only of those in the commits"
    SILENCE = "sites: an update is sent when somebody waits for what it tells"
    COPIES = "sites: a unit comes to a site once, unless routes have changed"
    WINDOW = "sites: no more is under way than the window allows"
    ORPHANS = "sites: nobody comes along who is owed what nobody has"


class TreesPromise(Enum):
    """What the processes of trees do; judged in the simulator, which sees what each of them orders, passes on and
    forgets, and named only when it is broken."""

    FOOTPRINT = "trees: a message visits its entry, its receivers and who is between, and nobody else"
    BLOCKS = "trees: nobody sends a block that does not belong where it comes"
    COPIES = "trees: a message comes once to everybody on its way"
    ENTRY = "trees: messages enter above all receivers, and above their sender if it is none of them"
    PLACE = "trees: a message has one place, the same at all"
    RANKS = "trees: places rise at every process"
    STABLE = "trees: what is forgotten all have, and its source knows its place"
    RELEASED = "trees: what all have is forgotten"
    REPORTED = "trees: at the end of a configuration a process says all that it holds, and takes nothing more"
    REGULAR = "trees: a configuration begins when the control stream has brought what is owed in a regular one"
    FOREST = "trees: an opening makes the same forest of the same wishes at all"
    CLOSED = "trees: a process closes a tree that an opening names, with everything that was on its way"
    BEHIND = "trees: nothing enters for somebody whose application is behind"
    WAITS = "trees: nothing waits at its entry without a reason"


class SessionPromise(Enum):
    """What a daemon guarantees its clients; judged in the simulator, which sees both ends of each connection, and named
    only when it is broken."""

    STREAM = "sessions: a client reads what was handed out to it, or is told how much is missing"
    WINDOW = "sessions: nobody has more under way than it has credit for"
    GATE = "sessions: nothing of clients is submitted while snapshots are awaited"


class SealPromise(Enum):
    """What sealed packets guarantee; judged in the simulator, which sees every packet before and behind its seal, and
    named only when it is broken."""

    NONCES = "sealing: no nonce is used twice"
    GENUINE = "sealing: nothing is opened that no member sent to its receiver"
    ONCE = "sealing: nothing counts more often than it was sent"
    FRESH = "sealing: nothing counts that was sent before its receiver was born"


AnyPromise = (
    Promise
    | GroupPromise
    | ReplicaPromise
    | NetworkPromise
    | RosterPromise
    | RestPromise
    | SlotPromise
    | RingsPromise
    | SitesPromise
    | TreesPromise
    | SessionPromise
    | SealPromise
)


@dataclass(frozen=True, slots=True)
class Promises:
    engine: str
    promises: frozenset[Promise]
    services: frozenset[Service]
    message_size_max: int
    early: frozenset[Service] = frozenset()  # services that are delivered before their place in the order is known
    prunes: bool = False  # a message reaches only processes that want one of its destinations
    groups: frozenset[GroupPromise] = TOTALLY_ORDERED_GROUPS  # what named groups on the engine promise
    replicas: frozenset[ReplicaPromise] = frozenset(ReplicaPromise)  # likewise, replicated state
    shares_views: bool = True  # all who deliver a message do so in one configuration, or in the one that ends it
