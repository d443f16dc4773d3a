"""The one rule of delivery, on streams made by hand and by machine."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Deliver, Effect, Install
from ordercast.model.errors import WireError
from ordercast.model.ids import ProcessId, Seq
from ordercast.model.service import Service
from ordercast.order.adaptive.codec import BELOW_BITS, RESTS, Mark, build_distribution
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.slots import Distribution, base_after
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.wire.header import SAFE, recovered
from ordercast.wire.run import PacketRun, build_runs
from tests.property_sizes import scaled

from ..rings import NEXT_RING_ID, ONE, THREE, TWO, make_ring

CONFIG = AdaptiveConfig(block=2, period=12, reach=600)
MEMBERS = (ONE, TWO, THREE)


def make_merge(me: ProcessId = TWO) -> Merge:
    ring = make_ring(me)
    return Merge(ring, ring.id, CONFIG, 100)


def packet(place: int, number: int, by: ProcessId, *, safe: bool = False, rests: bool = False) -> PacketRun:
    flags = SAFE * safe | RESTS * rests
    service = Service.SAFE if safe else Service.AGREED
    load = flags, (0,), (4,), (int(service),), [b"%04d" % place], b"", b""
    (run,) = build_runs(make_merge(by).heading, [load], by, Seq(place), 0, number)
    return run


def mark(member: int, tick: int, last: int, following: int, aru: int = 0, stable: int = 0) -> Mark:
    return Mark(member, tick, last, following, aru, stable, 0, False)


def delivered(effects: list[Effect]) -> list[int]:
    return [int(message[5]) for effect in effects if isinstance(effect, Deliver) for message in effect.messages()]


def advanced(merge: Merge) -> list[int]:
    effects: list[Effect] = []
    merge.advance(effects)
    merge.check_invariants()
    return delivered(effects)


def test_a_packet_is_delivered_when_all_others_have_passed_its_place() -> None:
    merge = make_merge()
    assert merge.take(packet(5, 1, THREE), 1) and advanced(merge) == []  # the slots: ONE 1-2, TWO 3-4, THREE 5-6 …
    merge.hear(mark(0, 1, 0, 6))
    assert merge.aru == 2 and advanced(merge) == []
    merge.give_up(6)
    assert advanced(merge) == [5] and merge.aru == 5


def test_what_a_mark_proved_stays_when_a_later_one_waits_for_packets() -> None:
    merge = make_merge()
    merge.hear(mark(0, 1, 0, 7))
    before = merge.known(0)
    merge.hear(mark(0, 2, 2, 20))  # speaks of packets that are not here
    assert merge.known(0) == before == 7
    merge.take(packet(7, 1, ONE), 1)
    merge.take(packet(8, 2, ONE), 2)
    assert merge.known(0) == 20


def test_a_safe_packet_waits_for_everybodys_word_and_others_behind_it_too() -> None:
    merge = make_merge()
    merge.take(packet(1, 1, ONE, safe=True), 1)
    merge.take(packet(2, 2, ONE), 2)
    merge.give_up(9)
    merge.hear(mark(2, 1, 0, 11))
    assert merge.aru == 6 and advanced(merge) == [] and merge.asked_safe == 1
    merge.hear_aru(0, 6)
    assert advanced(merge) == []
    merge.hear_aru(2, 1)
    assert merge.safe == 1 and advanced(merge) == [1, 2]


def test_a_resting_packet_gives_up_places_for_the_turns_of_others() -> None:
    merge = make_merge()
    merge.take(packet(5, 1, THREE, rests=True), 1)
    assert merge.known(2) == 6 + 2 * CONFIG.ahead // 2  # two others send as much before its turn comes
    merge.take(packet(merge.frontiers[2], 2, THREE), 2)
    assert merge.known(2) == merge.streams[2].place + 1


def test_a_packet_acknowledges_itself_and_nothing_that_its_sender_may_still_use() -> None:
    """A sender's word is worth as much as what it has said of itself: its next place is beyond what it knows."""
    merge = make_merge()
    alone, resting = packet(5, 1, THREE), packet(5, 1, THREE, rests=True)
    merge.check_aru(alone, merge.line.next_owned(2, 6) - 1)
    merge.check_aru(resting, merge.line.next_owned(2, 6 + CONFIG.ahead) - 1)
    for run in (alone, resting):
        with pytest.raises(WireError, match="above its sender's own frontier"):
            merge.check_aru(run, merge.line.next_owned(2, 6 + CONFIG.ahead))


def test_what_a_sender_knows_with_its_packet_is_what_it_knows_when_it_is_sent() -> None:
    merge = make_merge(ONE)
    merge.hear(mark(1, 1, 0, 40))
    merge.hear(mark(2, 1, 0, 40))
    place = merge.next_place()
    told = merge.aru_after(place, 0)
    merge.sent(packet(place, 1, ONE))
    assert told == merge.aru >= place


