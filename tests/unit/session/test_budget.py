"""One budget for all clients: who owes what, and who goes first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.session.budget import Budget


def test_the_largest_debtor_goes_first_and_of_equals_the_oldest() -> None:
    budget: Budget[str] = Budget(100)
    budget.owe("a", 30)
    budget.owe("b", 40)
    budget.owe("c", 30)
    assert not budget.is_exceeded
    budget.owe("c", 40)
    assert (budget.size, budget.is_exceeded, budget.largest()) == (110, True, ("b", 40))
    budget.owe("b", 0)
    assert (budget.size, budget.largest()) == (70, ("c", 40))


def test_the_reason_says_how_much_it_was_and_what_to_do() -> None:
    budget: Budget[str] = Budget(1000)
    budget.owe("a", 1500)
    assert budget.reason(1500) == (
        "this client takes the most memory of all clients of this daemon: 1,500 bytes of 1,500, and 1,000 may be taken "
        "by all; read faster, or raise memory_max in [clients]"
    )


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 50)), max_size=60))
def test_all_debts_are_in_the_sum_and_dismissing_the_largest_ends(changes: list[tuple[int, int]]) -> None:
    budget: Budget[int] = Budget(60)
    debts: dict[int, int] = {}
    for who, size in changes:
        budget.owe(who, size)
        debts[who] = size
        assert budget.size == sum(debts.values())
        while budget.is_exceeded:
            largest, debt = budget.largest()
            assert debt == debts[largest] == max(debts.values())
            budget.owe(largest, 0)
            debts[largest] = 0
        assert sum(debts.values()) <= 60
