"""Views and other news as sentences, for those who watch a group and for those who chat in it."""

from __future__ import annotations

from ordercast.cli.chat_text import ChatText
from ordercast.cli.event_text import Narrator, event_document, listed
from ordercast.model.events import Dropped, Event, Left, Message, Reason, Reconnected, Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId, Seq
from ordercast.model.service import Service

A, B, C = "alice@n1", "bob@n2", "carol@n3"
RING = ConfigurationId(8, ProcessId(1))
AT = ViewId(RING, Position(RING, 3, 0))
PLACE = Position(ConfigurationId(8, ProcessId(1 << 48)), Seq(5), 0)
LOST = "the token was lost"


def view(reason: Reason, members: tuple[str, ...], who: tuple[str, ...] = (), why: str = "") -> View:
    return View("lobby", members, members, reason, who, AT, why)


def reconnected(name: str, unconfirmed: int = 0) -> Reconnected:
    return Reconnected(name, ("lobby",), unconfirmed, PLACE, "the daemon n1 is being shut down")


def test_names_are_listed_and_of_many_only_some() -> None:
    assert [listed(()), listed((A,)), listed((A, B)), listed((A, B, C))] == [
        "nobody",
        A,
        f"{A} and {B}",
        f"{A}, {B} and {C}",
    ]
    assert listed([f"c{number}" for number in range(2000)]).endswith("c9, c10 and 1,989 more")


def test_what_happens_to_a_group_is_told() -> None:
    narrator = Narrator(A)
    assert [
        narrator.tell(news)
        for news in (
            view(Reason.JOIN, (A,), (A,)),
            view(Reason.JOIN, (A, B), (B,)),
            view(Reason.NETWORK, (A, B, C), why="another ring was heard"),
            Transition("lobby", (A, B), AT),
            view(Reason.NETWORK, (A, B), why=LOST),
            view(Reason.DISCONNECT, (A,), (B,)),
            Dropped(3, 4096),
            reconnected("alice@n2", 2),
            view(Reason.JOIN, ("alice@n2",), ("alice@n2",)),
            view(Reason.LEAVE, ("alice@n2",), (C,)),
            Left("lobby"),
        )
    ] == [
        f"this client joined; 1 member: {A}",
        f"{B} joined; 2 members: {A} and {B}",
        f"the network changed (another ring was heard): {C} came, and has not seen what was sent here before; "
        f"3 members: {A}, {B} and {C}",
        f"the network is changing: what comes next may not reach {C}",
        f"the network changed ({LOST}): {C} is out of reach; 2 members: {A} and {B}",
        f"{B} disconnected; 1 member: {A}",
        "3 messages (4 KiB) dropped here, as this reader was too slow",
        "connected again, as alice@n2: what was sent after 8.n1:5.0 until now is missing here; "
        "of 2 own messages it is not known whether they were sent",
        "this client joined; 1 member: alice@n2",
        f"{C} left; 1 member: alice@n2",
        "left: nothing more comes from here",
    ]


def test_a_chat_speaks_to_one_person() -> None:
    text = ChatText("lobby", A)
    told = [
        text.news(news)
        for news in (
            view(Reason.JOIN, (A,), (A,)),
            view(Reason.JOIN, (A, B), (B,)),
            view(Reason.JOIN, (A, B, C), (C,)),
            Transition("lobby", (A, B), AT),
            view(Reason.NETWORK, (A, B), why=LOST),
            view(Reason.LEAVE, (A,), (B,)),
            Dropped(3, 4096),
            reconnected("alice@n2"),
            view(Reason.JOIN, ("alice@n2", B), ("alice@n2",)),
            view(Reason.DISCONNECT, ("alice@n2",), (B,)),
            view(Reason.NETWORK, ("alice@n2",), why=LOST),
            Left("lobby"),
        )
    ]
    assert [line.plain for line in told if line is not None] == [
        f"You are {A}, alone in the room lobby: type `ordercast chat` in another terminal.",
        "bob came in.",
        "carol came in.",
        f"The network changed ({LOST}): carol is out of reach. Here are you and bob.",
        "bob left.",
        "3 messages are missing here: this terminal was too slow.",
        "You are connected again: what was said meanwhile is missing here.",
        f"You are alice@n2 in the room lobby, with {B}.",
        "bob is gone: the program ended, or its connection broke.",
        f"The network changed ({LOST}): nobody came or went. You are alone.",
    ]
    assert text.who().plain == "1 here: alice@n2 (you)"
    assert text.lost("the daemon n1 has left").plain == "The daemon n1 has left. Looking for a daemon …"


def test_what_only_this_reader_hears_is_told_from_what_all_hear() -> None:
    text = ChatText("lobby", A)
    assert text.message(Message(("lobby",), B, b"hi", PLACE, Service.AGREED)).plain == "bob: hi"
    assert text.message(Message((A,), B, b"hi", PLACE, Service.AGREED)).plain == "bob, to you alone: hi"


def test_two_of_one_name_are_told_apart() -> None:
    text = ChatText("lobby", A)
    text.news(view(Reason.JOIN, (A, "bob@n1", B), (A,)))
    message = Message(("lobby",), B, b"hi\x07", PLACE, Service.AGREED)
    assert text.message(message).plain == f"{B}: hi\\x07"
    left = text.news(view(Reason.LEAVE, (A, B), ("bob@n1",)))
    assert left is not None and left.plain == "bob@n1 left."
    assert text.message(message).plain == "bob: hi\\x07"


def test_machines_get_everything() -> None:
    message = Message(("lobby", B), A, b"hi", PLACE, Service.SAFE)
    assert event_document(message) == {
        "kind": "message",
        "groups": ["lobby", B],
        "sender": A,
        "text": "hi",
        "service": "safe",
        "position": [8, 1 << 48, 5, 0],
    }
    assert event_document(view(Reason.NETWORK, (A, B), why=LOST)) == {
        "kind": "view",
        "group": "lobby",
        "members": [A, B],
        "transitional": [A, B],
        "reason": "network",
        "who": [],
        "why": LOST,
    }
    others: list[Event] = [Transition("lobby", (A,), AT), Left("lobby"), Dropped(1, 2), reconnected(A)]
    assert [event_document(event)["kind"] for event in others] == ["transition", "left", "dropped", "reconnected"]
