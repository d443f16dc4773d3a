"""One client as its daemon sees it: what it may ask for, and with which sentence it is refused."""

from __future__ import annotations

import pytest

from ordercast.groups.envelope import CONFIRM, SELF_DISCARD, Head, Kind, encode_head
from ordercast.groups.layer import data_head
from ordercast.model.errors import WireError
from ordercast.model.service import Service
from ordercast.session.batches import FRAME_SIZE_MAX, Send, encode_send
from ordercast.session.client_half import BYE, PING, PONG
from ordercast.session.daemon_half import (
    CHANGES_MAX,
    CREDIT_PORTION,
    HEADS_SIZE_MAX,
    SEND_CREDIT,
    URGENT_SIZE_MAX,
    DaemonHalf,
)
from ordercast.session.frames import (
    DeniedSend,
    Hello,
    Refused,
    SlowPolicy,
    Welcome,
    decode_welcome,
    encode_hello,
    encode_list,
    encode_names,
    encode_number,
    encode_refused,
)
from ordercast.session.pieces import FrameKind, frame, write_names
from ordercast.session.quota import Quota
from ordercast.session.requests import Bye, JoinGroups, LeaveGroups, ListGroups, ListMembers, Request
from ordercast.session.rights import ANYBODY, AccessRule, Granted

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


@pytest.mark.parametrize("kind", [*(set(FrameKind) - {FrameKind.HELLO, FrameKind.TOKEN}), 0, 255])
def test_nothing_is_accepted_before_the_greeting(kind: int) -> None:
    """Not even a frame that would be in order afterwards."""
    bodies = [kind_and_body(vector.encode())[1] for vector in VECTORS if vector.kind == kind]
    for body in (b"", *bodies):
        half = DaemonHalf(MESSAGE_SIZE_MAX)
        with pytest.raises(WireError, match=r"^a client of Ordercast says who it is first$"):
            half.receive(kind, body)
        assert (half.name, half.joined, half.take()) == ("", set(), [])


def test_a_client_of_another_version_is_told_both_versions() -> None:
    for encoded in (encode_hello(HELLO._replace(version=1)), frame(FrameKind.HELLO, b"OCST\0\x01")):
        _refused(DaemonHalf(MESSAGE_SIZE_MAX), encoded, "the client speaks version 1 of the protocol, this daemon 3")


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
        FrameKind.REFUSED,
        0,
        FrameKind.MANAGED,
        99,
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
        Head(Kind.DATA, ALICE, ("chat",), 8),
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
            half,
            encode_send(Service.AGREED, encode_head(head), [b""]),
            "^(a message that is not this client's own$|a head with a wrong name)",
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
    sent = 0
    while sent < 3 * HEADS_SIZE_MAX:
        encoded = encode_send(Service.AGREED, data_head(ALICE, (f"g{sent}",)), [b""])
        assert _receive(half, encoded) is not None
        half.accepted(len(encoded))
        half.take()
        sent += len(encoded)
    _refused(half, encode_send(Service.AGREED, data_head("bob@n1", ("g1",)), [b""]), "not this client's own")


# Credit of the client


def test_credit_is_given_back_in_large_portions() -> None:
    half = _half()
    half.accepted(CREDIT_PORTION - 1)
    assert half.take() == []
    half.accepted(1)
    assert half.take() == [encode_number(FrameKind.CREDIT, CREDIT_PORTION)]
    assert half.take() == []


@pytest.mark.parametrize("policy", SlowPolicy)
def test_a_client_that_is_behind_with_reading_gets_its_credit_when_it_has_caught_up(policy: SlowPolicy) -> None:
    """One that has chosen to lose messages rather than to wait does not wait."""
    half = DaemonHalf(MESSAGE_SIZE_MAX)
    half.welcome(ALICE, Hello("alice", policy, 0), queue_size_max=1600)
    half.take()
    for _ in range(5):
        half.outbound.put(bytes(100), 1)
    half.accepted(CREDIT_PORTION)
    credit = [encode_number(FrameKind.CREDIT, CREDIT_PORTION)]
    assert half.take() == (credit if policy is SlowPolicy.DROP else [])
    half.outbound.add_credit(300)
    assert half.take() == [bytes(100)] * 3
    half.outbound.add_credit(100)
    assert half.take() == ([] if policy is SlowPolicy.DROP else credit) + [bytes(100)]


