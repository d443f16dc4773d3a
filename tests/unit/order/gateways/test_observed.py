"""What a person sees of a network of rings: what is next, what it waits for, and what is told when it lasts."""

from __future__ import annotations

from dataclasses import replace

from ordercast.model.effects import AlarmKind
from ordercast.model.ids import SECOND, Instant, NodeId, ProcessId
from ordercast.order.gateways.items import HoldItem
from ordercast.order.gateways.node import GatewayNode
from ordercast.order.gateways.observed import NetworkSnapshot, WaitKind, snapshot_of
from ordercast.order.gateways.watch import HELD_NS, SILENT_NS, NetworkWatch
from ordercast.sim.run import Result
from tests.conformance.network_stage import Stage, people, ring_ids
from tests.unit.order.gateways.played import played

P, Q, R = 1, 2, 3  # p on ring A; gateway q joins A and B, gateway r joins B and C
PARALLEL = ((0, 1), (0, 1), (0,), (1,))  # two gateways join two rings


def _stage(is_safe: bool = False) -> Stage:
    members = {"A": people(P, Q), "B": people(Q, R, 4, 5), "C": people(R, 6)}
    stage = Stage(ProcessId(P), members, people(Q, R), ring_ids("ABC"))
    stage.receive("A", (7, 14), is_safe)
    stage.receive("B", (9, 13), is_safe)
    for name, tick in (("A", 29), ("B", 17), ("C", 11)):
        stage.tell_front(name, tick)
    return stage


def test_the_next_message_waits_for_the_ring_whose_front_is_low() -> None:
    stage = _stage()
    stage.step()
    seen = snapshot_of(stage.network)
    assert [ring.undelivered for ring in seen.rings] == [1, 1, 0] and seen.undelivered == 2
    waiting = seen.waiting
    assert waiting is not None and waiting.kind is WaitKind.MESSAGE and waiting.stamp[0] == 13
    assert waiting.ring == stage.ids["B"] and waiting.fronts == (stage.ids["C"],) and not waiting.for_disk
    assert dict(seen.attachments)[ProcessId(Q)] == (1, 2) and seen.gateways.keys() == people(Q, R)


def test_a_safe_message_waits_for_those_who_are_not_known_to_have_it() -> None:
    stage = _stage(is_safe=True)
    stage.guarantee("A", {"A": 7})
    stage.guarantee("B", {"A": 7})
    stage.step()
    waiting = snapshot_of(stage.network).waiting
    assert waiting is not None and waiting.kind is WaitKind.SAFE_MESSAGE and waiting.stamp[0] == 7
    assert not waiting.fronts and ProcessId(6) in waiting.processes


def test_nothing_waits_when_everything_is_delivered() -> None:
    stage = _stage()
    stage.tell_front("C", 14)
    stage.step()
    assert snapshot_of(stage.network).waiting is None


def test_looking_changes_nothing() -> None:
    looked, other = _stage(), _stage()
    for _ in range(3):
        snapshot_of(looked.network)
    looked.tell_front("C", 14)
    other.tell_front("C", 14)
    assert looked.step() == other.step()


def test_a_ring_that_delivery_waits_for_is_an_alarm_after_a_while_and_so_is_its_end() -> None:
    stage, watch = _stage(), NetworkWatch({1: "office", 3: "lab"}, {NodeId(0): "gate"})
    stage.step()
    assert watch.look(snapshot_of(stage.network), Instant(0)) == []
    (alarm,) = watch.look(snapshot_of(stage.network), Instant(SILENT_NS))
    assert alarm.kind is AlarmKind.RING_SILENT and alarm.domain == 3
    assert alarm.text == "lab has said nothing for 2.0 s, and 2 packets wait for it here: see its gateways gate"
    assert watch.stalled() == alarm.text
    waiting = snapshot_of(stage.network).waiting
    assert waiting is not None and watch.waits_since(waiting) == 0
    stage.tell_front("C", 14)
    stage.step()
    (end,) = watch.look(snapshot_of(stage.network), Instant(3 * SECOND))
    assert end.kind is AlarmKind.RING_HEARD and "after 3.0 s" in end.text and watch.stalled() is None


