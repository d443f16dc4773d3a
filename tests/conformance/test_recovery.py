"""Recovery: the exchange of old-ring messages, the promise, the two views. (Paper, section 4.3, Figures 4.11 to 4.16)

THREE has left the ring of three unless a test says otherwise; ONE and TWO go on together, on ring 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.effects import Effect
from ordercast.model.ids import MILLISECOND, NOBODY, ConfigurationId, ProcessId, Seq, node_of
from ordercast.model.notes import Moved, Occurrence
from ordercast.model.service import Service
from ordercast.order.ring.node import RingNode
from ordercast.sim.options import SIM_RING
from ordercast.trace.records import DeliveredBatch, Event, Noted
from ordercast.wire.codec import decode
from ordercast.wire.header import HEADER_SIZE, RECOVERED, MessageKind, digest_of, origin_of
from ordercast.wire.messages import CommitEntry, Join
from tests.packets import header_of, originator_of

from .play import Play, has_entered, has_installed, is_data, kind_of, options
from .solo import (
    CLUSTER,
    FIVE,
    FOUR,
    ONE,
    RING,
    SMALL,
    THREE,
    TWO,
    Solo,
    data_of,
    delivered,
    occurred,
    packet_of,
    seqs,
    story,
    views,
    wrapped,
)

PAIR = ConfigurationId(12, ONE)
LOSS = SMALL.token_loss_ns
PATIENT = replace(SIM_RING, fail_to_receive_rotations=10_000)  # nobody is expelled for missing a packet


def companion(process: ProcessId = ONE, aru: int = 0, high: int = 0, received: bool = False) -> CommitEntry:
    """One who comes along from the ring of three."""
    return CommitEntry(process, True, RING, Seq(aru), Seq(high), received)


def recovering(*packets: bytes, aru: int = 0, high: int = 0, me: ProcessId = TWO) -> Solo:
    """TWO held these packets of the old ring; ONE says that it has everything up to `aru` and delivered to `high`."""
    solo = Solo(me).to_operational()
    if packets:
        solo.give_packets(*packets)
    other = TWO if me == ONE else ONE
    return solo.lose_ring().fail(THREE).recover(companion(other, aru, high))


def origins(effects: Sequence[Effect]) -> list[int]:
    """Old seqs of the wrapped packets that were sent."""
    return [origin_of(packet)[1] for packet in data_of(effects)]


# The exchange


def test_old_packets_travel_wrapped_with_old_ring_and_seq_inside_and_new_ones_outside() -> None:
    """Section 4.3."""
    old = packet_of(2, originator=THREE)
    solo = recovering(packet_of(1), old, aru=1)
    (packet,) = data_of(solo.begin_token())
    header = header_of(packet)
    assert header.flags & RECOVERED
    assert (header.transmitter, header.place, header.seq) == (TWO, 0, 1), "an originator that is gone has no place"
    assert header.digest == digest_of(PAIR)
    assert origin_of(packet) == (digest_of(RING), 2)
    assert packet[HEADER_SIZE + 16 : HEADER_SIZE + 18] == b"\0\2", "it was in place 2 of the old ring"


def test_what_everybody_has_is_not_exchanged() -> None:
    """Figure 4.11: only messages above low_ring_aru, the lowest aru of those who come along."""
    solo = recovering(packet_of(1), packet_of(2), packet_of(3), aru=2)
    assert origins(solo.begin_token()) == [3]


def test_what_another_has_sent_is_not_sent_again() -> None:
    """Figure 4.12, section 4.3: a wrapped message that is heard is taken out of my own queue; each is normally sent
    once."""
    solo = recovering(packet_of(1), packet_of(2), packet_of(3))
    solo.give_packets(wrapped(packet_of(1), 1, PAIR, ONE), wrapped(packet_of(3), 2, PAIR, ONE))
    assert origins(solo.pass_token(seq=2, aru=2)) == [2]


def test_a_wrapped_packet_of_my_old_ring_fills_my_gap() -> None:
    """Section 4.3: it goes to the old ring's store."""
    solo = recovering(packet_of(2))
    effects = solo.give_packets(wrapped(packet_of(1, "late"), 1, PAIR, ONE))
    assert Occurrence.MESSAGES_EXCHANGED in occurred(effects)
    solo.pass_token(seq=1, aru=1)
    for _ in range(4):
        effects += solo.pass_token()
    assert story(effects) == ["late", "2", "(1 2)", "[1 2]"]


