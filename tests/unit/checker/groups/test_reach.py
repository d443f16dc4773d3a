from __future__ import annotations

from ordercast.checker.verdict import Outcome
from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, NO_SEQ, Position
from ordercast.model.promises import GroupPromise
from ordercast.trace.records import Installed

from .stories import RING, Story, assert_invalid, assert_valid, verdicts_on


def _pair(kind: ConfigurationKind, daemons: str) -> Story:
    """a and b, in a configuration of the daemons of these."""
    story = Story("a", "b")
    members = tuple(story.ids[name].process for name in daemons)
    position = Position(RING, NO_SEQ, 0)
    view = Configuration(kind, RING, members, NO_CONFIGURATION, members, ChangeReason.STARTED, position)
    story.events.append(Installed(story.now, members[0], view))
    return story


def test_members_in_reach_are_accepted_and_lost_ones_in_a_transitional_configuration() -> None:
    story = _pair(ConfigurationKind.REGULAR, "ab")
    story.join("g", "a")
    story.join("g", "b")
    assert_valid(story.finished())
    story = _pair(ConfigurationKind.TRANSITIONAL, "a")
    story.join("g", "a")
    story.view("g", "a", along="a", members="ab")
    assert verdicts_on(story.finished())[GroupPromise.REACH].outcome is Outcome.VALID


def test_a_member_at_a_daemon_out_of_reach_is_rejected() -> None:
    story = _pair(ConfigurationKind.REGULAR, "a")
    story.join("g", "a")
    story.view("g", "a", along="a", members="ab")
    assert_invalid(GroupPromise.REACH, story.finished(), "b@n1 is a member", "out of reach")


def test_a_companion_at_a_daemon_out_of_reach_is_rejected() -> None:
    story = _pair(ConfigurationKind.TRANSITIONAL, "a")
    story.join("g", "a")
    story.view("g", "a", along="ab", members="ab")
    assert_invalid(GroupPromise.REACH, story.finished(), "b@n1 came along", "out of reach")
