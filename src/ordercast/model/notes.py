"""What an engine says of itself while it works; wrapped in a `Record` effect, kept in traces, read by people.

Notes explain and count. No checker's verdict on a message rests on them alone: identity comes from outside the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId


@dataclass(frozen=True, slots=True)
class Moved:
    """The membership state changed."""

    origin: str
    target: str
    reason: ChangeReason | None
    text: str


@dataclass(slots=True)
class Visited:
    """One token visit: what was on the token when it was forwarded, and what this visit did. (Not frozen: there are as
    many as token visits.)"""

    ring: ConfigurationId
    round: int
    seq: int
    aru: int
    my_aru: int
    sent: int
    retransmitted: int
    requested: int


@dataclass(frozen=True, slots=True)
class Ignored:
    """A well-formed packet that this state does not act on."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class PacketDropped:
    """A packet that is not for us or not well formed."""

    why: str


class Occurrence(Enum):
    """Rare events that a campaign must have seen before it may call the code tested."""

    RECOVERY_INTERRUPTED = "recovery interrupted"
    COMMIT_INTERRUPTED = "commit interrupted"
    MESSAGES_EXCHANGED = "old-ring messages exchanged"
    PROMISE_MADE = "promise to deliver made"
    OBLIGATION_KEPT = "obligation kept after a failed recovery"
    PROMISE_DIFFERS = "kept promise owes other than the new plan"
    GAP_DROPPED = "message beyond a gap dropped"
    BEYOND_GAP_DELIVERED = "member's message beyond a gap delivered"
    GAP_AMONG_COMPANIONS = "gap among at least two companions"
    SAFE_IN_TRANSITIONAL = "safe delivery in a transitional configuration"
    LARGE_CUT = "large message cut by a view change dropped"
    LARGE_SENT_AGAIN = "large message sent again"
    TOKEN_RETRANSMITTED = "token retransmitted"
    DUPLICATE_TOKEN = "duplicate token refused"
    EXPELLED = "member expelled for failing to receive"
    SAME_PROPOSAL = "member given up rather than repeat a proposal"
    MERGE_HELD = "merge held back"
    TOKEN_RESTED = "token rested"
    RING_WOKEN = "resting ring woken"
    PAUSE_NOTICED = "own pause noticed"
    STRANGER_REFUSED = "node refused that is not on the node list"
    ROSTER_ADOPTED = "node list adopted"
    ROSTER_LEARNT = "newer node list taken over from another member"
    NEWCOMER_HELD = "newcomer held back by a differing node list"
    MEMBER_DROPPED = "member dropped by all other node lists"
    IMPLAUSIBLE = "number that cannot be true refused"
    FOREIGN_PACKET = "packet that no member can have sent noticed"
    IMPOSTOR = "packet in my name that is not mine noticed"
    WITHOUT_STORAGE = "went on without stable storage"
    STORAGE_AGAIN = "stable storage in use again"

    # In a network of rings
    NETWORK_BIRTH = "ring took its predecessor's place"
    NETWORK_MERGE = "rings merged"
    NETWORK_MERGE_BY_RESIDUAL = "merge completed in a transitional configuration"
    NETWORK_MARKED = "marked for a merge"
    NETWORK_SPOKEN = "topology said for a merge"
    NETWORK_GIVEN_UP_BEFORE_MARKS = "merge given up before all had marked"
    NETWORK_GIVEN_UP_AFTER_MARKS = "merge given up after all had marked"
    NETWORK_TWO_MINDS = "some merged and others gave up, and stayed connected"
    NETWORK_SELF_MERGE = "component merged with itself"
    NETWORK_TWO_MERGES = "two merges pending at one gateway"
    NETWORK_ALONE_AT_MERGE = "came alone to a merge"
    NETWORK_BOTH_HALVES = "both halves of a split ring stayed in the network"
    NETWORK_CLAIMED_TWICE = "member claimed by two rings"
    NETWORK_RESIDUAL = "packet of an ended ring's transitional configuration delivered"
    NETWORK_RESIDUAL_IN_HALVES = "halves of a ring had different residual packets"
    NETWORK_DELETED = "ring deleted that was cut off"
    NETWORK_BACK = "deleted ring brought back by a merge"
    NETWORK_LEFT_AT_FRONT = "members in no half left at the front of an ended ring"
    NETWORK_LEFT_BEFORE_SAFE = "members left before a safe packet that they may lack"
    NETWORK_KEPT_FOR_LINK = "item kept for a link to begin"
    NETWORK_BEFORE_LINK = "item dropped that is older than its link"
    NETWORK_CAP_TOLD = "front told just below a pending merge"
    NETWORK_HELD = "users held back"
    NETWORK_FILTERED = "packet not carried because nobody there wants it"
    NETWORK_INTEREST_RAISED = "more groups wanted"
    NETWORK_FORGOTTEN = "past forgotten that everybody has passed"

    # Over several sites
    SITES_VOID = "helping void that its ring numbered too late"
    SITES_BEYOND_GAP = "unit kept beyond a gap of its ring"
    SITES_LATE_CARRIER = "unit taken on another ring than that of its view"
    SITES_COPY = "copy of a unit dropped"
    SITES_EARLY_FRAME = "frame of a view kept before it was installed"
    SITES_RECOVERED = "unit recovered from a companion"
    SITES_COMMITS_KEPT = "commit kept of somebody who does not come along"
    SITES_BEYOND_LINE = "unit beyond the line delivered"
    SITES_DROPPED = "unit beyond the line dropped"
    SITES_EXCHANGE_CUT = "attempt cut before all had said what they have"
    SITES_RECOVERY_CUT = "attempt cut when all had said what they have"
    SITES_ATTEMPT_REPLACED = "attempt replaced by a higher one"
    SITES_LINK_FAILED = "link between sites failed"
    SITES_UPDATE = "update sent"
    SITES_REROUTED = "other links used, in the same view"
    SITES_SENT_ANEW = "unit sent over another link after one had failed"
    SITES_INTEREST = "interest of a daemon heard by another site or its own"
    SITES_PRUNED = "messages kept from a branch that does not want them"
    SITES_HOLLOW = "unit taken without its messages"
    SITES_ASKED_WHOLE = "unit asked for whole after other links were used"
    SITES_HOLLOW_RECOVERED = "unit without messages sent in a recovery"
    SITES_ORPHANED = "daemon ended a view alone, for what nobody has any more"
    SITES_STUCK = "site left out that answers and holds up all others"
    SITES_FORGIVEN = "silence of other sites forgiven after a pause of this process"

    # Where places are owned
    PLACES_URGENT = "places given up because others wait"
    PLACES_AHEAD = "places given up ahead"
    PLACES_RESTS = "places given up behind a packet"
    DISTRIBUTION_ADOPTED = "distribution adopted"
    DISTRIBUTION_RECOVERED = "distribution adopted through recovery only"
    DISTRIBUTION_ABANDONED = "distribution abandoned with its configuration"
    PACKET_ASKED = "packet asked for"
    MARK_ASKED = "mark asked for"
    THIRD_ANSWERED = "packet sent again by another than its originator"
    MARK_RELAYED = "mark passed on by another than its originator"
    VOUCHED = "silent member vouched for by another"
    VOID_UNKNOWN = "void place that some did not know of in recovery"
    EARLY_KEPT = "packet of a configuration kept before it was installed"
    HELD_BY_REACH = "sender held back by the reach"
    HELD_BY_WINDOW = "sender held back by the window"
    HELD_BY_APPLICATION = "sender held back by another's application"
    HELD_BY_BUSY_HOSTS = "sender held back while hosts are busy"
    ACKS_GATHERED = "acknowledgement sent to one who tells all"
    OFFICE_HANDED_OVER = "another member became book-keeper"

    # In a forest
    TREE_EDGES_KEPT = "tree changed and kept its edges"
    TREE_GRAFTED = "trees grafted"
    TREE_BUILT = "tree built"
    TREE_REBUILT = "tree built anew to cost less"
    TREE_RECONCILED = "trees that could not go on were ended, and their messages reconciled"
    TREE_LINK_BROKEN = "link of a tree on which nothing moved"
    TREE_CLOSE_AWAITED_CONTROL = "close of a tree waited for the control stream"
    TREE_BEFORE_BIRTH = "block came before its birth"
    TREE_REFUSED = "message refused by a closed entry and sent again"
    TREE_ENTRY_RAISED = "message entered above its own entry for the sake of order"
    TREE_ENTRY_AWAITED = "sender waited for an entry"
    TREE_SENDER_OUTSIDE = "message of a sender outside its groups"
    TREE_TWO_GROUPS = "message to several groups of one tree"
    TREE_SEVERAL_TREES = "message to groups of several trees"
    TREE_NOBODY = "message to groups without members"
    TREE_BEHIND_SAFE = "agreed message waited behind a safe one"
    TREE_RECOVERED_FROM_FORWARDER = "message recovered from one who passed it on"
    TREE_RECOVERED_FROM_SOURCE = "message recovered from its source alone"
    TREE_IMPLIED = "message implied by a later one"
    TREE_SIGNALLED_APART = "message of a group whose signal comes later than that of another"
    TREE_ENDED_UNEVENLY = "configuration ended when an opening had taken effect at some companions alone"
    TREE_ORDERED_AGAIN = "message ordered again in a later configuration"
    TREE_DROPPED_AGAIN = "message that was ordered again dropped where it had been delivered"
    TREE_SENT_AGAIN = "messages of an ended configuration sent to those who lack them"
    TREE_EXCHANGE_INTERRUPTED = "exchange of reports interrupted"
    TREE_RECOVERY_INTERRUPTED = "recovery of messages interrupted"
    TREE_MANAGER_LOST = "manager lost in a change of the forest"
    TREE_INTERIOR_LEFT = "process with others below it left in order"
    TREE_WINDOW_FULL = "entry waited for its window"
    TREE_HELD_BY_APPLICATION = "channel held for a process whose application is behind"