def test_whoever_takes_a_packet_knows_what_its_sender_knew_to_be_safe() -> None:
    """The sender may have delivered a safe message, and this packet may follow from that."""
    merge = make_merge()
    merge.take(packet(1, 1, ONE, safe=True), 1)
    merge.hear(mark(2, 1, 0, 40))
    merge.take(packet(2, 2, ONE), 2)
    assert merge.aru >= 1 and advanced(merge) == []
    merge.hear_safe(Seq(1))
    assert advanced(merge) == [1, 2]
    merge.hear_safe(Seq(500))
    assert merge.safe == merge.aru, "nothing is safe that is not known here"


def test_a_distribution_is_adopted_in_order_and_everybody_moves() -> None:
    merge = make_merge()
    base = base_after(2, 1, CONFIG.reach)
    distribution = Distribution(1, base, 2, CONFIG.ahead, (1, 10, 1))
    announcement = build_distribution(merge.heading, ONE, distribution, 2, (0, 0), 2)
    merge.take(announcement, 2)
    assert merge.line.newest.number == 0  # the packet before it is not here
    merge.take(packet(1, 1, ONE), 1)
    assert merge.line.newest.weights == (1, 10, 1) and merge.is_moved and merge.known(1) == base


def test_places_given_up_beyond_a_base_stay_given_up_when_ranks_change() -> None:
    """Found by the witness: a later distribution gave the sender another rank, and its word was read anew."""
    merge = make_merge()
    base = base_after(1, 1, CONFIG.reach)
    place = merge.line.next_owned(2, base - 10)
    merge.take(packet(place, 1, THREE, rests=True), 1)
    given_up = merge.known(2)
    assert given_up > base
    distribution = Distribution(1, base, 2, CONFIG.ahead, (1, 1, 10))
    merge.take(build_distribution(merge.heading, ONE, distribution, 1, (0, 0), 1), 1)
    merge.hear(mark(0, 1, 1, base + 40))
    merge.give_up(base + 40)
    assert merge.aru >= base and merge.known(2) == given_up


@pytest.mark.parametrize(
    ("run", "number", "why"),
    [
        (packet(3, 1, ONE), 1, "not its sender's"),
        (packet(1 + 6 * 10_000, 1, ONE), 1, "cannot be true"),
        (packet(1, 900, ONE), 900, "far above"),
    ],
)
def test_bad_packets_change_nothing(run: PacketRun, number: int, why: str) -> None:
    merge = make_merge()
    with pytest.raises(WireError, match=why):
        merge.take(run, number)
    assert merge.aru == 0 and merge.highest == 0 and not merge.streams[0].count


def test_nobody_else_sends_in_the_name_of_this_process() -> None:
    merge = make_merge()
    merge.sent(packet(3, 1, TWO))
    assert not merge.take(packet(3, 1, TWO), 1)
    with pytest.raises(WireError, match="in the name of this process"):
        merge.take(packet(4, 2, TWO), 2)


def test_distributions_are_the_book_keepers_and_go_by_the_formula() -> None:
    merge = make_merge(ONE)
    wrong = build_distribution(merge.heading, TWO, Distribution(1, 700, 2, 16, (1, 1, 1)), 3, (0, 0), 1)
    with pytest.raises(WireError, match="book-keeper"):
        merge.take(wrong, 1)
    merge = make_merge()
    merge.take(build_distribution(merge.heading, ONE, Distribution(1, 602, 2, 16, (1, 1, 1)), 2, (0, 0), 1), 1)
    assert merge.line.newest.number == 0


def test_marks_that_take_something_back_are_refused() -> None:
    merge = make_merge()
    merge.hear(mark(0, 2, 0, 7))
    assert not merge.hear(mark(0, 1, 0, 9))
    with pytest.raises(WireError, match="takes back"):
        merge.hear(mark(0, 3, 0, 3))
    with pytest.raises(WireError, match="above its sender's own frontier"):
        merge.hear(mark(0, 3, 0, 7, aru=50))


@given(st.integers(0, 10_000))
@settings(max_examples=scaled(80), deadline=None)
def test_whatever_the_order_of_arrival_all_deliver_one_order(seed: int) -> None:
    for me in MEMBERS:
        rng = random.Random(seed)
        history, top = _history(rng)  # anew: what is delivered leaves its packet
        places = sorted(run.seq for run, _ in history)
        merge, order = make_merge(me), [one for one in history if one[0].originator != me] * 2
        for run, _ in history:
            if run.originator == me:
                merge.sent(run)
        random.Random(f"{seed} {me}").shuffle(order)
        got: list[int] = []
        arus = [int(merge.aru)]
        for run, number in order:
            merge.take(run, number)
            got += advanced(merge)
            arus.append(int(merge.aru))
        for member, process in enumerate(MEMBERS):
            if process == me:
                merge.give_up(top)
            else:
                merge.hear(mark(member, 1, merge.streams[member].last, top))
        for member in range(3):
            merge.hear_aru(member, merge.aru)
        got += advanced(merge)
        assert got == places and arus == sorted(arus)


