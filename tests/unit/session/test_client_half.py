"""The daemon as a client sees it: what comes of each frame, and what may be sent."""

from __future__ import annotations

import pytest

from ordercast.groups.envelope import CONFIRM, SELF_DISCARD, Head, Kind, decode_head
from ordercast.groups.layer import data_head
from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import Batch, Dropped, Left, Message, Reason, Transition, View, ViewId
from ordercast.model.ids import Position, Seq
from ordercast.model.service import Service
from ordercast.session.batches import (
    Confirm,
    decode_send,
    encode_confirm,
    encode_dropped,
    encode_messages,
    encode_send,
    send_size,
)
from ordercast.session.client_half import (
    BYE,
    HEADS_MAX,
    PING,
    PONG,
    RECEIVE_CREDIT,
    ClientHalf,
    Closing,
    News,
    cost_of,
)
from ordercast.session.frames import (
    Hello,
    Listing,
    Members,
    Refused,
    SlowPolicy,
    Welcome,
    decode_hello,
    decode_list,
    decode_names,
    encode_closing,
    encode_listing,
    encode_members,
    encode_number,
    encode_refused,
    encode_welcome,
)
from ordercast.session.news import encode_news
from ordercast.session.pieces import FrameKind, frame

from ..wire.vectors import RING
from .vectors import AT, DATA, HEAD, RUN, VECTORS, VIEWED, kind_and_body

A, B, C, D = "alice@n1", "bob@n2", "carol@n3", "dave@n1"
WELCOME = Welcome(A, 100, 1000)


def _half() -> ClientHalf:
    """Of a client that is welcome."""
    half = ClientHalf("alice", SlowPolicy.WAIT)
    assert _receive(half, encode_welcome(WELCOME)) == WELCOME
    return half


def _receive(half: ClientHalf, encoded: bytes) -> News | None:
    return half.receive(*kind_and_body(encoded))


# The greeting


def test_a_client_greets_with_its_name_its_policy_and_credit() -> None:
    kind, body = kind_and_body(ClientHalf("alice", SlowPolicy.DISCONNECT).hello())
    assert kind == FrameKind.HELLO
    assert decode_hello(body) == Hello("alice", SlowPolicy.DISCONNECT, RECEIVE_CREDIT)


def test_a_welcome_says_the_full_name_the_largest_size_and_the_credit() -> None:
    half = ClientHalf("alice", SlowPolicy.WAIT)
    assert (half.name, half.credit) == ("", 0)
    _receive(half, encode_welcome(WELCOME))
    assert (half.name, half.message_size_max, half.credit) == (A, 100, 1000)


def test_a_daemon_of_another_version_is_refused_with_both_versions() -> None:
    for encoded in (encode_welcome(WELCOME._replace(version=2)), frame(FrameKind.WELCOME, b"\0\x02")):
        half = ClientHalf("alice", SlowPolicy.WAIT)
        with pytest.raises(WireError, match="the daemon speaks version 2 of the protocol, this client 3"):
            _receive(half, encoded)
        assert half.name == ""


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_before_the_welcome_there_is_at_most_a_refusal(vector: object) -> None:
    half = ClientHalf("alice", SlowPolicy.WAIT)
    kind, body = next((one.kind, kind_and_body(one.encode())[1]) for one in VECTORS if one is vector)
    if kind is FrameKind.CLOSING:
        assert half.receive(kind, body) == Closing("the client was too slow")
    elif kind is FrameKind.WELCOME:
        assert half.receive(kind, body) == Welcome(A, 16 << 20, 1 << 20)
    else:
        with pytest.raises(WireError, match="this is not a daemon of Ordercast"):
            half.receive(kind, body)


@pytest.mark.parametrize(
    "kind",
    [
        FrameKind.HELLO,
        FrameKind.SEND,
        FrameKind.JOIN,
        FrameKind.MANAGE,
        FrameKind.ENTER,
        FrameKind.LEAVE,
        FrameKind.BYE,
        FrameKind.LIST,
        FrameKind.MEMBERS_OF,
        FrameKind.WANT,
        0,
        24,
        255,
    ],
)
def test_what_only_a_client_says_is_refused(kind: int) -> None:
    with pytest.raises(WireError, match=f"^a daemon does not send frames of kind {kind}$"):
        _half().receive(kind, b"")


# The stream


def test_messages_come_in_batches_with_their_places() -> None:
    batch = _receive(_half(), encode_messages(RUN))
    assert isinstance(batch, Batch)
    places = [(41, 513), (42, 512), (42, 513)]
    services = [Service.AGREED, Service.SAFE, Service.FIFO]
    assert list(batch) == [
        Message(("chat", B), A, data, Position(RING, Seq(seq), slot), service)
        for data, (seq, slot), service in zip(DATA, places, services, strict=True)
    ]