def test_a_client_that_is_behind_gets_room_for_a_large_frame_when_it_has_caught_up() -> None:
    half = DaemonHalf(LARGE)
    half.welcome(ALICE, Hello("alice", SlowPolicy.WAIT, 0), queue_size_max=1600)
    half.take()
    half.outbound.put(bytes(401), 1)
    _receive(half, encode_number(FrameKind.WANT, LARGE))
    assert half.take() == []
    half.outbound.add_credit(1)
    assert _granted(half) == LARGE - SEND_CREDIT


LARGE = 3 * SEND_CREDIT
ONE = encode_send(Service.AGREED, HEAD, [b""])


def _roomy() -> DaemonHalf:
    """For large messages."""
    half = DaemonHalf(LARGE)
    half.welcome(ALICE, HELLO)
    half.take()
    return half


def _sized(size: int) -> bytes:
    """A frame of so many bytes."""
    encoded = encode_send(Service.AGREED, HEAD, [bytes(size - len(ONE))])
    assert len(encoded) == size
    return encoded


def _granted(half: DaemonHalf) -> int:
    return sum(int.from_bytes(encoded[5:], "big") for encoded in half.take() if encoded[4] == FrameKind.CREDIT)


def test_a_client_without_credit_is_refused() -> None:
    """It may go on when it is told so."""
    half = _roomy()
    assert _receive(half, _sized(SEND_CREDIT)) is not None
    _refused(
        half, ONE, f"^the client sends more than it has credit for: a frame of {len(ONE)} bytes, with credit for 0$"
    )
    half.accepted(SEND_CREDIT)
    _refused(half, ONE, "credit")  # it has not been told yet
    half.take()
    assert _receive(half, ONE) is not None


def test_a_frame_beyond_the_credit_is_refused_at_its_header() -> None:
    half = _roomy()
    half.admit(FrameKind.SEND, SEND_CREDIT)
    with pytest.raises(WireError, match="a frame of 1310721 bytes, with credit for 1310720"):
        half.admit(FrameKind.SEND, SEND_CREDIT + 1)
    _receive(half, ONE)
    with pytest.raises(WireError, match="more than it has credit for"):
        half.admit(FrameKind.SEND, SEND_CREDIT)


@pytest.mark.parametrize("kind", [kind for kind in FrameKind if kind is not FrameKind.SEND])
def test_no_other_frame_is_large(kind: FrameKind) -> None:
    longest = encode_names(FrameKind.JOIN, tuple(f"g{number}".ljust(64, "-") for number in range(CHANGES_MAX)))
    _half().admit(kind, len(longest))
    with pytest.raises(WireError, match=f"a frame of kind {kind.value} with {len(longest) + 1} bytes: at most"):
        _half().admit(kind, len(longest) + 1)


def test_room_for_one_large_frame_is_given_when_it_is_asked_for() -> None:
    half = _roomy()
    assert _receive(half, encode_number(FrameKind.WANT, LARGE)) is None
    assert half.extra == LARGE - SEND_CREDIT == _granted(half)
    half.admit(FrameKind.SEND, LARGE)
    assert _receive(half, _sized(LARGE)) is not None
    assert half.extra == 0
    _refused(half, ONE, "with credit for 0")
    half.accepted(LARGE)
    assert _granted(half) == SEND_CREDIT  # as before


