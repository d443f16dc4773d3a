"""A status says what a node is, what it does and what is not well, in values that JSON can carry."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import ordercast
from ordercast.daemon.status.advice import advised
from ordercast.daemon.status.parts import ClientsStatus, HoldStatus, Refusal, SealingStatus, StorageStatus, change_text
from ordercast.daemon.status.report import STALE, Meter, refusal_of, status_of
from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.errors import WireError
from ordercast.model.ids import (
    MILLISECOND,
    SECOND,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    Position,
    ProcessId,
    Seq,
    process_id_from,
)
from ordercast.model.inputs import Submission
from ordercast.session.counters import ClientRefusal
from ordercast.wire.head import SEALED, kind_of, with_head
from tests.unit.daemon.fake_node import FakeNode

ALPHA, BETA, GAMMA = (process_id_from(NodeId(n), Incarnation(1)) for n in (1, 2, 3))
BETA_AGAIN = process_id_from(NodeId(2), Incarnation(2))


@pytest.fixture
def node() -> FakeNode:
    fake = FakeNode()
    fake.begin()
    return fake


def view(
    seq: int,
    *members: ProcessId,
    reason: ChangeReason = ChangeReason.MERGE,
    kind: ConfigurationKind = ConfigurationKind.REGULAR,
) -> Configuration:
    ring = ConfigurationId(seq, members[0])
    return Configuration(
        kind, ring, members, ConfigurationId(seq - 4, members[0]), members[:1], reason, Position(ring, Seq(0), 0)
    )


def test_who_and_where(node: FakeNode) -> None:
    status = status_of(node)
    assert (status.me.name, status.me.node, status.me.cluster) == ("alpha", 1, "ordercast")
    assert (status.configuration.id, status.configuration.state, status.configuration.representative) == (
        "4.alpha",
        "Operational",
        "alpha",
    )
    assert [(member.name, member.address, member.is_me) for member in status.configuration.members] == [
        ("alpha", "10.0.0.1", True)
    ]
    assert status.configuration.missing == ("beta", "gamma")
    assert status.uptime_ns == 100 * SECOND


def test_the_document_is_json_with_times_of_day(node: FakeNode) -> None:
    node.counters.views.append((Instant(99 * SECOND), view(8, ALPHA, BETA)))
    node.counters.alarms.append((Instant(98 * SECOND), Alarm(AlarmKind.PAUSED, "did not run")))
    node.counters.last_pause_at = Instant(98 * SECOND)
    status = status_of(node)
    document = json.loads(json.dumps(status.document()))
    assert document["at"].endswith("Z")
    assert (status.at - status.views[0].at).total_seconds() == pytest.approx(1)
    assert (status.at - status.alarms[0].at).total_seconds() == pytest.approx(2)
    assert document["alarms"][0]["kind"] == "paused"
    assert document["sockets"]["lanes"][0]["counters"]["packets_sent"] == 0


def test_rates_are_over_the_last_seconds_however_often_one_asks(node: FakeNode) -> None:
    meter = Meter()
    assert status_of(node, meter).rates.messages_delivered == 0
    for _ in range(100):
        node.clock += 100 * MILLISECOND
        node.counters.messages_delivered += 50
        rates = status_of(node, meter).rates
    assert rates.messages_delivered == pytest.approx(500, rel=0.01)
    assert 4 * SECOND <= rates.over_ns <= 6 * SECOND
    for _ in range(100):
        node.clock += 100 * MILLISECOND
        rates = status_of(node, meter).rates
    assert rates.messages_delivered == 0


def test_the_queue_is_what_was_accepted_and_not_sent(node: FakeNode) -> None:
    waiting = FakeNode()  # not on a ring yet
    waiting.engine.submit([Submission(bytes(1000))], Instant(1))
    flow = status_of(waiting).flow
    assert flow.queue_size >= 1000
    assert flow.queue_size + flow.queue_room == waiting.config.ring.queue_size_max
    assert status_of(node).flow.queue_size == 0


def test_a_view_change_says_who_came_who_is_gone_and_why(node: FakeNode) -> None:
    changes = (
        view(4, ALPHA, reason=ChangeReason.STARTED),
        view(8, ALPHA, BETA, GAMMA),
        view(10, ALPHA, BETA, reason=ChangeReason.TOKEN_LOST, kind=ConfigurationKind.TRANSITIONAL),
        view(12, ALPHA, BETA, reason=ChangeReason.TOKEN_LOST),
        view(16, ALPHA, BETA_AGAIN),
        view(20, ALPHA, reason=ChangeReason.LEFT),
    )
    node.counters.views.extend((Instant(at), change) for at, change in enumerate(changes))
    assert [change_text(change) for change in status_of(node).views] == [
        "view 4.alpha of alpha: a process started",
        "view 8.alpha of alpha beta gamma, beta gamma joined: another ring was heard",
        "transitional view 10.alpha of alpha beta: the token was lost: a member crashed, or the network was cut",
        "view 12.alpha of alpha beta, gamma is gone: the token was lost: a member crashed, or the network was cut",
        "view 16.alpha of alpha beta, beta restarted: another ring was heard",
        "view 20.alpha of alpha, beta left: a member left",
    ]


def test_refusals_are_told_by_few_kinds(node: FakeNode) -> None:
    node.counters.refused.update({"another cluster's packet": 2, "wire version 9, we speak 1": 3})
    node.counters.refused.update({"another engine's packet": 9, f"{SEALED} 7, and this process has no keys": 10})
    node.counters.refused.update({"3 bytes too many": 4, "5 bytes too many": 1, "not an Ordercast packet": 6})
    node.counters.refused.update({"a node that is not on this node's list": 7, STALE[0]: 8})
    assert status_of(node).refused == {
        Refusal.STRANGER.value: 6,
        Refusal.OTHER_CLUSTER.value: 2,
        Refusal.OTHER_ENGINE.value: 9,
        Refusal.OTHER_VERSION.value: 3,
        Refusal.SEALED.value: 10,
        Refusal.UNLISTED.value: 7,
        Refusal.STALE.value: 8,
        Refusal.MALFORMED.value: 5,
    }
    assert refusal_of("an empty datagram") is Refusal.STRANGER
    assert refusal_of("another engine's packet") is Refusal.OTHER_ENGINE


# Advice


def _alone(node: FakeNode) -> None:
    """The only node of its list: nobody is missing."""
    node.config = replace(node.config, peers=node.config.peers[:1], nodes_version=2)
    node.engine.enlist(node.config.roster, Instant(0))


def test_a_healthy_node_has_nothing_to_complain_about(node: FakeNode) -> None:
    _alone(node)
    assert advised(status_of(node)).warnings == ()


def test_who_lacks_a_key_is_told_where_to_get_it(node: FakeNode) -> None:
    """A sealed packet says nothing of its cluster to whoever has no key."""
    _alone(node)
    clear = with_head(b"cluster1", ProcessId(5), bytes(40))
    with pytest.raises(WireError) as refusal:
        kind_of(clear[:3] + bytes((7,)) + bytes(60), b"cluster1")
    node.counters.refused[str(refusal.value)] = 3
    assert advised(status_of(node)).warnings == (
        "3 packets refused (sealed, where this node has no key): "
        "copy the key file of the others here, name it in [security], and start this node again",
    )


def test_what_is_not_well_is_said_with_what_to_do(node: FakeNode) -> None:
    node.sockets.data.receive_buffer_size = 4 << 20
    node.sockets.data.drops = 1
    node.sockets.token.counters.send_failures = 1200
    node.counters.refused["another cluster's packet"] = 7
    node.counters.pauses, node.counters.longest_pause_ns = 2, 530 * MILLISECOND
    assert advised(status_of(node)).warnings == (
        "not in the configuration: beta, gamma",
        "the kernel granted a receive buffer of 4 MiB instead of 32 MiB: sysctl -w net.core.rmem_max=33554432",
        "the kernel refused 1,200 sends on the token lane: see `ip route`",
        "1 packet found the data buffer full: give it a larger one, or the host less to do",
        "7 packets refused (another cluster): give each cluster a multicast group and port of its own",
        "this process did not run for up to 530 ms (2 times): "
        "a busy host, a suspended machine, or a blocked event loop",
    )


def test_another_engine_is_told_of_whether_or_not_packets_are_sealed(node: FakeNode) -> None:
    _alone(node)
    node.counters.refused["another engine's packet"] = 7
    sealing = SealingStatus(refused={"another engine": 2})
    for status, count in ((status_of(node), 7), (replace(status_of(node), sealing=sealing), 9)):
        assert advised(status).warnings == (
            f"{count} packets refused (another engine): some node of this cluster runs another engine: give all the "
            "same one (see the alarms)",
        )


def test_what_clients_do_to_the_others_is_said_with_what_to_do(node: FakeNode) -> None:
    _alone(node)
    node.clients = ClientsStatus(
        memory_size=800,
        memory_max=1000,
        over_memory=1,
        refusals={kind.value: number for number, kind in enumerate(ClientRefusal, 1)},
        holding=(HoldStatus("bob@n1", 3 * SECOND, 16 << 20), HoldStatus("quick@n1", SECOND, 16 << 20)),
    )
    assert advised(status_of(node)).warnings == (
        "everybody has waited for the client bob@n1 for 3 s: it has 16 MiB to read (policy hold)",
        "clients take 800 bytes of 1000 bytes of memory: beyond that, whoever takes the most is disconnected",
        "1 client disconnected for taking too much memory: raise memory_max in [clients], or read faster",
        "3 clients refused (too many clients): raise sessions_max in [clients]",
        "4 clients refused (too many strangers): some program connects again and again and says nothing: see `ss -xp` "
        "and `ss -tp`",
        "6 clients refused (too many groups): raise groups_max or memberships_max in [clients]",
    )
    assert status_of(node).document()["clients"]["holding"][0] == {
        "client": "bob@n1",
        "for_ns": 3 * SECOND,
        "waiting_size": 16 << 20,
    }


def test_a_late_event_loop_and_a_missing_ring_are_noticed() -> None:
    node = FakeNode()
    node.loop_lag_ns = 400 * MILLISECOND
    node.trace_error = "no space left on device"
    warnings = advised(status_of(node)).warnings
    assert any(warning.startswith("no configuration yet, the state is") for warning in warnings)
    assert "the trace is not written: no space left on device" in warnings
    assert "the event loop was 400 ms late within the last minute: something else keeps it busy" in warnings


def test_storage_that_fails_is_not_used_or_is_nearly_full_is_told(node: FakeNode) -> None:
    _alone(node)
    node.storage = StorageStatus("/var/lib/ordercast", is_used=False, error="No space left on device", free=0.004)
    assert advised(status_of(node)).warnings == (
        "the state folder /var/lib/ordercast cannot be written: No space left on device; see to the disk",
        "this node goes on without stable storage: if it restarts before the disk works again, its views may be "
        "numbered lower than before",
        "the file system of the state folder /var/lib/ordercast has 0.4% free: make room",
    )
    node.storage = StorageStatus("/var/lib/ordercast", free=0.01)
    assert advised(status_of(node)).warnings == ()


def test_what_changes_bring_is_no_damage_and_engines_say_it_so() -> None:
    said = "".join(
        file.read_text(encoding="utf-8") for file in (Path(ordercast.__file__).parent / "order").rglob("*.py")
    )
    assert all(f'"{why}"' in said and refusal_of(why) is Refusal.STALE for why in STALE)
