"""What a ring does for a network of rings that it is attached to, rule by rule (paper, chapter 5; deviations, "Many
rings"). `tests/simulation/test_attached.py` holds the same rules over hostile runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import pytest

from ordercast.model.effects import Alarm, AlarmKind, Broadcast, Effect, Persist, Record, SendTo
from ordercast.model.errors import UsageError
from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.model.notes import PacketDropped
from ordercast.model.service import Service
from ordercast.order.attached import Attached, RingChange, RingPackets
from ordercast.order.clock import CLOCK_KEY, CLOCK_RESERVE, Clock, StoredClock
from ordercast.order.lowest import LowestPlace
from ordercast.order.membership.bounds import CLOCK_LEAP
from ordercast.order.ring.two_queues import NATIVE_BLOCK, Freight
from ordercast.wire.codec import NUMBER_MAX, encode
from ordercast.wire.head import CLUSTER as CLUSTER_FIELD
from ordercast.wire.head import HEAD_SIZE, cluster_id_from
from ordercast.wire.header import DESCRIPTOR_SIZE, EXTENDED, FLAGS_AT, HEADER_SIZE, PART_SHIFT, SAFE, Heading, Part
from ordercast.wire.messages import CommitEntry, CommitToken, Token
from ordercast.wire.run import PacketRun, RawRun, build_runs
from tests.packets import header_of

from .solo import CLUSTER, ONE, SMALL, THREE, TRIO, TWO, Solo, data_of, sent

OFFICE = cluster_id_from(SMALL.cluster, "gateways", "office")
DOMAIN = 3
FIRST = ConfigurationId(2 * 1024 + 4 * DOMAIN, ONE)  # what ONE, TWO and THREE form first


def _with_cluster(packet: bytes, cluster: bytes) -> bytes:
    return packet[: CLUSTER_FIELD.start] + cluster + packet[CLUSTER_FIELD.stop :]


class AttachedSolo(Solo):
    """A node whose ring is in a domain of a network; the test speaks of it as if it stood alone."""

    def __init__(
        self,
        me: ProcessId = TWO,
        clock: Clock | None = None,
        share: float = 1.0,
        others: tuple[str, ...] = (),
        **changes: Any,
    ) -> None:
        self.clock = clock or Clock()
        super().__init__(me, attached=Attached(DOMAIN, "office", self.clock, share, others=others), **changes)

    @property
    def cluster(self) -> bytes:
        return CLUSTER

    def give_packets(self, *packets: bytes) -> list[Effect]:
        return super().give_packets(*(_with_cluster(packet, OFFICE) for packet in packets))

    def _keep(self, effects: list[Effect]) -> list[Effect]:
        for effect in effects:
            if isinstance(effect, SendTo):
                effect.packet = _with_cluster(effect.packet, CLUSTER)
            elif isinstance(effect, Broadcast):
                effect.bursts = [(_with_cluster(packet, CLUSTER), len(packet)) for packet in effect.packets]
        return super()._keep(effects)

    def to_commit(self, members: Sequence[ProcessId] = TRIO) -> Self:
        self.to_gather(members).agree()
        if self.me != members[0]:
            self.give(self.first_commit(members, FIRST))
        assert self.node.state_name == "Commit"
        return self

    def native(self, seq: int, tick: int, originator: ProcessId = ONE, text: bytes = b"x") -> bytes:
        heading = Heading(CLUSTER, FIRST, TRIO)
        load = SAFE | EXTENDED, (0,), (len(text),), (0,), [text], b"", NATIVE_BLOCK
        (run,) = build_runs(heading, [load], originator, Seq(seq), 1, tick)
        return run.packet(Seq(seq))

    def carry(self, *texts: str, is_local: bool = False) -> list[Effect]:
        return self._keep(self.node.carry([_freight(text, is_local=is_local) for text in texts], self.now))

    def hold(self, is_held: bool) -> list[Effect]:
        return self._keep(self.node.hold(is_held, self.now))

    def pass_safely(self, **changes: Any) -> list[Effect]:
        """The token comes twice, and all others have everything."""
        return [one for _ in range(3) for one in self.pass_token(aru=self.node.ring.store.aru, **changes)]


def _freight(text: str, *, is_local: bool = False) -> Freight:
    data = text.encode()
    descriptor = bytes(4) + len(data).to_bytes(2, "big") + bytes(1)
    return Freight([RawRun(SAFE | EXTENDED, 1, NATIVE_BLOCK, (), descriptor, [data])], is_local)


def ticks(effects: list[Effect]) -> list[int]:
    return [header_of(packet).timestamp for packet in data_of(effects)]


def texts(effects: list[Effect]) -> list[str]:
    begin = HEADER_SIZE + len(NATIVE_BLOCK) + DESCRIPTOR_SIZE
    return [packet[begin:].decode() for packet in data_of(effects)]


def handed(effects: list[Effect]) -> list[PacketRun]:
    return [run for effect in effects if isinstance(effect, RingPackets) for run in effect.runs]


def changes_in(effects: list[Effect]) -> list[RingChange]:
    return [effect for effect in effects if isinstance(effect, RingChange)]


# Ticks


def test_all_packets_of_a_visit_have_one_tick_above_clock_and_token() -> None:
    solo = AttachedSolo().to_operational()
    solo.submit("a", "b", size=400)
    solo.node.carry([_freight("f")], solo.now)
    solo.clock.hear(50)
    assert ticks(solo.pass_token(timestamp=40)) == [51, 51]
    assert solo.token_forwarded.timestamp == 51
    solo.node.carry([_freight("f"), _freight("g")], solo.now)
    assert ticks(solo.pass_token(timestamp=90)) == [91, 91]


def test_what_is_added_to_a_visit_lies_above_all_that_was_met_since() -> None:
    solo = AttachedSolo(ONE)
    solo.to_ring_of_one()
    first = ticks(solo.carry("f"))
    solo.wait(solo.config.announce_ns)
    solo.clock.hear(first[0] + 10)
    assert ticks(solo.carry("g", "h")) == [first[0] + 11] * 2


def test_rings_of_one_process_have_one_clock() -> None:
    clock = Clock()
    west, east = AttachedSolo(TWO, clock).to_operational(), AttachedSolo(TWO, clock)
    east.to_ring_of_one()
    west.carry("f")
    used = ticks(west.pass_token(timestamp=700))
    assert ticks(east.carry("g")) == [used[0] + 1]


def test_a_tick_that_is_handed_up_is_heard() -> None:
    solo = AttachedSolo().to_operational()
    solo.give_packets(solo.native(1, 500))
    solo.pass_safely(seq=Seq(1))
    assert solo.clock.tick == 500


def test_a_tick_that_leaps_is_neither_handed_up_nor_heard() -> None:
    solo = AttachedSolo().to_operational()
    solo.give_packets(solo.native(1, 500), solo.native(2, NUMBER_MAX), solo.native(3, 501))
    effects = solo.pass_safely(seq=Seq(3))
    assert [seq for run in handed(effects) for seq in range(run.seq, run.last + 1)] == [1, 3]
    assert solo.clock.tick == 501
    assert [one.note.why for one in effects if isinstance(one, Record) and isinstance(one.note, PacketDropped)] == [
        "a packet from a time that cannot be"
    ]


def test_a_tick_that_leaps_is_not_what_a_ring_is_born_at() -> None:
    solo = _cut_off()
    solo.give_packets(solo.native(2, NUMBER_MAX))
    solo.agree()
    solo.give(solo.first_commit((ONE, TWO), ConfigurationId(FIRST.seq + 1024, ONE)))
    assert solo.commit_forwarded.timestamp <= 900 + CLOCK_LEAP


def _stored(bound: int = 0) -> tuple[StoredClock, dict[str, bytes]]:
    stored = {CLOCK_KEY: bound.to_bytes(8, "big")}
    clock = StoredClock()
    clock.start(stored)
    return clock, stored


def test_a_life_begins_above_the_bound_and_not_before_a_higher_one_is_stored() -> None:
    clock, stored = _stored(7000)
    solo = AttachedSolo(ONE, clock, stored=stored)
    clock.writes()
    assert changes_in(solo.written()) == []
    clock.persisted()
    (change,) = changes_in(solo._keep(solo.node.clock_stored(solo.now)))
    assert change.birth == 7001 and change.configuration.members == (ONE,)
    assert ticks(solo.carry("f")) == [7002]


def test_packets_above_the_stored_bound_wait_for_it() -> None:
    clock, _ = _stored()
    clock.writes()
    clock.persisted()
    solo = AttachedSolo(TWO, clock).to_operational()
    solo.submit("native")
    solo.carry("f")
    far = 5 * CLOCK_RESERVE
    assert data_of(solo.pass_token(timestamp=far)) == []
    (write,) = [one for one in clock.writes() if isinstance(one, Persist)]
    assert int.from_bytes(write.value, "big") == far + CLOCK_RESERVE
    assert data_of(solo.pass_token()) == []
    clock.persisted()
    solo._keep(solo.node.clock_stored(solo.now))
    assert ticks(solo.pass_token()) == [far + 1, far + 1]


def test_a_disk_that_hangs_is_not_waited_for_for_ever() -> None:
    clock, stored = _stored()
    solo = AttachedSolo(ONE, clock, stored=stored)
    clock.writes()
    solo.wait(solo.config.storage_patience_ns)
    assert clock.is_without and [change.birth for change in changes_in(solo.log)] == [1]
    assert ticks(solo.carry("f")) == [2]
    clock.persisted()
    solo.clock.hear(5 * CLOCK_RESERVE)
    clock.writes()
    assert ticks(solo.carry("g")) == []
    assert ticks(solo.wait(solo.config.storage_patience_ns)) == [5 * CLOCK_RESERVE + 1]
    kinds = [one.kind for one in solo.log if isinstance(one, Alarm)]
    assert kinds.count(AlarmKind.WITHOUT_STORAGE) == 3  # of the ring seq, of the clock, and of the clock again
    solo._keep(solo.node.clock_stored(solo.now, is_again=clock.persisted()))
    assert [one.kind for one in solo.log if isinstance(one, Alarm)][-1] is AlarmKind.STORAGE_REPAIRED


def _heard_above_the_bound() -> tuple[AttachedSolo, StoredClock]:
    """Return a member with nothing to send that has heard a tick above what is stored."""
    clock, _ = _stored()
    clock.writes()
    clock.persisted()
    solo = AttachedSolo(TWO, clock).to_operational()
    solo.pass_token(timestamp=5 * CLOCK_RESERVE)
    clock.writes()
    return solo, clock


def _goes_without(effects: Sequence[Effect]) -> bool:
    return AlarmKind.WITHOUT_STORAGE in [one.kind for one in effects if isinstance(one, Alarm)]


def test_the_order_waits_for_the_bound_no_longer_than_what_is_sent() -> None:
    solo, clock = _heard_above_the_bound()
    assert not _goes_without(solo.wait(solo.config.storage_patience_ns - 1))
    assert _goes_without(solo.wait(1)) and clock.covers(10 * CLOCK_RESERVE)


def test_a_later_wait_for_the_bound_has_a_patience_of_its_own() -> None:
    solo, clock = _heard_above_the_bound()
    solo.wait(solo.config.storage_patience_ns - 1)
    clock.persisted()
    solo._keep(solo.node.clock_stored(solo.now))
    solo.pass_token(timestamp=10 * CLOCK_RESERVE)
    assert not _goes_without(solo.wait(solo.config.storage_patience_ns - 1))
    assert _goes_without(solo.wait(1))


def test_the_patience_is_for_one_write_of_the_bound() -> None:
    solo, clock = _heard_above_the_bound()
    solo.pass_token(timestamp=10 * CLOCK_RESERVE)
    solo.wait(solo.config.storage_patience_ns - 1)
    clock.persisted()
    solo._keep(solo.node.clock_stored(solo.now))
    assert clock.writes()
    assert not _goes_without(solo.wait(solo.config.storage_patience_ns - 1))
    assert _goes_without(solo.wait(1))


def test_a_life_waits_for_the_ring_seq_although_the_clock_is_stored() -> None:
    clock, stored = _stored(7000)
    solo = AttachedSolo(ONE, clock, stored=stored)
    clock.writes()
    clock.persisted()
    assert changes_in(solo._keep(solo.node.clock_stored(solo.now))) == []
    assert len(changes_in(solo.written())) == 1


@pytest.mark.parametrize("is_clock_stored", [True, False])
def test_a_life_goes_without_what_is_not_stored_and_nothing_else(is_clock_stored: bool) -> None:
    clock, stored = _stored()
    solo = AttachedSolo(ONE, clock, stored=stored)
    clock.writes()
    if is_clock_stored:
        clock.persisted()
    else:
        solo.written()
    solo.wait(solo.config.storage_patience_ns)
    assert (solo.node.is_without_storage, clock.is_without) == (is_clock_stored, not is_clock_stored)
    assert [one.kind for one in solo.log if isinstance(one, Alarm)] == [AlarmKind.WITHOUT_STORAGE]


def test_a_birth_is_covered_before_the_ring_is_formed() -> None:
    clock, _ = _stored()
    clock.writes()
    clock.persisted()
    solo = AttachedSolo(TWO, clock)
    solo.to_commit()
    solo.written()
    far = 5 * CLOCK_RESERVE
    solo.give(replace(solo.second_commit(), timestamp=far))
    assert solo.node.state_name == "Commit"
    assert clock.writes()
    clock.persisted()
    solo._keep(solo.node.clock_stored(solo.now))
    assert solo.node.state_name == "Recovery" and solo.node.ring.birth < far  # of the old ring


# Stamp and freeze


def _cut_off(me: ProcessId = TWO) -> AttachedSolo:
    """A member that holds a packet of tick 900 which its token did not tell of, and lost its ring."""
    solo = AttachedSolo(me).to_operational()
    solo.give_packets(solo.native(1, 900, originator=ONE))
    solo.lose_ring().fail(THREE)
    return solo


def test_the_commit_token_is_stamped_with_the_highest_tick_that_is_held() -> None:
    solo = _cut_off()
    solo.agree()
    ring = ConfigurationId(FIRST.seq + 1024, ONE)
    solo.give(solo.first_commit((ONE, TWO), ring))
    assert solo.commit_forwarded.timestamp == 900


def test_old_packets_are_not_taken_behind_the_stamp() -> None:
    solo = _cut_off()
    solo.give_packets(solo.native(2, 901))
    assert solo.node.ring.store.aru == 2  # Gather takes them
    solo.agree()
    solo.give(solo.first_commit((ONE, TWO), ConfigurationId(FIRST.seq + 1024, ONE)))
    solo.give_packets(solo.native(3, 902))
    assert solo.node.ring.store.aru == 2 and solo.commit_forwarded.timestamp == 901


def _recovered(solo: AttachedSolo, **second: Any) -> list[RingChange]:
    solo.agree()
    solo.give(solo.first_commit((ONE, TWO), ConfigurationId(FIRST.seq + 1024, ONE)))
    solo.written()
    solo.give(replace(solo.second_commit([_companion(ONE)]), **second))
    assert solo.node.state_name == "Recovery"
    begun = len(solo.log)
    solo.install()
    return changes_in(solo.log[begun:])


def _companion(process: ProcessId) -> CommitEntry:
    return CommitEntry(process, True, FIRST, Seq(1), Seq(0))


def test_a_birth_is_one_above_what_the_first_rotation_found_and_the_second_leaves_it() -> None:
    solo = _cut_off()
    solo.agree()
    solo.give(solo.first_commit((ONE, TWO), ConfigurationId(FIRST.seq + 1024, ONE)))
    solo.written()
    solo.clock.hear(5000)  # on another ring of this process
    solo.give(replace(solo.second_commit([_companion(ONE)]), timestamp=950))
    assert isinstance(solo.forwarded, CommitToken) and solo.forwarded.timestamp == 950
    begun = len(solo.log)
    solo.install()
    assert [change.birth for change in changes_in(solo.log[begun:])] == [951]


# What is handed up


def test_regular_packets_are_handed_up_with_their_headers_when_all_have_them() -> None:
    solo = AttachedSolo().to_operational()
    effects = solo.give_packets(solo.native(1, 5, ONE, b"one"), solo.native(2, 6, THREE, b"two"))
    assert handed(effects) == []
    effects = solo.pass_safely(seq=Seq(2))
    assert [(run.seq, run.timestamp(run.seq), run.originator, run.flags) for run in handed(effects)] == [
        (1, 5, ONE, SAFE | EXTENDED),
        (2, 6, THREE, SAFE | EXTENDED),
    ]


def test_what_was_left_comes_in_one_step_with_the_configuration() -> None:
    (change,) = _recovered(_cut_off())
    assert [(run.seq, run.timestamp(1), run.originator) for run in change.residual] == [(1, 900, ONE)]
    assert change.configuration.members == change.configuration.transitional == (ONE, TWO)
    assert change.birth == 901


def test_what_leapt_is_not_left_however_little_it_leapt() -> None:
    solo = _cut_off()
    solo.give_packets(solo.native(2, solo.clock.tick + CLOCK_LEAP + 1))
    (change,) = _recovered(solo)
    assert [run.seq for run in change.residual] == [1]
    assert all(run.timestamp(run.last) < change.birth for run in change.residual)


def test_beyond_a_gap_only_what_those_sent_who_come_along_is_left() -> None:
    solo = _cut_off()
    solo.give_packets(solo.native(3, 902, THREE), solo.native(4, 903, ONE))
    (change,) = _recovered(solo)
    assert [run.seq for run in change.residual] == [1, 4]


def test_a_large_message_is_handed_up_in_parts() -> None:
    solo = AttachedSolo(ONE)
    solo.to_ring_of_one()
    solo.submit("large", size=3000)
    runs = handed(solo.wait(solo.config.announce_ns))
    parts = [run.packet(Seq(seq))[FLAGS_AT] >> PART_SHIFT for run in runs for seq in range(run.seq, run.last + 1)]
    assert parts == [Part.FIRST, Part.MIDDLE, Part.LAST]


# Safe


@pytest.mark.parametrize("service", [Service.AGREED, Service.SAFE])
def test_everything_is_sent_as_safe(service: Service) -> None:
    solo = AttachedSolo().to_operational()
    solo.submit("native", service=service)
    (packet,) = data_of(solo.pass_token())
    assert packet[FLAGS_AT] == SAFE | EXTENDED


# Two queues


def test_a_hold_stops_users_and_nobody_else() -> None:
    solo = AttachedSolo().to_operational()
    solo.hold(True)
    solo.submit("native")
    solo.carry("f")
    assert texts(solo.pass_token()) == ["f"]
    assert texts(solo.pass_token()) == []
    solo.hold(False)
    assert texts(solo.pass_token()) == ["native"]


def test_a_token_rests_although_users_are_held_and_is_woken_when_they_go_on() -> None:
    solo = AttachedSolo(ONE)
    solo.to_ring_of_one()
    solo.hold(True)
    solo.submit("native")
    solo.wait(solo.config.announce_ns)
    assert solo.node.next_deadline() != solo.now
    assert texts(solo.hold(False)) == ["native"]


def settled() -> AttachedSolo:
    """The representative of a ring on which nothing has happened for some rotations; the token is on its way."""
    solo = AttachedSolo(ONE).to_operational()
    for _ in range(6):
        solo.pass_token()
        solo.wait(solo.config.rest_ns)
    return solo


def test_a_token_rests_with_a_leaving_process_whose_users_are_held() -> None:
    solo = settled()
    solo.hold(True)
    solo.submit("native")
    solo.leave()
    assert sent(solo.pass_token(), Token) == []


def test_a_token_does_not_rest_for_an_application_that_is_behind() -> None:
    """Others wait for what is carried."""
    assert sent(settled().pass_token(), Token) == []
    assert len(sent(settled().pass_token(behind=1, waiting=3, counted=(0, 3, 1)), Token)) == 1


def test_a_token_rests_behind_freight_although_users_are_held() -> None:
    solo = AttachedSolo(ONE)
    solo.to_ring_of_one()
    solo.hold(True)
    solo.submit("native")
    solo.carry("f")
    for _ in range(3):  # a token that does not rest goes round as often as it is let
        solo._keep(solo.node.wake(solo.now))
    assert (solo.node.next_deadline() or solo.now) > solo.now


def test_who_leaves_waits_until_users_may_send() -> None:
    solo = AttachedSolo(ONE)
    solo.to_ring_of_one()
    solo.hold(True)
    solo.submit("native")
    solo.leave()
    solo.wait(solo.config.announce_ns)
    assert not solo.node.is_gone
    assert texts(solo.hold(False)) == ["native"]
    solo.wait(solo.config.announce_ns)
    assert solo.node.is_gone


def test_an_application_that_is_behind_stops_nobody() -> None:
    solo = AttachedSolo().to_operational()
    solo.carry("f")
    assert texts(solo.pass_token(behind=2, counted=(0, 0, 2), budget=9)) == ["f"]
    with pytest.raises(UsageError, match="never stops"):
        solo.node.behind(True, solo.now)


def test_freight_that_was_meant_for_a_ring_ends_with_it() -> None:
    solo = _cut_off()
    solo.carry("local", is_local=True)
    solo.carry("flooded")
    _recovered(solo)
    assert texts(solo.pass_token()) == ["flooded"]


# How far all members are


def test_the_token_carries_the_lowest_place_of_the_members() -> None:
    solo = AttachedSolo().to_operational()
    solo.node.lowest.mine = (9, 1, 1)
    for _ in range(3):
        solo.pass_token()
    assert solo.node.lowest.known == (9, 1, 1)  # the others hold nothing down
    behind = LowestPlace()
    behind.mine = (5, 1, 1)
    solo.node.lowest.mine = (20, 1, 1)
    for _ in range(3):
        solo.pass_token(extension=behind.visit(FIRST, THREE, solo.token_forwarded.extension))
    assert solo.node.lowest.known == (9, 1, 1)
    behind.mine = (15, 1, 1)
    for _ in range(3):
        solo.pass_token(extension=behind.visit(FIRST, THREE, solo.token_forwarded.extension))
    assert solo.node.lowest.known == (15, 1, 1)


# Ids and shares


def test_a_ring_names_its_domain() -> None:
    solo = AttachedSolo(ONE)
    solo.to_commit()
    assert solo.node.ring.id.seq == 1024 + 4 * DOMAIN
    assert solo.commit_forwarded.ring == FIRST


def test_rings_of_different_domains_do_not_hear_each_other() -> None:
    solo = AttachedSolo()
    solo.to_ring_of_one()
    lab = cluster_id_from(SMALL.cluster, "gateways", "lab")
    for cluster in (CLUSTER, cluster_id_from(SMALL.cluster, "gateways"), lab):
        packet = encode(cluster, solo.join_of(ONE, TRIO))
        effects = Solo.give_packets(solo, packet)
        assert [one.note.why for one in effects if isinstance(one, Record) and isinstance(one.note, PacketDropped)]
    assert solo.node.state_name == "Operational"
    solo.give(solo.join_of(ONE, TRIO))
    assert solo.node.state_name == "Operational"  # its sender is not heard by all, but the packet was read


def test_who_is_heard_in_a_domain_that_is_not_its_own_is_told_to_a_person_once() -> None:
    solo = AttachedSolo(others=("lab",))
    solo.to_ring_of_one()
    packet = encode(cluster_id_from(SMALL.cluster, "gateways", "lab"), solo.join_of(ONE, TRIO))
    effects = [one for _ in range(2) for one in Solo.give_packets(solo, packet)]
    (alarm,) = [one for one in effects if isinstance(one, Alarm)]
    assert alarm.text.startswith("domains are crossed: n1 is heard on the ring 'office' with packets of 'lab'")


def test_a_packet_of_another_domain_that_ends_in_its_head_names_nobody() -> None:
    solo = AttachedSolo(others=("lab",))
    solo.to_ring_of_one()
    packet = encode(cluster_id_from(SMALL.cluster, "gateways", "lab"), solo.join_of(ONE, TRIO))
    effects = [one for size in range(HEAD_SIZE + 1) for one in Solo.give_packets(solo, packet[:size])]
    assert not [one for one in effects if isinstance(one, Alarm)]


@pytest.mark.parametrize(("share", "count"), [(1.0, 4), (1.5, 6), (2.0, 8), (3.0, 8)])
def test_a_gateway_sends_its_share_and_no_more_than_the_window(share: float, count: int) -> None:
    solo = AttachedSolo(ONE, share=share).to_operational()
    solo.carry(*"abcdefgh")
    assert len(data_of(solo.pass_token(waiting=0, counted=(0, 0, 0)))) == count


@pytest.mark.parametrize("share", [1.0, 1.5, 2.0])
def test_who_has_more_to_carry_than_two_visits_take_asks_for_a_whole_window(share: float) -> None:
    solo = AttachedSolo(ONE, share=share).to_operational()
    solo.carry(*"abcdefghijklmnopq")
    effects = solo.pass_token(waiting=0, counted=(0, 0, 0))
    assert len(data_of(effects)) == SMALL.window == 8


@pytest.mark.parametrize("share", [1.0, 2.0])
@pytest.mark.parametrize(("sent_before", "count"), [(3, 8), (8, 4), (11, 1), (12, 0)])
def test_a_whole_window_is_no_more_than_a_rotation_may_have_which_is_what_receivers_have_room_for(
    sent_before: int, count: int, share: float
) -> None:
    assert SMALL.window + SMALL.visit_max == 12
    solo = AttachedSolo(share=share).to_operational()
    solo.carry(*"abcdefghijklmnopq")
    effects = solo.pass_token(seq=Seq(sent_before), budget=8, waiting=0, counted=(0, 0, 0))
    assert len(data_of(effects)) == count


def test_a_whole_window_is_for_freight_and_users_of_a_gateway_send_no_more_than_they_would_otherwise() -> None:
    solo = AttachedSolo().to_operational()
    solo.submit(*(f"native {number}" for number in range(12)), size=1000)
    solo.carry(*"abcdefghijklmnopq")
    found = texts(solo.pass_token(budget=8, waiting=0, counted=(0, 0, 0)))
    assert len(found) == SMALL.window
    assert sum(text.startswith("native") for text in found) == SMALL.visit_max // 2
    solo.carry(*"rstu")  # of 17 eleven are left
    found = texts(solo.pass_token(budget=8, waiting=0, counted=(0, 0, 0)))
    assert sum(text.startswith("native") for text in found) == SMALL.visit_max // 2


def test_who_has_several_networks_beneath_never_sends_more_than_its_share() -> None:
    solo = AttachedSolo(ONE, beneath="two networks").to_operational()
    solo.carry(*"abcdefghijklmnopq")
    assert len(data_of(solo.pass_token(waiting=0, counted=(0, 0, 0)))) == SMALL.visit_max == 4
