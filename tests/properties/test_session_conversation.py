"""A client and its daemon talk about anything, over reads of any size: both know the same in the end, nobody sends more
than the other allows, and nobody waits for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.groups.layer import Confirmed, Groups, MessageRun, Output, data_head, join_payload, leave_payload
from ordercast.groups.table import Notice
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Deliver
from ordercast.model.events import Batch, Dropped, GroupNews, Left, Message, Transition, View
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.model.service import Service
from ordercast.session.batches import Confirm, Send, encode_confirm, encode_messages, send_size
from ordercast.session.client_half import PING, RECEIVE_CREDIT, ClientHalf, cost_of
from ordercast.session.daemon_half import CREDIT_PORTION, SEND_CREDIT, DaemonHalf
from ordercast.session.frames import Hello, Listing, Refused, SlowPolicy, Welcome, encode_listing, encode_number
from ordercast.session.news import NewsEncoder
from ordercast.session.pieces import HEADER, FrameKind
from ordercast.session.quota import Quota
from ordercast.session.reader import FrameReader
from ordercast.session.requests import JoinGroups, LeaveGroups, ListGroups, Request
from tests.property_sizes import scaled
from tests.unit.groups.stage import parcel_of, view_of

ME = ProcessId(1)
RING = ConfigurationId(4, ME)
MESSAGE_SIZE_MAX = 16 << 20
GROUPS = ("g", "h")
OTHER_GROUP = "k"
CLIENT, OTHERS = "alice@n1", ("bob@n1", "carol@n1")
SESSION = 1
MIB = 1 << 20

QUOTA = 2  # groups that the client may be in, of three
PAGE = 2

Heard = Message | GroupNews | Dropped
Step = tuple[str, int, int]

SIZES = (0, 10, 3000, MIB // 3, MIB, 6 * MIB)  # of messages: some are larger than a whole window
READS = (1, 4, 5, 100, 70_000, 10 * MIB)
CHANGES = ("join", "leave", "join one too many", "other joins", "other joins", "other leaves", "ping", "list")
MESSAGES = ("send",) * 3 + ("other sends",) * 4
MOVES = ("read by the daemon", "order", "write", "read by the client", "take") * 2
steps = st.lists(
    st.tuples(st.sampled_from(CHANGES + MESSAGES + MOVES), st.integers(0, 5), st.integers(0, 5)),
    min_size=30,
    max_size=80,
)
STREAM = (
    FrameKind.MESSAGES,
    FrameKind.VIEW,
    FrameKind.CHANGE,
    FrameKind.TRANSITION,
    FrameKind.LEFT,
    FrameKind.DROPPED,
)  # what costs credit


@dataclass
class Wire:
    """One direction of a connection."""

    reader: FrameReader = field(default_factory=FrameReader)
    waiting: bytearray = field(default_factory=bytearray)

    def write(self, *frames: bytes) -> None:
        for encoded in frames:
            self.waiting += encoded

    def read(self, size: int) -> list[tuple[int, bytes]]:
        room = self.reader.room()
        size = min(size, len(room), len(self.waiting))
        room[:size] = self.waiting[:size]
        del self.waiting[:size]
        return list(self.reader.received(size))


class Talk:
    def __init__(self, policy: SlowPolicy, queue_size_max: int) -> None:
        self.quota = Quota(QUOTA, 100)
        self.client, self.daemon = ClientHalf("alice", policy), DaemonHalf(MESSAGE_SIZE_MAX, self.quota)
        self.up, self.down = Wire(FrameReader(admit=self.daemon.admit)), Wire()
        self.unsent: tuple[tuple[str, ...], int, int] | None = None  # what the client waits to send, and has announced
        self.refused = 0  # groups that the client may still be told it has not joined
        self.listed: list[str] = []  # on the pages that have come
        self.groups = Groups(ME, "n1")
        self.groups.install(view_of(ConfigurationKind.REGULAR, RING, (ME,), (ME,)))
        self.encoder = NewsEncoder()
        self.seq = 0
        self.asked: set[str] = set()  # groups, by the client
        self.requests: deque[tuple[Request, int]] = deque()  # and how many bytes each was
        self.expected: list[Heard] = []  # of the client's application
        self.heard: list[Heard] = []
        self.untaken: deque[tuple[list[Heard], int]] = deque()  # what the application has not taken, and what it costs
        self.sent = self.confirmed = self.listings = self.asked_for_listings = 0
        self.under_way = 0  # bytes that the daemon has written and no credit was told for
        self.queue_size_max = queue_size_max
        self._greet()
        for group in GROUPS:
            self.change(group, joins=True)

    def _greet(self) -> None:
        self.up.write(self.client.hello())
        ((kind, body),) = self.up.read(1000)
        hello = self.daemon.receive(kind, body)
        assert isinstance(hello, Hello)
        self.daemon.welcome(self.groups.connect(hello.name, SESSION), hello, self.queue_size_max)
        for session, other in enumerate(OTHERS, SESSION + 1):
            self.groups.connect(other.partition("@")[0], session)
        self.down.write(*self.daemon.take())
        ((kind, body),) = self.down.read(1000)
        assert self.client.receive(kind, body) == Welcome(CLIENT, MESSAGE_SIZE_MAX, SEND_CREDIT)

    def take(self, step: Step) -> None:
        kind, which, more = step
        group, other = GROUPS[which % 2], OTHERS[more % 2]
        match kind:
            case "send":
                self.send(GROUPS[: 1 + which % 2], SIZES[more], 1 + which)
            case "join" | "leave":
                self.change(group, joins=kind == "join")
            case "ping":
                self.up.write(PING)
            case "list":
                self.ask()
            case "join one too many":
                if self.asked == set(GROUPS):
                    self.up.write(self.client.join((OTHER_GROUP,)))
                    self.refused += 1
            case "other sends":
                head = data_head(other, GROUPS[: 1 + which % 2])
                self.order([head + _data(SIZES[more], number) for number in range(1 + which // 2)])
            case "other joins":
                self.order([join_payload(other, [group])])
            case "other leaves":
                self.order([leave_payload(other, [group])])
            case "read by the daemon":
                self.read_by_daemon(READS[more])
            case "order":
                self.order_requests(1 + which)
            case "write":
                self.write()
            case "read by the client":
                self.read_by_client(READS[more])
            case _:
                self.take_pieces(1 + which)

    # The client

    def send(self, groups: tuple[str, ...], size: int, count: int) -> None:
        """What waits for credit goes first."""
        is_announced = self.unsent is not None
        groups, size, count = self.unsent or (groups, size, count)
        confirm = size % 3 == 0
        head = self.client.head(groups, self_discard=False, confirm=confirm)
        data = [_data(size, number) for number in range(1 if size > MIB else count)]
        self.client.check_sizes(head, data)
        needed = send_size(len(data), sum(map(len, data)) + len(data) * len(head))
        if self.client.credit < needed:
            self.unsent = groups, size, count
            if not is_announced and (want := self.client.want(needed)) is not None:
                self.up.write(want)
            return
        self.unsent = None
        encoded = self.client.send(Service.AGREED, head, data)
        assert len(encoded) == needed
        self.up.write(encoded)
        self.sent += len(data) if confirm else 0

    def ask(self) -> None:
        """One question at a time, page after page."""
        if self.asked_for_listings == self.listings:
            self.up.write(self.client.list_groups(self.listed[-1] if self.listed else ""))
            self.asked_for_listings += 1

    def change(self, group: str, *, joins: bool) -> None:
        if (group in self.asked) is joins:
            return
        self.asked ^= {group}
        self.up.write(self.client.join((group,)) if joins else self.client.leave((group,)))

    def read_by_client(self, size: int) -> None:
        for kind, body in self.down.read(size):
            news = self.client.receive(kind, body)
            match news:
                case Batch():
                    self.untaken.append((list(news), cost_of(kind, body)))
                case View() | Transition() | Left() | Dropped():
                    self.untaken.append(([news], cost_of(kind, body)))
                case Confirm():
                    self.confirmed += news.messages
                case Listing():
                    self.listings += 1
                    assert len(news.groups) <= PAGE
                    self.listed = [] if news.is_last else [*self.listed, *news.groups]
                    assert self.listed == sorted(set(self.listed))
                case Refused():
                    assert (news.groups, news.joins) == ((OTHER_GROUP,), True)
                    self.refused -= 1
                case _:
                    assert kind in (FrameKind.CREDIT, FrameKind.PONG)

    def take_pieces(self, count: int) -> None:
        for _ in range(min(count, len(self.untaken))):
            pieces, cost = self.untaken.popleft()
            self.heard += pieces
            told = self.client.took(cost)
            if told is not None:
                self.up.write(told)

    # The daemon

    def read_by_daemon(self, size: int) -> None:
        for kind, body in self.up.read(size):
            if kind == FrameKind.CREDIT:
                self.under_way -= int.from_bytes(body, "big")
            request = self.daemon.receive(kind, body)
            if request is not None and not isinstance(request, Refused):
                self.requests.append((request, len(body) + HEADER.size))

    def order_requests(self, count: int) -> None:
        for _ in range(min(count, len(self.requests))):
            request, size = self.requests.popleft()
            match request:
                case Send():
                    self.order(request.payloads)
                    self.daemon.accepted(size)
                case JoinGroups():
                    self.order([join_payload(CLIENT, request.groups)])
                case LeaveGroups():
                    self.order([leave_payload(CLIENT, request.groups)])
                case _:
                    assert isinstance(request, ListGroups)
                    self.daemon.urge(encode_listing(Listing(*self.groups.table.page(request.after, PAGE))))

    def order(self, payloads: Sequence[bytes]) -> None:
        self.seq += 1
        outputs = self.groups.deliver(Deliver(RING, RING, [parcel_of(self.seq, ME, *payloads)]))
        for output in outputs:
            self.carry_out(output)

    def carry_out(self, output: Output) -> None:
        why = None
        match output:
            case MessageRun() if SESSION in output.sessions:
                self.expected += _messages(output)
                why = self.daemon.outbound.put(encode_messages(output), len(output.payloads))
            case Notice() if SESSION in output.sessions:
                self.expected.append(output.news)
                why = self.daemon.outbound.put(self.encoder.encode(output.news))
            case Confirmed():
                self.daemon.urge(encode_confirm(output.run))
        assert why is None

    def write(self) -> None:
        for encoded in self.daemon.take():
            cost = len(encoded) if encoded[HEADER.size - 1] in STREAM else 0
            assert not cost or self.under_way < RECEIVE_CREDIT, "more than one frame beyond the window"
            self.under_way += cost
            self.down.write(encoded)

    def finish(self) -> None:
        """Everybody reads and takes: a few rounds for each window full are enough, or else somebody waits for ever."""
        rounds = 10 + 10 * (self.daemon.outbound.size + len(self.up.waiting)) // MIB
        for _ in range(rounds):
            if self.unsent is not None:
                self.send(*self.unsent)
            while self.up.waiting:
                self.read_by_daemon(10 * MIB)
            self.order_requests(len(self.requests))
            self.write()
            while self.down.waiting:
                self.read_by_client(10 * MIB)
            self.take_pieces(len(self.untaken))
        assert (self.daemon.outbound.size, self.requests, self.untaken) == (0, deque(), deque())
        assert (self.unsent, self.daemon.extra) == (None, 0)
        self.check_credit()
        assert (self.confirmed, self.listings, self.refused) == (self.sent, self.asked_for_listings, 0)
        assert self.quota.used == len(self.asked) == len(self.daemon.joined)

    def check_credit(self) -> None:
        """To the byte: what one side has used and not been told of, the other is about to tell."""
        assert self.under_way < RECEIVE_CREDIT // 4
        told = self.client.took(RECEIVE_CREDIT // 4)
        assert told is not None
        self.under_way += RECEIVE_CREDIT // 4
        assert int.from_bytes(told[HEADER.size :], "big") == self.under_way
        self.up.write(told)
        assert SEND_CREDIT - self.client.credit < CREDIT_PORTION
        owed = SEND_CREDIT - self.client.credit
        if owed:  # in a frame of nearly a window: all of it is needed
            self.up.write(encode_number(FrameKind.WANT, SEND_CREDIT))
            self.read_by_daemon(10 * MIB)
            self.write()
            self.read_by_client(10 * MIB)
        assert self.client.credit == SEND_CREDIT


def _data(size: int, number: int) -> bytes:
    return bytes([65 + number]) * size


def _messages(run: MessageRun) -> list[Heard]:
    """Written out anew, so that the client's own reckoning is checked."""
    start = len(run.head)
    origin, number, base, each, first = run.places
    flags_and_names = run.head[4:]
    sender_end = 1 + flags_and_names[0]
    sender = str(flags_and_names[1:sender_end], "ascii")
    groups = GROUPS[: flags_and_names[sender_end]]
    return [
        Message(
            groups,
            sender,
            payload[start:],
            Position(origin, number + place // each, base + place % each),
            Service(service),
        )
        for place, (payload, service) in enumerate(zip(run.payloads, run.services, strict=True), first)
    ]


@given(steps)
@settings(max_examples=scaled(60))
def test_all_that_the_groups_say_reaches_the_application_in_order(drawn: list[Step]) -> None:
    talk = Talk(SlowPolicy.WAIT, 1 << 40)
    for step in drawn:
        talk.take(step)
    talk.finish()
    assert talk.heard == talk.expected


@given(steps)
@settings(max_examples=scaled(60))
def test_who_drops_misses_messages_only_and_knows_where_and_how_many(drawn: list[Step]) -> None:
    """Several notices in one place count together: the first may have been on its way when the next was made."""
    talk = Talk(SlowPolicy.DROP, MIB // 2)
    for step in drawn:
        talk.take(step)
    talk.finish()
    expected = deque(talk.expected)
    for piece in talk.heard:
        if isinstance(piece, Dropped):
            missed = [expected.popleft() for _ in range(piece.messages)]
            sizes = [len(message.data) for message in missed if isinstance(message, Message)]
            assert len(sizes) == piece.messages
            assert sum(sizes) < piece.size < sum(sizes) + 200 * piece.messages
        else:
            assert expected.popleft() == piece
    assert not expected
    dropped = [piece for piece in talk.heard if isinstance(piece, Dropped)]
    assert talk.daemon.outbound.dropped == Dropped(
        sum(piece.messages for piece in dropped), sum(piece.size for piece in dropped)
    )


@pytest.mark.parametrize("size", SIZES)
def test_a_long_stream_both_ways_never_stops(size: int) -> None:
    """Ten windows of each size of messages, to a group that the client itself is in."""
    talk = Talk(SlowPolicy.WAIT, 1 << 40)
    count = max(3, min(300, 10 * RECEIVE_CREDIT // (size + 1)))
    for _ in range(count):
        talk.send(("g",), size, 1)
        talk.finish()
    assert [len(heard.data) for heard in talk.heard if isinstance(heard, Message)] == [size] * count
