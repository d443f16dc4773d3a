"""Control messages to bytes and back. `decode` raises WireError and nothing else, whatever the bytes.

Counts are checked before anything is allocated; a length is never trusted.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import assert_never

from ordercast.model.configuration import ChangeReason
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq, TokenSeq
from ordercast.model.notes import NetworkState
from ordercast.model.roster import Claim
from ordercast.wire.header import (
    CLUSTER_SIZE,
    HEADER,
    HEADER_SIZE,
    MAGIC,
    PREFIX,
    VERSION,
    MessageKind,
    prefix_of,
)
from ordercast.wire.messages import (
    EXTENSION_SIZE_MAX,
    MEMBERS_MAX,
    Announcement,
    CommitEntry,
    CommitToken,
    Join,
    Leave,
    Probe,
    RosterCopy,
    Token,
    Wake,
    WireMessage,
)
from ordercast.wire.roster import decode_roster, encode_roster

FIRST_ENGINE = "ring"  # its name is not part of the id: it was there before there were others
REQUESTS_MAX = 4096
DIGESTS_MAX = 64

# token_seq, aru, aru_id, retransmitted, budget, waiting, behind, the counted three, exchanging, runs, extension size
TOKEN = struct.Struct(">QQQIIIHIIHBHH")
RUN = struct.Struct(">QH")  # first requested seq, how many after it
COMMIT = struct.Struct(">QBHH")  # token_seq, reason, members, extension size
MEMBER = struct.Struct(">QBQQQQ")  # process, flags, old ring seq, old ring representative, old_aru, high_delivered
JOIN = struct.Struct(">QQIBQHHB")  # number, ring_seq, forwards, reason, blamed, candidates, failed, digests
ANNOUNCEMENT = struct.Struct(">HH")  # members, heard
CLAIM = struct.Struct(">IQ")  # version and digest of the roster, at the end of Joins and announcements
PROBE = struct.Struct(">QBBB")  # number, network, state, flags
assert (TOKEN.size, RUN.size, COMMIT.size, MEMBER.size, JOIN.size, ANNOUNCEMENT.size) == (53, 10, 13, 41, 34, 4)

NUMBER_MAX = (1 << 62) - 1  # no counter gets there; one that does is damaged, and must not overflow further on
FILLED = 1
RECEIVED = 2
WHOLE, IN_NEED = 1, 2  # flags of a probe
_STATES = (NetworkState.GOOD, NetworkState.ON_TRIAL, NetworkState.FAULTY)  # by number, append only
_KINDS = {int(kind): kind for kind in MessageKind}
_REASONS = {int(reason): reason for reason in ChangeReason}


def cluster_id_from(name: str, engine: str = FIRST_ENGINE) -> bytes:
    """Eight bytes that keep strangers on one multicast group apart, and nodes of a cluster that run another engine."""
    text = name if engine == FIRST_ENGINE else f"{name}\0{engine}"
    return hashlib.blake2b(text.encode(), digest_size=CLUSTER_SIZE).digest()


class _Reader:
    """Takes pieces off a body; whatever is missing is a WireError."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        try:
            fields = layout.unpack_from(self.data, self.at)
        except struct.error:
            raise WireError("the packet is cut short") from None
        self.at += layout.size
        return fields

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise WireError("the packet is cut short")
        self.at += size
        return piece

    def processes(self, count: int) -> tuple[ProcessId, ...]:
        _bounded(count, MEMBERS_MAX, "processes")
        piece = self.take(8 * count)
        return tuple(map(ProcessId, struct.unpack(f">{count}Q", piece)))

    def end(self) -> None:
        if self.at != len(self.data):
            raise WireError(f"{len(self.data) - self.at} bytes too many")


def _bounded(count: int, limit: int, what: str) -> None:
    if count > limit:
        raise WireError(f"{count} {what}, more than the limit of {limit}")


