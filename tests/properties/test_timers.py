"""Due timers come in order of deadline, then of name; nothing else ever comes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.ids import Instant
from ordercast.order.membership.timers import OF_NODE, Timer, Timers

timers = st.sampled_from(Timer)
orders = st.lists(st.one_of(st.tuples(timers, st.integers(0, 20)), st.tuples(timers, st.none())), max_size=30)


def _book(drawn: list[tuple[Timer, int | None]]) -> tuple[Timers, dict[Timer, int]]:
    """Arm, or cancel where no deadline is given."""
    book, model = Timers(), dict[Timer, int]()
    for timer, deadline in drawn:
        if deadline is None:
            book.cancel(timer)
            model.pop(timer, None)
        else:
            book.arm(timer, deadline)
            model[timer] = deadline
        assert book.earliest == min(model.values(), default=None)
    return book, model


@given(orders, st.integers(0, 20))
def test_due_timers_pop_in_order_of_deadline_then_name(drawn: list[tuple[Timer, int | None]], now: int) -> None:
    book, model = _book(drawn)
    popped: list[Timer] = []
    while (timer := book.pop_due(Instant(now))) is not None:
        popped.append(timer)
    due = sorted((deadline, timer) for timer, deadline in model.items() if deadline <= now)
    assert popped == [timer for _, timer in due]
    assert book.earliest == min((deadline for deadline in model.values() if deadline > now), default=None)


@given(orders, st.lists(timers))
def test_only_the_named_timers_remain(drawn: list[tuple[Timer, int | None]], kept: list[Timer]) -> None:
    book, model = _book(drawn)
    book.only(*kept)
    kept = [*kept, *OF_NODE]  # which are not a state's
    for timer in Timer:
        expected = model.get(timer) if timer in kept else None
        assert book.deadline(timer) == expected
        assert book.is_armed(timer) == (expected is not None)
    assert book.earliest == min((model[timer] for timer in kept if timer in model), default=None)
