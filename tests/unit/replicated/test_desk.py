"""The desk of a replica that is alone in its group, step by step: what it hands its driver, and what it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from ordercast.model.events import Reason as WhyView
from ordercast.model.events import Transition, View, ViewId
from ordercast.model.ids import SECOND, ConfigurationId, Instant, Position, ProcessId, Seq
from ordercast.replicated.arrival import Patience
from ordercast.replicated.batching import encode_batch
from ordercast.replicated.core import Core
from ordercast.replicated.desk import Desk
from ordercast.replicated.effects import (
    Abandoned,
    Answered,
    Changed,
    DeskEffect,
    Dial,
    Freeze,
    GoOn,
    HangUp,
    Progress,
    Reason,
    Refusal,
    Why,
)
from ordercast.replicated.frames import frames_of
from ordercast.replicated.quorum import Majority
from ordercast.replicated.structures.base import YES, Structure
from ordercast.replicated.structures.claims import ACQUIRE
from ordercast.replicated.structures.counter import ADD, Counter
from ordercast.replicated.structures.fields import I64, U64
from ordercast.replicated.structures.lock import Lock
from ordercast.replicated.told import Told
from ordercast.replicated.wire import (
    Exclude,
    State,
    decode,
    decode_command,
    encode_exclude,
    encode_state,
    is_command,
)

NOW = Instant(0)
ONE = bytes([ADD]) + I64.pack(1)


class Caller:
    def __init__(self, is_gone: bool = False) -> None:
        self.is_gone = is_gone

    def done(self) -> bool:
        return self.is_gone


class Audience:
    def want(self, kind: type, /) -> bool:
        return False

    def tell(self, event: object, /) -> None:
        pass


def _id(number: int) -> ViewId:
    configuration = ConfigurationId(number, ProcessId(1))
    return ViewId(configuration, Position(configuration, Seq(0), 0))


class Driver:
    """Sends what is to be sent to itself, and has every turn at once. It keeps what else it is to do."""

    def __init__(self, structure: Structure[Any], *, voters: str = "a", name: str = "a") -> None:
        machine = Told(structure, Audience())
        core = Core(name, ord(name), machine, Majority(dict.fromkeys(voters, 1)))
        self.desk = Desk("g", core, machine, Patience(silence_s=2.0), submitted_max=4)
        self.told: list[DeskEffect] = []
        self.sent: list[bytes] = []

    def carry_out(self, effects: list[DeskEffect]) -> None:
        for effect in effects:
            if isinstance(effect, GoOn):
                self.carry_out(self.desk.go_on(NOW))
            else:
                self.told.append(effect)

    def submit(self, command: bytes, caller: Caller | None) -> None:
        if self.desk.add(command, caller):
            self.carry_out(self.desk.go_on(NOW))

    def view(self, number: int, *members: str, now: Instant = NOW) -> None:
        view = View("g", members or ("a",), (), WhyView.NETWORK, (), _id(number))
        self.carry_out(self.desk.on_view(now, view))

    def exchange(self, *others: Driver) -> None:
        """All that is to be sent comes, to these too."""
        everybody = (self, *others)
        while any(each.desk.outgoing for each in everybody):
            for sender in everybody:
                payloads, sender.desk.outgoing = sender.desk.outgoing, []
                sender.sent += payloads
                for each in everybody:
                    each.carry_out(each.desk.on_messages(NOW, sender.desk.core.me.name, payloads))

    def take(self, kind: type) -> list[Any]:
        """What was told of this kind since."""
        found = [effect for effect in self.told if isinstance(effect, kind)]
        self.told = [effect for effect in self.told if not isinstance(effect, kind)]
        return found


def ready(structure: Structure[Any] | None = None) -> Driver:
    driver = Driver(structure or Counter())
    driver.carry_out(driver.desk.begin())
    driver.view(1)
    driver.exchange()
    assert driver.desk.core.is_current
    return driver


# Commands


def test_commands_of_one_turn_travel_together_and_are_answered_each() -> None:
    driver, callers = ready(), [Caller(), Caller()]
    assert [driver.desk.add(ONE, caller) for caller in callers] == [True, False], "one turn for all"
    driver.carry_out(driver.desk.go_on(NOW))
    driver.exchange()
    (answered,) = driver.take(Answered)
    assert (answered.tickets, answered.first) == (callers, 1) and [each[:1] for each in answered.results] == [YES, YES]


def test_what_has_no_answer_when_the_connection_is_lost_is_sent_again_and_applied_once() -> None:
    driver, caller = ready(), Caller()
    driver.submit(ONE, caller)
    assert len(driver.desk.outgoing) == 1
    driver.carry_out(driver.desk.lost(NOW, "gone"))
    assert driver.desk.outgoing == [], "nobody would get it"
    (lost,) = driver.take(Changed)[-1:]
    assert lost.reason is Reason.LOST and lost.note == "gone" and not driver.desk.core.is_current
    driver.carry_out(driver.desk.cut_off(NOW, "a"))
    driver.view(2)
    driver.exchange()
    (answered,) = driver.take(Answered)
    assert answered.tickets == [caller] and [is_command(each) for each in driver.sent].count(True) == 1


def test_what_is_submitted_while_the_connection_is_lost_waits_for_it() -> None:
    driver, caller = ready(), Caller()
    driver.carry_out(driver.desk.lost(NOW, "gone"))
    driver.submit(ONE, caller)
    assert driver.desk.outgoing == [] and driver.take(Answered) == []
    driver.carry_out(driver.desk.cut_off(NOW, "a"))
    driver.view(2)
    driver.exchange()
    assert [each.tickets for each in driver.take(Answered)] == [[caller]]


ACQUIRE_ONE = bytes([ACQUIRE]) + U64.pack(1)


def test_what_is_called_at_once_comes_after_the_word_that_one_is_back() -> None:
    """Otherwise that word would take away what was just granted."""
    lock, caller = Lock(), Caller()
    driver = Driver(lock)
    driver.carry_out(driver.desk.begin())
    driver.view(1)
    driver.submit(ACQUIRE_ONE, caller)
    driver.exchange()
    assert [each.tickets for each in driver.take(Answered)][-1] == [caller]
    assert lock.grant is not None and lock.grant.claim.ticket == 1


def test_so_it_does_where_that_word_was_refused_before() -> None:
    lock, other, caller = Lock(), Driver(Lock(), voters="ab", name="b"), Caller()
    driver = Driver(lock, voters="ab")
    other.carry_out(other.desk.begin())
    beginning = driver.desk.begin()
    driver.view(1, "a")
    driver.carry_out(beginning)
    driver.exchange()
    assert driver.desk.core.refuses and any(map(is_command, driver.sent))
    for each in (driver, other):
        each.view(2, "a", "b")
    driver.submit(ACQUIRE_ONE, caller)
    driver.exchange(other)
    assert [each.tickets for each in driver.take(Answered)][-1] == [caller]
    assert lock.grant is not None and lock.grant.claim.ticket == 1


def test_what_waits_behind_others_is_refused_with_certainty_where_there_is_no_quorum() -> None:
    driver, callers = Driver(Counter(), voters="ab"), [Caller(), Caller()]
    driver.submit(ONE, callers[0])  # before it is in the group
    driver.view(1, "a")
    driver.submit(ONE, callers[1])
    assert driver.take(Refusal) == []
    driver.exchange()
    assert driver.take(Refusal) == [Refusal([callers[1]], Why.NOT_PRIMARY)]
    assert not any(is_command(each) for each in driver.sent)


def test_without_room_commands_wait_and_who_gives_up_has_sent_nothing() -> None:
    driver, callers = ready(), [Caller() for _ in range(6)]
    for caller in callers:
        driver.desk.add(ONE, caller)
    assert [driver.desk.is_queued(caller) for caller in callers] == [False] * 4 + [True] * 2
    driver.carry_out(driver.desk.go_on(NOW))
    callers[4].is_gone = True
    driver.exchange()
    assert [each.tickets for each in driver.take(Answered)] == [callers[:4], callers[5:]]
    assert driver.desk.mark[0] == 5


def test_a_call_that_waits_for_what_is_confirmed_comes_after_what_was_submitted() -> None:
    driver, writer, reader = ready(), Caller(), Caller()
    driver.desk.add(ONE, writer)
    driver.carry_out(driver.desk.synchronise(NOW, reader))
    driver.exchange()
    assert [(each.tickets, each.first) for each in driver.take(Answered)] == [([writer], 1), ([reader], 1)]


def test_a_copy_that_becomes_current_by_calls_that_only_waited_has_another_mark() -> None:
    """For whoever waits for that. There are more such calls than are carried out at once."""
    driver, callers = ready(), [Caller() for _ in range(1020)]
    driver.carry_out(driver.desk.on_transition(NOW, Transition("g", ("a",), _id(2))))
    for caller in callers:
        driver.carry_out(driver.desk.synchronise(NOW, caller))
    driver.exchange()
    driver.view(2)
    payloads, driver.desk.outgoing = driver.desk.outgoing, []
    effects = driver.desk.on_messages(NOW, "a", payloads)
    mark = driver.desk.mark
    assert GoOn() in effects and mark[-1] is False
    driver.carry_out(effects)
    assert driver.desk.mark == (*mark[:-1], True)


def test_who_waits_is_refused_and_what_nobody_waits_for_is_submitted_again() -> None:
    driver, caller = Driver(Counter(), voters="abc"), Caller()
    driver.view(1)
    driver.exchange()
    driver.submit(ONE, None)
    driver.submit(ONE, caller)
    driver.carry_out(driver.desk.synchronise(NOW, reader := Caller()))
    assert driver.take(Refusal) == [Refusal([caller], Why.NOT_PRIMARY), Refusal([reader], Why.NOT_PRIMARY)]
    asked = driver.desk.force()
    assert asked is not None
    driver.desk.outgoing.append(asked)
    driver.exchange()
    assert driver.desk.force() is None
    commands = [decode_command(payload).data for payload in driver.sent if is_command(payload)]
    assert commands == [encode_batch([ONE])] and driver.desk.mark[0] == 1
    assert driver.desk.core.is_current and driver.desk.is_idle


def test_at_the_end_everybody_is_told_who_may_have_been_applied() -> None:
    driver, callers, reader = ready(), [Caller() for _ in range(5)], Caller()
    driver.submit(ONE, callers[0])
    driver.carry_out(driver.desk.synchronise(NOW, reader))
    for caller in callers[1:]:
        driver.desk.add(ONE, caller)
    driver.carry_out(driver.desk.end(NOW, "over"))
    assert driver.take(Abandoned) == [Abandoned(callers[:1], [reader, *callers[1:]])]
    assert driver.take(Changed)[-1].note == "over" and driver.desk.next_deadline is None
    assert driver.desk.outgoing == []


# Departures


def pair(structure: type[Lock] = Lock) -> tuple[Driver, Driver]:
    drivers = Driver(structure(), voters="a", name="a"), Driver(structure(), voters="a", name="b")
    for driver in drivers:
        driver.carry_out(driver.desk.begin())
    drivers[0].view(1)
    drivers[0].exchange()
    return drivers


def loaded(one: Driver, other: Driver, number: int) -> None:
    """The other one comes, and is loaded by the first."""
    for driver in (one, other):
        driver.view(number, "a", "b")
    one.exchange(other)
    fetch(one, other)
    one.exchange(other)
    assert one.desk.core.is_current and other.desk.core.is_current


def fetch(donor: Driver, fetcher: Driver) -> None:
    (dial,) = fetcher.take(Dial)
    assert dial.donor.name == donor.desk.core.me.name
    fetcher.carry_out(fetcher.desk.on_connected(NOW))
    (picture,) = (effect for effect in donor.told if isinstance(effect, Freeze))
    for frame in frames_of(picture, 0):
        assert frame is not None
        fetcher.carry_out(fetcher.desk.on_frame(NOW, frame))


def acquire(driver: Driver) -> None:
    lock = driver.desk._machine.structure
    assert isinstance(lock, Lock)
    driver.submit(bytes([1]) + (1).to_bytes(8, "big"), Caller())


def test_the_first_holder_says_who_is_gone() -> None:
    one, other = pair()
    loaded(one, other, 2)
    acquire(other)
    one.exchange(other)
    lock = one.desk._machine.structure
    assert isinstance(lock, Lock) and [owner.name for owner in lock.owners()] == ["b"]
    one.view(3)
    one.exchange()
    assert list(lock.owners()) == [], "what it had is free"


def test_who_was_cut_off_says_that_what_it_had_is_lost() -> None:
    driver = ready(Lock())
    acquire(driver)
    driver.exchange()
    lock = driver.desk._machine.structure
    assert isinstance(lock, Lock) and len(lock.owners()) == 1
    driver.carry_out(driver.desk.lost(NOW, "gone"))
    driver.carry_out(driver.desk.cut_off(NOW, "a"))
    driver.view(2)
    driver.exchange()
    assert len(lock.owners()) == 0


# The transfer


def test_a_state_is_fetched_and_a_damaged_piece_is_asked_for_again() -> None:
    one, other = pair()
    acquire(one)
    one.exchange()
    for driver in (one, other):
        driver.view(2, "a", "b")
    one.exchange(other)
    assert other.desk.is_fetching
    (picture,) = (effect for effect in one.told if isinstance(effect, Freeze))
    first = next(frames_of(picture, 0))
    assert first is not None
    other.take(Dial)
    other.carry_out(other.desk.on_connected(NOW))
    other.carry_out(other.desk.on_frame(NOW, first._replace(body=first.body + b"x")))
    assert HangUp() in other.take(HangUp), "one donor: it is asked once more after a pause"
    other.carry_out(other.desk.wake(Instant(SECOND)))
    fetch(one, other)
    one.exchange(other)
    assert other.take(Progress)[-1].is_done and other.desk.next_deadline is None
    assert other.desk.core.is_current and other.desk.pieces == 0


def test_who_is_cut_off_hangs_up() -> None:
    one, other = pair()
    for driver in (one, other):
        driver.view(2, "a", "b")
    one.exchange(other)
    other.carry_out(other.desk.lost(NOW, "gone"))
    assert other.take(HangUp) and not other.desk.is_fetching
    assert other.desk.on_connected(NOW) == other.desk.on_broken(NOW, "") == []


# Time


def test_a_member_that_is_silent_for_too_long_is_named_again_and_again() -> None:
    driver = ready()
    driver.view(2, "a", "x")
    assert driver.desk.next_deadline == 2 * SECOND
    driver.exchange()
    assert driver.desk.wake(Instant(2 * SECOND - 1)) == [] and driver.desk.outgoing == []
    driver.carry_out(driver.desk.wake(Instant(2 * SECOND)))
    (payload,) = driver.desk.outgoing
    assert isinstance(said := decode(payload), Exclude) and said.names == ("x",)
    assert driver.desk.next_deadline == 4 * SECOND
    driver.exchange()
    assert driver.desk.core.is_current and driver.desk.next_deadline is None


@pytest.mark.parametrize("count", [1, 3])
def test_a_round_is_timed_from_its_beginning(count: int) -> None:
    driver = ready()
    for number in range(2, 2 + count):
        driver.view(number, "a", "x", now=Instant(number))
    assert driver.desk.next_deadline == 1 + count + 2 * SECOND


def test_who_is_left_out_waits_for_nobody() -> None:
    """The others have excluded it, and then decide without it: it is told of the first alone."""
    driver = ready()
    driver.view(2, "a", "b", "c")
    driver.desk.outgoing.clear()  # it is not heard
    view = _id(2)
    others = [
        encode_state(State(view, 0, 0, False, ord(name), 0, False, False, False, None, None, (), None, (), b""))
        for name in "bc"
    ]
    driver.carry_out(driver.desk.on_messages(NOW, "b", [others[0], encode_exclude(Exclude(view, 0, ("a",)))]))
    assert driver.take(Changed)[-1].reason is Reason.EXCLUDED and driver.desk.next_deadline is not None
    driver.carry_out(driver.desk.on_messages(NOW, "c", [others[1]]))
    driver.carry_out(driver.desk.wake(Instant(2 * SECOND)))
    assert driver.desk.next_deadline is None
