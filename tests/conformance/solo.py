"""One real node among members that are played by hand: every message to it is written out, every effect is looked at.

The node is brought into a state by the messages that lead there in life. What it forwarded last is remembered, so that
the next token can be made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from ordercast.model.configuration import ChangeReason, Configuration
from ordercast.model.effects import Alarm, Broadcast, Deliver, Effect, Install, Record, SendTo
from ordercast.model.ids import (
    NO_SEQ,
    NOBODY,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    Seq,
    TokenSeq,
    node_of,
    process_id_from,
)
from ordercast.model.inputs import Packet, Stored, Submission
from ordercast.model.notes import Ignored, Moved, Occurred, Occurrence
from ordercast.model.service import Service
from ordercast.order.adaptive.codec import AdaptiveKind
from ordercast.order.engine import CONFIGURATION_SEQ_KEY
from ordercast.order.ring.config import RingConfig
from ordercast.order.ring.node import RingNode
from ordercast.wire.codec import decode, encode
from ordercast.wire.head import KIND_AT, PACKET_SIZE_MAX, cluster_id_from
from ordercast.wire.header import SAFE, Heading, MessageKind, recovered
from ordercast.wire.messages import Announcement, CommitEntry, CommitToken, Join, Token, WireMessage
from ordercast.wire.pieces import Pieces
from ordercast.wire.run import build_data
from tests.packets import seq_of

CLUSTER = cluster_id_from("ordercast")
SMALL = RingConfig(window=8, visit_max=4, backlog_max=32, fail_to_receive_rotations=5)
RING = ConfigurationId(8, process_id_from(NodeId(1), Incarnation(1)))  # what ONE, TWO and THREE form first

M = TypeVar("M", bound=WireMessage)


def process(node: int, incarnation: int = 1) -> ProcessId:
    return process_id_from(NodeId(node), Incarnation(incarnation))


ONE, TWO, THREE, FOUR, FIVE = (process(node) for node in range(1, 6))
TRIO = (ONE, TWO, THREE)


def packet_of(
    seq: int,
    text: str = "",
    originator: ProcessId = ONE,
    service: Service = Service.AGREED,
    ring: ConfigurationId = RING,
    members: Sequence[ProcessId] | None = None,
) -> bytes:
    """A data packet with one message; it says its own seq when nothing else is given."""
    data = (text or str(seq)).encode()
    flags = SAFE if service is Service.SAFE else 0
    heading = Heading(CLUSTER, ring, members or (TRIO if originator in TRIO else (originator,)))
    entry = (0, len(data), int(service), data)
    return build_data(heading, flags, [entry], originator, Seq(seq), 1, seq).packet(Seq(seq))


def wrapped(packet: bytes, seq: int, ring: ConfigurationId, transmitter: ProcessId) -> bytes:
    """An old-ring packet as it travels on a new ring."""
    return recovered(packet, NOBODY, Heading(CLUSTER, ring, ()), transmitter, Seq(seq), 1)


class Solo:
    def __init__(
        self,
        me: ProcessId = TWO,
        config: RingConfig = SMALL,
        stored: Stored | None = None,
        make: Callable[..., Any] = RingNode,
        settings: tuple[int, ...] = (),
        **more: Any,
    ) -> None:
        """`make`: its engine; `settings`: of all engines, which agree on them; `more`: what else it is made with."""
        self.settings = settings
        self.me = me
        self.config = config
        self.now = Instant(0)
        self.node: RingNode = make(node_of(me), config, **more)  # or what has the same membership
        self.join = Join(RING, me, 0, 0, (), (), 0, ChangeReason.STARTED, NOBODY, (), settings=settings)
        self.forwarded: Token | CommitToken | None = None  # its last
        self.log: list[Effect] = []
        self.numbers = 0
        self._keep(self.node.start(stored or {}, Incarnation(1), self.now))

    @property
    def cluster(self) -> bytes:
        """The id on packets, as the test speaks of them."""
        return self.node.cluster

    # Inputs

    def give(self, *messages: WireMessage) -> list[Effect]:
        """All in one look at the network."""
        return self.give_packets(*(encode(self.cluster, message) for message in messages))

    def give_packets(self, *packets: bytes) -> list[Effect]:
        return self._keep(self.node.receive([Packet(packet, len(packet)) for packet in packets], self.now))

    def written(self) -> list[Effect]:
        return self._keep(self.node.persisted(CONFIGURATION_SEQ_KEY, self.now))

    def submit(self, *texts: str, service: Service = Service.AGREED, size: int = 0) -> list[Effect]:
        """With `size`, each message is padded to it."""
        submissions = [Submission(text.encode().ljust(size, b"."), service) for text in texts]
        return self._keep(self.node.submit(submissions, self.now))

    def behind(self, is_behind: bool) -> list[Effect]:
        return self._keep(self.node.behind(is_behind, self.now))

    def leave(self) -> list[Effect]:
        return self._keep(self.node.leave(self.now))

    def wait(self, duration: int) -> list[Effect]:
        """Time passes; the node is woken when it wishes."""
        end = self.now + duration
        effects: list[Effect] = []
        while (deadline := self.node.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            effects += self._keep(self.node.wake(self.now))
        self.now = Instant(end)
        return effects

    def wake_late(self, duration: int) -> list[Effect]:
        """Time passes while the node does not run; then it is woken once."""
        self.now = Instant(self.now + duration)
        return self._keep(self.node.wake(self.now))

    def _keep(self, effects: list[Effect]) -> list[Effect]:
        self.log += effects
        self.node.check_invariants()
        for message in controls_of(effects, self.cluster):
            if isinstance(message, Join):
                self.join = message
            elif isinstance(message, Token | CommitToken):
                self.forwarded = message
        return effects

    # Messages that others would send

    def announcements(self, others: Sequence[ProcessId] = TRIO) -> list[Announcement]:
        """Others on rings of their own, and everybody hears everybody."""
        everybody = tuple(sorted({self.me, *others}))
        return [
            Announcement(ConfigurationId(4, one), one, (one,), everybody, settings=self.settings)
            for one in others
            if one != self.me
        ]

    def join_of(
        self,
        sender: ProcessId,
        candidates: Collection[ProcessId] | None = None,
        failed: Collection[ProcessId] | None = None,
        **changes: Any,
    ) -> Join:
        """A Join; what is not given is as in the last one of the node."""
        self.numbers += 1
        candidates = self.join.candidates if candidates is None else tuple(sorted(candidates))
        failed = self.join.failed if failed is None else tuple(sorted(failed))
        changes = {"number": self.numbers, "ring_seq": self.join.ring_seq or 4, "digests": (), **changes}
        return replace(self.join, sender=sender, candidates=candidates, failed=failed, **changes)

    def agreement(self) -> list[Join]:
        """A Join equal to the node's from everybody it proposes."""
        proposed = sorted(set(self.join.candidates) - set(self.join.failed))
        return [self.join_of(one) for one in proposed if one != self.me]

    def first_commit(
        self, members: Sequence[ProcessId] = TRIO, ring: ConfigurationId = RING, entries: Sequence[CommitEntry] = ()
    ) -> CommitToken:
        """The Commit token as it comes to the node on its first rotation."""
        index = members.index(self.me)
        filled = _entries(members, entries)
        listed = tuple(filled[i] if i < index else CommitEntry(one) for i, one in enumerate(members))
        return CommitToken(ring, members[index - 1], TokenSeq(index), ChangeReason.MERGE, listed, 0)

    def second_commit(self, entries: Sequence[CommitEntry] = ()) -> CommitToken:
        """The Commit token that the node forwarded, with the entries of the others, on its second rotation."""
        token = self.commit_forwarded
        members = [member.process for member in token.members]
        filled = _entries(members, entries)
        listed = tuple(member if member.process == self.me else filled[i] for i, member in enumerate(token.members))
        index = members.index(self.me)
        hop = TokenSeq(index + len(members))
        return replace(token, sender=members[index - 1], token_seq=hop, members=listed)

    def third_commit(self) -> CommitToken:
        """The Commit token as it comes to the representative for the last time."""
        token = self.commit_forwarded
        return replace(token, sender=token.members[-1].process, token_seq=TokenSeq(2 * len(token.members)))

    def token(self, **changes: Any) -> Token:
        """The next token: what the node forwarded, handed on by all others unchanged but for `changes`."""
        last = self.forwarded
        assert last is not None
        if isinstance(last, CommitToken):
            self.members = tuple(member.process for member in last.members)
            last = Token(
                last.ring, NOBODY, last.token_seq, 0, NO_SEQ, NO_SEQ, NOBODY, (), 0, 99, 0, 0, False, last.timestamp
            )
        others = len(self.members) - 1
        before = self.members[self.members.index(self.me) - 1]
        changes = {"sender": before, "token_seq": TokenSeq(last.token_seq + others), **changes}
        return replace(last, **changes)

    def pass_token(self, **changes: Any) -> list[Effect]:
        return self.give(self.token(**changes))

    @property
    def token_forwarded(self) -> Token:
        assert isinstance(self.forwarded, Token)
        return self.forwarded

    @property
    def commit_forwarded(self) -> CommitToken:
        assert isinstance(self.forwarded, CommitToken)
        return self.forwarded

    # The way into each state

    def to_ring_of_one(self) -> Self:
        self.written()
        return self

    def to_gather(self, members: Sequence[ProcessId] = TRIO) -> Self:
        """From a ring of one: everybody hears everybody, and the lowest proposes a ring of all."""
        self.to_ring_of_one()
        self.give(*self.announcements(members))
        if self.me == members[0]:
            self.wait(self.config.announce_ns // 4)
        else:
            self.give(self.join_of(members[0], members, reason=ChangeReason.MERGE))
        assert self.node.state_name == "Gather"
        return self

    def agree(self) -> Self:
        """Everybody proposed agrees. The representative goes on to Commit."""
        self.give(*self.agreement())
        return self

    def to_commit(self, members: Sequence[ProcessId] = TRIO) -> Self:
        self.to_gather(members).agree()
        if self.me != members[0]:
            self.give(self.first_commit(members, ConfigurationId(8, members[0])))
        assert self.node.state_name == "Commit"
        return self

    def to_recovery(self, members: Sequence[ProcessId] = TRIO) -> Self:
        self.to_commit(members)
        self.written()
        self.give(self.second_commit())
        assert self.node.state_name == "Recovery"
        return self

    def begin_token(self) -> list[Effect]:
        """The first regular token of a new ring comes to the node."""
        token = self.token()  # learns the members
        return self.give(self.third_commit() if self.me == self.members[0] else token)

    def install(self) -> Self:
        """From Recovery: the token comes until the ring is installed, and nobody has anything to say."""
        self.begin_token()
        self.pass_token()
        self.pass_token()
        assert self.node.state_name == "Operational"
        return self

    def to_operational(self, members: Sequence[ProcessId] = TRIO) -> Self:
        return self.to_recovery(members).install()

    def lose_ring(self) -> Self:
        """The token does not come any more."""
        self.wait(self.config.token_loss_ns)
        assert self.node.state_name == "Gather"
        return self

    def fail(self, *silent: ProcessId) -> Self:
        """In Gather: these say nothing until the consensus timeout, all others agree."""
        self.give(*(join for join in self.agreement() if join.sender not in silent))
        self.wait(self.config.consensus_ns)
        return self

    def recover(self, *entries: CommitEntry) -> Self:
        """In Gather: everybody proposed agrees, the Commit token goes round twice with these entries of the others."""
        self.agree()
        if self.node.state_name == "Gather":
            members = tuple(sorted(set(self.join.candidates) - set(self.join.failed)))
            ring = ConfigurationId(self.join.ring_seq + 4, members[0])
            self.give(self.first_commit(members, ring, entries))
        self.written()
        self.give(self.second_commit(entries))
        assert self.node.state_name == "Recovery"
        return self


def _entries(members: Sequence[ProcessId], entries: Sequence[CommitEntry]) -> list[CommitEntry]:
    given = {member.process: member for member in entries}
    return [given.get(one, CommitEntry(one, True, ConfigurationId(4, one))) for one in members]


# What effects say


def packets_of(effects: Sequence[Effect]) -> list[bytes]:
    """Everything sent, in order."""
    packets: list[bytes] = []
    for effect in effects:
        if isinstance(effect, Broadcast):
            packets += effect.packets
        elif isinstance(effect, SendTo):
            packets.append(effect.packet)
    return packets


def data_of(effects: Sequence[Effect]) -> list[bytes]:
    return [packet for packet in packets_of(effects) if packet[KIND_AT] == MessageKind.DATA]


def seqs(effects: Sequence[Effect]) -> list[int]:
    return [seq_of(packet) for packet in data_of(effects)]


def controls_of(effects: Sequence[Effect], cluster: bytes = CLUSTER) -> list[WireMessage]:
    """What the membership and its tokens say, in order; what was sent in pieces is put together."""
    pieces, found = Pieces(cluster, PACKET_SIZE_MAX), []
    for packet in packets_of(effects):
        whole = pieces.add(packet) if packet[KIND_AT] == MessageKind.PIECE else packet
        if whole is not None and whole[KIND_AT] not in (MessageKind.DATA, *AdaptiveKind):
            found.append(decode(whole, cluster))
    return found


def sent(effects: Sequence[Effect], kind: type[M]) -> list[M]:
    """Control messages of this kind, in order."""
    return [message for message in controls_of(effects) if isinstance(message, kind)]


def delivered(effects: Sequence[Effect]) -> list[str]:
    return [
        message[5].decode().rstrip(".")
        for effect in effects
        if isinstance(effect, Deliver)
        for message in effect.messages()
    ]


def story(effects: Sequence[Effect]) -> list[str]:
    """Deliveries and views in order: `[1 2]` a regular view, `(2)` a transitional one."""
    lines: list[str] = []
    for effect in effects:
        if isinstance(effect, Install):
            members = " ".join(str(node_of(one)) for one in effect.configuration.members)
            lines.append(f"[{members}]" if effect.configuration.kind.value == "regular" else f"({members})")
        lines += delivered([effect])
    return lines


def views(effects: Sequence[Effect]) -> list[Configuration]:
    return [effect.configuration for effect in effects if isinstance(effect, Install)]


def moves(effects: Sequence[Effect]) -> list[Moved]:
    return [effect.note for effect in effects if isinstance(effect, Record) and isinstance(effect.note, Moved)]


def reasons(effects: Sequence[Effect]) -> list[ChangeReason | None]:
    return [move.reason for move in moves(effects)]


def occurred(effects: Sequence[Effect]) -> list[Occurrence]:
    return [effect.note.what for effect in effects if isinstance(effect, Record) and isinstance(effect.note, Occurred)]


def ignored(effects: Sequence[Effect]) -> list[str]:
    return [effect.note.why for effect in effects if isinstance(effect, Record) and isinstance(effect.note, Ignored)]


def alarms(effects: Sequence[Effect]) -> list[Alarm]:
    return [effect for effect in effects if isinstance(effect, Alarm)]
