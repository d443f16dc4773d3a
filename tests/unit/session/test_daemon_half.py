"""One client as its daemon sees it: what it may ask for, and with which sentence it is refused."""

from __future__ import annotations

import pytest

from ordercast.groups.envelope import CONFIRM, SELF_DISCARD, Head, Kind, encode_head
from ordercast.groups.layer import data_head
from ordercast.model.errors import WireError
from ordercast.model.service import Service
from ordercast.session.batches import Send, encode_send
from ordercast.session.client_half import BYE, LIST, PING, PONG
from ordercast.session.daemon_half import (
    CHANGES_MAX,
    HEADS_MAX,
    SEND_CREDIT,
    URGENT_SIZE_MAX,
    Bye,
    DaemonHalf,
    Join,
    Leave,
    ListGroups,
    ListMembers,
    Request,
)
from ordercast.session.frames import (
    Hello,
    SlowPolicy,
    Welcome,
    decode_welcome,
    encode_hello,
    encode_names,
    encode_number,
)
from ordercast.session.pieces import FrameKind, frame, write_names

from .vectors import VECTORS, kind_and_body

ALICE = "alice@n1"
MESSAGE_SIZE_MAX = 100
HELLO = Hello("alice", SlowPolicy.DROP, 50)
HEAD = data_head(ALICE, ("chat",))


def _half() -> DaemonHalf:
    """Of a client that is welcome."""
    half = DaemonHalf(MESSAGE_SIZE_MAX)
    half.welcome(ALICE, HELLO)
    half.take()
    return half


def _receive(half: DaemonHalf, encoded: bytes) -> Request | None:
    return half.receive(*kind_and_body(encoded))


