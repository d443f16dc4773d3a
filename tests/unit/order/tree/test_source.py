"""What a source sends again is in the order of sending, whatever was answered."""

from __future__ import annotations

from ordercast.model.inputs import Submission, Submissions
from ordercast.model.service import Service
from ordercast.order.tree.blocks import Cargo, GivenPlace
from ordercast.order.tree.control import Reconcile
from ordercast.order.tree.delivering import ControlMessage, Delivering
from ordercast.order.tree.source import TreeSource
from ordercast.wire.header import Part

from .courses import A, B, C, D, Rehearsal, V


def _sending(count: int) -> TreeSource:
    return _rehearsed(count)[1]


def _rehearsed(count: int) -> tuple[Rehearsal, TreeSource]:
    """C has sent so many messages to B, and heard nothing."""
    rehearsal = Rehearsal(C, {A: ["x"], B: ["x", "y"], C: ["y"]})
    rehearsal.say(rehearsal.opening({A: None, B: A, C: B}, {D: None}), A)
    course = rehearsal.course
    source = course.source
    for number in range(count):
        source.add([Submission(bytes([number]), Service.AGREED, 0, ("y",))])
        turn = source.next(course.forest)
        assert turn is not None
        course.offer(source.offered(turn, course.opened))
    return rehearsal, source


def test_messages_that_come_back_from_the_control_stream_have_one_number_again() -> None:
    """What was in one cargo is dropped as one, or delivered as one."""
    rehearsal, source = _rehearsed(0)
    course = rehearsal.course
    source.add([Submissions((b"1", b"2"), Service.AGREED, 0, ("y",)), Submission(b"3", Service.AGREED, 0, ("y",))])
    for _ in range(2):
        turn = source.next(course.forest)
        assert turn is not None
        source.offered(turn, course.opened)
    source.start_over(set(), (A,))
    source.avoided = {B}
    turn = source.next(course.forest)
    assert turn is not None and turn.tree is None
    source.submitted(turn)
    source.start_over(set(), (A,))
    for _ in range(2):
        source.came_back(0, has_effect=False)
    assert [(wish.source, wish.payloads) for wish in source.waiting] == [(1, (b"1", b"2")), (2, (b"3",))]


def test_the_parts_of_a_large_message_keep_their_numbers() -> None:
    """Messages that follow it keep theirs, and would be dropped behind higher ones."""
    rehearsal, source = _rehearsed(0)
    course = rehearsal.course
    source.whole_max = 12

    def sent(count: int) -> list[int]:
        found: list[int] = []
        for _ in range(count):
            turn = source.next(course.forest)
            assert turn is not None
            found.append(source.offered(turn, course.opened).cargo.source)
        return found

    source.add([Submission(bytes(15), Service.AGREED, 0, ("y",)), Submission(b"3", Service.AGREED, 0, ("y",))])
    assert sent(3) == [1, 2, 3]
    source.start_over(set(), (A,))
    source.avoided = {B}
    turn = source.next(course.forest)
    assert turn is not None and turn.tree is None and turn.wish.payloads == (bytes(15),)
    source.submitted(turn)
    source.start_over(set(), (A,))
    source.came_back(0, has_effect=False)
    assert sent(3) == [1, 2, 3]


def test_what_is_sent_again_by_the_control_stream_is_dropped_where_it_was_delivered() -> None:
    delivering = Delivering(V)
    cargo = Cargo(B, 7, 1, 0, Service.AGREED, Part.WHOLE, (0,), (b"m",))
    assert delivering.cargo(cargo) is not None
    message = ControlMessage(1, (9, 0), B, 0, Service.AGREED, b"m", is_again=True, source=7)
    assert delivering.control(message, is_late=False) is None
    for source in (0, 8):
        assert delivering.control(message._replace(source=source), is_late=False) is not None


def test_what_was_refused_is_sent_again_before_what_was_not_answered() -> None:
    source = _sending(4)
    source.refuse(1)
    source.refuse(2)
    source.start_over(set(), (A,))
    assert [wish.payloads for wish in source.waiting] == [(bytes([number]),) for number in range(4)]


def test_what_somebody_holds_is_not_sent_again() -> None:
    source = _sending(3)
    assert source.start_over({(2, 1)}, None) == (2, 0)
    assert [wish.payloads for wish in source.waiting] == [(b"\0",), (b"\2",)]


def test_what_was_lost_with_its_entry_says_so_when_it_is_sent_again() -> None:
    for along, is_again in (((A, C), True), ((A, B, C), False), (None, False)):
        rehearsal, source = _rehearsed(1)
        source.start_over(set(), along)
        turn = source.next(rehearsal.course.forest)
        assert turn is not None
        assert source.offered(turn, 1).cargo.is_again is is_again


def test_what_would_enter_beyond_a_broken_link_goes_by_the_control_stream() -> None:
    rehearsal = Rehearsal(C, {A: ["x"], B: ["x", "y"], C: ["y"]})
    rehearsal.say(rehearsal.opening({A: None, B: A, C: B}, {D: None}), A)
    source = rehearsal.course.source
    source.avoided = {B}
    source.add([Submission(b"m", Service.AGREED, 0, ("y",))])
    turn = source.next(rehearsal.course.forest)
    assert turn is not None and turn.tree is None
    rehearsal.say(Reconcile(2), A)
    source.start_over(set(), (A,))
    assert not source.avoided, "another configuration has other links"


def test_what_was_refused_is_sent_again_though_the_last_answer_is_a_place() -> None:
    """A refusal comes straight from the entry, a place with the message, down the tree."""
    source = _sending(3)
    source.refuse(2)
    source.refuse(3)
    assert not source.waiting
    source.ordered(GivenPlace(1, 1, (1,)))
    assert [wish.payloads for wish in source.waiting] == [(bytes([1]),), (bytes([2]),)] and not source.refused