def test_who_was_not_on_that_old_ring_never_delivers_what_was_exchanged() -> None:
    """Section 4.3: the wrapped message of a ring that I was not on counts on the new ring only."""
    solo = Solo().to_recovery((ONE, TWO))
    stranger = packet_of(7, "not mine", originator=ONE, ring=ConfigurationId(4, ONE))
    effects = solo.give_packets(wrapped(stranger, 1, ConfigurationId(8, ONE), ONE))
    for _ in range(4):
        effects += solo.pass_token(seq=1)
    assert story(effects) == ["(2)", "[1 2]"]
    assert solo.token_forwarded.aru == 1, "yet it was received"


def test_nothing_new_is_sent_in_recovery() -> None:
    """Section 4.3: application messages wait for the new ring."""
    solo = recovering()
    effects = solo.submit("new")
    effects += solo.begin_token() + solo.pass_token()
    assert data_of(effects) == []
    effects = solo.pass_token()
    assert solo.node.state_name == "Operational"
    effects = solo.pass_token()
    assert delivered(effects) == ["new"]


# The flag and the count


def test_the_flag_is_raised_while_i_have_something_to_send_and_lowered_by_who_raised_it() -> None:
    """Section 4.3: retrans_flg. More than one visit's worth: it stays up until the queue is empty."""
    solo = recovering(*map(packet_of, range(1, 7)))
    flags = []
    solo.begin_token()
    flags.append(solo.token_forwarded.exchanging)
    for _ in range(2):
        solo.pass_token()
        flags.append(solo.token_forwarded.exchanging)
    assert origins(solo.log) == [1, 2, 3, 4, 5, 6]
    assert flags == [True, False, False]


def test_a_flag_that_another_raised_is_left_up() -> None:
    """Section 4.3."""
    solo = recovering()
    for _ in range(5):
        solo.pass_token(exchanging=True)
        assert solo.token_forwarded.exchanging
    assert solo.node.state_name == "Recovery"


def test_the_promise_is_made_on_the_second_quiet_visit_and_the_ring_installed_on_the_third() -> None:
    """Section 4.3: count 2 fixes install_seq and makes the promise; count 3, with the aru there twice, installs."""
    solo = recovering()
    assert occurred(solo.begin_token()) == []
    assert occurred(solo.pass_token()) == [Occurrence.PROMISE_MADE]
    assert solo.node.state_name == "Recovery"
    assert story(solo.pass_token()) == ["(1 2)", "[1 2]"]


def test_a_visit_with_the_flag_up_starts_the_count_again() -> None:
    """Section 4.3: successive visits."""
    solo = recovering()
    solo.begin_token()
    solo.pass_token(exchanging=True)
    assert occurred(solo.pass_token(exchanging=False)) == []
    assert occurred(solo.pass_token()) == [Occurrence.PROMISE_MADE]


def test_who_has_not_everything_does_not_promise() -> None:
    """Section 4.3: my_aru must have reached install_seq."""
    solo = recovering()
    solo.pass_token(seq=1, aru=1)
    assert occurred(solo.pass_token()) == []
    assert occurred(solo.pass_token()) == []
    solo.give_packets(wrapped(packet_of(1), 1, PAIR, ONE))
    assert Occurrence.PROMISE_MADE in occurred(solo.pass_token())


def test_nobody_installs_before_the_aru_has_covered_the_exchange_twice() -> None:
    """Section 4.3: the token's aru was at least install_seq on the last two rotations."""
    solo = recovering()
    solo.give_packets(wrapped(packet_of(1), 1, PAIR, ONE))
    solo.pass_token(seq=1, aru=0, aru_id=ONE)
    for _ in range(3):
        solo.pass_token()
    assert solo.node.state_name == "Recovery"
    solo.pass_token(aru=1, aru_id=NOBODY)
    assert solo.node.state_name == "Recovery"
    solo.pass_token()
    assert solo.node.state_name == "Operational"


# Delivery and views


def test_the_rest_is_delivered_between_two_views() -> None:
    """Section 4.3, steps 2 to 6: old view, transitional view, the rest, new view; one atomic action."""
    safe = packet_of(2, "safe", service=Service.SAFE)
    solo = recovering(packet_of(1), safe, packet_of(3), aru=3, high=1)
    assert delivered(solo.log) == ["1"]
    solo.begin_token()
    solo.pass_token()
    assert story(solo.pass_token()) == ["(1 2)", "safe", "3", "[1 2]"]


