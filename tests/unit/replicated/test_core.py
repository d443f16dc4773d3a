"""Conversations with a few cores: what each is given, and what it does."""

from __future__ import annotations

import pytest

from ordercast.model.errors import UsageError, WireError
from ordercast.replicated.core import Core
from ordercast.replicated.effects import Reason, Refuse, Standing, StopFetching, Why
from ordercast.replicated.quorum import LastMajority, Rule
from ordercast.replicated.sessions import Sessions
from ordercast.replicated.track import EMPTY
from ordercast.replicated.wire import Preface, encode_preface

from .stage import ALL, EQUAL, Stage, Words, begun


def test_nobody_begins_before_all_are_there() -> None:
    stage = Stage(*ALL)
    stage.view(1, "a", "b")
    stage.settle("a", "b")
    assert stage.last("a").reason is Reason.NO_STATE
    assert stage.refused("a") == [] and stage.submit("a", b"x") == 1
    assert stage.refused("a") == [Refuse(1, Why.NOT_PRIMARY)]
    stage.view(2, *ALL)
    stage.settle(*ALL)
    assert stage.last("c").reason is Reason.BOOTSTRAP and stage.cores["c"].is_primary


def test_a_command_is_applied_everywhere_and_confirmed_to_its_sender() -> None:
    stage = begun()
    assert stage.words(*ALL) == [[b"one"]] * 3
    assert stage.confirmed("a") == [(1, 1)] and stage.confirmed("b") == []


def test_what_comes_before_the_decision_is_applied_at_the_decision() -> None:
    stage = begun()
    stage.view(2, *ALL)
    stage.submit("b", b"two")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two"]] * 3 and stage.confirmed("b") == [(1, 2)]


def test_after_the_signal_commands_are_held_until_the_next_decision() -> None:
    stage = begun()
    stage.submit("a", b"two")
    stage.signal(1, "a", "b")
    stage.deliver("a", "b")
    assert stage.words("a", "b") == [[b"one"]] * 2 and stage.cores["a"].held == 1
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    assert stage.words("a", "b") == [[b"one", b"two"]] * 2
    assert stage.confirmed("a") == [(1, 1), (2, 2)]


def test_a_minority_refuses_what_comes_and_keeps_what_is_held() -> None:
    stage = begun()
    stage.submit("c", b"two")
    stage.signal(1, "c")
    stage.deliver("c")
    stage.view(2, "c")
    stage.submit("c", b"three")
    stage.settle("c")
    assert stage.refused("c") == [Refuse(2, Why.NOT_PRIMARY)]
    assert stage.cores["c"].held == 1 and stage.words("c") == [[b"one"]]


def test_a_replica_that_comes_back_gets_the_state_and_what_came_meanwhile() -> None:
    stage = begun()
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    stage.submit("a", b"two")
    stage.settle("a", "b")
    stage.view(3, *ALL)
    stage.settle(*ALL)
    assert stage.cores["a"].is_primary and stage.cores["c"].standing is Standing.STALE
    stage.submit("b", b"three")
    stage.settle(*ALL)
    assert stage.words("c") == [[b"one"]]
    stage.transfer("c")
    assert stage.words("c") == [[b"one", b"two", b"three"]]
    stage.settle(*ALL)
    assert stage.last("a").holders == ALL and not stage.pictures


def test_a_transfer_goes_on_in_another_view_with_another_donor() -> None:
    stage = begun()
    stage.start("d")
    stage.view(2, *ALL, "d")
    stage.settle(*ALL, "d")
    stage.submit("b", b"two")
    stage.settle(*ALL, "d")
    assert [donor.name for donor in stage.fetches("d")[-1].donors] == ["a", "b", "c"]
    stage.view(3, "b", "c", "d")
    stage.settle("b", "c", "d")
    first, second = stage.fetches("d")
    assert first.point == second.point and [donor.name for donor in second.donors] == ["b", "c"]
    stage.transfer("d")
    stage.settle("b", "c", "d")
    assert stage.words("d") == [[b"one", b"two"]] and stage.last("b").holders == ("b", "c", "d")
    assert [key[0] for key in stage.pictures] == ["a"]  # who is gone


