"""Several stamped streams, one order: what is lowest, and how far it may be passed at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ordercast.order.stamped.lanes import NEVER, Stamp, StampedLane, lowest


def _lane(stream: int, ticks: list[int], front: int) -> StampedLane[int]:
    lane: StampedLane[int] = StampedLane((0, stream, 0))
    for tick in ticks:
        lane.add((tick, stream, 1), (tick, stream, 2), tick)
    lane.raise_front((front, stream, 9))
    return lane


def test_an_empty_open_lane_holds_up_what_is_above_its_front() -> None:
    one, other = _lane(1, [5, 7], 7), _lane(2, [], 5)
    assert lowest([one, other]) == (one, (5, 2, 9))
    one.runs.popleft()
    assert lowest([one, other]) is None
    other.is_open = False
    assert lowest([one, other]) == (one, NEVER)


def test_the_first_run_of_another_lane_is_the_bound() -> None:
    one, other = _lane(1, [3, 4, 9], 9), _lane(2, [6], 6)
    assert lowest([one, other]) == (one, (6, 2, 1))
    assert lowest([other, one]) == (one, (6, 2, 1))
    assert lowest([one, other], (2, 0, 0)) is None
    assert lowest([one, other], (3, 5, 0)) == (one, (3, 5, 0))


def test_a_front_never_falls() -> None:
    lane = _lane(1, [3], 8)
    assert not lane.raise_front((7, 1, 0))
    assert lane.front == (8, 1, 9)
    assert lane.raise_front((9, 1, 0))


@given(st.lists(st.lists(st.integers(1, 30), max_size=6, unique=True), min_size=1, max_size=4), st.randoms())
def test_content_passes_in_order_however_it_comes(streams: list[list[int]], rng: object) -> None:
    """Runs that come at random, each stream in order, pass in the order of their stamps, and all of them in the end."""
    lanes: list[StampedLane[Stamp]] = [StampedLane((0, number, 0)) for number in range(len(streams))]
    coming = [(number, tick) for number, ticks in enumerate(streams) for tick in ticks]
    rng.shuffle(coming)  # type: ignore[attr-defined]
    waiting = [sorted(ticks) for ticks in streams]
    passed: list[Stamp] = []

    def walk() -> None:
        while (found := lowest(lanes)) is not None:
            lane, bound = found
            while lane.runs and lane.runs[0].first <= bound:
                passed.append(lane.runs.popleft().content)

    for number, _ in coming:
        tick = waiting[number].pop(0)
        lanes[number].add((tick, number, 1), (tick, number, 1), (tick, number, 1))
        walk()
    for lane in lanes:
        lane.is_open = False
    walk()
    assert passed == sorted((tick, number, 1) for number, ticks in enumerate(streams) for tick in ticks)