def test_a_safe_message_that_a_companion_delivered_belongs_to_the_old_view() -> None:
    """Section 4.3: up through high_ring_delivered it is delivered in the regular configuration."""
    safe = packet_of(2, "safe", service=Service.SAFE)
    solo = recovering(packet_of(1), safe, packet_of(3, service=Service.SAFE), aru=3, high=2)
    solo.begin_token()
    solo.pass_token()
    assert story(solo.pass_token()) == ["safe", "(1 2)", "3", "[1 2]"]


def test_beyond_a_gap_only_messages_of_companions_are_delivered() -> None:
    """Section 4.3 and E11: 2 is lost to all who go on. 1 comes before the gap; of what follows, THREE's is not
    delivered."""
    packets = [packet_of(1, originator=THREE), packet_of(3, originator=THREE), packet_of(4, originator=ONE)]
    solo = recovering(*packets)
    solo.begin_token()
    for _ in range(3):
        solo.pass_token()
    assert story(solo.log)[-3:] == ["(1 2)", "4", "[1 2]"]
    assert delivered(solo.log) == ["1", "4"]


def test_up_to_the_gap_everything_is_delivered_whoever_sent_it() -> None:
    """E11: Figure 4.14 names messages of companions only; the proofs need all before the gap."""
    safe = packet_of(1, "safe", originator=ONE, service=Service.SAFE)
    solo = recovering(safe, packet_of(2, "departed", originator=THREE))
    solo.begin_token()
    for _ in range(3):
        solo.pass_token()
    assert story(solo.log)[-4:] == ["(1 2)", "safe", "departed", "[1 2]"]


def test_the_views_name_what_they_end() -> None:
    """Section 4.3: the transitional view ends the old ring, the regular one the transitional; ids are ordered."""
    solo = recovering().install()
    transitional, regular = views(solo.log)[-2:]
    assert (transitional.kind, regular.kind) == (ConfigurationKind.TRANSITIONAL, ConfigurationKind.REGULAR)
    assert (transitional.previous, regular.previous) == (RING, transitional.id)
    assert RING < transitional.id < regular.id == PAIR
    assert transitional.members == regular.members == (ONE, TWO)


def test_after_installation_the_count_of_failures_begins_anew() -> None:
    """Figure 4.14: proc_set = the members, fail_set empty, received_flg false."""
    solo = recovering().install().lose_ring()
    assert (solo.join.candidates, solo.join.failed) == ((ONE, TWO), ())
    solo.agree()
    solo.give(solo.first_commit((ONE, TWO), ConfigurationId(16, ONE)))
    assert not solo.commit_forwarded.members[1].received


def test_messages_of_early_installers_wait_until_i_install() -> None:
    """Section 4.3: they are kept for the new ring, delivered there, and nothing of them before."""
    solo = recovering()
    solo.begin_token()
    solo.pass_token()
    effects = solo.give_packets(packet_of(1, "early", ring=PAIR))
    assert delivered(effects) == []
    assert story(solo.pass_token(seq=1, aru=1)) == ["(1 2)", "[1 2]", "early"]


def test_no_safe_delivery_on_a_new_ring_before_all_have_installed_it() -> None:
    """Section 4.3: the first to install sends a safe message at once; nobody delivers it while one is still in
    Recovery."""
    play = Play(options(nodes=4))
    early: list[Event] = []
    submitted: list[int] = []

    def watch(event: Event) -> None:
        if has_installed(event, [0, 1, 2]) and not submitted:
            submitted.append(1)
            play.world.schedule(play.world.now, lambda: play.submit(0, Service.SAFE))
        engines = [host.life.engine for host in play.world.hosts if host.life is not None]
        states = {engine.state_name for engine in engines if isinstance(engine, RingNode)}
        if isinstance(event, DeliveredBatch) and "Recovery" in states:
            early.append(event)

    play.watch = watch
    play.at(100, lambda: play.crash(3))
    assert play.run().is_valid
    assert submitted and early == []
    assert all("n0" in play.story(node) for node in range(3))


# Failure during recovery: a ring of four loses FOUR, and then, in recovery, the token and THREE.

QUARTET = (ONE, TWO, THREE, FOUR)


def trio(*packets: bytes) -> Solo:
    """Recovery on ring 12 with ONE and THREE, all coming from the ring of four."""
    solo = Solo().to_operational(QUARTET)
    if packets:
        solo.give_packets(*packets)
    return solo.lose_ring().fail(FOUR).recover(companion(ONE), companion(THREE))