def _refused(half: DaemonHalf, encoded: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        _receive(half, encoded)


# The greeting


def test_a_client_says_who_it_is_and_is_welcome() -> None:
    half = DaemonHalf(MESSAGE_SIZE_MAX)
    assert half.take() == []
    assert _receive(half, encode_hello(HELLO)) == HELLO
    half.welcome(ALICE, HELLO)
    (welcome,) = half.take()
    assert decode_welcome(kind_and_body(welcome)[1]) == Welcome(ALICE, MESSAGE_SIZE_MAX, SEND_CREDIT)
    assert (half.name, half.outbound.policy) == (ALICE, SlowPolicy.DROP)


@pytest.mark.parametrize("kind", [*(kind for kind in FrameKind if kind is not FrameKind.HELLO), 0, 255])
def test_nothing_is_accepted_before_the_greeting(kind: int) -> None:
    """Not even a frame that would be in order afterwards."""
    bodies = [kind_and_body(vector.encode())[1] for vector in VECTORS if vector.kind == kind]
    for body in (b"", *bodies):
        half = DaemonHalf(MESSAGE_SIZE_MAX)
        with pytest.raises(WireError, match=r"^a client of Ordercast says who it is first$"):
            half.receive(kind, body)
        assert (half.name, half.joined, half.take()) == ("", set(), [])


def test_a_client_of_another_version_is_told_both_versions() -> None:
    for encoded in (encode_hello(HELLO._replace(version=3)), frame(FrameKind.HELLO, b"OCST\0\x03")):
        _refused(DaemonHalf(MESSAGE_SIZE_MAX), encoded, "the client speaks version 3 of the protocol, this daemon 2")


def test_a_stranger_is_refused() -> None:
    _refused(DaemonHalf(MESSAGE_SIZE_MAX), frame(FrameKind.HELLO, b"OCSP" + bytes(20)), "not a client of Ordercast")


@pytest.mark.parametrize(
    "kind",
    [
        FrameKind.HELLO,
        FrameKind.WELCOME,
        FrameKind.CLOSING,
        FrameKind.MESSAGES,
        FrameKind.VIEW,
        FrameKind.CHANGE,
        FrameKind.TRANSITION,
        FrameKind.LEFT,
        FrameKind.CONFIRM,
        FrameKind.DROPPED,
        FrameKind.LISTING,
        FrameKind.MEMBERS,
        0,
        23,
        255,
    ],
)
def test_what_only_a_daemon_says_and_a_second_greeting_are_refused(kind: int) -> None:
    bodies = [kind_and_body(vector.encode())[1] for vector in VECTORS if vector.kind == kind]
    for body in bodies or [b""]:
        with pytest.raises(WireError, match=f"^a client does not send frames of kind {kind}$"):
            _half().receive(kind, body)


# Messages


@pytest.mark.parametrize("flags", [0, SELF_DISCARD, CONFIRM, SELF_DISCARD | CONFIRM])
def test_messages_are_passed_on_with_their_heads(flags: int) -> None:
    head = encode_head(Head(Kind.DATA, ALICE, ("chat", "bob@n2"), flags))
    half = _half()
    for _ in range(2):  # the second time it is known
        assert _receive(half, encode_send(Service.SAFE, head, [b"a", b""])) == Send(
            Service.SAFE, head, [head + b"a", head]
        )


@pytest.mark.parametrize(
    "head",
    [
        Head(Kind.DATA, "bob@n1", ("chat",)),
        Head(Kind.DATA, "alice@n2", ("chat",)),
        Head(Kind.DATA, "alice", ("chat",)),
        Head(Kind.DATA, ALICE, ("chat",), 4),
        Head(Kind.DATA, ALICE, ("chat",), 0x80 | CONFIRM),
        Head(Kind.JOIN, ALICE, ("chat",)),
        Head(Kind.LEAVE, ALICE, ("chat",)),
        Head(Kind.DISCONNECT, ALICE, ()),
        Head(Kind.DISCONNECT, "bob@n1", ()),
        Head(Kind.GROUPS, "n1", ()),
    ],
    ids=str,
)
def test_nobody_speaks_for_others_or_for_the_groups(head: Head) -> None:
    half = _half()
    _receive(half, encode_send(Service.AGREED, HEAD, [b""]))
    for _ in range(2):  # a head that was refused is not remembered as checked
        _refused(
            half, encode_send(Service.AGREED, encode_head(head), [b""]), "^a message that is not this client's own$"
        )


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ((), "a message needs a group to go to"),
        (("two words",), "the group name 'two words' has ' ' in it"),
        (("x" * 65,), "has 65 characters: at most 64"),
        (("@n1",), "a client name has at least one character"),
        (("bob@",), "a daemon name has at least one character"),
        (("bob@n1@n2",), "the daemon name 'n1@n2' has '@' in it"),
        (tuple(f"g{number}" for number in range(101)), "a message goes to at most 100 groups, not to 101"),
    ],
)
def test_messages_to_nobody_or_to_bad_names_are_refused(groups: tuple[str, ...], why: str) -> None:
    _refused(_half(), encode_send(Service.AGREED, data_head(ALICE, groups), [b""]), why)


def test_a_head_that_cannot_be_read_is_refused() -> None:
    for head in (b"", HEAD[:-1], HEAD + b"x"):
        _refused(_half(), encode_send(Service.AGREED, head, [b"data"]), "a head")


def test_a_message_has_its_largest_size_with_its_head() -> None:
    half = _half()
    room = MESSAGE_SIZE_MAX - len(HEAD)
    assert _receive(half, encode_send(Service.AGREED, HEAD, [bytes(room), b""])) is not None
    _refused(
        half,
        encode_send(Service.AGREED, HEAD, [b"", bytes(room + 1)]),
        "a message of 101 bytes with its head: at most 100",
    )


def test_any_number_of_different_heads_can_be_used() -> None:
    half = _half()
    for number in range(HEADS_MAX + 10):
        assert _receive(half, encode_send(Service.AGREED, data_head(ALICE, (f"g{number}",)), [b""])) is not None
    _refused(half, encode_send(Service.AGREED, data_head("bob@n1", ("g1",)), [b""]), "not this client's own")


# Credit of the client