def test_a_picture_that_comes_while_a_round_is_open_waits_for_its_end() -> None:
    stage = begun()
    stage.start("d")
    stage.view(2, *ALL, "d")
    stage.settle(*ALL, "d")
    fetch = stage.fetches("d")[-1]
    picture = stage.pictures["a", fetch.point]
    stage.view(3, *ALL, "d")
    stage.carry_out("d", stage.cores["d"].loaded(fetch.point, picture.preface, list(picture.frozen.pieces())))
    assert stage.words("d") == [[]]
    stage.settle(*ALL, "d")
    assert stage.words("d") == [[b"one"]] and stage.last("a").holders == (*ALL, "d")
    assert len(stage.fetches("d")) == 1


def test_a_picture_that_is_not_the_one_asked_for_changes_nothing() -> None:
    stage = begun()
    stage.start("d")
    stage.view(2, *ALL, "d")
    stage.settle(*ALL, "d")
    fetch = stage.fetches("d")[-1]
    with pytest.raises(WireError):
        stage.cores["d"].loaded(fetch.point, b"nonsense", [])
    with pytest.raises(WireError):
        stage.cores["d"].loaded(fetch.point, encode_preface(Preface(0, EMPTY, Sessions(), ())), [])
    assert stage.words("d") == [[]]
    stage.transfer("d")
    assert stage.cores["d"].standing is Standing.HOLDER


def test_held_commands_travel_with_the_picture() -> None:
    """A side that is no quorum, one of which holds a command that the other has not."""
    stage = begun()
    stage.submit("a", b"two")
    stage.signal(1, "a")
    stage.deliver("a")
    stage.start("b", founding=False)
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    assert stage.last("a").reason is Reason.NO_QUORUM
    stage.transfer("b")
    assert stage.words("b") == [[b"one"]] and stage.cores["b"].held == 1
    stage.settle("a", "b")
    assert not stage.cores["a"].is_primary  # b has forgotten what it knew


def test_a_stale_voter_that_is_loaded_makes_a_quorum() -> None:
    stage = begun()
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    stage.submit("a", b"two")
    stage.settle("a", "b")
    stage.view(3, "b", "c")
    stage.settle("b", "c")
    assert stage.last("b").reason is Reason.NO_QUORUM
    stage.transfer("c")
    stage.settle("b", "c")
    assert stage.last("b").reason is Reason.LOADED and stage.cores["c"].is_primary
    stage.submit("c", b"three")
    stage.settle("b", "c")
    assert stage.words("b", "c") == [[b"one", b"two", b"three"]] * 2


def test_a_request_is_not_lost_behind_one_that_was_refused_before_there_was_a_quorum() -> None:
    """It names that one, and it was under way when the replica was loaded with which there is a quorum."""
    stage = begun()
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    stage.submit("a", b"two")
    stage.settle("a", "b")
    stage.view(3, "b", "c")
    stage.submit("b", b"refused")
    stage.submit("b", b"three")
    stage.submit("b", b"four")
    late = [stage.queue.pop() for _ in range(2)]
    stage.settle("b", "c")
    assert [refused.request for refused in stage.refused("b")] == [1]
    stage.transfer("c")
    stage.queue.extend(reversed(late))
    stage.deliver("b", "c", count=2)
    stage.submit("b", b"five")
    stage.settle("b", "c")
    assert stage.words("b", "c") == [[b"one", b"two", b"three", b"four", b"five"]] * 2
    assert [request for request, _ in stage.confirmed("b")] == [2, 3, 4]


def test_a_gap_in_the_stream_costs_the_vote() -> None:
    stage = begun()
    stage.carry_out("b", stage.cores["b"].cut_off("b"))
    assert stage.last("b").reason is Reason.CUT_OFF
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    assert stage.last("a").reason is Reason.NO_QUORUM
    stage.view(3, "a", "b", "c")
    stage.settle(*ALL)
    assert stage.cores["a"].is_primary and stage.last("b").standing is Standing.HOLDER