def promised(*packets: bytes) -> Solo:
    """It has promised, and then lost the token and THREE."""
    solo = trio(*packets)
    solo.begin_token()
    while Occurrence.PROMISE_MADE not in occurred(solo.pass_token()):
        assert solo.node.state_name == "Recovery"
    return solo.lose_ring().fail(THREE)


def test_messages_of_early_installers_are_thrown_away_with_the_ring() -> None:
    """Section 4.3: if the new ring fails before I install it, they were never mine."""
    solo = trio()
    solo.begin_token()
    solo.pass_token()
    solo.give_packets(packet_of(1, "early", ring=PAIR))
    solo.lose_ring().fail(THREE).recover(companion(received=True)).install()
    assert delivered(solo.log) == []


def test_a_promise_is_told_on_the_next_commit_token() -> None:
    """Section 4.3: my_received_flg is true there, with the old ring, of which I am still a member."""
    solo = promised().recover(companion(received=True))
    mine = solo.commit_forwarded.members[1]
    assert (mine.old_ring, mine.received) == (RING, True)


def test_when_all_have_promised_nothing_is_exchanged_again() -> None:
    """Section 4.3: the promise stands, and is kept in the transitional configuration that is entered now: also towards
    THREE, who does not come along."""
    solo = promised(packet_of(2, "of THREE, beyond a gap", originator=THREE)).recover(companion(received=True))
    assert {Occurrence.OBLIGATION_KEPT, Occurrence.PROMISE_DIFFERS} <= set(occurred(solo.log))
    effects = solo.begin_token() + solo.pass_token() + solo.pass_token()
    assert data_of(effects) == []
    assert story(effects) == ["(1 2)", "of THREE, beyond a gap", "[1 2]"]


def test_a_promise_that_owes_what_the_new_plan_owes_is_no_other() -> None:
    """All who had promised come along: both owe the messages of the same members."""
    solo = trio()
    solo.begin_token()
    while Occurrence.PROMISE_MADE not in occurred(solo.pass_token()):
        assert solo.node.state_name == "Recovery"
    solo.lose_ring()
    solo.give(solo.join_of(ONE, {*QUARTET, FIVE}, {FOUR, FIVE}))
    solo.recover(companion(ONE, received=True), companion(THREE, received=True))
    assert Occurrence.OBLIGATION_KEPT in occurred(solo.log)
    assert Occurrence.PROMISE_DIFFERS not in occurred(solo.log)


def test_a_promise_is_kept_alone() -> None:
    """Section 4.3, Figure 4.16: who is left alone owes the messages of all for whom it promised, also beyond a gap."""
    solo = promised(packet_of(2, "of ONE"))
    solo.wait(SMALL.consensus_ns)
    solo.written()
    solo.wait(0)
    assert story(solo.log)[-3:] == ["(2)", "of ONE", "[2]"]


def test_when_one_has_not_promised_the_exchange_is_made_again() -> None:
    """Section 4.3: then nobody can have installed; the obligation is towards those who come along now."""
    packets = packet_of(1), packet_of(3, "of THREE", originator=THREE)
    solo = promised(*packets).recover(companion(received=False))
    assert origins(solo.begin_token()) == [1, 3]
    for _ in range(3):
        solo.pass_token()
    assert solo.node.state_name == "Operational"
    assert delivered(solo.log) == ["1"]


@pytest.mark.parametrize("state", ["Gather", "Commit", "Recovery"])
def test_after_the_promise_the_old_rings_store_is_closed(state: str) -> None:
    """Deviation (frozen store): the paper receives old-ring messages until installation. What comes late, after the
    promise, would be at some and not at others."""
    solo = promised(packet_of(2, "owed"))
    ring = ConfigurationId(16, ONE)
    late = packet_of(1, "late")
    if state == "Gather":
        solo.give_packets(late)
    solo.agree()
    solo.give(solo.first_commit((ONE, TWO), ring, [companion(received=True)]))
    if state == "Commit":
        solo.give_packets(late)
    solo.written()
    solo.give(solo.second_commit([companion(received=True)]))
    assert solo.node.state_name == "Recovery"
    if state == "Recovery":
        solo.give_packets(late)
    for _ in range(3):
        solo.pass_token()
    assert solo.node.state_name == "Operational"
    assert delivered(solo.log) == ["owed"]