def test_any_number_of_different_heads_can_come() -> None:
    half = _half()
    for number in [*range(HEADS_MAX + 10), 0]:
        head = data_head(f"c{number}@n1", ("chat",))
        batch = _receive(half, encode_messages(RUN._replace(head=head, payloads=[head + b"x"], services=b"\4")))
        assert isinstance(batch, Batch)
        assert (batch.sender, list(batch.data)) == (f"c{number}@n1", [b"x"])


def test_a_head_that_cannot_be_read_is_refused() -> None:
    wrong = HEAD[:-1]
    for _ in range(2):
        with pytest.raises(WireError, match="a head"):
            _receive(_half(), encode_messages(RUN._replace(head=wrong)))


def test_the_other_pieces_come_as_they_were_said() -> None:
    half = _half()
    transition = Transition("chat", (A, B), AT)
    assert _receive(half, encode_news(VIEWED)) == VIEWED
    assert _receive(half, encode_news(transition)) == transition
    assert _receive(half, encode_news(Left("chat"))) == Left("chat")
    assert _receive(half, encode_dropped(Dropped(3, 4))) == Dropped(3, 4)
    assert _receive(half, encode_confirm(RUN)) == Confirm(RUN.places, 3)
    for listing in (Listing({"chat": 2}, False), Listing({"chat": 2}, True), Listing({}, True)):
        assert _receive(half, encode_listing(listing)) == listing
    for members in (Members((A, B), False), Members((), True)):
        assert _receive(half, encode_members(members)) == members
    refused = Refused(("chat",), True, "too many groups")
    assert _receive(half, encode_refused(refused)) == refused
    assert _receive(half, encode_closing("enough")) == Closing("enough")
    assert [_receive(half, encoded) for encoded in (PING, PONG)] == [None, None]


# Views by their differences


def _changed(members: tuple[str, ...], reason: Reason, who: str, seq: int) -> View:
    shared = tuple(name for name in members if name != who)
    return View("chat", members, shared, reason, (who,), ViewId(RING, Position(RING, seq, 0)))


def test_differences_give_the_views_in_full() -> None:
    half = _half()
    views = [
        View("chat", (B, D), (D,), Reason.JOIN, (D,), AT),
        _changed((A, B, D), Reason.JOIN, A, 50),
        _changed((A, B, C, D), Reason.JOIN, C, 51),
        _changed((A, C, D), Reason.LEAVE, B, 52),
        _changed((C, D), Reason.DISCONNECT, A, 53),
        View("chat", (B, C, D), (D,), Reason.NETWORK, (), AT, "a merge"),
        _changed((B, D), Reason.LEAVE, C, 55),
    ]
    encoded = [encode_news(view) for view in views]
    assert [one[4] == FrameKind.CHANGE for one in encoded] == [False, True, True, True, True, False, True]
    assert [_receive(half, one) for one in encoded] == views


def test_groups_have_their_own_members() -> None:
    half = _half()
    _receive(half, encode_news(View("chat", (A,), (A,), Reason.JOIN, (A,), AT)))
    _receive(half, encode_news(View("news", (A, B), (A,), Reason.JOIN, (A,), AT)))
    view = _changed((A, B), Reason.JOIN, B, 50)
    assert _receive(half, encode_news(view)) == view


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (_changed((A, B), Reason.JOIN, B, 50), "a change in chat that does not fit its members"),
        (_changed((A, B), Reason.LEAVE, C, 50), "a change in chat that does not fit its members"),
        (_changed((A, B), Reason.DISCONNECT, C, 50), "a change in chat that does not fit its members"),
    ],
)
def test_a_difference_that_does_not_fit_is_refused(view: View, why: str) -> None:
    half = _half()
    _receive(half, encode_news(View("chat", (A, B), (A,), Reason.JOIN, (A,), AT)))
    with pytest.raises(WireError, match=why):
        _receive(half, encode_news(view))


def test_a_difference_in_a_group_that_the_client_is_not_in_is_refused() -> None:
    half = _half()
    change = encode_news(_changed((A, B), Reason.JOIN, B, 50))
    for _ in range(2):  # never in it; and no longer in it
        with pytest.raises(WireError, match="a change in chat, which this client is not in"):
            _receive(half, change)
        _receive(half, encode_news(View("chat", (A,), (A,), Reason.JOIN, (A,), AT)))
        _receive(half, encode_news(Left("chat")))


def test_a_difference_for_which_the_network_is_the_reason_is_refused() -> None:
    half = _half()
    _receive(half, encode_news(View("chat", (A,), (A,), Reason.JOIN, (A,), AT)))
    kind, body = kind_and_body(encode_news(_changed((A, B), Reason.JOIN, B, 50)))
    with pytest.raises(WireError, match="does not fit"):
        half.receive(kind, body[:42] + b"\x03" + body[43:])


def test_an_empty_page_is_the_last_one() -> None:
    """Or else one would ask for ever."""
    for encoded in (encode_listing(Listing({}, False)), encode_members(Members((), False))):
        with pytest.raises(WireError, match="an empty page that is not the last one"):
            _receive(_half(), encoded)


# What is sent


