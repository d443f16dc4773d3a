"""The application raises while it changes the copy: what the core makes of a copy that may be anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.disk.folder import DiskFolder
from ordercast.model.errors import WireError
from ordercast.model.events import Reason as WhyView
from ordercast.model.events import View
from ordercast.replicated.core import Core
from ordercast.replicated.effects import Effect, Reason, Refuse, Send, Spoilt, Standing, Why
from ordercast.replicated.journal import Journal
from ordercast.replicated.machine import Origin, SideState
from ordercast.replicated.quorum import EverySide, LastMajority, Majority, Rule
from ordercast.replicated.stance import Remembered
from ordercast.replicated.wire import Durable, State, decode, encode_durable, encode_state

from .stage import ALL, EQUAL, Stage, Words, begun, view_id


def fail(stage: Stage, name: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it applies from now on, it does half of it and raises."""

    def apply(command: bytes, origin: Origin) -> bytes:
        stage.machines[name].words.append(b"half of it")
        raise error

    monkeypatch.setattr(stage.machines[name], "apply", apply)


def spoil(stage: Stage, name: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a command of another, which only this one cannot apply."""
    fail(stage, name, error, monkeypatch)
    stage.submit("a", b"two")
    stage.settle(*stage.cores)


def spoilt(stage: Stage, name: str) -> list[Exception]:
    return [effect.error for effect in stage.told[name] if isinstance(effect, Spoilt)]


@pytest.mark.parametrize("error", [ValueError("no"), WireError("no")])
def test_it_is_told_once_and_nothing_more_is_applied(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun()
    spoil(stage, "c", error, monkeypatch)
    stage.submit("a", b"three")
    stage.settle(*ALL)
    assert spoilt(stage, "c") == [error] and stage.words("c") == [[b"one", b"half of it"]]
    assert stage.words("a", "b") == [[b"one", b"two", b"three"]] * 2
    assert stage.cores["c"].standing is Standing.FRESH and stage.cores["c"].malformed == 0


def test_what_was_applied_before_is_confirmed_and_nothing_after(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun()
    right = stage.machines["c"].apply

    def apply(command: bytes, origin: Origin) -> bytes:
        if command == b"bad":
            raise ValueError("no")
        return right(command, origin)

    monkeypatch.setattr(stage.machines["c"], "apply", apply)
    stage.signal(1, *ALL)
    for word in (b"good", b"bad", b"later"):
        stage.submit("c", word)
    stage.settle(*ALL)
    stage.view(2, *ALL)
    stage.settle(*ALL)  # all three at once
    assert stage.words("a") == [[b"one", b"good", b"bad", b"later"]]
    assert stage.confirmed("c") == [(1, 2)] and len(spoilt(stage, "c")) == 1
    number = stage.submit("c", b"more")
    assert stage.refused("c") == [Refuse(number, Why.NOT_PRIMARY)] and not stage.queue


@pytest.mark.parametrize("rule", [EQUAL, LastMajority(frozenset(ALL))])
def test_it_has_no_vote(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun(rule)
    stage.start("d", founding=False)
    stage.view(2, *ALL, "d")
    stage.settle(*ALL, "d")
    spoil(stage, "c", ValueError("no"), monkeypatch)
    stage.transfer("d")  # whoever holds the state now has a vote: but not c
    stage.settle(*ALL, "d")
    stage.view(3, "b", "c")
    stage.settle("b", "c")
    assert stage.last("b").reason is Reason.NO_QUORUM and stage.last("b").holders == ("b",)


def test_nobody_gets_it_and_it_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun()
    stage.start("d")
    stage.view(2, *ALL, "d")
    stage.settle(*ALL, "d")
    assert ("c", stage.fetches("d")[-1].point) in stage.pictures
    spoil(stage, "c", ValueError("no"), monkeypatch)
    assert "c" not in {name for name, _ in stage.pictures}
    stage.view(3, "c", "d")
    stage.settle("c", "d")
    assert stage.last("d").reason is Reason.NO_STATE
    stage.view(4, *ALL)
    stage.settle(*ALL)
    assert stage.last("a").holders == ("a", "b") and stage.cores["a"].is_primary
    assert not stage.fetches("c") and stage.cores["c"].standing is Standing.FRESH


def test_it_does_not_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others have lost everything, and do; what is there of it says so at the next view."""
    stage = begun()
    spoil(stage, "c", ValueError("no"), monkeypatch)
    monkeypatch.undo()
    stage.start("a")
    stage.start("b")
    stage.view(2, *ALL)
    stage.settle(*ALL)
    stage.submit("a", b"new")
    stage.settle(*ALL)
    assert stage.words("a", "b") == [[b"new"]] * 2 and stage.cores["c"].standing is Standing.FRESH
    stage.view(3, "a", "c")
    stage.settle("a", "c")
    assert stage.last("a").reason is Reason.NO_QUORUM


def test_founders_do_not_begin_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun(LastMajority(frozenset(ALL)))
    spoil(stage, "c", ValueError("no"), monkeypatch)
    stage.start("a")
    stage.start("b")
    stage.view(2, *ALL)
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.NO_STATE


def test_a_state_that_came_is_spoilt_by_what_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun()
    stage.start("c", founding=False)
    stage.submit("c", b"mine")  # sent when it has the state
    stage.view(2, *ALL)
    stage.settle(*ALL)
    spoil(stage, "c", ValueError("no"), monkeypatch)  # kept, until the state is here
    assert not spoilt(stage, "c")
    stage.transfer("c")
    assert len(spoilt(stage, "c")) == 1 and not stage.queue
    assert stage.last("a").holders == ("a", "b")


def test_what_was_held_spoils_it_before_it_keeps_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun()
    fail(stage, "a", ValueError("no"), monkeypatch)
    stage.submit("b", b"two")
    stage.signal(1, *ALL)
    stage.deliver(*ALL)
    stage.start("d")
    stage.view(2, *ALL, "d")
    stage.settle(*ALL, "d")
    assert len(spoilt(stage, "a")) == 1
    assert {name for name, _ in stage.pictures} == {"b", "c"} and stage.cores["b"].is_primary


def test_what_was_held_spoils_a_side_before_it_is_united(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun(EverySide(lambda sides: sides[0].state))
    for number, members in ((2, ("a", "b")), (20, ("c",))):
        stage.view(number, *members)
        stage.settle(*members)
    stage.submit("a", b"two")
    stage.settle("a", "b")
    fail(stage, "c", ValueError("no"), monkeypatch)
    stage.submit("c", b"three")
    stage.signal(20, "c")
    stage.settle("c")
    stage.view(30, *ALL)
    stage.settle(*ALL)
    assert len(spoilt(stage, "c")) == 1 and not stage.fetches("c")
    stage.view(40, *ALL)
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.ONE_SIDE and stage.last("a").holders == ("a", "b")


@pytest.mark.parametrize("error", [ValueError("no"), WireError("no")])
def test_who_cannot_unite_the_sides_has_none(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun(EverySide(lambda sides: sides[0].state))

    def unite(sides: tuple[SideState, ...]) -> None:
        raise error

    monkeypatch.setattr(stage.machines["a"], "unite", unite)
    for number, members, words in ((2, ("a", "b"), (b"two", b"three")), (20, ("c",), (b"four",))):
        stage.view(number, *members)
        stage.settle(*members)
        for word in words:
            stage.submit(members[-1], word)
        stage.settle(*members)
    stage.view(30, *ALL)
    stage.settle(*ALL)
    stage.transfer("a")
    stage.settle(*ALL)
    assert spoilt(stage, "a") == [error]
    stage.view(40, *ALL)  # b has what was on its side, and unites now
    stage.settle(*ALL)
    stage.transfer("b")
    stage.settle(*ALL)
    assert stage.words("b") == [[b"four", b"one", b"three", b"two"]]
    stage.transfer("c")
    stage.settle(*ALL)
    assert stage.last("b").is_primary and stage.last("b").holders == ("b", "c")


# Where a journal is kept


class Diary:
    """One replica with a journal, which is written at once. What it sends comes back to it."""

    def __init__(self, folder: Path, rule: Rule, name: str = "a") -> None:
        self.folder, self.name = folder, name
        self.machine, self.told = Words(), list[Effect]()
        self.journal = Journal(DiskFolder(folder), "g", name, 77)
        self.core = Core(name, 1, self.machine, rule, remembered=self.journal.remembered)
        self._writes = 0

    def view(self, number: int, *members: str) -> None:
        self.carry_out(self.core.on_view(View("g", members, (), WhyView.NETWORK, (), view_id(number))))

    def hear(self, sender: str, *payloads: bytes) -> None:
        self.carry_out(self.core.on_messages(sender, payloads))

    def carry_out(self, effects: list[Effect]) -> None:
        if notes := self.core.notes():
            self._writes += 1
            self.journal.append(self._writes, notes)
            self.journal.sync()
        self.told += effects
        for effect in effects:
            if isinstance(effect, Send):
                self.hear(self.name, *effect.payloads)
        if self.core.claim is not None and any(isinstance(effect, Send) for effect in effects):
            self.hear(self.name, encode_durable(Durable(*self.core.claim)))

    @property
    def remembered(self) -> Remembered:
        return Journal(DiskFolder(self.folder), "g", self.name, 78).remembered

    @property
    def spoilt(self) -> list[Exception]:
        return [effect.error for effect in self.told if isinstance(effect, Spoilt)]


def alone(folder: Path) -> Diary:
    """It is primary, with one command applied and remembered."""
    diary = Diary(folder, Majority({"a": 1}))
    diary.view(1, "a")
    diary.carry_out(diary.core.submit(b"one")[1])
    assert diary.machine.words == [b"one"]
    return diary


def test_its_journal_forgets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    diary = alone(tmp_path)

    def apply(command: bytes, origin: Origin) -> bytes:
        raise ValueError("no")

    monkeypatch.setattr(diary.machine, "apply", apply)
    diary.carry_out(diary.core.submit(b"two")[1])
    assert len(diary.spoilt) == 1
    diary.view(2, "a")
    _, stance, _, held = diary.remembered
    assert [each.payload[-3:] for each in held] == [b"one", b"two"]
    assert stance is not None and stance.voter and stance.rank is not None and stance.rank.length == 2


def test_a_stranger_costs_no_journal_anything(tmp_path: Path) -> None:
    diary = alone(tmp_path)
    before = diary.remembered
    diary.view(2, "0", "a")
    (mine,) = (decode(payload) for payload in last_send(diary).payloads)
    assert isinstance(mine, State)
    diary.hear("0", encode_state(mine._replace(life=2, memory=79, quorum=mine.quorum ^ 1)))
    assert len(diary.spoilt) == 1
    diary.view(3, "a")
    after = diary.remembered
    assert after.held == before.held and len(after.held) == 1
    assert after.stance is not None and before.stance is not None and after.stance.rank == before.stance.rank


def last_send(diary: Diary) -> Send:
    return next(effect for effect in reversed(diary.told) if isinstance(effect, Send))


def test_a_journal_keeps_its_state_when_another_that_came_is_spoilt_at_once(tmp_path: Path) -> None:
    """No picture is taken of what is there then."""
    diary = alone(tmp_path)
    diary.core._note_replaced()
    diary.core._spoil(ValueError("no"), [])
    assert not diary.core.was_replaced() and diary.core.notes() == []