def _sane(*numbers: int) -> None:
    if max(numbers) > NUMBER_MAX:
        raise WireError("a number beyond all bounds")


def _reason(number: int) -> ChangeReason:
    try:
        return _REASONS[number]
    except KeyError:
        raise WireError(f"reason {number} does not exist") from None


def _packed(processes: Iterable[ProcessId]) -> bytes:
    listed = tuple(processes)
    return struct.pack(f">{len(listed)}Q", *listed)


def _frame(
    cluster: bytes,
    kind: MessageKind,
    ring: ConfigurationId,
    sender: ProcessId,
    body: bytes = b"",
    *,
    seq: int = 0,
    token_round: int = 0,
    timestamp: int = 0,
) -> bytes:
    prefix = prefix_of(kind, cluster, ring)
    length = HEADER_SIZE + len(body)
    return HEADER.pack(prefix, length, 0, 0, sender, sender, seq, token_round, timestamp) + body


def _runs(requests: tuple[Seq, ...]) -> list[tuple[int, int]]:
    """Ascending seqs as (first, how many more)."""
    runs: list[tuple[int, int]] = []
    for seq in requests:
        if runs and runs[-1][0] + runs[-1][1] + 1 == seq and runs[-1][1] < 0xFFFF:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((seq, 0))
    return runs


def encode_token(cluster: bytes, token: Token) -> bytes:
    runs = _runs(token.requests)
    fixed = TOKEN.pack(
        token.token_seq,
        token.aru,
        token.aru_id,
        token.retransmitted,
        token.budget,
        token.waiting,
        token.behind,
        *token.counted,
        token.exchanging,
        len(runs),
        len(token.extension),
    )
    body = b"".join((fixed, *(RUN.pack(first, more) for first, more in runs), token.extension))
    return _frame(
        cluster,
        MessageKind.TOKEN,
        token.ring,
        token.sender,
        body,
        seq=token.seq,
        token_round=token.round,
        timestamp=token.timestamp,
    )


def _decode_token(
    ring: ConfigurationId, sender: ProcessId, seq: Seq, token_round: int, timestamp: int, body: _Reader
) -> Token:
    fields = body.unpack(TOKEN)
    token_seq, aru, aru_id, retransmitted, budget, waiting, behind = fields[:7]
    exchanging, count, extension_size = fields[10:]
    _sane(token_seq)
    _bounded(count, REQUESTS_MAX, "requests")
    _bounded(extension_size, EXTENSION_SIZE_MAX, "bytes of extension")
    requests: list[int] = []
    for _ in range(count):
        first, more = body.unpack(RUN)
        _bounded(len(requests) + more + 1, REQUESTS_MAX, "requests")
        if requests and first <= requests[-1]:
            raise WireError("requests are not ascending")
        requests.extend(range(first, first + more + 1))
    if aru > seq or exchanging > 1 or (requests and requests[-1] > seq):
        raise WireError("the token contradicts itself")
    return Token(
        ring,
        sender,
        TokenSeq(token_seq),
        token_round,
        seq,
        Seq(aru),
        ProcessId(aru_id),
        tuple(map(Seq, requests)),
        retransmitted,
        budget,
        waiting,
        behind,
        bool(exchanging),
        timestamp,
        body.take(extension_size),
        (fields[7], fields[8], fields[9]),
    )


def encode_commit(cluster: bytes, token: CommitToken) -> bytes:
    members = (
        MEMBER.pack(
            member.process,
            FILLED * member.filled | RECEIVED * member.received,
            member.old_ring.seq,
            member.old_ring.representative,
            member.old_aru,
            member.high_delivered,
        )
        for member in token.members
    )
    fixed = COMMIT.pack(token.token_seq, token.reason, len(token.members), len(token.extension))
    body = b"".join((fixed, *members, token.extension))
    return _frame(cluster, MessageKind.COMMIT, token.ring, token.sender, body, timestamp=token.timestamp)


