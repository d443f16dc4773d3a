"""Members that say nothing: the others exclude them at a place in the order, and whoever was only slow comes back."""

from __future__ import annotations

import pytest

from ordercast.replicated.effects import Reason, Refuse, Send, Standing, Why
from ordercast.replicated.quorum import EverySide, LastMajority, Majority
from ordercast.replicated.wire import Exclude, Force, Loaded, decode, encode_exclude, encode_force, encode_loaded

from .stage import ALL, Stage, begun, view_id

SOME = ("a", "b")


def impatient(stage: Stage, *names: str) -> None:
    for name in names:
        stage.carry_out(name, stage.cores[name].lose_patience())


Words = list[tuple[str, bytes]]


def keep_back(stage: Stage, name: str) -> Words:
    """What this one has said, and nobody hears."""
    kept = [each for each in stage.queue if each[0] == name]
    for each in kept:
        stage.queue.remove(each)
    return kept


def silent() -> tuple[Stage, Words]:
    """c does not say what it has in view 2: its word is kept back."""
    stage = begun()
    stage.view(2, *ALL)
    kept = keep_back(stage, "c")
    stage.settle(*ALL)
    return stage, kept


def test_one_who_never_says_anything_stops_nobody() -> None:
    stage = begun()
    stage.view(2, *ALL, "x", at=ALL)
    stage.settle(*ALL)
    assert stage.cores["a"].awaited == ("x",) and not stage.cores["a"].is_primary
    impatient(stage, "a")
    stage.settle(*ALL)
    assert all(stage.cores[name].is_primary for name in ALL)
    assert stage.last("b").excluded == ("x",) and stage.last("b").holders == ALL
    stage.submit("b", b"two")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two"]] * 3


def test_before_the_place_of_the_word_nobody_is_excluded() -> None:
    stage, _ = silent()
    impatient(stage, "a")
    assert stage.cores["a"].is_deciding and not stage.last("a").excluded


def test_who_is_excluded_has_no_vote() -> None:
    stage = begun()
    stage.view(2, *ALL, at=["a"])
    stage.settle("a")
    impatient(stage, "a")
    stage.settle("a")
    changed = stage.last("a")
    assert changed.reason is Reason.NO_QUORUM and changed.missing == ("b", "c") and changed.excluded == ("b", "c")
    stage.submit("a", b"two")
    assert stage.refused("a") == [Refuse(2, Why.NOT_PRIMARY)]


def test_after_the_signal_nothing_is_refused_for_certain() -> None:
    """Its word that excludes the others comes to a alone, after the signal: b and c may have decided otherwise, with
    the same command before them."""
    stage = begun()
    stage.view(2, *ALL, at=["a"])
    stage.settle("a")
    stage.submit("a", b"two")
    stage.settle("a")
    impatient(stage, "a")
    stage.signal(2, "a")
    stage.settle("a")
    assert stage.last("a").reason is Reason.NO_QUORUM
    assert stage.refused("a") == [Refuse(2, Why.UNCERTAIN)]


def test_who_is_excluded_knows_it_at_the_same_place_and_is_not_current() -> None:
    stage, _ = silent()
    impatient(stage, "a")
    stage.deliver(*ALL)
    assert stage.cores["a"].is_current and stage.cores["b"].is_current
    assert stage.last("c").reason is Reason.EXCLUDED and not stage.cores["c"].is_current
    assert stage.cores["c"].standing is Standing.STALE and not stage.cores["c"].is_primary


def test_who_was_only_slow_is_asked_again_with_all_others() -> None:
    stage, kept = silent()
    impatient(stage, "a", "b")
    stage.settle(*ALL)
    stage.submit("a", b"two")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two"]] * 2 + [[b"one"]]
    stage.queue += kept
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.QUORUM and stage.last("a").holders == SOME
    stage.transfer("c")
    stage.settle(*ALL)
    assert stage.words("c") == [[b"one", b"two"]] and stage.cores["c"].is_current
    assert stage.last("b").holders == ALL and not stage.last("b").excluded
    assert len({stage.cores[name].term for name in ALL}) == 1