def _history(rng: random.Random) -> tuple[list[tuple[PacketRun, int]], int]:
    """Some packets of all members, each at places of its own, and a place above all."""
    merge = make_merge()
    history = []
    for member, process in enumerate(MEMBERS):
        place = 0
        for number in range(1, rng.randrange(1, 8)):
            place = merge.line.next_owned(member, place + rng.randrange(1, 9))
            rests = rng.random() < 0.2 and member > 0
            history.append((packet(place, number, process, safe=rng.random() < 0.3, rests=rests), number))
            place += merge.line.newest.rests[member] if rests else 0
    return history, 500


def ended(merge: Merge, plan: RecoveryPlan) -> tuple[list[int], list[int], int]:
    """Return what was delivered before and in the transitional configuration, and where that begins."""
    effects: list[Effect] = []
    merge.finish(
        plan, make_ring(TWO, (TWO, THREE), NEXT_RING_ID._replace(representative=TWO)), ChangeReason.SILENT, effects
    )
    index = next(at for at, effect in enumerate(effects) if isinstance(effect, Install))
    install = effects[index]
    assert isinstance(install, Install)
    return delivered(effects[:index]), delivered(effects[index:]), install.configuration.position.number


def plan_of(high_aru: int, high_delivered: int = 0) -> RecoveryPlan:
    return RecoveryPlan((TWO, THREE), frozenset((TWO, THREE)), Seq(0), Seq(high_delivered), Seq(high_aru))


def test_beyond_the_gap_of_one_who_is_gone_only_companions_messages_are_owed() -> None:
    merge = make_merge()
    merge.take(packet(1, 1, ONE), 1)
    merge.take(packet(5, 1, THREE), 1)
    merge.take(packet(11, 2, THREE), 2)
    merge.take(packet(13, 3, ONE), 3)  # its second packet is at none of us
    regular, transitional, at = ended(merge, plan_of(0))
    assert (regular, transitional, at) == ([1], [5, 11], 1)


def test_what_only_my_marks_said_decides_nothing() -> None:
    merge = make_merge()
    merge.hear(mark(0, 1, 0, 100))  # nobody else of those who go on has heard it
    merge.take(packet(5, 1, THREE), 1)
    assert ended(merge, plan_of(0)) == ([], [5], 0)


def test_what_marks_said_beyond_a_base_does_not_move_the_gap() -> None:
    """Found by a swarm (seed 787): distributions below the aru were forgotten, and recovery goes by an earlier one."""
    found = []
    for is_known in (False, True):
        merge = make_merge()
        distribution = Distribution(1, base_after(1, 1, CONFIG.reach), 2, CONFIG.ahead, (1, 1, 10))
        merge.take(build_distribution(merge.heading, ONE, distribution, 1, (0, 0), 1), 1)
        merge.take(packet(5, 1, THREE), 1)
        merge.discard()
        if is_known:  # as an exchange does: packets come for which marks have waited
            for member, last in ((0, 1), (2, 1)):
                merge.hear(mark(member, 1, last, distribution.base + 40))
            assert merge.aru >= distribution.base
        found.append(ended(merge, plan_of(0)))
    assert found[0] == found[1] == ([], [5], 1)


def test_up_to_the_greatest_aru_places_without_packets_are_void() -> None:
    merge = make_merge()
    merge.take(packet(5, 1, THREE, safe=True), 1)
    merge.take(packet(6, 2, THREE), 2)
    assert ended(merge, plan_of(6)) == ([], [5, 6], 4)
    merge = make_merge()
    merge.take(packet(5, 1, THREE, safe=True), 1)
    assert ended(merge, plan_of(6, high_delivered=5)) == ([5], [], 6)


def test_the_acknowledgement_in_an_exchanged_packet_is_not_read() -> None:
    merge = make_merge()
    old = packet(5, 1, THREE)
    new = make_ring(TWO, MEMBERS, NEXT_RING_ID)
    wrapped = recovered(old.packet(Seq(5)), THREE, new.heading, THREE, Seq(9), 77 << BELOW_BITS)
    assert merge.keep(Seq(5), wrapped) and not merge.keep(Seq(5), wrapped)
    assert merge.arus[2] == 0 and merge.streams[2].last == 1
    with pytest.raises(WireError, match="another place"):
        merge.keep(Seq(6), wrapped)
