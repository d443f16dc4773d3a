"""One ring as one of its members sees it: who is on it, what was received on it, what the last token visit left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ordercast.model.ids import NO_SEQ, NOBODY, ConfigurationId, ProcessId, Seq, TokenSeq
from ordercast.order.membership.store import Store
from ordercast.wire.header import Heading
from ordercast.wire.messages import Token


@dataclass(slots=True)
class TokenMemory:
    """What this process remembers between two visits of the token."""

    token_seq: TokenSeq  # as last forwarded (`my_token_seq`)
    round: int = 0
    received_seq: Seq = NO_SEQ  # token.seq when last received (`last_token_seq`)
    forwarded_seq: Seq = NO_SEQ  # token.seq when last forwarded
    forwarded_aru: Seq = NO_SEQ  # token.aru when last forwarded (`my_last_aru`, `last_aru_seen`)
    safe_seq: Seq = NO_SEQ  # forwarded_aru was at least this on two successive visits
    retransmitted: int = 0  # by this process on the last visit (`last_retrans`)
    wanted: int = 0  # packets that this process had to send on the last visit
    aru_id: ProcessId = NOBODY  # who held the aru below seq on the last visit
    behind: int = 0  # members whose applications were behind then, this one among them
    was_behind: bool = False  # what the token was told of this process's application on the last visit
    stuck: int = 0  # visits on which the aru stood still below seq (`my_aru_count`)
    quiet: int = 0  # visits since anything happened on this ring
    may_rest: bool = False  # when the token went on from here there was nothing to do: it may rest
    foreign_seq: Seq = NO_SEQ  # the number of a packet of mine under which another came
    copy: Sequence[bytes] = ()  # packets of the token as last forwarded, to be sent again if it gets lost


@dataclass(slots=True)
class Ring:
    id: ConfigurationId
    members: tuple[ProcessId, ...]  # in ring order: ascending, representative first
    me: ProcessId
    cluster: bytes
    memory: TokenMemory
    store: Store = field(default_factory=Store)
    birth: int = 0  # the tick at which it begins, in a network of rings
    heading: Heading = field(init=False)  # of this ring's data packets
    index: int = field(init=False)  # my place in ring order, from 0
    representative: ProcessId = field(init=False)
    successor: ProcessId = field(init=False)
    predecessor: ProcessId = field(init=False)

    def __post_init__(self) -> None:
        assert self.me in self.members and self.members == tuple(sorted(self.members))
        self.heading = Heading(self.cluster, self.id, self.members)
        self.index = self.members.index(self.me)
        self.representative = self.members[0]
        self.successor = self.members[(self.index + 1) % len(self.members)]
        self.predecessor = self.members[self.index - 1]

    @property
    def last_sender(self) -> ProcessId:
        """Whose packet is the highest that I have: there an idle token rests. The representative, while there is
        none."""
        originator = self.store.high_originator
        return originator if originator != NOBODY else self.representative

    def expected_token_seq(self) -> int:
        """The number on the next token that comes here: every other member has forwarded it once."""
        return self.memory.token_seq + len(self.members) - 1

    def first_token(self, sender: ProcessId, token_seq: TokenSeq, timestamp: int = 0, extension: bytes = b"") -> Token:
        """The token with which this ring begins."""
        none = NO_SEQ
        return Token(self.id, sender, token_seq, 0, none, none, NOBODY, (), 0, 0, 0, 0, False, timestamp, extension)