def test_who_speaks_just_before_the_place_is_not_excluded() -> None:
    stage, kept = silent()
    stage.queue += kept
    impatient(stage, "a", "b")
    stage.settle(*ALL)
    assert all(stage.cores[name].is_current for name in ALL) and stage.last("c").excluded == ()


def test_what_the_excluded_one_submits_waits_until_it_is_back_and_is_applied_once() -> None:
    stage, kept = silent()
    impatient(stage, "a")
    stage.settle(*ALL)
    assert stage.submit("c", b"two") == 1
    stage.settle(*ALL)
    assert stage.words("a") == [[b"one"]] and stage.confirmed("c") == [] and stage.refused("c") == []
    stage.queue += kept
    stage.settle(*ALL)
    stage.transfer("c")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two"]] * 3 and [request for request, _ in stage.confirmed("c")] == [1]


def test_what_was_sent_before_its_sender_is_excluded_is_not_placed() -> None:
    stage = begun()
    stage.view(2, *ALL)
    keep_back(stage, "c")
    stage.submit("c", b"two")
    stage.settle(*ALL)
    impatient(stage, "b")
    stage.settle(*ALL)
    assert stage.words(*SOME) == [[b"one"]] * 2


def test_a_silent_one_among_several_stays_excluded_when_another_speaks() -> None:
    stage = begun()
    stage.view(2, *ALL, "x", at=ALL)
    kept = keep_back(stage, "c")
    stage.settle(*ALL)
    impatient(stage, "a")
    stage.settle(*ALL)
    assert stage.last("a").excluded == ("c", "x")
    stage.queue += kept
    stage.settle(*ALL)
    stage.transfer("c")
    stage.settle(*ALL)
    assert stage.last("a").excluded == ("x",) and stage.last("a").holders == ALL


def test_an_old_word_does_not_count_in_a_new_round() -> None:
    stage, kept = silent()
    impatient(stage, "a")
    stage.settle(*ALL)
    stage.queue += kept
    stage.queue += kept  # once more, in the round after
    stage.settle(*ALL)
    stage.transfer("c")
    stage.settle(*ALL)
    assert stage.last("a").holders == ALL and stage.last("a").round == 2  # the era was taken up in one of its own


def test_after_the_signal_a_new_round_is_never_live() -> None:
    stage, kept = silent()
    impatient(stage, "a")
    stage.settle(*ALL)
    stage.signal(2, *SOME)
    stage.queue += kept
    stage.settle(*SOME)
    assert stage.last("a").reason is Reason.SPOKEN
    assert not any(stage.cores[name].is_primary for name in SOME) and not stage.queue
    stage.view(3, *SOME)
    stage.settle(*SOME)
    assert all(stage.cores[name].is_current for name in SOME)


@pytest.mark.parametrize("sender", ["x", "c"], ids=["a stranger", "one who has not spoken"])
def test_only_who_has_spoken_may_exclude(sender: str) -> None:
    stage, _ = silent()
    stage.queue.append((sender, encode_exclude(Exclude(view_id(2), 0, ("a", "b", "c")))))
    stage.settle(*ALL)
    assert all(stage.cores[name].is_deciding and not stage.last(name).excluded for name in ALL)


def test_who_has_spoken_cannot_be_excluded() -> None:
    stage, _ = silent()
    stage.queue.append(("a", encode_exclude(Exclude(view_id(2), 0, ("b",)))))
    stage.settle(*ALL)
    assert stage.last("b").excluded == () and stage.cores["a"].is_deciding


def test_an_exclusion_of_an_earlier_round_does_not_count() -> None:
    stage, kept = silent()
    impatient(stage, "a")
    stage.settle(*ALL)
    stage.queue += kept
    stage.deliver(*ALL, count=1)  # a new round begins
    stage.deliver(*ALL, count=1)
    (spoken,) = set(ALL) - set(stage.cores["a"].awaited)
    stage.queue.appendleft((spoken, encode_exclude(Exclude(view_id(2), 0, ALL))))
    stage.deliver(*ALL, count=1)
    assert len(stage.cores["a"].awaited) == 2


