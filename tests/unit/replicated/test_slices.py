"""What was kept while a state was on its way is applied in slices; views, pictures and requests come in between."""

from __future__ import annotations

from ordercast.replicated.effects import GoOn, Send, Standing
from tests.unit.replicated.stage import ALL, Stage

SLICE = 1  # one command at a time


def loaded_behind(commands: int, *, joiner: str = "c") -> Stage:
    """The joiner was loaded when so many commands had come behind the picture, and has applied the first of them."""
    stage = Stage(*ALL, slice_size=SLICE)
    stage.view(1, *ALL)
    stage.settle(*ALL)
    stage.submit("a", b"one")
    stage.settle(*ALL)
    stage.start(joiner)
    stage.view(2, *ALL)
    stage.settle(*ALL)
    stage.goes_on = False
    for at in range(commands):
        stage.submit("a", b"%d" % at)
    stage.settle(*ALL)
    stage.transfer(joiner)
    return stage


def go_on(stage: Stage, name: str) -> None:
    stage.carry_out(name, stage.cores[name].go_on())


def asked_to_go_on(stage: Stage, name: str) -> int:
    return sum(isinstance(effect, GoOn) for effect in stage.told[name])


def test_it_applies_one_slice_at_a_time_and_is_behind_until_the_last() -> None:
    stage = loaded_behind(4)
    for applied in range(1, 4):
        assert stage.machines["c"].words == [b"one", *(b"%d" % at for at in range(applied))]
        assert stage.cores["c"].is_behind
        go_on(stage, "c")
    assert stage.words("c") == stage.words("a")
    assert not stage.cores["c"].is_behind
    assert asked_to_go_on(stage, "c") == 3, "once for each slice that was left"


def test_what_comes_meanwhile_is_applied_after_it() -> None:
    stage = loaded_behind(3)
    stage.settle(*ALL)
    stage.submit("b", b"later")
    stage.settle(*ALL)
    assert stage.machines["c"].words == [b"one", b"0"], "not before its turn"
    for _ in range(3):
        go_on(stage, "c")
    assert stage.words("c") == stage.words("a")


def test_its_own_command_is_confirmed_in_its_place() -> None:
    stage = loaded_behind(3)
    request = stage.submit("c", b"mine")
    stage.settle(*ALL)
    assert stage.confirmed("c") == []
    for _ in range(3):
        go_on(stage, "c")
    assert stage.confirmed("c") == [(request, 5)]


def test_a_command_that_may_be_in_there_is_not_sent_again_before_it_was_looked_for() -> None:
    stage = loaded_behind(3)
    stage.settle(*ALL)
    stage.submit("c", b"mine")
    stage.deliver(*ALL)
    stage.view(3, *ALL)
    stage.settle(*ALL)
    stage.goes_on = True
    go_on(stage, "c")
    stage.settle(*ALL)
    sends = [payload for effect in stage.told["c"] if isinstance(effect, Send) for payload in effect.payloads]
    assert sum(payload.endswith(b"mine") for payload in sends) == 1
    assert len(stage.confirmed("c")) == 1
    assert stage.words("c") == stage.words("a")


def test_after_the_signal_nothing_is_applied_and_the_next_view_goes_on() -> None:
    stage = loaded_behind(3)
    stage.settle(*ALL)
    stage.signal(2, *ALL)
    go_on(stage, "c")
    assert stage.machines["c"].words == [b"one", b"0"]
    stage.goes_on = True
    stage.view(3, *ALL)
    stage.settle(*ALL)
    assert stage.last("c").standing is Standing.HOLDER and stage.last("c").is_primary
    assert stage.words("c") == stage.words("a")


def test_a_holder_that_is_behind_takes_the_picture_when_it_has_got_there() -> None:
    """Not of what it has applied so far, nor of what came after the decision."""
    stage = loaded_behind(4, joiner="a")  # a would be the first donor
    stage.settle(*ALL)
    stage.start("c")
    stage.view(3, *ALL)
    stage.deliver(*ALL)
    point = stage.fetches("c")[-1].point
    stage.submit("b", b"after the decision")
    stage.settle(*ALL)
    assert ("a", point) not in stage.pictures and ("b", point) in stage.pictures
    while stage.cores["a"].is_behind:
        go_on(stage, "a")
    late, early = stage.pictures["a", point], stage.pictures["b", point]
    assert (late.preface, list(late.frozen.pieces())) == (early.preface, list(early.frozen.pieces()))
    stage.goes_on = True
    stage.transfer("c")
    stage.settle(*ALL)
    assert stage.words("c") == stage.words("a") == stage.words("b")
    assert not stage.pictures, "nobody needs it any more"


def test_a_picture_that_nobody_wants_any_more_is_not_taken() -> None:
    stage = loaded_behind(4, joiner="a")
    stage.settle(*ALL)
    stage.start("c")
    stage.view(3, *ALL)
    stage.deliver(*ALL)
    fetch = stage.fetches("c")[-1]
    picture = stage.pictures["b", fetch.point]
    stage.carry_out("c", stage.cores["c"].loaded(fetch.point, picture.preface, picture.frozen.pieces()))
    stage.settle(*ALL)
    while stage.cores["a"].is_behind:
        go_on(stage, "a")
    assert not stage.pictures
    assert stage.words("c") == stage.words("a") == stage.words("b")


def test_a_view_ends_the_picture_that_was_to_be_taken() -> None:
    stage = loaded_behind(9, joiner="a")
    stage.settle(*ALL)
    stage.start("c")
    stage.view(3, *ALL)
    stage.deliver(*ALL)
    stage.goes_on = True
    stage.view(4, "a", "b")
    stage.settle("a", "b")
    go_on(stage, "a")
    assert stage.words("a") == stage.words("b")
    assert not stage.pictures, "there is nobody who wants it"
