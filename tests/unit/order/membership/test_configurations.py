from __future__ import annotations

from ordercast.model.configuration import ChangeReason, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, SLOT_MAX, ConfigurationId, Position, Seq
from ordercast.order.membership.configurations import first_configuration, transitional_configuration
from ordercast.order.membership.recovery_plan import RecoveryPlan

from ..rings import NEXT_RING_ID, ONE, RING_ID, THREE, TWO, make_ring


def test_the_first_configuration_of_a_life_is_a_ring_of_one() -> None:
    first = first_configuration(make_ring(ONE, (ONE,)))
    assert (first.kind, first.members, first.transitional) == (ConfigurationKind.REGULAR, (ONE,), (ONE,))
    assert (first.previous, first.reason) == (NO_CONFIGURATION, ChangeReason.STARTED)
    assert first.position == Position(RING_ID, Seq(0), 0)


def test_companions_who_go_on_to_one_ring_name_their_transitional_configuration_alike_and_unlike_others() -> None:
    ring = make_ring(ring_id=NEXT_RING_ID)
    ours, theirs = (
        transitional_configuration(
            RING_ID, Seq(7), RecoveryPlan(some, frozenset(some), Seq(0), Seq(7), Seq(9)), ring, ChangeReason.MERGE
        )
        for some in ((TWO, THREE), (ONE,))
    )
    assert ours.id == ConfigurationId(NEXT_RING_ID.seq - 2, TWO) and theirs.id != ours.id
    assert (ours.members, ours.previous) == ((TWO, THREE), RING_ID)
    assert ours.position == Position(RING_ID, Seq(7), SLOT_MAX)