def _decode_commit(ring: ConfigurationId, sender: ProcessId, timestamp: int, body: _Reader) -> CommitToken:
    token_seq, reason, count, extension_size = body.unpack(COMMIT)
    _sane(token_seq)
    _bounded(count, MEMBERS_MAX, "members")
    _bounded(extension_size, EXTENSION_SIZE_MAX, "bytes of extension")
    members = tuple(_decode_member(body) for _ in range(count))
    processes = [member.process for member in members]
    if not members or members[0].process != ring.representative or len(set(processes)) != count:
        raise WireError("the Commit token's members contradict its ring")
    extension = body.take(extension_size)
    return CommitToken(ring, sender, TokenSeq(token_seq), _reason(reason), members, timestamp, extension)


def _decode_member(body: _Reader) -> CommitEntry:
    process, flags, old_seq, old_representative, old_aru, high_delivered = body.unpack(MEMBER)
    if flags > FILLED | RECEIVED:
        raise WireError("flags that do not exist")
    _sane(old_seq, old_aru, high_delivered)
    return CommitEntry(
        ProcessId(process),
        bool(flags & FILLED),
        ConfigurationId(old_seq, ProcessId(old_representative)),
        Seq(old_aru),
        Seq(high_delivered),
        bool(flags & RECEIVED),
    )


def encode_join(cluster: bytes, join: Join) -> bytes:
    fixed = JOIN.pack(
        join.number,
        join.ring_seq,
        join.forwards,
        join.reason,
        join.blamed,
        len(join.candidates),
        len(join.failed),
        len(join.digests),
    )
    digests = struct.pack(f">{len(join.digests)}I", *join.digests)
    body = b"".join((fixed, _packed(join.candidates), _packed(join.failed), digests, CLAIM.pack(*join.claim)))
    return _frame(cluster, MessageKind.JOIN, join.ring, join.sender, body)


def _decode_join(ring: ConfigurationId, sender: ProcessId, body: _Reader) -> Join:
    number, ring_seq, forwards, reason, blamed, candidates, failed, digests = body.unpack(JOIN)
    _sane(number, ring_seq)
    _bounded(digests, DIGESTS_MAX, "digests")
    join = Join(
        ring,
        sender,
        number,
        ring_seq,
        body.processes(candidates),
        body.processes(failed),
        forwards,
        _reason(reason),
        ProcessId(blamed),
        struct.unpack(f">{digests}I", body.take(4 * digests)),
        Claim(*body.unpack(CLAIM)),
    )
    if not set(join.failed) <= set(join.candidates) or sender not in join.candidates or sender in join.failed:
        raise WireError("the Join's sets contradict each other")
    return join


def encode_announcement(cluster: bytes, announcement: Announcement) -> bytes:
    fixed = ANNOUNCEMENT.pack(len(announcement.members), len(announcement.heard))
    claim = CLAIM.pack(*announcement.claim)
    body = b"".join((fixed, _packed(announcement.members), _packed(announcement.heard), claim))
    return _frame(cluster, MessageKind.ANNOUNCEMENT, announcement.ring, announcement.sender, body)


def _decode_announcement(ring: ConfigurationId, sender: ProcessId, body: _Reader) -> Announcement:
    members, heard = body.unpack(ANNOUNCEMENT)
    listed = body.processes(members), body.processes(heard)
    announcement = Announcement(ring, sender, *listed, Claim(*body.unpack(CLAIM)))
    if sender not in announcement.members:
        raise WireError("the announcer is not on its own ring")
    return announcement


def encode_probe(cluster: bytes, probe: Probe) -> bytes:
    flags = WHOLE * probe.is_whole | IN_NEED * probe.is_in_need
    body = PROBE.pack(probe.number, probe.network, _STATES.index(probe.state), flags)
    return _frame(cluster, MessageKind.PROBE, probe.ring, probe.sender, body)