@dataclass(frozen=True, slots=True)
class Occurred:
    what: Occurrence
    count: int = 1
    process: ProcessId | None = None


class NetworkState(Enum):
    """What this process thinks of one of several redundant networks."""

    GOOD = "good"  # it carries its part of the traffic, and is blamed for what does not come
    ON_TRIAL = "on trial"  # it carries copies; nothing relies on it, and nothing is held against it
    FAULTY = "faulty"  # it is sent nothing but probes, and still listened to


class Evidence(Enum):
    """Why a network's state changed."""

    TOKEN_TIMER = "tokens did not come in time"
    TOKENS = "fewer tokens came than on another network"
    MESSAGES = "fewer messages of a member came than on another network"
    ANNOUNCEMENTS = "fewer announcements of a member came than on another network"
    REFUSAL = "a member sends nothing but probes on it"
    PROVED = "enough probes in a row came from every member"
    HEARD = "every member was heard on it"
    UNHEARD = "a member was not heard on it"
    NEW_RING = "a new ring gives every network another chance"
    NEED = "no other network is without faults"
    MISSING = "a message that was asked for again and again did not come"


@dataclass(frozen=True, slots=True)
class NetworkTurned:
    """A network's state changed, or would have if it were not the last good one."""

    network: int
    state: NetworkState
    evidence: Evidence
    process: ProcessId | None  # the member that the evidence is about
    text: str