def test_a_decision_after_the_signal_ranks_above_what_was_before() -> None:
    """a decides view 2 before the signal and confirms; b decides after it. c has more commands, of an older term."""
    stage = begun()
    stage.submit("c", b"only c has this")
    stage.submit("c", b"and this")
    stage.signal(1, "c")
    stage.deliver("c")
    stage.view(2, "a", "b")
    stage.submit("a", b"two")
    states = list(stage.queue)
    stage.settle("a")
    assert stage.confirmed("a") == [(1, 1), (2, 2)]
    stage.signal(2, "b")
    stage.queue.extend(states)
    stage.deliver("b")
    assert stage.words("b") == [[b"one"]] and stage.cores["b"].held == 1
    stage.view(3, "b", "c")
    stage.settle("b", "c")
    assert stage.fetches("c") and not stage.fetches("b")
    stage.transfer("c")
    stage.settle("b", "c")
    assert stage.words("b", "c")[0][:2] == [b"one", b"two"] and stage.words("b") == stage.words("c")


def test_a_beginning_that_one_attempted_and_another_does_not_know_of_never_was() -> None:
    stage = Stage(*ALL)
    stage.view(1, *ALL)
    stage.signal(1, "a")
    stage.deliver("a")
    assert stage.last("a").reason is Reason.BOOTSTRAP and not stage.cores["a"].is_primary
    stage.view(2, *ALL)
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.BOOTSTRAP and stage.cores["a"].is_primary


def test_a_command_that_comes_twice_is_applied_once() -> None:
    stage = begun()
    stage.submit("b", b"two")
    stage.carry_out("b", stage.cores["b"].send_again())
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two"]] * 3 and stage.confirmed("b") == [(1, 2)]


def test_a_request_that_was_lost_is_not_overtaken() -> None:
    stage = begun()
    stage.submit("b", b"lost")
    stage.view(2, *ALL)  # the message never came
    stage.submit("b", b"later")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"lost", b"later"]] * 3
    assert stage.confirmed("b") == [(1, 2), (2, 3)]


def test_what_was_sent_twice_is_refused_without_certainty() -> None:
    stage = begun()
    stage.view(2, "c")
    stage.submit("c", b"two")
    stage.carry_out("c", stage.cores["c"].send_again())
    stage.settle("c")
    assert stage.refused("c") == [Refuse(1, Why.UNCERTAIN)]


def test_what_is_in_the_order_again_is_refused_without_certainty() -> None:
    stage = begun()
    stage.submit("c", b"two")
    ((sender, payload),) = stage.queue
    stage.view(2, "c")
    stage.settle("c")
    stage.carry_out("c", stage.cores["c"].on_messages(sender, [payload], is_again=True))
    assert stage.refused("c") == [Refuse(1, Why.UNCERTAIN)]


def test_too_many_requests_are_refused() -> None:
    core = Core("a", 1, Words(), EQUAL, outstanding_max=1)
    core.submit(b"one")
    assert core.submit(b"two") == (2, [Refuse(2, Why.BUSY)])
    assert core.outstanding == 1


def test_a_fetch_ends_when_the_own_state_is_the_best_again() -> None:
    stage = begun()
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    stage.view(3, "a", "c")
    stage.settle("a", "c")
    assert stage.fetches("c")
    stage.view(4, "c")
    stage.settle("c")
    assert any(isinstance(effect, StopFetching) for effect in stage.told["c"])
    assert stage.cores["c"].standing is Standing.HOLDER and not stage.cores["c"].is_primary


def test_bytes_that_cannot_be_read_are_counted() -> None:
    stage = begun()
    for data in (b"", b"\x09", b"\x02abc", b"\x01short"):
        assert stage.cores["a"].on_messages("b", [data]) == []
    assert stage.cores["a"].malformed == 4


def test_an_address_that_is_too_long() -> None:
    with pytest.raises(UsageError):
        Core("a", 1, Words(), EQUAL, address=bytes(1001))


def test_who_held_the_state_last_goes_on_alone() -> None:
    stage = Stage(*ALL, rule=LastMajority(frozenset({"a"})))
    stage.view(1, "a")
    stage.settle("a")
    assert stage.cores["a"].is_primary
    stage.view(2, *ALL)
    stage.settle(*ALL)
    for name in ("b", "c"):
        stage.transfer(name)
    stage.settle(*ALL)
    stage.view(3, "b", "c")
    stage.settle("b", "c")
    assert stage.cores["b"].is_primary
    stage.view(4, "b")
    stage.settle("b")
    assert stage.cores["b"].is_primary  # half of two, with the first by name
    stage.view(5, "a", "c")
    stage.settle("a", "c")
    assert not stage.cores["a"].is_primary


