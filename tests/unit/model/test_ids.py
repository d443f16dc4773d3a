from __future__ import annotations

import pytest

from ordercast.model.ids import (
    INCARNATION_MAX,
    NO_CONFIGURATION,
    NOBODY,
    NODE_MAX,
    SLOT_MAX,
    ConfigurationId,
    Incarnation,
    NodeId,
    Places,
    Position,
    Seq,
    incarnation_of,
    node_of,
    process_id_from,
    process_text,
)


@pytest.mark.parametrize(("node", "incarnation"), [(0, 1), (3, 7), (NODE_MAX, INCARNATION_MAX)])
def test_a_process_is_a_node_and_its_incarnation(node: int, incarnation: int) -> None:
    process = process_id_from(NodeId(node), Incarnation(incarnation))
    assert (node_of(process), incarnation_of(process)) == (node, incarnation)
    assert 0 < process < 1 << 64


def test_a_position_is_shown_as_people_write_it() -> None:
    assert str(Position(ConfigurationId(12, process_id_from(NodeId(1), Incarnation(99))), 4, 0)) == "12.n1:4.0"


@pytest.mark.parametrize("node", [-1, NODE_MAX + 1])
def test_a_node_outside_its_range_is_refused(node: int) -> None:
    with pytest.raises(ValueError, match=f"node id {node} is outside 0..32767"):
        process_id_from(NodeId(node), Incarnation(1))


@pytest.mark.parametrize("incarnation", [0, INCARNATION_MAX + 1])
def test_an_incarnation_outside_its_range_is_refused(incarnation: int) -> None:
    with pytest.raises(ValueError, match=f"incarnation {incarnation} is outside 1.."):
        process_id_from(NodeId(1), Incarnation(incarnation))


def test_processes_are_ordered_by_node_then_incarnation() -> None:
    pairs = [(0, 1), (0, 2), (1, 1), (1, INCARNATION_MAX), (2, 1)]
    processes = [process_id_from(NodeId(node), Incarnation(incarnation)) for node, incarnation in pairs]
    assert processes == sorted(processes)


def test_no_process_is_nobody() -> None:
    assert process_id_from(NodeId(0), Incarnation(1)) != NOBODY


def test_the_first_life_is_called_by_its_node_and_later_ones_by_both() -> None:
    assert process_text(process_id_from(NodeId(3), Incarnation(1))) == "n3"
    assert process_text(process_id_from(NodeId(3), Incarnation(2))) == "n3'2"


def test_rings_are_ordered_by_seq_then_representative() -> None:
    low, high = (process_id_from(NodeId(node), Incarnation(1)) for node in (1, 2))
    rings = [NO_CONFIGURATION, ConfigurationId(4, low), ConfigurationId(4, high), ConfigurationId(8, low)]
    assert sorted({*rings}) == rings
    assert str(ConfigurationId(8, high)) == "8.n2"


def test_a_transitional_view_follows_every_message_of_the_seq_at_which_it_comes() -> None:
    ring = ConfigurationId(4, process_id_from(NodeId(1), Incarnation(1)))
    assert Position(ring, Seq(9), 254) < Position(ring, Seq(9), SLOT_MAX) < Position(ring, Seq(10), 0)


RING = ConfigurationId(4, process_id_from(NodeId(1), Incarnation(1)))
PLACES = Places(RING, 1 << 62, 512, 3, 2)


def test_the_places_of_a_row_go_through_its_packets_from_the_base_slot_on() -> None:
    numbers = [(0, 514), (1, 512), (1, 513), (1, 514), (2, 512)]
    expected = [Position(RING, (1 << 62) + number, slot) for number, slot in numbers]
    assert [PLACES.at(index) for index in range(5)] == expected
    assert [PLACES.last(count) for count in range(1, 6)] == expected


def test_a_row_without_its_beginning_has_the_places_of_the_rest() -> None:
    for count in range(7):
        assert [PLACES.after(count).at(index) for index in range(5)] == [PLACES.at(count + index) for index in range(5)]
