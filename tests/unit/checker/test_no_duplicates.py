from __future__ import annotations

from ordercast.model.promises import Promise

from .histories import Story, assert_invalid, assert_valid


def test_once_each_is_accepted() -> None:
    story = Story(2)
    story.change(0, 1)
    story.round(0, 1, count=3)
    assert_valid(story.finished())


def test_twice_in_one_view_is_rejected() -> None:
    story = Story(2)
    story.change(0, 1)
    message = story.round(0, 1)[0]
    story.deliver(message, at=(1,))
    assert_invalid(Promise.NO_DUPLICATES, story.finished(), "n1, message n0/0#1", "delivered again")


def test_twice_across_views_is_rejected() -> None:
    story = Story(2)
    story.change(0, 1)
    message = story.round(0, 1)[0]
    story.change(0, 1)
    story.deliver(message, at=(0, 1))
    assert_invalid(
        Promise.NO_DUPLICATES, story.finished(), "n0, message n0/0#1", "n1, message n0/0#1", "after view 12.n0"
    )


def test_another_life_of_the_node_is_another_process() -> None:
    story = Story(2)
    story.change(0, 1)
    story.round(0, 1)
    story.crash(1)
    story.start(1)
    story.change(0, 1)
    story.round(0, 1)
    assert_valid(story.finished())