def test_an_attempt_binds_who_held_the_state_last() -> None:
    """b and c attempt view 2 after the signal, a does not know whether they decided: nobody may go on without both."""
    stage = Stage(*ALL, rule=LastMajority(frozenset(ALL)))
    stage.view(1, *ALL)
    stage.settle(*ALL)
    stage.view(2, "b", "c")
    stage.signal(2, "b", "c")
    stage.settle("b", "c")
    stage.view(3, "a", "c")
    stage.settle("a", "c")
    assert stage.last("a").reason is Reason.NO_QUORUM
    stage.transfer("a")
    stage.settle("a", "c")
    assert not stage.cores["a"].is_primary  # b alone may have decided view 2
    stage.view(4, *ALL)
    stage.settle(*ALL)
    assert stage.cores["b"].is_primary


def all_cut_off(rule: Rule = EQUAL) -> Stage:
    """Two of them miss the last command, which was confirmed to the third; then it is cut off too."""
    stage = begun(rule)
    stage.cut_off("a", "b")
    stage.submit("c", b"two")
    stage.deliver("c")
    assert stage.confirmed("c") == [(1, 2)]
    stage.cut_off("c")
    return stage


@pytest.mark.parametrize("rule", [EQUAL, LastMajority(frozenset(ALL))])
def test_when_all_are_back_who_were_cut_off_they_go_on_with_the_best_of_their_states(rule: Rule) -> None:
    stage = all_cut_off(rule)
    stage.view(2, "a", "b")
    stage.settle("a", "b")
    assert stage.last("a").reason is Reason.NO_QUORUM
    stage.view(3, *ALL)
    stage.settle(*ALL)
    assert stage.last("c").reason is Reason.NO_QUORUM and stage.last("c").holders == ("c",)
    stage.transfer("a")
    stage.settle(*ALL)
    assert stage.last("c").reason is Reason.LOADED and stage.cores["c"].is_primary  # two of three hold it
    stage.transfer("b")
    stage.submit("a", b"three")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two", b"three"]] * 3


def test_when_one_of_them_has_lost_its_memory_they_do_not() -> None:
    stage = all_cut_off()
    stage.start("c", founding=False)  # it alone had what was confirmed last
    stage.view(2, *ALL)
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.NO_QUORUM


def test_who_is_cut_off_in_a_round_may_have_missed_a_decision() -> None:
    stage = begun()
    stage.view(2, *ALL)
    stage.cut_off(*ALL)
    stage.view(3, *ALL)
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.NO_QUORUM


def test_who_is_cut_off_while_another_is_being_loaded_may_have_missed_that_it_was() -> None:
    stage = begun()
    stage.start("d", founding=False)
    stage.view(2, *ALL, "d")
    stage.settle(*ALL, "d")
    stage.transfer("d")
    stage.deliver("d")  # it alone knows that it holds the state, and may confirm something
    stage.cut_off(*ALL)
    stage.view(3, *ALL)
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.NO_QUORUM


def test_an_operator_may_force_what_is_left_to_go_on() -> None:
    stage = begun()
    for name in ("b", "c"):
        stage.start(name, founding=False)  # two of three have lost all
    stage.view(2, *ALL)
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.NO_QUORUM
    before = stage.cores["a"].lineage
    stage.carry_out("b", stage.cores["b"].force())
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.FORCED and stage.cores["a"].lineage not in (None, before)
    stage.transfer("b")
    stage.transfer("c")
    stage.submit("c", b"two")
    stage.settle(*ALL)
    assert stage.words(*ALL) == [[b"one", b"two"]] * 3
    stage.view(3, "b", "c")
    stage.settle("b", "c")
    assert stage.cores["b"].is_primary  # their votes count again


def test_where_there_is_a_quorum_nothing_is_forced() -> None:
    stage = begun()
    assert stage.cores["a"].force() == []


