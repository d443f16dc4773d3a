"""The control messages between daemons: one frozen record each, with why each field is there.

Data packets are not here: they are read in place, see `header.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import NO_CONFIGURATION, NO_SEQ, ConfigurationId, ProcessId, Seq, TokenSeq
from ordercast.model.roster import NO_CLAIM, Claim, Roster

EXTENSION_SIZE_MAX = 512
MEMBERS_MAX = 1000


# Sums over members, each of which adds its own part: packets sent again, packets to send, and members whose
# applications are behind. A plain tuple, since several are built at every visit.
Counts = tuple[int, int, int]
NOTHING: Counts = (0, 0, 0)


@dataclass(slots=True)
class Token:
    """The right to send on a ring, and what is known of who received what. Changed only by who rests with it; not
    frozen because one is read and one is built at every visit, and frozen ones take three times as long to build."""

    ring: ConfigurationId  # the ring it circulates on
    sender: ProcessId  # who forwarded it
    token_seq: TokenSeq  # rises with every hop, so that a second copy is recognised
    round: int  # rises with every rotation; data packets carry it
    seq: Seq  # highest seq given to a packet
    aru: Seq  # all members have received up to here, once it has come round twice
    aru_id: ProcessId  # who holds `aru` below `seq`; NOBODY when they are equal
    requests: tuple[Seq, ...]  # packets that somebody misses, ascending
    retransmitted: int  # packets retransmitted in the last rotation: they count against the window
    budget: int  # new packets that this rotation may have in all; the representative's word
    waiting: int  # packets that the members had to send when it last came by: each takes its part of the budget
    behind: int  # members whose applications are behind: while there are any, the budget is zero
    exchanging: bool  # somebody still has old-ring packets to send (`retrans_flg`)
    timestamp: int  # Lamport clock of the ring
    extension: bytes = b""  # room for an enclosing engine
    # `retransmitted`, `waiting` and `behind` counted anew since the token was at the representative, who puts them in
    # the place of those three: a number that is wrong, for whatever reason, is right again a rotation later.
    counted: Counts = NOTHING


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """What one member of a proposed ring says of its old ring, on the first rotation of the Commit token."""

    process: ProcessId
    filled: bool = False  # the member has written the rest
    old_ring: ConfigurationId = NO_CONFIGURATION  # the ring it last installed
    old_aru: Seq = NO_SEQ  # it has all packets of that ring up to here
    high_delivered: Seq = NO_SEQ  # it delivered up to here in that ring's regular configuration
    received: bool = False  # it has promised to deliver what an earlier, failed recovery exchanged


@dataclass(frozen=True, slots=True)
class CommitToken:
    """Confirms a membership and collects what recovery needs. Two rotations."""

    ring: ConfigurationId  # the ring to be formed
    sender: ProcessId  # who forwarded it
    token_seq: TokenSeq  # tells the hop, and with it the rotation: duplicates are refused
    reason: ChangeReason  # why the membership changes; the representative's word, so that all views agree
    members: tuple[CommitEntry, ...]  # in ring order, representative first
    timestamp: int  # the highest Lamport clock of the members so far
    extension: bytes = b""


@dataclass(frozen=True, slots=True)
class Join:
    """One process's opinion on who should be in the next ring."""

    ring: ConfigurationId  # the ring the sender last installed
    sender: ProcessId
    number: int  # rises with every change of the sender's opinion: an older one arriving late is ignored
    ring_seq: int  # highest ring seq the sender has committed to; the new ring's is above all of these
    candidates: tuple[ProcessId, ...]  # `proc_set`, sorted
    failed: tuple[ProcessId, ...]  # `fail_set`, a subset of the candidates, sorted
    forwards: int  # how often the sender forwarded the token of the ring that failed to form
    reason: ChangeReason  # why the sender gave up its ring
    blamed: ProcessId  # who was expelled for failing to receive; NOBODY otherwise
    digests: tuple[int, ...]  # of the ring-relevant configuration, one per key
    claim: Claim = NO_CLAIM  # of the sender's roster: rosters that differ are told to a person
    settings: tuple[int, ...] = ()  # of the sender's engine, a digest each: who has others can never be a member


@dataclass(frozen=True, slots=True)
class Announcement:
    """I am here, on this ring, and these are the ones I hear: how rings that do not talk find each other."""

    ring: ConfigurationId
    sender: ProcessId
    members: tuple[ProcessId, ...]  # of the sender's ring
    heard: tuple[ProcessId, ...]  # of whom the sender has recently received a packet, sorted
    claim: Claim = NO_CLAIM  # of the sender's roster: who may be admitted depends on it
    settings: tuple[int, ...] = ()  # as in a Join


@dataclass(frozen=True, slots=True)
class Wake:
    """To the holder of a resting token: somebody has something to send."""

    ring: ConfigurationId
    sender: ProcessId


@dataclass(frozen=True, slots=True)
class Leave:
    """I go, and owe nothing."""

    ring: ConfigurationId
    sender: ProcessId


@dataclass(frozen=True, slots=True)
class RosterCopy:
    """The sender's whole roster, for those who have another."""

    ring: ConfigurationId
    sender: ProcessId
    roster: Roster


WireMessage = Token | CommitToken | Join | Announcement | Wake | Leave | RosterCopy