def test_who_holds_for_long_is_why_nothing_flows() -> None:
    stage, watch = _stage(), NetworkWatch({}, {})
    seen = replace(snapshot_of(stage.network), holds=(HoldItem(ProcessId(P), 1, "the application is behind"),))
    watch.look(seen, Instant(0))
    assert watch.stalled() is None and watch.holds_since(ProcessId(P), 1) == 0
    watch.look(seen, Instant(HELD_NS))
    assert watch.stalled() == "n0 asks everybody to stop sending: the application is behind"
    watch.look(replace(seen, holds=()), Instant(2 * HELD_NS))
    assert watch.stalled() is None and watch.holds_since(ProcessId(P), 1) is None


def test_a_ring_whose_last_member_leaves_while_its_gateways_hear_each_other_is_not_cut_off() -> None:
    stage, watch = _stage(), NetworkWatch({}, {})
    seen = snapshot_of(stage.network)
    watch.look(seen, Instant(0))
    without = replace(
        seen,
        attachments=tuple(each for each in seen.attachments if each[0] not in people(4, 5)),
        rings=tuple(replace(ring, members=tuple(set(ring.members) - people(4, 5))) for ring in seen.rings),
    )
    assert AlarmKind.NETWORK_IN_TWO not in [alarm.kind for alarm in watch.look(without, Instant(SECOND))]


# Networks that run


def _play(*faults: str) -> tuple[Result, dict[int, GatewayNode], list[NetworkSnapshot | None]]:
    snapshots: list[NetworkSnapshot | None] = []
    engines: dict[int, GatewayNode] = {}
    result = played(PARALLEL, engines, faults, lambda: snapshots.append(engines[3].snapshot()))
    return result, engines, snapshots


def _told(result: Result, node: int) -> list[AlarmKind]:
    return [alarm.kind for _, process, alarm in result.alarms if process >> 48 == node]


def test_the_loss_of_one_of_two_gateways_names_the_other() -> None:
    result, engines, (seen,) = _play("1s crash n0", "3.5s restart n0")
    assert _told(result, 3) == [AlarmKind.GATEWAY_LOST, AlarmKind.GATEWAY_BACK]
    assert next(alarm.text for *_, alarm in result.alarms).endswith("n1 still does; see whether it runs")
    assert seen is not None and len(seen.gateways) == 1 and len(seen.rings) == 2
    last = engines[3].snapshot()
    assert last is not None and len(last.gateways) == 2 and last.undelivered == 0 and last.waiting is None


def test_the_loss_of_both_leaves_a_network_in_two_until_one_is_back() -> None:
    result, _, (seen,) = _play("1s crash n0", "1s crash n1", "3.2s restart n1")
    told = _told(result, 3)
    assert told.count(AlarmKind.NETWORK_IN_TWO) == told.count(AlarmKind.NETWORK_ONE_AGAIN) == 1
    assert seen is not None and [ring.domain for ring in seen.rings] == [1]
    assert any("it was the only way" in alarm.text for *_, alarm in result.alarms)


def test_who_leaves_in_order_is_not_lost_gateways_and_rings_neither() -> None:
    """As when Ctrl-C ends a network: one after the other, the users first."""
    result, *_ = _play("1s leave n3", "1.5s leave n1", "2s leave n0")
    assert _told(result, 2) == []


def test_a_gateway_that_left_is_not_named_as_lost_though_those_behind_it_are() -> None:
    line = ((0, 1), (0,), (1,))
    result = played(line, {}, ["1s leave n0"])
    assert _told(result, 1) == _told(result, 2) == [AlarmKind.NETWORK_IN_TWO]


def test_where_one_left_and_another_failed_nobody_is_taken_for_one_who_left() -> None:
    result, *_ = _play("1s leave n1", "1.0001s crash n0")
    assert AlarmKind.GATEWAY_LOST in _told(result, 3)
