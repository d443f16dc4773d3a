"""Networks on paper: ways, what alone keeps them in one piece, losses."""

from __future__ import annotations

from random import Random

from ordercast.order.gateways.drawing import Drawing, best_addition, line, losses, pattern, robust


def test_ways_and_heights() -> None:
    assert line(4).heights() == [3, 2, 2, 3] and line(4).hops(0) == {0: 0, 1: 1, 2: 2, 3: 3}
    hub = Drawing(4, ((0, 1, 2, 3),))
    assert hub.heights() == [1, 1, 1, 1] and hub.vital_gateways() == [0] and hub.vital_rings() == []


def test_what_alone_keeps_it_in_one_piece() -> None:
    assert line(3).vital_gateways() == [0, 1] and line(3).vital_rings() == [1] and not line(3).is_biconnected
    circle = robust(5, 2)
    assert len(circle.gateways) == 5 and circle.is_biconnected
    parallel = Drawing(2, ((0, 1), (0, 1)))
    assert parallel.vital_gateways() == [] and parallel.is_biconnected
    pieces = Drawing(3, ((0, 2),)).pieces()
    assert pieces == [0b101, 0b010]


def test_the_sixteen_rings_of_the_paper() -> None:
    """Figure 5.20: even ones at hops of one and six, odd ones of one and four."""
    drawing = pattern(16, 6, 4)
    assert len(drawing.gateways) == 32 and drawing.is_biconnected and set(drawing.heights()) == {3}
    assert robust(16, 4).mean_height <= drawing.mean_height


def test_latency_in_rotations() -> None:
    """A ring alone: 2; two: 4 of the own and 2 of the other, or 2 of each from the other; a line: 2 h + 1 times 2."""
    assert [line(rings).latency_rotations(0, 0) for rings in (1, 2, 3, 4)] == [2, 6, 10, 14]
    assert line(2).latency_rotations(0, 1) == 4 and line(3).latency_rotations(1, 1) == 6
    assert line(2).latency_rotations(0, 0, 1) == 4 and line(3).latency_rotations(0, 0, 1) == 8


def test_losses_end_with_the_first_that_parts_it() -> None:
    steps = list(losses(robust(10, 4), Random(1)))
    assert all(drawing.is_whole for drawing in steps[:-1]) and not steps[-1].is_whole
    assert len(steps[0].gateways) == 19 and len(list(losses(line(5), Random(1)))) == 1


def test_the_best_addition_closes_a_line() -> None:
    assert best_addition(line(6)) == (0, 5) and best_addition(robust(6, 2)) is None
    assert best_addition(Drawing(2, ())) == (0, 1)
