"""What depends on what, over chains, and who delivered it the other way round."""

from __future__ import annotations

from itertools import pairwise

from ordercast.checker.causes import Pasts


def chained(*numbers: int) -> Pasts:
    """Each depends on the one before."""
    pasts = Pasts(numbers)
    for cause, number in pairwise(numbers):
        pasts.depends(number, pasts.with_itself(cause))
    return pasts


def test_who_delivers_the_ends_of_a_chain_the_other_way_round_is_found_though_it_lacks_the_middle() -> None:
    pasts = chained(1, 2, 3)
    assert list(pasts.overtaken([1, 3])) == []
    assert list(pasts.overtaken([3, 7, 1])) == [(3, 1)]
    assert list(pasts.overtaken([2, 3, 1])) == [(3, 1), (2, 1)]


def test_a_circle_through_deliveries_alone_is_no_contradiction() -> None:
    """1 was sent before 2, by one who delivers neither with the other; 3 and 4 depend on nothing."""
    pasts = chained(1, 2)
    for sequence in ([2, 3], [3, 4], [4, 1]):
        assert list(pasts.overtaken(sequence)) == []


def test_what_is_not_looked_at_leads_on_all_the_same() -> None:
    pasts = Pasts([1, 3])
    pasts.depends(2, pasts.with_itself(1))
    pasts.depends(3, pasts.with_itself(2))
    assert list(pasts.overtaken([3, 1])) == [(3, 1)]