def test_room_is_given_when_all_before_it_is_on_the_ring() -> None:
    half = _roomy()
    _receive(half, _sized(SEND_CREDIT // 2))
    _receive(half, encode_number(FrameKind.WANT, LARGE))
    assert (half.take(), half.extra) == ([], 0)
    half.accepted(SEND_CREDIT // 2)
    assert _granted(half) == LARGE - SEND_CREDIT // 2
    assert half.extra == LARGE - SEND_CREDIT


def test_a_frame_of_nearly_a_window_gets_the_last_bytes_of_it() -> None:
    """Which are otherwise given back in portions."""
    half = _roomy()
    _receive(half, ONE)
    half.accepted(len(ONE))
    assert half.take() == []
    _receive(half, encode_number(FrameKind.WANT, SEND_CREDIT))
    assert (_granted(half), half.extra) == (len(ONE), 0)
    assert _receive(half, _sized(SEND_CREDIT)) is not None


def test_room_that_is_not_used_does_not_add_up() -> None:
    """Who asks again and again, and sends little, never has more than one large frame under way."""
    half = _roomy()
    granted = SEND_CREDIT
    for _ in range(5):
        _receive(half, encode_number(FrameKind.WANT, LARGE))
        _receive(half, encode_number(FrameKind.WANT, LARGE - 1))
        granted += _granted(half)
        assert half.extra <= LARGE - SEND_CREDIT
        assert _receive(half, ONE) is not None
        granted -= len(ONE)
        half.accepted(len(ONE))
        assert granted <= LARGE
    _refused(half, _sized(granted + 1), "more than it has credit for")


def test_no_more_room_is_given_than_the_largest_message_needs() -> None:
    _refused(_roomy(), encode_number(FrameKind.WANT, FRAME_SIZE_MAX + 1), "wants to send a frame of 16842817 bytes")


def test_joining_and_asking_need_no_credit() -> None:
    half = DaemonHalf(2 * SEND_CREDIT)
    half.welcome(ALICE, HELLO)
    _receive(half, _sized(SEND_CREDIT))
    assert _receive(half, encode_names(FrameKind.JOIN, ("chat",))) == JoinGroups(("chat",))
    assert _receive(half, encode_list("")) == ListGroups()


# Groups


def test_groups_are_joined_and_left() -> None:
    half = _half()
    assert _receive(half, encode_names(FrameKind.JOIN, ("chat", "news"))) == JoinGroups(("chat", "news"))
    assert half.joined == {"chat", "news"}
    assert _receive(half, encode_names(FrameKind.LEAVE, ("chat",))) == LeaveGroups(("chat",))
    assert half.joined == {"news"}
    assert _receive(half, encode_names(FrameKind.JOIN, ("chat",))) == JoinGroups(("chat",))


def test_nothing_is_joined_twice_and_nothing_left_that_was_not_joined() -> None:
    half = _half()
    _receive(half, encode_names(FrameKind.JOIN, ("chat",)))
    _refused(half, encode_names(FrameKind.JOIN, ("news", "chat")), "^the client is already in the group chat$")
    refused = Refused(("chat", "news"), False, "the client is not in the group news")
    assert _receive(half, encode_names(FrameKind.LEAVE, ("chat", "news"))) == refused
    assert half.take() == [encode_refused(refused)]
    assert half.joined == {"chat"}


def test_a_client_that_joins_more_than_it_may_is_told_and_keeps_what_it_has() -> None:
    half = DaemonHalf(MESSAGE_SIZE_MAX, Quota(3, 100))
    half.welcome(ALICE, HELLO)
    half.take()
    for names in (("a", "b"), ("c",)):
        assert _receive(half, encode_names(FrameKind.JOIN, names)) == JoinGroups(names)
    why = (
        "a client may be in 3 groups, and this one would be in 4: use several clients, or raise groups_max in [clients]"
    )
    assert _receive(half, encode_names(FrameKind.JOIN, ("d",))) == Refused(("d",), True, why)
    assert half.take() == [encode_refused(Refused(("d",), True, why))]
    assert half.joined == {"a", "b", "c"}
    _receive(half, encode_names(FrameKind.LEAVE, ("a",)))
    assert _receive(half, encode_names(FrameKind.JOIN, ("d",))) == JoinGroups(("d",))


def test_the_clients_of_a_daemon_share_a_quota_and_who_is_gone_gives_back_its_part() -> None:
    quota = Quota(10, 3)
    halves = [DaemonHalf(MESSAGE_SIZE_MAX, quota) for _ in range(2)]
    for half in halves:
        half.welcome(ALICE, HELLO)
    assert _receive(halves[0], encode_names(FrameKind.JOIN, ("a", "b"))) == JoinGroups(("a", "b"))
    refused = _receive(halves[1], encode_names(FrameKind.JOIN, ("a", "c")))
    assert isinstance(refused, Refused)
    assert refused.why == (
        "the clients of this daemon are in 2 groups together, and may be in 3: connect to another daemon, or raise "
        "memberships_max in [clients]"
    )
    halves[0].forget()
    assert quota.used == 0
    assert _receive(halves[1], encode_names(FrameKind.JOIN, ("a", "c"))) == JoinGroups(("a", "c"))
    assert quota.used == 2


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
    assert _receive(half, encode_names(FrameKind.ENTER, ("chat", name))) == JoinGroups(("chat", name))


def test_where_parts_of_ordercast_meet_only_members_speak() -> None:
    half, group = _half(), "$replica/accounts"
    head = data_head(ALICE, ("chat", group))
    send = encode_send(Service.SAFE, head, [b"force"])
    _refused(half, send, r"^only its members send to the group \$replica/accounts: replicas or archivers meet there$")
    _receive(half, encode_names(FrameKind.ENTER, (group,)))
    assert _receive(half, send) is not None
    _receive(half, encode_names(FrameKind.LEAVE, (group,)))
    _refused(half, send, "^only its members send")


def test_a_client_sends_to_itself_whatever_its_rights() -> None:
    """So that it can drain when its rules name groups alone."""
    half = _half()
    half.granted = Granted(ANYBODY, (AccessRule(("anybody",), send=("chat",)),))
    for groups in ((ALICE,), (ALICE, "chat")):
        assert isinstance(_receive(half, encode_send(Service.AGREED, data_head(ALICE, groups), [b"1"])), Send)
    for groups in (("bob@n1",), ("alice@n2",), (ALICE, "news")):
        denied = _receive(half, encode_send(Service.AGREED, data_head(ALICE, groups), [b"1"]))
        assert isinstance(denied, DeniedSend) and f"may not send to {groups[-1]}" in denied.why


def test_a_frame_with_names_that_cannot_be_read_is_refused() -> None:
    for body in (b"", write_names(("chat",)) + b"\0", b"\xff\xff\xff\xff", b"\0\0\0\x01\x01\xe9"):
        for kind in (FrameKind.JOIN, FrameKind.LEAVE):
            with pytest.raises(WireError):
                _half().receive(kind, body)


# Questions, answers, the end


def test_a_client_may_ask_and_may_end() -> None:
    assert _receive(_half(), encode_list("")) == ListGroups()
    assert _receive(_half(), encode_list("chat")) == ListGroups("chat")
    assert _receive(_half(), encode_names(FrameKind.MEMBERS_OF, ("chat",))) == ListMembers("chat")
    assert _receive(_half(), encode_names(FrameKind.MEMBERS_OF, ("chat", ALICE))) == ListMembers("chat", ALICE)
    assert _receive(_half(), BYE) == Bye()


def test_one_question_is_answered_at_a_time() -> None:
    questions = (encode_list(""), encode_names(FrameKind.MEMBERS_OF, ("chat",)))
    for first in questions:
        for second in questions:
            half = _half()
            _receive(half, first)
            _refused(half, second, "^the client asks a second question before the first was answered$")
            half.take()
            assert _receive(half, second) is not None


def test_questions_after_names_that_cannot_be_are_refused() -> None:
    _refused(_half(), encode_list("two words"), "has ' ' in it")
    _refused(_half(), frame(FrameKind.LIST, b"\xff"), "a question that cannot be read")
    _refused(_half(), encode_names(FrameKind.MEMBERS_OF, ("chat", "two words")), "has ' ' in it")


def test_the_members_of_one_group_are_asked_for_at_a_time() -> None:
    for names in ((), ("chat", "news", "more"), ("a" * 200,)):
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
    assert _receive(half, PONG) is None
    half.urge(b"x")
    assert half.waiting_size == URGENT_SIZE_MAX + 1
    _refused(half, PONG, "^the client asks for more than it reads$")
    half.take()
    assert _receive(half, PONG) is None


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
    half = DaemonHalf(LARGE)
    half.welcome(ALICE, HELLO._replace(credit=1))
    half.outbound.put(b"view")
    half.outbound.put(b"more")
    _receive(half, _sized(SEND_CREDIT))
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
