"""Control messages to bytes and back. `decode` raises WireError and nothing else, whatever the bytes.

Behind the clear head each has its kind, its ring in full, and a body. Counts are checked before anything is allocated;
a length is never trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import assert_never

from ordercast.model.configuration import ChangeReason
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq, TokenSeq
from ordercast.model.roster import Claim
from ordercast.wire.head import HEAD, HEAD_SIZE, LAYER_KIND, OPENING, kind_of, transmitter_of, with_head
from ordercast.wire.header import MessageKind
from ordercast.wire.messages import (
    EXTENSION_SIZE_MAX,
    MEMBERS_MAX,
    Announcement,
    CommitEntry,
    CommitToken,
    Join,
    Leave,
    RosterCopy,
    Token,
    Wake,
    WireMessage,
)
from ordercast.wire.reader import ByteReader
from ordercast.wire.roster import decode_roster, encode_roster

REQUESTS_MAX = 4096
DIGESTS_MAX = 64
SETTINGS_MAX = 16

CONTROL = struct.Struct(">BQQ")  # kind, ring seq, ring representative: before every body
# token_seq, seq, round, timestamp, aru, aru_id, retransmitted, budget, waiting, behind, the counted three, exchanging,
# runs, extension size
TOKEN = struct.Struct(">QQQQQQIIIHIIHBHH")
RUN = struct.Struct(">QH")  # first requested seq, how many after it
COMMIT = struct.Struct(">QQBHH")  # token_seq, timestamp, reason, members, extension size
MEMBER = struct.Struct(">QBQQQQ")  # process, flags, old ring seq, old ring representative, old_aru, high_delivered
JOIN = struct.Struct(">QQIBQHHB")  # number, ring_seq, forwards, reason, blamed, candidates, failed, digests
ANNOUNCEMENT = struct.Struct(">HH")  # members, heard
CLAIM = struct.Struct(">IQ")  # version and digest of the roster, in Joins and announcements; then the engine's settings
assert (TOKEN.size, RUN.size, COMMIT.size, MEMBER.size, JOIN.size, ANNOUNCEMENT.size) == (77, 10, 21, 41, 34, 4)

TOKEN_WHOLE = struct.Struct(HEAD.format + CONTROL.format[1:] + TOKEN.format[1:])  # read and built at every hop
TOKEN_SIZE = TOKEN_WHOLE.size  # of a token without requests
assert HEAD_SIZE + CONTROL.size + TOKEN.size == TOKEN_SIZE
NUMBER_MAX = (1 << 62) - 1  # no counter gets there; one that does is damaged, and must not overflow further on
FILLED = 1
RECEIVED = 2
TOKEN_KIND = int(MessageKind.TOKEN)
_KINDS = {int(kind): kind for kind in MessageKind}
_REASONS = {int(reason): reason for reason in ChangeReason}


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


def _processes(body: ByteReader, count: int) -> tuple[ProcessId, ...]:
    _bounded(count, MEMBERS_MAX, "processes")
    return tuple(map(ProcessId, body.numbers(count, "Q")))


def _frame(cluster: bytes, kind: MessageKind, message: WireMessage, body: bytes = b"") -> bytes:
    return with_head(cluster, message.sender, CONTROL.pack(kind, *message.ring) + body)


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
    runs = _runs(token.requests) if token.requests else ()
    requests = b"".join([RUN.pack(first, more) for first, more in runs]) if runs else b""
    fixed = TOKEN_WHOLE.pack(
        OPENING,
        TOKEN_SIZE + len(requests) + len(token.extension),
        cluster,
        token.sender,
        TOKEN_KIND,
        *token.ring,
        token.token_seq,
        token.seq,
        token.round,
        token.timestamp,
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
    return fixed + requests + token.extension


def plain_token(data: bytes, cluster: bytes) -> Token | None:
    """Return a sound token of this cluster without requests and extension, as nearly all are; None for everything
    else, which is left to `decode`."""
    if len(data) != TOKEN_SIZE:
        return None
    (
        opening,
        length,
        its_cluster,
        sender,
        kind,
        ring_seq,
        representative,
        token_seq,
        seq,
        token_round,
        timestamp,
        aru,
        aru_id,
        retransmitted,
        budget,
        waiting,
        behind,
        again,
        wanted,
        late,
        exchanging,
        runs,
        extension_size,
    ) = TOKEN_WHOLE.unpack(data)
    if kind != TOKEN_KIND or opening != OPENING or its_cluster != cluster or length != TOKEN_SIZE or not sender:
        return None
    if runs or extension_size or aru > seq or exchanging > 1:
        return None
    if max(ring_seq, token_seq, seq, token_round, timestamp) > NUMBER_MAX:
        return None
    return Token(
        ConfigurationId(ring_seq, representative),
        sender,
        token_seq,
        token_round,
        seq,
        aru,
        aru_id,
        (),
        retransmitted,
        budget,
        waiting,
        behind,
        bool(exchanging),
        timestamp,
        b"",
        (again, wanted, late),
    )


def _decode_token(ring: ConfigurationId, sender: ProcessId, body: ByteReader) -> Token:
    fields = body.unpack(TOKEN)
    token_seq, seq, token_round, timestamp, aru, aru_id, retransmitted, budget, waiting, behind, *others = fields
    *_, exchanging, count, extension_size = others
    _sane(token_seq, seq, token_round, timestamp)
    requests = _decode_requests(body, count) if count else ()
    if extension_size:
        _bounded(extension_size, EXTENSION_SIZE_MAX, "bytes of extension")
    if aru > seq or exchanging > 1 or (requests and requests[-1] > seq):
        raise WireError("the token contradicts itself")
    return Token(
        ring,
        sender,
        TokenSeq(token_seq),
        token_round,
        Seq(seq),
        Seq(aru),
        ProcessId(aru_id),
        requests,
        retransmitted,
        budget,
        waiting,
        behind,
        bool(exchanging),
        timestamp,
        body.take(extension_size) if extension_size else b"",
        (others[0], others[1], others[2]),
    )


def _decode_requests(body: ByteReader, count: int) -> tuple[Seq, ...]:
    _bounded(count, REQUESTS_MAX, "requests")
    requests: list[int] = []
    for _ in range(count):
        first, more = body.unpack(RUN)
        _bounded(len(requests) + more + 1, REQUESTS_MAX, "requests")
        if requests and first <= requests[-1]:
            raise WireError("requests are not ascending")
        requests.extend(range(first, first + more + 1))
    return tuple(map(Seq, requests))


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
    fixed = COMMIT.pack(token.token_seq, token.timestamp, token.reason, len(token.members), len(token.extension))
    return _frame(cluster, MessageKind.COMMIT, token, b"".join((fixed, *members, token.extension)))


def _decode_commit(ring: ConfigurationId, sender: ProcessId, body: ByteReader) -> CommitToken:
    token_seq, timestamp, reason, count, extension_size = body.unpack(COMMIT)
    _sane(token_seq, timestamp)
    _bounded(count, MEMBERS_MAX, "members")
    _bounded(extension_size, EXTENSION_SIZE_MAX, "bytes of extension")
    members = tuple(_decode_member(body) for _ in range(count))
    processes = [member.process for member in members]
    if not members or members[0].process != ring.representative or len(set(processes)) != count:
        raise WireError("the Commit token's members contradict its ring")
    extension = body.take(extension_size)
    return CommitToken(ring, sender, TokenSeq(token_seq), _reason(reason), members, timestamp, extension)


def _decode_member(body: ByteReader) -> CommitEntry:
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


def _digests(values: Sequence[int]) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


def _settings(body: ByteReader) -> tuple[int, ...]:
    """Digests of what an engine's members must agree on, up to the end; a ring has none."""
    count = body.left // 4
    _bounded(count, SETTINGS_MAX, "settings")
    return body.numbers(count, "I")


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
    sets = _packed(join.candidates) + _packed(join.failed)
    body = b"".join((fixed, sets, _digests(join.digests), CLAIM.pack(*join.claim), _digests(join.settings)))
    return _frame(cluster, MessageKind.JOIN, join, body)