def test_before_the_promise_what_the_new_ring_brought_is_kept() -> None:
    """Section 4.3: the old ring's aru may have grown in a recovery that failed."""
    solo = trio(packet_of(2))
    solo.give_packets(wrapped(packet_of(1), 1, PAIR, ONE))
    solo.lose_ring().fail(THREE).recover(companion())
    assert solo.commit_forwarded.members[1].old_aru == 2


def test_a_companion_out_of_nowhere_is_not_believed() -> None:
    """Section 4.3: my_trans_memb only shrinks over failed passes; a Commit token that says otherwise is ignored."""
    solo = promised()
    solo.give(solo.join_of(ONE, {*QUARTET, FIVE}))
    solo.agree()
    solo.give(solo.first_commit((ONE, TWO, FIVE), ConfigurationId(16, ONE)))
    solo.written()
    solo.give(solo.second_commit([companion(received=True), companion(FIVE, received=True)]))
    assert solo.node.state_name == "Commit"
    solo.give(solo.second_commit([companion(received=True)]))
    assert solo.node.state_name == "Recovery"


# Whole stories


def test_all_who_install_continue_from_the_same_number() -> None:
    """Section 4.3: install_seq is equal at all: the first packet of the new ring that carries a message has the same
    seq everywhere, just above the exchanged ones."""
    play = Play(options(nodes=4, ring=PATIENT))

    def rule(source: int, target: int, packet: bytes) -> bool:
        is_alive = play.world.hosts[3].life is not None
        return not (is_alive and is_data(packet) and originator_of(packet, play.events) == 3 and target != 0)

    play.rule = rule
    for moment in range(5):
        play.at(100 + moment, lambda: play.submit(3))
    play.at(105, lambda: play.crash(3))
    play.at(290, lambda: play.submit(1))
    assert play.run().is_valid
    assert play.count(Occurrence.MESSAGES_EXCHANGED) >= 2, "n1 and n2 got n3's messages from n0"
    rings = {view.id for node in range(3) for view in play.views(node) if len(view.members) == 3}
    (ring,) = [ring for ring in rings if play.deliveries(0, ring)]
    firsts = {play.deliveries(node, ring)[0].number for node in range(3)}
    assert len(firsts) == 1 and firsts.pop() > 1


@dataclass
class Merging:
    """n0 to n4 are one ring, u and v another; they begin to merge, and at that moment p is isolated."""

    ring: tuple[int, ...]
    others: tuple[int, ...]
    p: int
    play: Play = field(init=False)
    apart: bool = True
    has_struck: bool = False
    decided: set[int] = field(default_factory=set)  # who has given p up; only they hear that u or v did, too

    def __post_init__(self) -> None:
        self.play = Play(options(nodes=7, ring=PATIENT, fault_time_ns=500 * MILLISECOND))
        self.play.rule = self.rule
        self.play.watch = self.watch
        self.play.at(120, self.meet)
        self.play.at(490, self.play.cut.clear)

    def rule(self, source: int, target: int, packet: bytes) -> bool:
        if self.has_struck and source in self.others and target in self.ring and kind_of(packet) == MessageKind.JOIN:
            join = decode(packet, CLUSTER)
            assert isinstance(join, Join)
            return target in self.decided or not join.failed
        return not self.apart or (source in self.ring) == (target in self.ring)

    def meet(self) -> None:
        self.apart = False

    def watch(self, event: Event) -> None:
        if self.apart or not isinstance(event, Noted) or not isinstance(event.note, Moved):
            return
        if event.note.reason is ChangeReason.MERGE and not self.has_struck:
            self.has_struck = True
            self.play.cut.add(self.p)
        elif (event.note.origin, event.note.target) == ("Gather", "Gather"):
            self.decided.add(node_of(event.process))


def test_figure_4_15() -> None:
    """Section 4.3: ring {p,q,r,s,t}; p is isolated, and q,r,s,t go on with u and v. q,r,s,t deliver the rest in their
    transitional configuration {q,r,s,t}; u and v pass through their own, {u,v}."""
    scene = Merging(ring=(0, 1, 2, 3, 4), others=(5, 6), p=4)
    play = scene.play
    lost: list[bytes] = []

    def rule(source: int, target: int, packet: bytes) -> bool:
        if is_data(packet) and originator_of(packet, play.events) == 3 and target == 4:
            lost.append(packet)
            return False  # so that n3's safe message is not safe when the ring breaks
        return scene.rule(source, target, packet)

    play.rule = rule
    play.at(115, lambda: play.submit(3, Service.SAFE))
    assert play.run().is_valid
    assert lost
    for node in (0, 1, 2, 3):
        assert play.story(node)[2:6] == ["[0 1 2 3 4]", "(0 1 2 3)", "n3", "[0 1 2 3 5 6]"], node
    for node in (5, 6):
        assert play.story(node)[2:5] == ["[5 6]", "(5 6)", "[0 1 2 3 5 6]"]
    assert play.story(4)[2:5] == ["[0 1 2 3 4]", "(4)", "[4]"]