class Release(Enum):
    """Why a waiting token was passed up."""

    ALL = "every good network brought it"
    ENOUGH = "as many copies came as are sent"
    DIRECT = "nothing was missing"
    GAP_CLOSED = "what was missing came"
    TIMER = "it had waited long enough"


@dataclass(slots=True)
class TokenReleased:
    """A token that came on several networks, or before the messages it speaks of, was passed up. (Not frozen: there are
    as many as token visits.)"""

    ring: ConfigurationId
    token_seq: int
    seq: int
    cause: Release
    brought: int  # the networks that brought it, as bits


@dataclass(frozen=True, slots=True)
class Opened:
    """A forest took effect at this process, which from here on has what is sent to these groups in that epoch."""

    configuration: ConfigurationId
    birth: int
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Distributed:
    """A process of the adaptive engine adopted a distribution: from its base on places are shared out anew."""

    ring: ConfigurationId
    number: int
    base: int
    keeper: ProcessId  # who announces the next one
    weights: tuple[int, ...]  # in the order of the members


@dataclass(slots=True)
class Marked:
    """A process of the adaptive engine multicast a mark. (Not frozen: there are about as many as messages.)"""

    ring: ConfigurationId
    tick: int
    next: int  # it uses no place below this
    aru: int
    stable: int  # what it knows that all know
    waiting: int  # packets that it would send


Note = (
    Moved | Visited | Ignored | PacketDropped | Occurred | NetworkTurned | TokenReleased | Opened | Distributed | Marked
)