def _decode_join(ring: ConfigurationId, sender: ProcessId, body: ByteReader) -> Join:
    number, ring_seq, forwards, reason, blamed, candidates, failed, digests = body.unpack(JOIN)
    _sane(number, ring_seq)
    _bounded(digests, DIGESTS_MAX, "digests")
    join = Join(
        ring,
        sender,
        number,
        ring_seq,
        _processes(body, candidates),
        _processes(body, failed),
        forwards,
        _reason(reason),
        ProcessId(blamed),
        body.numbers(digests, "I"),
        Claim(*body.unpack(CLAIM)),
        _settings(body),
    )
    proposed, given_up = set(join.candidates), set(join.failed)
    if len(proposed) < candidates or len(given_up) < failed:
        raise WireError("a process twice in a Join's sets")
    if not given_up <= proposed or sender not in proposed or sender in given_up:
        raise WireError("the Join's sets contradict each other")
    return join


def encode_announcement(cluster: bytes, announcement: Announcement) -> bytes:
    fixed = ANNOUNCEMENT.pack(len(announcement.members), len(announcement.heard))
    sets = _packed(announcement.members) + _packed(announcement.heard)
    body = b"".join((fixed, sets, CLAIM.pack(*announcement.claim), _digests(announcement.settings)))
    return _frame(cluster, MessageKind.ANNOUNCEMENT, announcement, body)


