"""Orderly leave. Deviation: the paper has none; a processor that goes is a processor that failed."""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.effects import Broadcast, LeaveDone
from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND
from ordercast.model.service import Service
from ordercast.sim.options import SIM_RING
from ordercast.trace.records import Departed, Installed
from ordercast.wire.messages import Leave

from .play import Play, is_data, members_of, options
from .solo import FOUR, ONE, RING, THREE, TRIO, Solo, ignored, packets_of, reasons, sent, seqs


def test_who_has_nothing_to_say_leaves_at_once_and_says_so_three_times() -> None:
    solo = Solo().to_operational()
    effects = solo.leave()
    assert sent(effects, Leave) == [Leave(RING, solo.me)] * 3
    assert isinstance(effects[-1], LeaveDone)
    assert solo.node.state_name == "Gone"


def test_nothing_is_heard_or_said_afterwards() -> None:
    solo = Solo().to_operational()
    token = solo.token()
    solo.leave()
    assert solo.give(token, *solo.announcements(), solo.join_of(ONE, TRIO, ring_seq=8)) == []
    assert solo.node.next_deadline() is None


def test_a_leaving_process_takes_no_more_messages() -> None:
    solo = Solo().to_operational()
    solo.submit("last")
    solo.leave()
    try:
        solo.submit("too late")
    except UsageError as error:
        assert "leaving" in str(error)
    else:
        raise AssertionError("it was taken")


def test_leaving_waits_until_all_have_received_what_was_sent() -> None:
    """Section 4.1's measure: the aru covers my last packet on two successive visits."""
    solo = Solo().to_operational()
    solo.submit("a", "b", size=1000)
    assert not any(isinstance(effect, LeaveDone) for effect in solo.leave())
    assert seqs(solo.pass_token()) == [1, 2]
    assert not any(isinstance(effect, LeaveDone) for effect in solo.pass_token(aru=1, aru_id=THREE))
    assert not any(isinstance(effect, LeaveDone) for effect in solo.pass_token(aru=2, aru_id=THREE))
    effects = solo.pass_token()
    assert isinstance(effects[-1], LeaveDone)


def test_a_farewell_leads_to_gather_without_the_one_that_left() -> None:
    solo = Solo().to_operational()
    effects = solo.give(Leave(RING, THREE))
    assert reasons(effects) == [ChangeReason.LEFT]
    assert (solo.join.candidates, solo.join.failed) == (TRIO, (THREE,))


def test_a_farewell_from_outside_or_from_another_ring_is_ignored() -> None:
    solo = Solo().to_operational()
    effects = solo.give(Leave(RING, FOUR), Leave(RING._replace(seq=4), THREE))
    assert len(ignored(effects)) == 2 and packets_of(effects) == []


def test_a_farewell_ends_a_ring_that_is_being_formed() -> None:
    for solo in (Solo().to_commit(), Solo().to_recovery()):
        assert reasons(solo.give(Leave(RING, THREE))) == [ChangeReason.LEFT]
        assert solo.join.failed == (THREE,)


def test_a_farewell_of_an_outsider_does_not_end_it() -> None:
    for solo in (Solo().to_commit(), Solo().to_recovery()):
        state = solo.node.state_name
        effects = solo.give(Leave(RING, FOUR))
        assert len(ignored(effects)) == 1 and solo.node.state_name == state


def test_a_farewell_while_opinions_are_collected_is_one_opinion_less_to_wait_for() -> None:
    solo = Solo().to_operational().lose_ring()
    assert reasons(solo.give(Leave(RING, THREE))) == [ChangeReason.LEFT]
    assert (solo.join.candidates, solo.join.failed) == (TRIO, (THREE,))
    effects = solo.give(Leave(RING, THREE), Leave(RING, FOUR))
    assert len(ignored(effects)) == 2 and solo.join.failed == (THREE,)


def leaving(busy: bool) -> Play:
    play = Play(options(nodes=4))
    if busy:
        for _ in range(30):
            play.at(99, lambda: play.submit(2, Service.SAFE, 400))
    play.at(100, lambda: play.world.hosts[2].leave())
    return play


def test_others_go_on_at_once_and_know_why() -> None:
    """No token loss timeout passes, and the views give the reason."""
    play = leaving(busy=False).run()
    (left,) = [event for event in play.events if isinstance(event, Departed)]
    installed = [
        event
        for event in play.events
        if isinstance(event, Installed)
        and members_of(event.configuration) == [0, 1, 3]
        and event.configuration.kind is ConfigurationKind.REGULAR
    ]
    assert {event.configuration.reason for event in installed} == {ChangeReason.LEFT}
    assert len(installed) == 3
    assert max(event.at for event in installed) - left.at < SIM_RING.token_loss_ns // 4


def test_what_the_one_that_left_had_sent_is_delivered_by_all() -> None:
    """Also when a third of it was lost at first."""
    play = leaving(busy=True)
    numbers = iter(range(10**6))
    play.rule = lambda source, target, packet: not is_data(packet) or next(numbers) % 3 != 0
    play.run()
    assert [len(play.deliveries(node)) for node in range(4)] == [30] * 4
    (left,) = [event for event in play.events if isinstance(event, Departed)]
    assert left.at > 100 * MILLISECOND
    assert all(play.story(node)[:33].count("n2") == 30 for node in (0, 1, 3)), "before the view without it"


def test_all_farewells_lost_is_no_worse_than_a_crash() -> None:
    play = leaving(busy=False)
    play.rule = lambda source, target, packet: source != 2 or play.world.now < 100 * MILLISECOND
    play.run()
    assert play.memberships(0)[:3] == [[0], [0, 1, 2, 3], [0, 1, 3]]


def test_the_farewell_is_one_broadcast() -> None:
    effects = Solo().to_operational().leave()
    assert [len(effect.packets) for effect in effects if isinstance(effect, Broadcast)] == [3]
