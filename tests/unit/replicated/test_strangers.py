"""One name of a group is one structure: whoever comes with another ends, and changes nothing."""

from __future__ import annotations

import pytest

from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.effects import Effect, Reason, Spoilt
from ordercast.replicated.quorum import Majority
from ordercast.replicated.wire import State, decode, encode_state

from .stage import ALL, Stage


def spoilt(effects: list[Effect]) -> list[str]:
    return [str(effect.error) for effect in effects if isinstance(effect, Spoilt)]


def test_one_with_another_structure_ends_and_the_others_go_on_without_it() -> None:
    stage = Stage()
    for name in ("b", "c"):
        stage.start(name, structure="Words")
    stage.start("a", structure="Numbers")
    stage.view(1, *ALL)
    stage.settle(*ALL)
    assert not any(stage.cores[name].is_primary for name in ALL)
    assert spoilt(stage.told["a"]) == []  # nobody has a state, and its name comes first
    for name in ("b", "c"):
        assert spoilt(stage.told[name]) == [
            "a has a Numbers under this name, and here is a Words: give it another name"
        ]


def test_who_has_the_state_stays_whatever_it_is_called() -> None:
    stage = Stage()
    for name in ALL:
        stage.start(name, structure="Words")
    stage.view(1, *ALL)
    stage.submit("b", b"one")
    stage.settle(*ALL)
    stage.start("a", structure="Numbers")
    stage.view(2, *ALL)
    stage.submit("a", b"wrong")
    stage.settle(*ALL)
    assert spoilt(stage.told["a"])[0].startswith("b has a Words under this name, and here is a Numbers")
    assert spoilt(stage.told["b"]) == spoilt(stage.told["c"]) == []
    assert not stage.cores["b"].is_primary
    stage.view(3, "b", "c")
    stage.submit("b", b"two")
    stage.settle("b", "c")
    assert stage.words("b", "c") == [[b"one", b"two"]] * 2


def test_who_decides_by_another_quorum_ends() -> None:
    stage = Stage("a", "b", rule=Majority({"a": 1, "b": 1}))
    stage.rule = Majority({"a": 1, "b": 1, "c": 0})
    stage.start("c")
    stage.view(1, *ALL)
    stage.settle(*ALL)
    assert all(stage.cores[name].is_primary for name in ALL)  # who has no weight may be named or not
    stage.rule = Majority({"c": 1})
    stage.start("c")
    stage.view(2, *ALL)
    stage.settle(*ALL)
    assert spoilt(stage.told["c"])[0].startswith(
        "a has another quorum under this name: give all replicas of it the same"
    )
    assert spoilt(stage.told["a"]) == spoilt(stage.told["b"]) == []


def test_one_that_hangs_is_excluded_and_its_commands_count_for_nothing() -> None:
    stage = Stage()
    for name in ALL:
        stage.start(name, structure="Words")
    stage.view(1, *ALL)
    stage.settle(*ALL)
    stage.start("a", structure="Numbers")
    stage.view(2, *ALL)
    stage.submit("a", b"wrong")
    stage.settle(*ALL)
    stage.carry_out("b", stage.cores["b"].lose_patience())
    stage.settle(*ALL)
    assert stage.last("b").reason is not Reason.VIEW and stage.cores["b"].is_primary
    assert stage.words("b", "c") == [[]] * 2


@pytest.mark.parametrize("structure", ["", "Words"])
def test_who_gives_no_name_is_taken_for_the_same(structure: str) -> None:
    stage = Stage()
    for name, called in zip(ALL, (structure, "Words", ""), strict=True):
        stage.start(name, structure=called)
    stage.view(1, *ALL)
    stage.settle(*ALL)
    assert all(stage.cores[name].is_primary for name in ALL)


@pytest.mark.parametrize("wrong", ["two words", "x" * 65, "\x1b[0m"])
def test_what_is_no_name_is_refused(wrong: str) -> None:
    stage = Stage("a")
    stage.view(1, "a")
    said = decode(stage.queue[0][1])
    assert isinstance(said, State)
    named = said._replace(structure="Words")
    assert decode(encode_state(named)) == named
    with pytest.raises(WireError):
        decode(encode_state(said._replace(structure=wrong)))
    with pytest.raises(UsageError, match="a structure cannot be called"):
        Stage().start("a", structure=wrong)