def test_joins_and_leaves_name_their_groups() -> None:
    half = _half()
    for encoded, kind in ((half.join(("a", "b")), FrameKind.JOIN), (half.leave(("a", "b")), FrameKind.LEAVE)):
        got, body = kind_and_body(encoded)
        assert (got, decode_names(body)) == (kind, ("a", "b"))


def test_where_parts_of_ordercast_meet_is_entered() -> None:
    got, body = kind_and_body(_half().join(("a", "$replica/a")))
    assert (got, decode_names(body)) == (FrameKind.ENTER, ("a", "$replica/a"))


def test_heads_say_who_sends_where_and_how() -> None:
    half = _half()
    for _ in range(2):  # the second time it is remembered
        assert decode_head(half.head(("chat",), self_discard=False, confirm=False)) == Head(Kind.DATA, A, ("chat",))
        assert decode_head(half.head(("chat",), self_discard=True, confirm=False)).flags == SELF_DISCARD
        assert decode_head(half.head(("chat",), self_discard=False, confirm=True)).flags == CONFIRM
        assert decode_head(half.head(("chat", B), self_discard=False, confirm=False)).groups == ("chat", B)


def test_any_number_of_groups_can_be_sent_to() -> None:
    half = _half()
    for number in [*range(HEADS_MAX + 10), 0]:
        head = half.head((f"g{number}",), self_discard=False, confirm=False)
        assert decode_head(head).groups == (f"g{number}",)


def test_a_message_too_large_is_refused_before_it_is_sent() -> None:
    half = _half()
    head = half.head(("chat",), self_discard=False, confirm=False)
    room = 100 - len(head)
    half.check_sizes(head, [b"", bytes(room)])
    half.check_sizes(head, [])
    with pytest.raises(
        UsageError, match=f"a message of {room + 1} bytes is too large, at most {room} go to these groups"
    ):
        half.check_sizes(head, [bytes(room + 1), b""])


def test_what_is_sent_uses_credit_and_what_is_heard_of_adds_to_it() -> None:
    half = _half()
    encoded = half.send(Service.SAFE, HEAD, DATA)
    assert encoded == encode_send(Service.SAFE, HEAD, DATA)
    assert decode_send(kind_and_body(encoded)[1]).payloads == [HEAD + one for one in DATA]
    assert len(encoded) == send_size(len(DATA), sum(map(len, DATA)) + len(DATA) * len(HEAD))
    assert half.credit == 1000 - len(encoded)
    assert _receive(half, encode_number(FrameKind.CREDIT, 5000)) is None
    assert half.credit == 6000 - len(encoded)


def test_the_daemon_is_told_of_a_frame_that_needs_more_than_half_a_window() -> None:
    half = _half()
    assert half.want(500) is None
    assert half.want(501) == encode_number(FrameKind.WANT, 501)
    half.send(Service.SAFE, HEAD, DATA)
    assert half.want(500) is None  # that much comes back by itself


def test_questions_name_the_last_one_that_is_known() -> None:
    half = _half()
    for after in ("", "chat"):
        kind, body = kind_and_body(half.list_groups(after))
        assert (kind, decode_list(body)) == (FrameKind.LIST, after)
    for after, names in (("", ("chat",)), (B, ("chat", B))):
        kind, body = kind_and_body(half.members_of("chat", after))
        assert (kind, decode_names(body)) == (FrameKind.MEMBERS_OF, names)


def test_the_daemon_is_told_what_was_taken_in_large_portions() -> None:
    half = _half()
    assert half.took(RECEIVE_CREDIT // 4 - 1) is None
    assert half.took(1) == encode_number(FrameKind.CREDIT, RECEIVE_CREDIT // 4)
    assert half.took(0) is None
    assert half.took(3 * RECEIVE_CREDIT) == encode_number(FrameKind.CREDIT, 3 * RECEIVE_CREDIT)


@pytest.mark.parametrize("kind", FrameKind)
def test_the_stream_costs_credit_and_answers_do_not(kind: FrameKind) -> None:
    stream = {
        FrameKind.MESSAGES,
        FrameKind.VIEW,
        FrameKind.CHANGE,
        FrameKind.TRANSITION,
        FrameKind.LEFT,
        FrameKind.DROPPED,
    }
    from_a_client = {
        FrameKind.HELLO,
        FrameKind.TOKEN,
        FrameKind.SEND,
        FrameKind.JOIN,
        FrameKind.ENTER,
        FrameKind.LEAVE,
        FrameKind.BYE,
        FrameKind.LIST,
        FrameKind.MEMBERS_OF,
        FrameKind.WANT,
        FrameKind.MANAGE,
    }
    if kind not in from_a_client:
        assert cost_of(kind, b"body") == (len(frame(kind, b"body")) if kind in stream else 0)


def test_frames_without_a_body_are_their_kind() -> None:
    kinds = (FrameKind.BYE, FrameKind.PING, FrameKind.PONG)
    assert [kind_and_body(encoded) for encoded in (BYE, PING, PONG)] == [(kind, b"") for kind in kinds]
