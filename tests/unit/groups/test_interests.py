"""When a daemon wants a group, and which joins may be submitted."""

from __future__ import annotations

from ordercast.groups.interests import Interests
from ordercast.groups.table import Table
from ordercast.model.events import ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId, Seq
from ordercast.model.inputs import Interest

ME, OTHER = ProcessId(1), ProcessId(2)
SESSIONS = {"a@n1": 1, "b@n1": 2}


class Daemon:
    """A table with the interests that follow from it."""

    def __init__(self) -> None:
        self.table = Table(ME, SESSIONS)
        self.interests = Interests("n1", self.table)
        self.interests.changes()
        self._seq = 0

    def told(self) -> list[str]:
        """What the engine is told: +g or -g."""
        return [f"{'+' if change.is_wanted else '-'}{change.group}" for change in self.interests.changes()]

    def join(self, name: str, group: str, daemon: ProcessId = ME) -> None:
        """It comes in order."""
        self.table.join(name, daemon, group, self._at(), None)
        if daemon == ME:
            self.interests.came((group,), is_join=True)

    def leave(self, name: str, group: str) -> None:
        self.table.leave(name, ME, group, self._at())
        self.interests.came((group,), is_join=False)

    def _at(self) -> ViewId:
        self._seq += 1
        ring = ConfigurationId(4, ME)
        return ViewId(ring, Position(ring, Seq(self._seq), 0))


def test_the_daemon_itself_is_wanted_from_the_beginning() -> None:
    assert Interests("n1", Table(ME, SESSIONS)).changes() == [Interest("@n1", is_wanted=True)]


def test_the_first_request_to_join_makes_a_group_wanted_and_waits_for_the_engine() -> None:
    daemon = Daemon()
    daemon.interests.ask(("g",))
    assert not daemon.interests.is_ready(("g",))
    assert daemon.told() == ["+g"]
    assert not daemon.interests.is_ready(("g",))
    daemon.interests.subscribed(("g",))
    assert daemon.interests.is_ready(("g",))


def test_a_join_of_several_groups_waits_for_all() -> None:
    daemon = Daemon()
    daemon.interests.ask(("g", "h"))
    daemon.interests.subscribed(("g",))
    assert not daemon.interests.is_ready(("g", "h"))
    daemon.interests.subscribed(("h",))
    assert daemon.interests.is_ready(("g", "h"))


def test_messages_and_leaves_wait_for_nothing() -> None:
    assert Daemon().interests.is_ready(())


def test_a_second_join_of_a_wanted_group_says_nothing() -> None:
    daemon = Daemon()
    daemon.interests.ask(("g",))
    daemon.interests.ask(("g",))
    assert daemon.told() == ["+g"]


def test_the_last_leave_that_comes_gives_the_group_up() -> None:
    daemon = Daemon()
    for name in ("a@n1", "b@n1"):
        daemon.interests.ask(("g",))
        daemon.join(name, "g")
    daemon.join("c@n2", "g", OTHER)
    assert daemon.told() == ["+g"]
    daemon.leave("a@n1", "g")
    assert daemon.told() == []
    daemon.leave("b@n1", "g")
    assert daemon.told() == ["-g"]
    assert not daemon.interests.is_ready(("g",))


def test_a_join_on_its_way_keeps_the_group_wanted() -> None:
    daemon = Daemon()
    daemon.interests.ask(("g",))
    daemon.join("a@n1", "g")
    daemon.interests.ask(("g",))  # by another client
    daemon.leave("a@n1", "g")
    assert daemon.told() == ["+g"]
    daemon.join("b@n1", "g")
    daemon.leave("b@n1", "g")
    assert daemon.told() == ["-g"]


def test_a_join_that_is_never_submitted_gives_up_what_only_it_wanted() -> None:
    daemon = Daemon()
    daemon.interests.ask(("g",))
    daemon.interests.came(("g",), is_join=True)
    assert daemon.told() == ["+g", "-g"]


def test_a_group_that_is_wanted_again_waits_again() -> None:
    daemon = Daemon()
    daemon.interests.ask(("g",))
    daemon.interests.subscribed(("g",))
    daemon.join("a@n1", "g")
    daemon.leave("a@n1", "g")
    daemon.interests.ask(("g",))
    assert daemon.told() == ["+g", "-g", "+g"]
    assert not daemon.interests.is_ready(("g",))


def test_an_answer_for_a_group_that_nobody_wants_is_ignored() -> None:
    daemon = Daemon()
    daemon.interests.subscribed(("g",))
    assert not daemon.interests.is_ready(("g",))


def test_what_comes_of_a_group_that_was_never_wanted_changes_nothing() -> None:
    daemon = Daemon()
    daemon.leave("a@n1", "nowhere")
    assert daemon.told() == []