def _decode_announcement(ring: ConfigurationId, sender: ProcessId, body: ByteReader) -> Announcement:
    members, heard = body.unpack(ANNOUNCEMENT)
    listed = _processes(body, members), _processes(body, heard)
    announcement = Announcement(ring, sender, *listed, Claim(*body.unpack(CLAIM)), _settings(body))
    if sender not in announcement.members:
        raise WireError("the announcer is not on its own ring")
    return announcement


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
            return _frame(cluster, MessageKind.WAKE, message)
        case Leave():
            return _frame(cluster, MessageKind.LEAVE, message)
        case RosterCopy():
            return _frame(cluster, MessageKind.ROSTER, message, encode_roster(message.roster))
        case _:
            assert_never(message)


def decode(data: bytes, cluster: bytes) -> WireMessage:
    """A control message. Data packets are for `run.parse_data`."""
    number = kind_of(data, cluster)
    kind = _KINDS.get(number)
    if kind is None:
        raise WireError(_unknown(number))
    if kind is MessageKind.DATA:
        raise WireError("a data packet where a control message was expected")
    if kind is MessageKind.PIECE:
        raise WireError("a piece where a whole control message was expected")
    sender, body = transmitter_of(data), ByteReader(data, HEAD_SIZE)
    _, ring_seq, representative = body.unpack(CONTROL)
    _sane(ring_seq)
    ring = ConfigurationId(ring_seq, ProcessId(representative))
    message: WireMessage
    match kind:
        case MessageKind.TOKEN:
            message = _decode_token(ring, sender, body)
        case MessageKind.COMMIT:
            message = _decode_commit(ring, sender, body)
        case MessageKind.JOIN:
            message = _decode_join(ring, sender, body)
        case MessageKind.ANNOUNCEMENT:
            message = _decode_announcement(ring, sender, body)
        case MessageKind.WAKE:
            message = Wake(ring, sender)
        case MessageKind.LEAVE:
            message = Leave(ring, sender)
        case MessageKind.ROSTER:
            message = RosterCopy(ring, sender, decode_roster(body.rest()))
        case _:
            assert_never(kind)
    body.end()
    return message


def _unknown(kind: int) -> str:
    if kind == LAYER_KIND:
        return "a probe of one of several networks, and this process knows one alone"
    return f"message kind {kind} does not exist"