def test_credit_is_given_back_in_large_portions() -> None:
    half = _half()
    half.accepted(SEND_CREDIT // 8 - 1)
    assert half.take() == []
    half.accepted(1)
    assert half.take() == [encode_number(FrameKind.CREDIT, SEND_CREDIT // 8)]
    assert half.take() == []


def test_a_client_without_credit_is_refused() -> None:
    """It may exceed its credit by its last frame, and may go on when it is told so."""
    half = DaemonHalf(SEND_CREDIT + 1000)
    half.welcome(ALICE, HELLO)
    half.take()
    exact = SEND_CREDIT - len(encode_send(Service.AGREED, HEAD, [b""])) - 1
    almost = encode_send(Service.AGREED, HEAD, [bytes(exact)])
    one = encode_send(Service.AGREED, HEAD, [b""])
    assert len(almost) == SEND_CREDIT - 1
    for encoded in (almost, one):
        assert _receive(half, encoded) is not None
    _refused(half, one, "^the client sends more than it has credit for$")
    half.accepted(len(almost))
    _refused(half, one, "credit")  # it has not been told yet
    half.take()
    assert _receive(half, one) is not None


def test_joining_and_asking_need_no_credit() -> None:
    half = DaemonHalf(2 * SEND_CREDIT)
    half.welcome(ALICE, HELLO)
    _receive(half, encode_send(Service.AGREED, HEAD, [bytes(SEND_CREDIT)]))
    assert _receive(half, encode_names(FrameKind.JOIN, ("chat",))) == Join(("chat",))
    assert _receive(half, LIST) == ListGroups()


# Groups


def test_groups_are_joined_and_left() -> None:
    half = _half()
    assert _receive(half, encode_names(FrameKind.JOIN, ("chat", "news"))) == Join(("chat", "news"))
    assert half.joined == {"chat", "news"}
    assert _receive(half, encode_names(FrameKind.LEAVE, ("chat",))) == Leave(("chat",))
    assert half.joined == {"news"}
    assert _receive(half, encode_names(FrameKind.JOIN, ("chat",))) == Join(("chat",))


def test_nothing_is_joined_twice_and_nothing_left_that_was_not_joined() -> None:
    half = _half()
    _receive(half, encode_names(FrameKind.JOIN, ("chat",)))
    _refused(half, encode_names(FrameKind.JOIN, ("news", "chat")), "^the client is already in the group chat$")
    _refused(half, encode_names(FrameKind.LEAVE, ("chat", "news")), "^the client is not in the group news$")
    assert half.joined == {"chat"}


@pytest.mark.parametrize("kind", [FrameKind.JOIN, FrameKind.LEAVE])
def test_1_to_100_groups_are_joined_or_left_at_a_time_each_once(kind: FrameKind) -> None:
    many = tuple(f"g{number}".ljust(64, "-") for number in range(CHANGES_MAX + 1))
    half = _half()
    for names in (many[:50], many[50:]):
        _receive(half, encode_names(FrameKind.JOIN, names))
    if kind is FrameKind.JOIN:
        for names in (many[:50], many[50:]):
            _receive(half, encode_names(FrameKind.LEAVE, names))
    for names in ((), many, (many[0], many[1], many[0])):
        _refused(half, encode_names(kind, names), "^a client joins or leaves 1 to 100 groups at a time, each once$")
    assert _receive(half, encode_names(kind, many[1:])) is not None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "a group name has at least one character"),
        ("two words", "the group name 'two words' has ' ' in it"),
        ("bob@n2", "the group name 'bob@n2' has '@' in it"),
        ("#chat", "has '#' in it"),
        ("x" * 65, "has 65 characters: at most 64"),
    ],
)
def test_a_bad_name_is_refused(name: str, why: str) -> None:
    half = _half()
    _refused(half, encode_names(FrameKind.JOIN, ("chat", name)), why)
    assert half.joined == set()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("$replica/accounts", "the replicas of accounts meet there: use a Replica of accounts to read it"),
        ("$archive/orders", "the archivers of orders meet there: join orders, or run an archiver of it"),
        ("$mine", "names that begin with $ are Ordercast's own: choose another"),
    ],
)
def test_where_parts_of_ordercast_meet_is_entered_and_not_joined(name: str, why: str) -> None:
    half = _half()
    sentence = f"^the group {name} cannot be joined: {why}$".replace("$", r"\$", 1)
    _refused(half, encode_names(FrameKind.JOIN, ("chat", name)), sentence.replace("with $", r"with \$"))
    assert half.joined == set()
    assert _receive(half, encode_names(FrameKind.ENTER, ("chat", name))) == Join(("chat", name))


