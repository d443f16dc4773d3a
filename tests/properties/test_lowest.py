"""The lowest place on a token: what a member knows of it all others have passed, whoever moves when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.lowest import LowestPlace
from ordercast.order.stamped.lanes import NO_STAMP

RING, NEXT = (ConfigurationId(seq, ProcessId(1)) for seq in (1024, 2048))


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=80))
def test_everybody_is_past_what_is_known(members: int, raises: list[tuple[int, int]]) -> None:
    """Each step raises the place of one member, and lets the next one have the token."""
    places = [LowestPlace() for _ in range(members)]
    extension = b""
    for step, (who, by) in enumerate(raises):
        tick, tag, seq = places[who % members].mine
        places[who % members].mine = (tick + by, tag, seq)
        at = step % members
        extension = places[at].visit(RING, ProcessId(at + 1), extension)
        assert places[at].known <= min(one.mine for one in places)


def test_when_nobody_moves_all_know_the_lowest_and_a_new_ring_begins_anew() -> None:
    places = [LowestPlace() for _ in range(3)]
    for tick, place in enumerate(places, 10):
        place.mine = (tick, 7, 1)
    extension = b""
    for _ in range(5):
        for number, place in enumerate(places, 1):
            extension = place.visit(RING, ProcessId(number), extension)
    assert {place.known for place in places} == {(10, 7, 1)}
    places[0].visit(NEXT, ProcessId(1), b"damaged")
    assert places[0].known == NO_STAMP
