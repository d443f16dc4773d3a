"""The desk of one client: what is done with each request, and when the client has to go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ordercast.groups.desk import GroupDesk
from ordercast.groups.layer import MessageRun, data_head
from ordercast.groups.table import Notice
from ordercast.groups.turns import Turn
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Deliver
from ordercast.model.errors import WireError
from ordercast.model.events import Left
from ordercast.model.ids import ConfigurationId, Instant, Places, ProcessId
from ordercast.model.service import Service
from ordercast.session import desk as desk_module
from ordercast.session.batches import decode_dropped, encode_send
from ordercast.session.client_half import BYE, ClientHalf
from ordercast.session.counters import ClientCounters, ClientRefusal
from ordercast.session.desk import ClientRules, Ending, Outcome, SessionDesk
from ordercast.session.frames import Hello, SlowPolicy, encode_document, encode_names
from ordercast.session.handouts import Handout, Session
from ordercast.session.pieces import HEADER, FrameKind
from ordercast.session.quota import Quota
from ordercast.session.requests import Manage
from tests.unit.groups.stage import parcel_of, view_of

RING = ConfigurationId(4, ProcessId(1))
RULES = ClientRules(message_size_max=10_000, sessions_max=3, queue_size_max=1_000, hold_ns=100, still_ns=50)


class Daemon:
    """The host of a desk that is alone in its configuration."""

    def __init__(self) -> None:
        self.desk = GroupDesk(ProcessId(1), "n1", overhead=0, portion_size_max=1 << 20)
        self.sessions: dict[int, Session] = {}
        self.quota, self.counters = Quota(), ClientCounters()
        self.desk.install(view_of(ConfigurationKind.REGULAR, RING, (1,), (1,)))
        announced = [payload for turn in self.turns() for payload in turn.payloads]
        parcels = [parcel_of(number, ProcessId(1), payload) for number, payload in enumerate(announced, 1)]
        self.desk.deliver(Deliver(RING, RING, parcels))

    def open_session(self, session: Session, name: str) -> tuple[int, str]:
        number, full = self.desk.open(name)
        self.sessions[number] = session
        return number, full

    def close_session(
        self, number: int, full: str, groups: int = 0, accepted: Callable[[], None] | None = None
    ) -> None:
        del self.sessions[number]
        self.desk.close(number, full, groups, accepted)

    def request(
        self,
        number: int,
        payloads: Sequence[bytes],
        service: Service = Service.AGREED,
        accepted: Callable[[], None] | None = None,
        changes: int = 0,
    ) -> None:
        self.desk.request(number, payloads, service, accepted, changes)

    def turns(self) -> list[Turn]:
        found = []
        self.desk.subscribed(tuple(change.group for change in self.desk.interests.changes() if change.is_wanted))
        while (turn := self.desk.next_turn(lambda size: True)) is not None:
            found.append(turn)
            if turn.accepted is not None:
                turn.accepted()
        return found


class Visitor:
    """A client at its desk."""

    name = "a@n1"
    waiting_size = received_size = 0

    def __init__(self, daemon: Daemon, policy: SlowPolicy = SlowPolicy.WAIT, credit: int = 500) -> None:
        self.desk = SessionDesk(self, daemon, RULES, daemon.quota, daemon.counters)
        self.half = ClientHalf("a", policy, credit)
        self.outcome = self.say(self.half.hello())

    def say(self, frame: bytes) -> Outcome | None:
        _, kind = HEADER.unpack_from(frame)
        return self.desk.receive(kind, frame[HEADER.size :])

    def may_change(self) -> bool:
        return self.desk.may_change

    def is_holding(self) -> bool:
        return self.desk.is_holding

    def on_handout(self, handout: Handout) -> None: ...
    def on_confirmed(self, run: MessageRun) -> None: ...
    def on_ended(self, why: str) -> None: ...
    def flush(self) -> None: ...


def message(size: int) -> Handout:
    head = data_head("b@n1", ("g",))
    places = Places(RING, 7, 0, 1, 0)
    return Handout(MessageRun((1,), head, places, [int(Service.AGREED)], [head + bytes(size)]))


def test_a_client_is_welcome_once_and_under_its_own_name() -> None:
    daemon = Daemon()
    first, second = Visitor(daemon), Visitor(daemon)
    assert isinstance(first.outcome, Hello) and first.desk.number == 1 and first.desk.half.name == "a@n1"
    assert isinstance(second.outcome, Ending) and "in use" in second.outcome.why and not second.desk.number
    assert daemon.counters.refusals == {ClientRefusal.NAME: 1}


def test_more_clients_than_there_may_be_are_sent_away() -> None:
    daemon = Daemon()
    visitor = Visitor(daemon)
    for name in "bcd":
        _, full = daemon.open_session(visitor, name)
    late = Visitor(daemon)
    assert late.outcome == Ending("this daemon has as many clients as it may: raise sessions_max in [clients]")
    assert full == "d@n1" and daemon.counters.refusals == {ClientRefusal.FULL: 1}


def test_what_was_submitted_gives_credit_back() -> None:
    daemon = Daemon()
    visitor = Visitor(daemon)
    visitor.desk.take()
    head = data_head("a@n1", ("g",))
    frame = encode_send(Service.SAFE, head, [bytes(9_000)] * 20)
    assert visitor.say(frame) is None and not visitor.desk.take()
    assert visitor.desk.debt(5) == daemon.desk.requests_size + 5 > 180_000
    (turn,) = daemon.turns()
    assert (turn.session, turn.service, len(turn.payloads)) == (1, Service.SAFE, 20)
    (credit,) = visitor.desk.take()
    assert HEADER.unpack_from(credit)[1] == FrameKind.CREDIT and visitor.desk.debt(5) == 5


def test_joins_and_leaves_that_wait_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "CHANGES_MAX", 2)
    daemon = Daemon()
    visitor = Visitor(daemon)
    visitor.say(encode_names(FrameKind.JOIN, ["g", "h"]))
    assert visitor.may_change() and visitor.desk.work == 2
    visitor.say(encode_names(FrameKind.LEAVE, ["g"]))
    assert not visitor.may_change()
    daemon.turns()
    assert visitor.may_change()


def test_a_join_of_too_many_groups_is_refused_and_changes_nothing() -> None:
    daemon = Daemon()
    daemon.quota = Quota(all_max=1)
    visitor = Visitor(daemon)
    visitor.desk.take()
    visitor.say(encode_names(FrameKind.JOIN, ["g", "h"]))
    (refused,) = visitor.desk.take()
    assert HEADER.unpack_from(refused)[1] == FrameKind.REFUSED
    assert daemon.counters.refusals == {ClientRefusal.GROUPS: 1} and not daemon.turns()


def test_what_an_operator_asks_is_left_to_the_driver() -> None:
    visitor = Visitor(Daemon())
    assert visitor.say(encode_document(FrameKind.MANAGE, {"do": "list"})) == Manage({"do": "list"})


def test_something_wrong_ends_the_session_with_the_reason() -> None:
    daemon = Daemon()
    visitor = Visitor(daemon)
    with pytest.raises(WireError) as error:
        visitor.say(encode_names(FrameKind.WELCOME, []))
    assert visitor.desk.wrong(error.value) == Ending("a client does not send frames of kind 2")
    assert daemon.counters.refusals == {ClientRefusal.WRONG: 1}


def test_who_says_bye_goes_without_a_reason_and_everybody_is_told() -> None:
    daemon = Daemon()
    visitor = Visitor(daemon)
    visitor.say(encode_names(FrameKind.JOIN, ["g"]))
    assert visitor.say(BYE) == Ending("")
    assert visitor.desk.end() == 1 and not daemon.sessions and not visitor.desk.number
    assert [turn.changes for turn in daemon.turns()] == [1, 2]


@pytest.mark.parametrize("policy", [SlowPolicy.WAIT, SlowPolicy.DISCONNECT])
def test_one_that_is_too_slow_has_to_go_and_a_person_is_told(policy: SlowPolicy) -> None:
    daemon = Daemon()
    visitor = Visitor(daemon, policy)
    endings = [visitor.desk.give(message(100)) for _ in range(9)]
    assert next(ending for ending in endings if ending is not None).is_warned
    assert endings[:5] == [None] * 5 and daemon.counters.too_slow == sum(ending is not None for ending in endings)
    assert not daemon.counters.messages_dropped


def test_one_that_has_chosen_to_lose_messages_is_told_how_many() -> None:
    daemon = Daemon()
    visitor = Visitor(daemon, SlowPolicy.DROP, credit=5_000)
    visitor.desk.take()
    assert [visitor.desk.give(message(100)) for _ in range(20)] == [None] * 20
    first, *rest = visitor.desk.take()
    dropped = decode_dropped(first[HEADER.size :])
    assert dropped.messages == daemon.counters.messages_dropped > 0 and dropped.messages + len(rest) == 20


def test_all_wait_for_one_that_holds_until_it_has_caught_up() -> None:
    visitor = Visitor(Daemon(), SlowPolicy.HOLD, credit=100)
    visitor.desk.take()
    visitor.desk.give(message(10))
    assert not visitor.is_holding()
    for _ in range(3):
        visitor.desk.give(message(50))
    assert visitor.is_holding() and visitor.desk.look(Instant(0)) is None
    visitor.desk.half.outbound.add_credit(10_000)
    visitor.desk.take()
    assert not visitor.is_holding()


def test_one_that_holds_too_long_has_to_go() -> None:
    daemon = Daemon()
    visitor = Visitor(daemon, SlowPolicy.HOLD, credit=1)
    visitor.desk.take()
    for _ in range(8):
        visitor.desk.give(message(10))
    assert visitor.desk.look(Instant(0)) is None
    for at in (40, 80):
        visitor.desk.half.outbound.add_credit(100)
        visitor.desk.take()
        assert visitor.desk.look(Instant(at)) is None
    visitor.desk.half.outbound.add_credit(1)
    visitor.desk.take()
    ending = visitor.desk.look(Instant(120))
    assert ending is not None and "everybody waited for it" in ending.why and daemon.counters.held_too_long == 1


def test_views_are_handed_out_as_frames_that_were_made_for_all() -> None:
    visitor = Visitor(Daemon())
    visitor.desk.take()
    assert visitor.desk.give(Handout(Notice((1,), Left("g")), b"frame")) is None
    assert visitor.desk.take() == [b"frame"]
