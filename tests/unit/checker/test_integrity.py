from __future__ import annotations

from ordercast.model.promises import Promise
from ordercast.trace.records import Event, MessageId, Submitted

from .histories import Story, assert_invalid, assert_valid, edited, process, with_delivery


def _story() -> tuple[list[Event], MessageId]:
    story = Story(2)
    story.change(0, 1)
    message = story.round(0, 1)[0]
    return story.finished(), message


def test_what_was_submitted_may_be_delivered() -> None:
    assert_valid(_story()[0])


def test_other_bytes_are_rejected() -> None:
    events, message = _story()
    broken = with_delivery(events, 1, message, digest=99)
    assert_invalid(Promise.INTEGRITY, broken, "n1, message n0/0#1", "other bytes than were submitted")


def test_another_size_is_rejected() -> None:
    events, message = _story()
    assert_invalid(Promise.INTEGRITY, with_delivery(events, 1, message, size=7), "delivered 7 bytes of 100")


def test_another_service_is_rejected() -> None:
    events, message = _story()
    assert_invalid(Promise.INTEGRITY, with_delivery(events, 1, message, service=5), "service 5, submitted with 4")


def test_bytes_without_identity_are_rejected() -> None:
    events, message = _story()
    assert_invalid(
        Promise.INTEGRITY, with_delivery(events, 1, message, message=None), "100 bytes that carry no identity"
    )


def test_a_message_nobody_submitted_is_rejected() -> None:
    events, message = _story()
    invented = MessageId(process(0), 0, 12)
    assert_invalid(Promise.INTEGRITY, with_delivery(events, 1, message, message=invented), "n0/0#12", "never submitted")


def test_delivery_before_submission_is_rejected() -> None:
    events, _ = _story()
    first = next(event for event in events if isinstance(event, Submitted))
    late = edited(events, lambda event: None if event is first else event)
    late.insert(len(late) - 2, first)
    assert_invalid(Promise.INTEGRITY, late, "n0/0#1", "delivered before it was submitted")