def test_who_is_excluded_keeps_no_commands() -> None:
    stage, _ = silent()
    impatient(stage, "a")
    stage.settle(*ALL)
    stage.submit("a", b"two")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two"]] * 2 + [[b"one"]] and stage.cores["c"].pending == 0


def test_who_is_excluded_is_not_loaded_by_its_own_word() -> None:
    stage, _ = silent()
    impatient(stage, "a")
    stage.settle(*ALL)
    stage.queue.append(("c", encode_loaded(Loaded(view_id(2), stage.cores["c"].me.life, 0))))
    stage.settle(*ALL)
    assert stage.last("a").holders == SOME


def test_after_the_signal_nobody_is_excluded() -> None:
    stage, _ = silent()
    stage.signal(2, *SOME)
    assert stage.cores["a"].awaited == ("c",) and stage.cores["a"].lose_patience() == []


def test_who_was_excluded_and_then_cut_off_has_missed_nothing_if_all_come_back() -> None:
    """Where the one who went on was no quorum, nothing was confirmed without them."""
    stage = begun()
    stage.view(2, *ALL)
    for name in ("b", "c"):
        keep_back(stage, name)
    stage.settle(*ALL)
    impatient(stage, "a")
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.NO_QUORUM
    stage.cut_off(*ALL)
    stage.view(3, *ALL)
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.QUORUM and stage.last("a").holders == ALL


def test_nobody_begins_without_one_who_must_be_there_though_it_is_silent() -> None:
    stage = Stage(*ALL)
    stage.view(1, *ALL, at=SOME)
    stage.settle(*SOME)
    impatient(stage, "a")
    stage.settle(*SOME)
    assert stage.last("a").reason is Reason.NO_STATE and stage.last("a").missing == ("c",)


def test_under_every_side_a_silent_one_is_another_side() -> None:
    stage = begun(EverySide(lambda sides: None))
    stage.view(2, *ALL, at=SOME)
    stage.settle(*SOME)
    impatient(stage, "b")
    stage.settle(*SOME)
    stage.submit("a", b"two")
    stage.settle(*SOME)
    assert stage.words(*SOME) == [[b"one", b"two"]] * 2


def apart() -> Stage:
    """Two sides under `EverySide`, a and b with one command more each than c, which meet in view 4."""
    stage = begun(EverySide(lambda sides: None))
    stage.view(2, *SOME)
    stage.settle(*SOME)
    stage.submit("a", b"two")
    stage.settle(*SOME)
    stage.view(3, "c")
    stage.settle("c")
    stage.submit("c", b"three")
    stage.settle("c")
    stage.view(4, *ALL)
    stage.settle(*ALL)
    assert stage.last("b").reason is Reason.SIDES
    return stage


def test_who_hangs_while_sides_are_united_is_excluded_when_it_does_not_answer() -> None:
    stage = apart()
    impatient(stage, "a")  # asks who is still there
    stage.deliver(*SOME, count=1)
    stage.settle(*SOME)  # c does not answer
    impatient(stage, "a")
    assert not stage.queue, "who is asked has a whole time to answer"
    impatient(stage, "a")
    stage.settle(*SOME)
    assert stage.last("a").reason is Reason.ONE_SIDE and stage.last("a").excluded == ("c",)
    stage.submit("b", b"four")
    stage.settle(*SOME)
    assert stage.words(*SOME) == [[b"one", b"two", b"four"]] * 2


def test_who_answers_while_sides_are_united_is_waited_for() -> None:
    stage = apart()
    for _ in range(9):
        impatient(stage, *ALL)
        stage.settle(*ALL)
    assert all(stage.last(name).reason is Reason.SIDES and not stage.last(name).excluded for name in ALL)
    uniter = next(name for name in ALL if stage.fetches(name))
    stage.transfer(uniter)
    stage.settle(*ALL)
    assert stage.last("b").reason is Reason.UNITED