def test_what_was_to_be_forced_in_another_view_is_not() -> None:
    stage = begun()
    for name in ("b", "c"):
        stage.start(name, founding=False)
    stage.view(2, *ALL)
    stage.settle(*ALL)
    stage.carry_out("a", stage.cores["a"].force())
    late = list(stage.queue)
    stage.view(3, *ALL)
    stage.settle(*ALL)
    stage.queue.extend(late)
    stage.settle(*ALL)
    assert stage.last("a").reason is Reason.NO_QUORUM


@pytest.mark.parametrize("rule", [EQUAL, LastMajority(frozenset(ALL))])
def test_a_beginning_on_which_a_later_component_stood_is_not_forgotten(rule: Rule) -> None:
    """It was attempted, and the next view made something of it before one came who had never heard of it."""
    stage = Stage(*ALL, rule=rule)
    stage.view(1, *ALL)
    stage.signal(1, *ALL)
    stage.deliver("a", "b")  # both attempt the beginning, and c hears nothing
    stage.view(2, "a", "b")
    said = list(stage.queue)
    stage.deliver("b")
    stage.submit("b", b"one")
    said += stage.queue
    stage.deliver("b")
    assert stage.confirmed("b") == [(1, 1)]
    stage.signal(2, "a")
    stage.queue.extend(said)
    stage.deliver("a")
    stage.view(3, "a", "c")
    stage.settle("a", "c")
    assert stage.cores["a"].held + len(stage.words("a")[0]) == 1  # what was confirmed is still there
    stage.view(4, *ALL)
    stage.settle(*ALL)
    for name in ALL:
        if stage.fetches(name) and not stage.cores[name].is_primary:
            stage.transfer(name)
            stage.settle(*ALL)
    assert stage.cores["b"].is_primary and stage.words("a", "b") == [[b"one"]] * 2


def test_who_hears_of_the_force_after_the_signal_holds_what_follows() -> None:
    stage = begun()
    for name in ("b", "c"):
        stage.start(name, founding=False)
    stage.view(2, *ALL)
    stage.settle(*ALL)
    stage.transfer("b")
    stage.settle(*ALL)
    stage.carry_out("a", stage.cores["a"].force())
    request = stage.submit("a", b"two") if not stage.refused("a") else 0
    said = list(stage.queue)
    stage.deliver("a")
    stage.submit("a", b"three")
    said += stage.queue
    stage.deliver("a")
    assert request == 0 or stage.confirmed("a")
    stage.signal(2, "b")
    stage.queue.extend(said)
    stage.deliver("b")
    stage.view(3, "a", "b")
    stage.settle("a", "b")
    assert stage.words("b") == stage.words("a") and stage.words("b")[0][-1] == b"three"


def test_who_need_not_be_there_for_a_beginning_does_not_begin() -> None:
    """Three of four hear the whole round, and not the one founder, who begins by itself."""
    stage = Stage("a", "b", "c", "d", rule=LastMajority(frozenset({"a"})))
    stage.view(1, "a", "b", "c", "d")
    stage.signal(1, "b", "c", "d")
    stage.deliver("b", "c", "d")
    stage.view(2, "b", "c", "d")
    stage.settle("b", "c", "d")
    assert stage.last("b").reason is Reason.NO_STATE
    stage.view(3, "a")
    stage.settle("a")
    assert [name for name, core in stage.cores.items() if core.is_primary] == ["a"]


@pytest.mark.parametrize("rule", [EQUAL, LastMajority(frozenset(ALL))])
def test_others_fetch_the_empty_state_of_a_beginning(rule: Rule) -> None:
    stage = Stage(*ALL, "d", rule=rule)
    stage.view(1, *ALL, "d")
    stage.settle(*ALL, "d")
    assert stage.last("d").holders == ALL and stage.cores["d"].standing is Standing.FRESH
    stage.submit("d", b"one")
    stage.settle(*ALL, "d")
    stage.transfer("d")
    stage.settle(*ALL, "d")
    assert stage.words("a", "d") == [[b"one"]] * 2 and stage.last("a").holders == (*ALL, "d")
    assert stage.confirmed("d") == [(1, 1)] and not stage.pictures
