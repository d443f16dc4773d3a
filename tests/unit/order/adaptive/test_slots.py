"""Slots: everybody has its share, evenly, and the next place of a member is found without a walk."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.errors import UsageError
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.slots import Distribution, Line, base_after, even_sequence, first_distribution
from tests.property_sizes import scaled

WEIGHTS = st.lists(st.integers(1, 12), min_size=1, max_size=6)


def test_the_example_of_the_paper() -> None:
    assert "".join("pqr"[owner] for owner in even_sequence((5, 2, 1))) == "pqpprpqp"


@given(WEIGHTS)
@settings(max_examples=scaled(60), deadline=None)
def test_an_even_sequence_gives_everybody_its_weight_and_nobody_waits_long(weights: list[int]) -> None:
    owners, period = even_sequence(weights), sum(weights)
    assert [owners.count(member) for member in range(len(weights))] == weights
    for member, weight in enumerate(weights):
        slots = [slot for slot, owner in enumerate(owners * 2) if owner == member]
        gaps = [later - earlier for earlier, later in pairwise(slots)]
        assert max(gaps, default=period) <= 2 * -(-period // weight)


@given(WEIGHTS, st.integers(1, 5), st.integers(1, 100), st.integers(0, 300))
@settings(max_examples=scaled(100), deadline=None)
def test_the_next_place_is_the_first_that_a_walk_finds(weights: list[int], block: int, base: int, ahead: int) -> None:
    distribution = Distribution(1, base, block, 0, weights)
    distribution.check_invariants()
    place = base + ahead
    for member in range(len(weights)):
        walked = next(at for at in range(place, place + 10_000) if distribution.owner(at) == member)
        assert distribution.next_owned(member, place) == walked
        assert distribution.owner(distribution.slot_end(walked)) == member


@given(st.lists(WEIGHTS.filter(lambda weights: len(weights) == 3), min_size=1, max_size=4), st.integers(1, 400))
@settings(max_examples=scaled(60), deadline=None)
def test_a_place_belongs_to_the_newest_distribution_below_it(all_weights: list[list[int]], place: int) -> None:
    line = Line(first_distribution(3, 2, 8))
    for number, weights in enumerate(all_weights, 1):
        line.add(Distribution(number, base_after(line.newest.base, line.newest.base, 40), 2, 8, weights))
    for member in range(3):
        walked = next(at for at in range(place, place + 10_000) if line.at(at).owner(at) == member)
        assert line.next_owned(member, place) == walked
        line.forget(place)
        assert line.next_owned(member, place) == walked


def test_the_busiest_gives_up_nothing_ahead() -> None:
    distribution = Distribution(1, 1, 4, 32, (2, 9, 2))
    assert distribution.ranks == (1, 0, 2)
    assert [distribution.rests[member] for member in range(3)] == [5 * 32, 0, 5 * 32]
    assert [distribution.beyond_now(member, 3) for member in range(3)] == [5 * 32, 0, 5 * 32]


def test_members_that_send_alike_take_turns() -> None:
    """Whoever has sent gives up places for all others' turns; the nearer its own, the fewer; who has stopped, many."""
    distribution = Distribution(1, 1, 4, 32, (10, 9, 10, 1))
    assert [distribution.rests[member] for member in range(4)] == [2 * 16, 2 * 16, 2 * 16, 8 * 32]
    assert [distribution.beyond_now(0, heard) for heard in (0, 1, 2, 3, 24, 25)] == [32, 16, 8, 8, 8, 2 * 32]
    assert [distribution.beyond_now(3, heard) for heard in (0, 29, 1000)] == [8 * 32] * 3


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (
            AdaptiveConfig(reach=1000),
            "reach must be at least 36864 for 128 members: they could wait for each other for ever",
        ),
        (AdaptiveConfig(policy="whim", reach=40_000), "policy must be one of demand, window, fixed"),
        (AdaptiveConfig(block=0, reach=40_000), "block must be at least 1"),
        (AdaptiveConfig(shares=((1, 0),), reach=40_000), "shares must be at least 1"),
        (AdaptiveConfig(threshold=1.0, reach=40_000), "threshold must be above 0"),
    ],
)
def test_configurations_that_could_hang_are_refused(config: AdaptiveConfig, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        config.validate(128)


def test_the_usual_configuration_suits_the_usual_number_of_members() -> None:
    AdaptiveConfig().validate(32)