def decode_probe(data: bytes, cluster: bytes) -> Probe:
    """A probe, which is for the layer that knows several networks and not for an engine."""
    kind, ring = kind_of(data, cluster)
    if kind is not MessageKind.PROBE:
        raise WireError("another packet where a probe was expected")
    sender, *_ = _checked(data, ring)
    body = _Reader(data[HEADER_SIZE:])
    number, network, state, flags = body.unpack(PROBE)
    body.end()
    _sane(number)
    if state >= len(_STATES) or flags > WHOLE | IN_NEED:
        raise WireError("the probe says something that does not exist")
    return Probe(ring, sender, number, network, _STATES[state], bool(flags & WHOLE), bool(flags & IN_NEED))


def encode(cluster: bytes, message: WireMessage) -> bytes:
    match message:
        case Token():
            return encode_token(cluster, message)
        case CommitToken():
            return encode_commit(cluster, message)
        case Join():
            return encode_join(cluster, message)
        case Announcement():
            return encode_announcement(cluster, message)
        case Wake():
            return _frame(cluster, MessageKind.WAKE, message.ring, message.sender)
        case Leave():
            return _frame(cluster, MessageKind.LEAVE, message.ring, message.sender)
        case RosterCopy():
            return _frame(cluster, MessageKind.ROSTER, message.ring, message.sender, encode_roster(message.roster))
        case _:
            assert_never(message)


def kind_of(data: bytes, cluster: bytes) -> tuple[MessageKind, ConfigurationId]:
    """What a packet is and of which ring; raises WireError for strangers and garbage."""
    if len(data) < HEADER_SIZE:
        raise WireError("shorter than a header")
    magic, version, kind, its_cluster, ring_seq, representative = PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise WireError("not an Ordercast packet")
    if version != VERSION:
        raise WireError(f"wire version {version}, we speak {VERSION}")
    if its_cluster != cluster:
        raise WireError("another cluster's packet")
    if kind not in _KINDS:
        raise WireError(f"message kind {kind} does not exist")
    return _KINDS[kind], ConfigurationId(ring_seq, ProcessId(representative))


def _checked(data: bytes, ring: ConfigurationId) -> tuple[ProcessId, int, int, int]:
    """Sender, seq, round and timestamp from the header of a control message, which has nothing else."""
    _, length, flags, count, transmitter, originator, seq, token_round, timestamp = HEADER.unpack_from(data)
    if length != len(data):
        raise WireError(f"the header says {length} bytes, {len(data)} came")
    if flags or count or transmitter != originator or not transmitter:
        raise WireError("header fields that a control message does not have")
    _sane(ring.seq, seq, token_round, timestamp)
    return ProcessId(transmitter), seq, token_round, timestamp


def decode(data: bytes, cluster: bytes) -> WireMessage:
    """A control message. Data packets are for `header.parse_data`."""
    kind, ring = kind_of(data, cluster)
    sender, seq, token_round, timestamp = _checked(data, ring)
    body = _Reader(data[HEADER_SIZE:])
    message: WireMessage
    match kind:
        case MessageKind.TOKEN:
            message = _decode_token(ring, sender, Seq(seq), token_round, timestamp, body)
        case MessageKind.COMMIT:
            message = _decode_commit(ring, sender, timestamp, body)
        case MessageKind.JOIN:
            message = _decode_join(ring, sender, body)
        case MessageKind.ANNOUNCEMENT:
            message = _decode_announcement(ring, sender, body)
        case MessageKind.WAKE:
            message = Wake(ring, sender)
        case MessageKind.LEAVE:
            message = Leave(ring, sender)
        case MessageKind.ROSTER:
            message = RosterCopy(ring, sender, decode_roster(body.take(len(body.data))))
        case MessageKind.DATA:
            raise WireError("a data packet where a control message was expected")
        case MessageKind.PROBE:
            raise WireError("a probe of one of several networks, and this process knows one alone")
        case _:
            assert_never(kind)
    body.end()
    return message