def test_where_parts_of_ordercast_meet_only_members_speak() -> None:
    half, group = _half(), "$replica/accounts"
    head = data_head(ALICE, ("chat", group))
    send = encode_send(Service.SAFE, head, [b"force"])
    _refused(half, send, r"^only its members send to the group \$replica/accounts: replicas or archivers meet there$")
    _receive(half, encode_names(FrameKind.ENTER, (group,)))
    assert _receive(half, send) is not None
    _receive(half, encode_names(FrameKind.LEAVE, (group,)))
    _refused(half, send, "^only its members send")


def test_a_frame_with_names_that_cannot_be_read_is_refused() -> None:
    for body in (b"", write_names(("chat",)) + b"\0", b"\xff\xff\xff\xff", b"\0\0\0\x01\x01\xe9"):
        for kind in (FrameKind.JOIN, FrameKind.LEAVE):
            with pytest.raises(WireError):
                _half().receive(kind, body)


# Questions, answers, the end


def test_a_client_may_ask_and_may_end() -> None:
    assert _receive(_half(), LIST) == ListGroups()
    assert _receive(_half(), encode_names(FrameKind.MEMBERS_OF, ("chat",))) == ListMembers("chat")
    assert _receive(_half(), BYE) == Bye()


def test_the_members_of_one_group_are_asked_for_at_a_time() -> None:
    for names in ((), ("chat", "news"), ("a" * 65,)):
        with pytest.raises(WireError, match="the members of one group at a time"):
            _receive(_half(), encode_names(FrameKind.MEMBERS_OF, names))
    with pytest.raises(WireError, match="has '@' in it"):
        _receive(_half(), encode_names(FrameKind.MEMBERS_OF, ("alice@n1",)))


def test_a_ping_is_answered_and_a_pong_is_not() -> None:
    half = _half()
    assert _receive(half, PING) is None
    assert half.take() == [PONG]
    assert _receive(half, PONG) is None
    assert half.take() == []


def test_pings_in_a_row_get_one_answer() -> None:
    """However many come while nothing can be written."""
    half = _half()
    for _ in range(1000):
        _receive(half, PING)
    assert half.take() == [PONG]
    _receive(half, PING)
    assert half.take() == [PONG]


def test_a_client_that_asks_and_does_not_read_is_refused() -> None:
    half = _half()
    half.urge(bytes(URGENT_SIZE_MAX))
    assert _receive(half, LIST) == ListGroups()
    half.urge(b"x")
    _refused(half, LIST, "^the client asks for more than it reads$")
    half.take()
    assert _receive(half, LIST) == ListGroups()


def test_credit_of_the_daemon_is_added() -> None:
    half = DaemonHalf(MESSAGE_SIZE_MAX)
    half.welcome(ALICE, HELLO._replace(credit=0))
    half.take()
    half.outbound.put(b"view")
    assert half.take() == []
    assert _receive(half, encode_number(FrameKind.CREDIT, 3)) is None
    assert half.take() == [b"view"]
    half.outbound.put(b"next")
    assert half.take() == []


def test_urgent_frames_go_first_and_need_no_credit() -> None:
    half = DaemonHalf(MESSAGE_SIZE_MAX)
    half.welcome(ALICE, HELLO._replace(credit=1))
    half.outbound.put(b"view")
    half.outbound.put(b"more")
    half.accepted(SEND_CREDIT)
    half.urge(b"urgent")
    welcome, *others = half.take()
    assert welcome[4] == FrameKind.WELCOME
    assert others == [b"urgent", encode_number(FrameKind.CREDIT, SEND_CREDIT), b"view"]
    half.urge(b"again")
    assert half.take() == [b"again"]


def test_what_waits_is_bounded_as_the_daemon_says() -> None:
    half = DaemonHalf(MESSAGE_SIZE_MAX)
    half.welcome(ALICE, HELLO, 1234)
    assert half.outbound.size_max == 1234
