"""The desk: who is served when. Announcements first, nothing of sessions during a merge, ends after what was asked."""

from __future__ import annotations

import pytest

from ordercast.groups.desk import OWN, GroupDesk
from ordercast.groups.envelope import Kind, decode_head, head_bytes_of
from ordercast.groups.layer import Confirmed, MessageRun, data_head, join_payload
from ordercast.groups.table import Notice
from ordercast.groups.turns import Turn
from ordercast.model.configuration import ConfigurationKind
from ordercast.model.effects import Deliver
from ordercast.model.errors import UsageError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.inputs import EVERYWHERE, Interest

from .stage import parcel_of, view_of

ME, OTHER = ProcessId(1), ProcessId(2)
REGULAR, TRANSITIONAL = ConfigurationKind.REGULAR, ConfigurationKind.TRANSITIONAL


def desk() -> GroupDesk:
    return GroupDesk(ME, "n1", overhead=10, portion_size_max=1000)


def ring(seq: int) -> ConfigurationId:
    return ConfigurationId(seq, ME)


def message_of(size: int, name: str = "a@n1") -> bytes:
    return data_head(name, ("g",)).ljust(size, b"x")


def turns_of(desk: GroupDesk, room: int = 1 << 30, *, prunes: bool = False) -> list[Turn]:
    """What is submitted now; an engine that prunes nothing is subscribed to whatever is wanted."""
    found: list[Turn] = []
    if not prunes:
        desk.subscribed(tuple(change.group for change in desk.interests.changes() if change.is_wanted))

    def has_room(size: int) -> bool:
        return size <= room - sum(turn.size for turn in found)

    while (turn := desk.next_turn(has_room)) is not None:
        found.append(turn)
    return found


def kinds(turns: list[Turn]) -> list[tuple[int, Kind]]:
    return [(turn.session, decode_head(head_bytes_of(turn.payloads[0])).kind) for turn in turns]


class Stream:
    """What the engine brings to one desk."""

    def __init__(self, desk: GroupDesk, seq: int, members: tuple[int, ...] = (1,)) -> None:
        self.desk, self.ring, self.number = desk, ring(seq), 0
        self.outputs = list(desk.install(view_of(REGULAR, self.ring, members, (1,))))

    def bring(self, *payloads: bytes, sender: ProcessId = ME) -> None:
        for payload in payloads:
            self.number += 1
            parcel = parcel_of(self.number, sender, payload)
            self.outputs += self.desk.deliver(Deliver(self.ring, self.ring, [parcel]))


def alone() -> tuple[GroupDesk, Stream]:
    """A desk whose configuration has this daemon alone, and has settled."""
    it = desk()
    stream = Stream(it, 4)
    stream.bring(*(payload for turn in turns_of(it) for payload in turn.payloads))
    return it, stream


def test_sessions_have_numbers_and_names_of_their_own() -> None:
    it = desk()
    assert it.open("a") == (1, "a@n1")
    with pytest.raises(UsageError, match="in use"):
        it.open("a")
    assert it.open("c2") == (2, "c2@n1")
    assert it.open("") == (3, "c3@n1")
    assert it.sessions == 3


def test_a_name_that_is_found_is_free() -> None:
    it = desk()
    assert it.open("c2") == (1, "c2@n1")
    assert it.open("") == (3, "c3@n1")


def test_nothing_of_sessions_is_submitted_while_snapshots_are_awaited() -> None:
    it, _ = alone()
    number, name = it.open("a")
    stream = Stream(it, 8, (1, 2))
    it.request(number, (join_payload(name, ("g",)),), changes=1)
    it.close(number, name, 1)
    announced = turns_of(it)
    assert kinds(announced) == [(OWN, Kind.GROUPS)]
    assert not it.is_quiet() and it.requests_waiting == 2
    stream.bring(*announced[0].payloads)
    assert turns_of(it) == []
    other = GroupDesk(OTHER, "n2", overhead=10, portion_size_max=1000)
    other.install(view_of(REGULAR, ring(8), (1, 2), (2,)))
    stream.bring(*turns_of(other)[0].payloads, sender=OTHER)
    assert kinds(turns_of(it)) == [(number, Kind.JOIN), (number, Kind.DISCONNECT)]
    assert it.is_quiet()


def test_announcements_go_before_what_sessions_had_asked_for() -> None:
    it, _ = alone()
    number, name = it.open("a")
    it.request(number, (data_head(name, ("g",)) + b"early",))
    Stream(it, 8, (1, 2))
    assert kinds(turns_of(it)) == [(OWN, Kind.GROUPS)]


def test_only_what_there_is_room_for_is_submitted_and_nobody_is_passed_over() -> None:
    it, _ = alone()
    first, second = it.open("a"), it.open("b")
    it.request(first[0], (message_of(80),))
    it.request(second[0], (message_of(15, second[1]),))
    assert turns_of(it, room=89) == []
    assert [turn.size for turn in turns_of(it, room=90)] == [90]
    assert it.requests_size == it.requests_size_of(second[0]) == 25


def test_a_large_request_is_submitted_in_portions_and_accepted_with_the_last() -> None:
    it, _ = alone()
    number, _ = it.open("a")
    it.request(number, [message_of(400)] * 3, accepted=lambda: None)
    turns = turns_of(it)
    assert [len(turn.payloads) for turn in turns] == [1, 1, 1]
    assert [turn.accepted is None for turn in turns] == [True, True, False]


