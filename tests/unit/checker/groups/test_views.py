from __future__ import annotations

from ordercast.model.events import ViewId
from ordercast.model.ids import Position
from ordercast.model.promises import GroupPromise
from ordercast.trace.client_records import AskedJoin

from .stories import RING, Story, assert_invalid, assert_valid


def _three() -> Story:
    story = Story("a", "b", "c")
    for name in "abc":
        story.join("g", name)
    return story


def _torn(story: Story) -> None:
    """c is out of reach of a and b, and comes back."""
    story.signal("g", "a", "b", remaining="ab")
    story.signal("g", "c", remaining="c")
    story.view("g", "a", "b", along="ab")
    story.view("g", "c", along="c")


def _merged(story: Story) -> None:
    """All three meet again, each from the view that it was in."""
    at = story.view("g", "a", "b", along="ab", members="abc")
    story.view("g", "c", along="c", members="abc", at=at)


def test_joining_leaving_parting_and_meeting_again_are_accepted() -> None:
    story = _three()
    story.get(story.send("a", "g"), "a", "b", "c")
    _torn(story)
    story.get(story.send("b", "g"), "a", "b")
    _merged(story)
    story.leave("g", "b")
    story.get(story.send("a", "g"), "a", "c")
    story.end("c")
    story.know(story.ids["a"].process, g="a")
    assert_valid(story.finished())


def test_a_message_without_a_view_is_rejected() -> None:
    story = _three()
    story.leave("g", "b")
    story.get(story.send("a", "g"), "a", "b", "c")
    assert_invalid(GroupPromise.INITIAL_VIEW, story.finished(), "b@n1", "without being in any of them")


def test_a_signal_without_a_view_is_rejected() -> None:
    story = _three()
    story.views["b" + "other"] = story.views["bg"]
    story.signal("other", "b", remaining="b")
    assert_invalid(GroupPromise.INITIAL_VIEW, story.finished(), "signal for other")


def test_a_view_without_its_reader_is_rejected() -> None:
    story = _three()
    story.view("g", "a", "b", "c", along="ab", members="ab")
    assert_invalid(GroupPromise.SELF_INCLUSION, story.finished(), "c@n2", "not in its own view")


def test_falling_ids_are_rejected() -> None:
    story = _three()
    story.view("g", "a", "b", "c", along="abc", at=ViewId(RING, Position(RING, 1, 0)))
    assert_invalid(GroupPromise.VIEW_MONOTONY, story.finished(), "installed")


def test_falling_ids_over_leaving_and_joining_again_are_rejected() -> None:
    story = _three()
    story.leave("g", "b")
    story.clock = 0
    story.join("g", "b")
    assert_invalid(GroupPromise.VIEW_MONOTONY, story.finished(), "b@n1")


def test_one_id_with_other_members_is_rejected() -> None:
    story = _three()
    at = story.view("g", "a", "b", along="ab", members="ab")
    story.view("g", "c", along="c", at=at)
    assert_invalid(GroupPromise.VIEW_AGREEMENT, story.finished(), "sees other members")


def test_a_first_view_with_companions_is_rejected() -> None:
    story = Story("a", "b")
    story.join("g", "a")
    story.join("g", "b", along="ab")
    assert_invalid(GroupPromise.TRANSITIONAL_SETS, story.finished(), "b@n1", "the first view")


def test_a_companion_who_was_not_there_before_is_rejected() -> None:
    story = _three()
    _torn(story)
    at = story.view("g", "a", "b", along="abc", members="abc")
    story.view("g", "c", along="c", members="abc", at=at)
    assert_invalid(GroupPromise.TRANSITIONAL_SETS, story.finished(), "who were not in")


def test_a_companion_who_came_from_another_view_is_rejected() -> None:
    story = _three()
    at = story.view("g", "a", "b", along="ab", members="abc")
    later = story.view("g", "a", "b", along="abc", members="abc")
    story.view("g", "c", along="c", members="abc", at=later)
    assert at < later
    assert_invalid(GroupPromise.TRANSITIONAL_SETS, story.finished(), "c@n2", "came from another view")


def test_a_companion_who_is_not_listed_is_rejected() -> None:
    story = _three()
    at = story.view("g", "a", "b", along="ab", members="abc")
    story.view("g", "c", along="c", members="abc", at=at)
    assert_invalid(GroupPromise.TRANSITIONAL_SETS, story.finished(), "came from the same view, and is not")


def test_two_who_lost_each_other_in_the_same_view_and_met_again_need_not_list_each_other() -> None:
    story = _three()
    story.signal("g", "a", "b", remaining="ab")
    story.signal("g", "c", remaining="c")
    _merged(story)
    assert_valid(story.finished())


def test_in_the_end_everybody_must_see_exactly_the_live_members() -> None:
    story = _three()
    story.events.pop()  # c never hears of its own joining
    assert_invalid(GroupPromise.PRECISION, story.finished(), "c@n2", "it was not done")

    story = _three()
    story.view("g", "a", "b", "c", along="abc", members="abc")
    story.connect("d", 3)
    story.events.append(AskedJoin(story.now, story.ids["d"], ("g",)))
    story.view("g", "d", along="d", members="abcd")
    assert_invalid(GroupPromise.PRECISION, story.finished(), "sees ('a@n0', 'b@n1', 'c@n2') in g")


def test_in_the_end_nobody_waits_after_a_signal() -> None:
    story = _three()
    story.signal("g", "a", "b", "c", remaining="abc")
    assert_invalid(GroupPromise.PRECISION, story.finished(), "still waits")


def test_in_the_end_every_daemon_knows_the_members() -> None:
    story = _three()
    story.know(story.ids["a"].process, g="ab")
    assert_invalid(GroupPromise.PRECISION, story.finished(), "n0 knows")