def test_who_held_the_state_last_goes_on_without_a_silent_one() -> None:
    rule = LastMajority(frozenset(ALL))
    stage = begun(rule)
    stage.view(2, *ALL, at=SOME)
    stage.settle(*SOME)
    impatient(stage, "b")
    stage.settle(*SOME)
    assert stage.cores["a"].is_current
    stage.view(3, "c", at=["c"])
    stage.settle("c")
    assert stage.last("c").reason is Reason.NO_QUORUM


def test_patience_says_nothing_when_nobody_is_awaited() -> None:
    stage = begun()
    assert stage.cores["a"].lose_patience() == []
    stage.view(2, *ALL)
    assert stage.cores["a"].lose_patience() == []  # its own word is not even out
    stage.settle(*ALL)
    assert stage.cores["a"].lose_patience() == []
    stage.cut_off("a")
    assert stage.cores["a"].lose_patience() == []


def test_what_is_said_names_the_silent_ones() -> None:
    stage, _ = silent()
    (effect,) = stage.cores["a"].lose_patience()
    assert isinstance(effect, Send) and decode(*effect.payloads) == Exclude(view_id(2), 0, ("c",))


# Who may speak


def test_force_of_one_who_is_no_member_is_counted_and_ignored() -> None:
    stage = begun()
    stage.view(2, "a")
    stage.settle("a")
    stage.queue.append(("mallory", encode_force(Force(view_id(2)))))
    stage.settle("a")
    assert stage.last("a").reason is Reason.NO_QUORUM and stage.cores["a"].foreign == 1


def test_force_of_one_who_is_excluded_is_ignored() -> None:
    stage = begun()
    stage.view(2, "a", "x", at=["a"])
    stage.settle("a")
    impatient(stage, "a")
    stage.queue.append(("x", encode_force(Force(view_id(2)))))
    stage.settle("a")
    assert stage.last("a").reason is Reason.NO_QUORUM
    stage.carry_out("a", stage.cores["a"].force())
    stage.settle("a")
    assert stage.last("a").reason is Reason.FORCED and stage.cores["a"].is_current


def test_where_nobody_has_a_state_force_begins_with_those_who_are_here() -> None:
    stage = Stage(*ALL)
    stage.view(1, *SOME)
    stage.settle(*SOME)
    stage.carry_out("a", stage.cores["a"].force())
    stage.settle(*SOME)
    assert stage.last("b").reason is Reason.FORCED and stage.last("b").holders == SOME
    stage.submit("b", b"one")
    stage.settle(*SOME)
    stage.view(2, *ALL)
    stage.settle(*ALL)
    stage.transfer("c")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one"]] * 3


# Sentences


def test_a_beginning_that_waits_names_who_is_missing() -> None:
    stage = Stage(*ALL)
    stage.view(1, *SOME)
    stage.settle(*SOME)
    expected = (
        "nobody has a state; waiting for c: all who must be there at a beginning are a, b, c; force() begins without"
    )
    assert stage.last("a").sentence == expected


def test_a_founder_in_a_later_life_is_said_to_be_here() -> None:
    stage = Stage("a", "b", rule=LastMajority(frozenset(SOME)))
    stage.start("b", founding=False)
    stage.view(1, *SOME)
    stage.settle(*SOME)
    assert "waiting for b (it is here, but not in its first life): all who" in stage.last("a").sentence


def test_a_quorum_that_is_missing_names_whose() -> None:
    stage = begun(LastMajority(frozenset(ALL)))
    stage.view(2, "b")
    stage.settle("b")
    assert stage.last("b").missing == ("a", "c")
    assert "are no quorum; waiting for a, c; force() goes on without" in stage.last("b").sentence


def test_a_round_names_those_who_were_not_heard() -> None:
    stage = begun()
    stage.view(2, *ALL)
    assert stage.last("a").sentence.endswith("not heard yet: a, b, c")


def test_one_without_a_weight_need_not_be_there() -> None:
    assert Majority({"a": 1, "b": 0}).needed() == ("a",)