def test_a_session_that_ends_is_told_of_after_what_it_had_asked_for() -> None:
    it, stream = alone()
    number, name = it.open("a")
    it.request(number, (join_payload(name, ("g",)),), changes=1)
    it.close(number, name, 1)
    it.close(number, name, 1)
    turns = turns_of(it)
    assert kinds(turns) == [(number, Kind.JOIN), (number, Kind.DISCONNECT)] and it.changing == 3
    with pytest.raises(UsageError, match="in use"):
        it.open("a")
    stream.bring(*(payload for turn in turns for payload in turn.payloads))
    assert it.changing == 0 and it.open("a") == (2, "a@n1")


def test_requests_that_are_dropped_leave_the_end_to_be_told() -> None:
    it, _ = alone()
    (number, name), (other, _) = it.open("a"), it.open("b")
    it.request(number, (message_of(20),))
    it.request(other, (message_of(20),))
    it.close(number, name)
    it.drop_requests(number)
    it.drop_requests(other)
    assert kinds(turns_of(it)) == [(number, Kind.DISCONNECT)]


def test_the_stream_comes_out_for_sessions_without_announcements() -> None:
    it, stream = alone()
    _, name = it.open("a")
    stream.bring(join_payload(name, ("g",)), data_head(name, ("g",), confirm=True) + b"hello")
    told = [output for output in stream.outputs if not isinstance(output, Notice) or output.sessions]
    assert [type(output) for output in told] == [Notice, MessageRun, Confirmed]
    Stream(it, 8, (1, 2))
    assert it.has_something


def test_changes_that_a_configuration_swallowed_hold_up_nobody() -> None:
    it, _ = alone()
    number, name = it.open("a")
    it.request(number, (join_payload(name, ("g",)),), changes=1)
    assert turns_of(it) and it.changing == 1
    it.install(view_of(TRANSITIONAL, ring(6), (1,), (1,), ring(4)))
    assert it.changing == 0


# An engine that prunes


def test_a_join_waits_for_the_engine_and_messages_pass_it_by() -> None:
    it, _ = alone()
    (number, name), (other, _) = it.open("a"), it.open("b")
    it.request(number, (join_payload(name, ("g",)),), changes=1)
    it.request(other, (message_of(20, "b@n1"),))
    assert it.has_something and it.interests.changes() == [Interest("g", is_wanted=True)]
    assert kinds(turns_of(it, prunes=True)) == [(other, Kind.DATA)]
    assert not it.is_quiet()
    assert it.subscribed(("g",)) and it.has_something
    assert kinds(turns_of(it, prunes=True)) == [(number, Kind.JOIN)]
    assert it.is_quiet() and not it.subscribed(("g",))


def test_turns_say_where_their_messages_go() -> None:
    it, _ = alone()
    number, name = it.open("a")
    it.request(number, (data_head(name, ("g", "b@n2")) + b"hello",))
    it.request(number, (join_payload(name, ("g",)),), changes=1)
    assert [turn.destinations for turn in turns_of(it)] == [("g", "@n2"), EVERYWHERE]
    Stream(it, 8, (1, 2))
    assert [turn.destinations for turn in turns_of(it)] == [EVERYWHERE]


def test_a_join_that_is_dropped_gives_up_what_only_it_wanted() -> None:
    it, _ = alone()
    number, name = it.open("a")
    it.request(number, (join_payload(name, ("g",)),), changes=1)
    it.drop_requests(number)
    assert it.interests.changes() == [Interest("g", is_wanted=True), Interest("g", is_wanted=False)]


def test_the_last_leave_that_comes_gives_a_group_up() -> None:
    it, stream = alone()
    number, name = it.open("a")
    it.request(number, (join_payload(name, ("g",)),), changes=1)
    stream.bring(*(payload for turn in turns_of(it) for payload in turn.payloads))
    assert not it.interests.has_changes
    it.close(number, name, 1)
    stream.bring(*(payload for turn in turns_of(it) for payload in turn.payloads))
    assert it.has_something and it.interests.changes() == [Interest("g", is_wanted=False)]


def test_a_session_with_a_name_has_the_next_number_whatever_others_are_called() -> None:
    one = desk()
    assert [one.open(name) for name in ("c2", "x", "")] == [(1, "c2@n1"), (2, "x@n1"), (3, "c3@n1")]


def test_a_desk_that_has_told_its_interests_has_nothing_to_say() -> None:
    one = desk()
    assert one.has_something
    one.interests.changes()
    assert not one.has_something


def test_announcements_wait_for_room_too_and_nobody_is_quiet_while_snapshots_are_awaited() -> None:
    one = desk()
    Stream(one, 8, (1, 2))
    assert one.requests_waiting == 1 and turns_of(one, room=0) == [] and one.requests_waiting == 1
    assert kinds(turns_of(one)) == [(OWN, Kind.GROUPS)]
    assert one.requests_waiting == 0 and not one.is_quiet()


def test_a_request_for_nothing_is_none() -> None:
    one = desk()
    number, _ = one.open("a")
    one.request(number, ())
    assert one.requests_waiting == 0
