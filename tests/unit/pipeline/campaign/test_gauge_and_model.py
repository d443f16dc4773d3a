"""What is measured of a run, and what the paper's formulas predict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ordercast.model.ids import (
    MICROSECOND,
    MILLISECOND,
    SECOND,
    ConfigurationId,
    Incarnation,
    Instant,
    NodeId,
    ProcessId,
    process_id_from,
)
from ordercast.model.notes import Visited
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.ring.config import BESIDE_BODY
from ordercast.pipeline.campaign.gauge import Gauge, Measure
from ordercast.pipeline.campaign.model import (
    Limit,
    Model,
    agreed_us,
    bytes_per_s,
    filling,
    messages_per_s,
    model_of,
    network_us,
    rotation_us,
    safe_us,
)
from ordercast.pipeline.campaign.plan import campaign_from
from ordercast.sim.options import SimOptions
from ordercast.sim.topology import Rate
from ordercast.trace.records import (
    DeliveredBatch,
    DeliveredMessage,
    Event,
    MessageId,
    Noted,
    Saturated,
    Submitted,
    SubmittedMessage,
)
from ordercast.wire.header import DESCRIPTOR_SIZE, HEADER_SIZE

ONE, TWO = (process_id_from(NodeId(node), Incarnation(1)) for node in (0, 1))
RING, NEXT_RING = ConfigurationId(4, ONE), ConfigurationId(8, ONE)
CAMPAIGNS = Path(__file__).parents[4] / "campaigns"


def _ms(value: float) -> Instant:
    return Instant(int(value * MILLISECOND))


def _visit(at: float, process: ProcessId, ring: ConfigurationId = RING) -> Event:
    return Noted(_ms(at), process, Visited(ring, 1, 1, 1, 1, 0, 0, 0))


def _submitted(at: float, counter: int, sender: ProcessId = ONE) -> Event:
    return Submitted(_ms(at), sender, (SubmittedMessage(MessageId(sender, 0, counter), 1, 4, 100),))


def _delivered(at: float, process: ProcessId, *counters: int, sender: ProcessId = ONE) -> Event:
    messages = tuple(DeliveredMessage(MessageId(sender, 0, counter), 1, 4, 100, 1, 0) for counter in counters)
    return DeliveredBatch(_ms(at), process, RING, RING, messages)


def _measured(measure: Measure, *events: Event, by_sender: bool = False) -> dict[str, float]:
    gauge = Gauge(measure, by_sender)
    for event in events:
        gauge.observe(event)
    return gauge.measures()


WINDOW = Measure(_ms(10), _ms(110))


def test_rotations_are_gaps_between_visits_of_one_process_on_one_ring() -> None:
    visits = [_visit(at, ONE) for at in (5, 20, 30, 50)] + [_visit(60, ONE, NEXT_RING), _visit(70, ONE, NEXT_RING)]
    found = _measured(WINDOW, *visits, _visit(21, TWO))
    assert found["rotation_us"] == pytest.approx((10 + 20 + 10) / 3 * 1000)


def test_latency_is_the_mean_over_the_members_and_that_of_the_last() -> None:
    events = [_submitted(20, 1), _submitted(30, 2), _submitted(100, 3)]
    events += [_delivered(22, ONE, 1), _delivered(24, TWO, 1), _delivered(34, ONE, 2), _delivered(38, TWO, 2)]
    events += [_delivered(105, ONE, 3), _delivered(120, TWO, 3)]  # not whole within the window
    found = _measured(WINDOW, *events)
    assert found["latency_us"] == pytest.approx((3 + 6) / 2 * 1000)
    assert found["latency_last_us"] == pytest.approx((4 + 8) / 2 * 1000)


def test_latency_and_intervals_of_each_sender() -> None:
    events = [_submitted(20, 1), _submitted(30, 2), _submitted(40, 1, TWO)]
    events += [_delivered(22, ONE, 1), _delivered(24, TWO, 1), _delivered(32, ONE, 2), _delivered(38, TWO, 2)]
    events += [_delivered(50, ONE, 1, sender=TWO), _delivered(52, TWO, 1, sender=TWO)]
    found = _measured(WINDOW, *events, by_sender=True)
    assert found["n0_latency_us"] == pytest.approx((3 + 5) / 2 * 1000)
    assert found["n1_latency_us"] == pytest.approx(11 * 1000)
    assert found["n0_interval_us"] == pytest.approx((10 + 14) / 2 * 1000)
    assert found["n0_interval_deviation_us"] == pytest.approx(2 * 1000)
    assert "n1_interval_us" not in found  # of one message there is none
    assert not any(name.startswith("n") for name in _measured(WINDOW, *events))


def test_throughput_is_that_of_the_mean_member() -> None:
    found = _measured(WINDOW, _delivered(20, ONE, 1, 2, 3), _delivered(50, TWO, 1), _delivered(5, ONE, 9))
    assert found["messages_per_s"] == pytest.approx(20)
    assert found["bytes_per_s"] == pytest.approx(2000)


def test_a_saturated_stretch_is_measured_without_its_beginning() -> None:
    events = [
        Saturated(_ms(1000), (ONE,), begins=True),
        _delivered(1050, ONE, 1, 2, 3, 4, 5),
        _delivered(1500, ONE, 6),
        _delivered(2000, ONE, 7, 8),
        Saturated(_ms(2000), (ONE,), begins=False),
        _delivered(2500, ONE, 9),
    ]
    found = _measured(Measure(0, 0, saturated=True), _delivered(500, ONE, 10), *events)
    assert found["messages_per_s"] == pytest.approx(3 / 0.9)
    assert "latency_us" not in found


def test_nothing_is_measured_where_nothing_happened() -> None:
    assert _measured(WINDOW) == {}
    assert _measured(Measure(0, 0, saturated=True), _delivered(20, ONE, 1)) == {}


# The model


def test_the_formulas() -> None:
    options = replace(SimOptions(), nodes=5, messages=1000, fault_time_ns=900 * MILLISECOND, size_max=1000)
    model = Model(1e6, [Limit(packet_ns=0, byte_ns=500)])  # p = 0.5 ms, 1,000 messages/s: half of the ring is used
    assert rotation_us(options, model) == pytest.approx(10_000)
    assert agreed_us(options, model) == pytest.approx(5_000)
    assert safe_us(options, model) == pytest.approx(20_000)
    ring = replace(options.ring, window=70, visit_max=14)
    one_each = replace(options, ring=replace(ring, packet_size_max=BESIDE_BODY + 7 + 1000))
    assert messages_per_s(one_each, model) == pytest.approx(70 / (0.005 + 70 * 0.0005))
    assert bytes_per_s(one_each, model) == pytest.approx(70_000 / (0.005 + 70 * 0.0005))


def test_the_formula_of_a_network() -> None:
    """Two rings of three, one gateway: own ring 6 T, the gateway and the other ring 4 T."""
    lone = replace(SimOptions(), nodes=3, messages=0, rates=(Rate(0, 1),), size_max=1000)
    network = replace(lone, nodes=5, attachments=((0,), (0,), (0, 1), (1,), (1,)))
    model = Model(1e6, [Limit(packet_ns=0, byte_ns=0)])  # T = 3 ms
    assert network_us(lone, model) == pytest.approx(2 * 3_000)
    assert network_us(network, model) == pytest.approx(3_000 * (6 + 6 + 4 + 4 + 4) / 5)


def test_a_gateway_has_a_rotation_of_each_of_its_rings() -> None:
    visits = [_visit(at, ONE, ring) for at in range(10, 31, 10) for ring in (RING, NEXT_RING)]
    assert _measured(WINDOW, *visits)["rotation_us"] == pytest.approx(10_000)


def test_the_model_has_no_rotation_time_beyond_the_capacity() -> None:
    options = replace(SimOptions(), messages=3000, fault_time_ns=900 * MILLISECOND, size_max=1000)
    assert rotation_us(options, Model(1e6, [Limit(0, 500)])) is None


def test_the_constants_that_ship_give_the_papers_figures_of_throughput() -> None:
    campaign = campaign_from(CAMPAIGNS / "throughput.toml")
    options = campaign.cells[0].options(1)
    assert campaign.model is not None
    for size, paper in ((4, 1130), (1024, 810)):
        in_a_rotation = options.ring.window
        rotation_ns = options.nodes * campaign.model.member_ns + in_a_rotation * campaign.model.packet_ns(size)
        assert in_a_rotation * SECOND / rotation_ns == pytest.approx(paper, rel=0.005)


def test_options_tell_whether_the_network_or_the_receiver_is_the_limit() -> None:
    slow_network = replace(SimOptions(), bandwidth=10_000_000, packet_ns=1000, size_max=1000)
    slow_host = replace(slow_network, packet_ns=2_000_000)
    assert model_of(slow_network).packet_ns(1000) == pytest.approx((HEADER_SIZE + DESCRIPTOR_SIZE + 1000) * 800)
    assert model_of(slow_host).packet_ns(1000) == pytest.approx(2_000_000)


@pytest.mark.parametrize(
    ("networks", "wire", "host"),
    [
        (NetworksConfig(), 1.0, 100 + 10),
        (NetworksConfig(count=2), 1.0, 100 + 2 * 10),
        (NetworksConfig(count=2, replication=Replication.PASSIVE), 0.5, 100 + 10),
        (NetworksConfig(count=3, replication=Replication.ACTIVE_PASSIVE), 2 / 3, 100 + 2 * 10),
    ],
)
def test_copies_occupy_their_share_of_the_networks_and_a_call_each(
    networks: NetworksConfig, wire: float, host: int
) -> None:
    options = replace(SimOptions(), networks=networks, bandwidth=8_000_000, size_max=1000, receive_ns=10 * MICROSECOND)
    slow_network = replace(options, packet_ns=1000)
    slow_host = replace(options, bandwidth=0, packet_ns=100 * MICROSECOND)
    assert model_of(slow_network).packet_ns(1000) == pytest.approx((HEADER_SIZE + DESCRIPTOR_SIZE + 1000) * 1000 * wire)
    assert model_of(slow_host).packet_ns(1000) == pytest.approx(host * MICROSECOND)


def test_a_slow_sender_is_a_limit_too() -> None:
    options = replace(SimOptions(), networks=NetworksConfig(count=2), send_ns=50 * MICROSECOND)
    assert model_of(options).packet_ns(1000) == pytest.approx(100 * MICROSECOND)


def test_packets_are_filled_with_whole_messages_or_with_a_part_of_one() -> None:
    ring = replace(SimOptions().ring, packet_size_max=BESIDE_BODY + 7 + 1424)
    options = replace(SimOptions(), ring=ring)
    found = {size: filling(replace(options, size_max=size)) for size in (700, 720, 1424, 1425, 4272)}
    assert found == {
        700: (2, 2 * 700 + 7),
        720: (1, 720),
        1424: (1, 1424),
        1425: (1 / 2, 1425 / 2),
        4272: (1 / 3, 1424),
    }