def test_figure_4_16() -> None:
    """Section 4.3: as in Figure 4.15, but q and r do not complete recovery while s,t,u,v install {q,r,s,t,u,v}. Then q
    forms {q,s,t,u,v}: it comes from {p,q,r,s,t}, so that its transitional configuration is {q}, and it must still
    deliver there what it promised for {q,r,s,t}. r ends alone and owes the same. Here u,v,s,t,q,r,p = n0 to n6."""
    scene = Merging(ring=(2, 3, 4, 5, 6), others=(0, 1), p=6)
    play = scene.play
    q, r, p = 4, 5, 6
    tokenless: set[int] = set()

    def rule(source: int, target: int, packet: bytes) -> bool:
        if is_data(packet) and originator_of(packet, play.events) == 2 and target == p:
            return False
        if target in tokenless and kind_of(packet) == MessageKind.TOKEN:
            return False
        return scene.rule(source, target, packet)

    def watch(event: Event) -> None:
        scene.watch(event)
        if r not in play.cut and has_installed(event, [0, 1, 2, 3, 4, 5], 3) and event.at < 490 * MILLISECOND:
            tokenless.add(q)
            play.cut.add(r)
        if tokenless and has_entered(event, q, "Gather"):
            tokenless.clear()

    play.rule = rule
    play.watch = watch
    play.at(115, lambda: play.submit(2, Service.SAFE))
    assert play.run().is_valid
    for node in (2, 3):
        assert play.story(node)[2:8] == [
            "[2 3 4 5 6]",
            "(2 3 4 5)",
            "n2",
            "[0 1 2 3 4 5]",
            "(0 1 2 3)",
            "[0 1 2 3 4]",
        ]
    assert play.story(q)[2:6] == ["[2 3 4 5 6]", "(4)", "n2", "[0 1 2 3 4]"]
    assert play.story(r)[2:6] == ["[2 3 4 5 6]", "(5)", "n2", "[5]"]
    assert play.story(p)[2:5] == ["[2 3 4 5 6]", "(6)", "[6]"]


@pytest.mark.parametrize("parts_before", [3, 20, 41])
def test_a_large_message_cut_by_a_view_change_is_delivered_once_in_one_view(parts_before: int) -> None:
    """Deviation (the paper's messages fit in one packet): a message in parts whose last part was not numbered is
    dropped by all at the end of the ring and sent again on the next; nobody delivers it twice or in halves."""
    play = Play()
    parts: list[bytes] = []

    def rule(source: int, target: int, packet: bytes) -> bool:
        if is_data(packet) and target == 1:
            parts.append(packet)
            if len(parts) == parts_before:
                play.crash(2)
        return True

    play.rule = rule
    play.at(100, lambda: play.submit(0, size=20_000))
    assert play.run().is_valid
    for node in (0, 1):
        deliveries = [event for event in play.events if isinstance(event, DeliveredBatch)]
        assert sum(len(event.messages) for event in deliveries if node_of(event.process) == node) == 1
    assert len({event.configuration for event in deliveries if node_of(event.process) in (0, 1)}) == 1
    again = play.count(Occurrence.LARGE_SENT_AGAIN)
    assert again == (1 if parts_before < 41 else 0)
    assert play.count(Occurrence.LARGE_CUT) == 2 * again


def test_joins_of_a_failed_recovery_speak_of_the_ring_that_failed() -> None:
    """Section 4.2 Commit with E9: ring_seq is that of the ring in recovery, so that others see that it is given up."""
    solo = recovering()
    solo.wait(LOSS)
    assert (solo.join.ring, solo.join.ring_seq) == (RING, 12)


def test_the_exchange_takes_several_visits_when_there_is_much() -> None:
    """Section 4.3: flow control applies in recovery too."""
    solo = recovering(*map(packet_of, range(1, 12)))
    counts = [len(seqs(solo.begin_token()))]
    counts += [len(seqs(solo.pass_token())) for _ in range(3)]
    assert counts == [4, 4, 3, 0]
