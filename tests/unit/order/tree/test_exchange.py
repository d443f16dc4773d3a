"""Who comes along from a configuration of trees."""

from __future__ import annotations

import pytest

from ordercast.model.ids import ConfigurationId
from ordercast.order.tree.exchange import TreeExchange
from ordercast.order.tree.reports import Report

from .courses import A, B, C, Rehearsal

ENDED, LATER = ConfigurationId(12, A), ConfigurationId(16, A)


@pytest.mark.parametrize(("ended_by", "along"), [(ENDED, (A, B, C)), (LATER, (A, B))])
def test_whoever_was_cut_off_when_the_control_stream_ended_the_configuration_comes_by_itself(
    ended_by: ConfigurationId, along: tuple[object, ...]
) -> None:
    """It may lack what the control stream brought the others last (swarm, seed 542)."""
    process = Rehearsal(A, {})
    process.course.ended_by = ENDED
    exchange = TreeExchange(process.course, (A, B, C), {})
    mine = exchange.mine
    reports: dict[object, Report] = {A: mine, B: mine, C: mine._replace(ended_by=ended_by)}
    for one in (A, B, C):
        exchange.report(one, reports[one])
    assert exchange.plan is not None and exchange.companions == along


@pytest.mark.parametrize(("opened", "is_uneven"), [((3, 3, 3), False), ((3, 3, 4), True), ((2, 3, 3), True)])
def test_an_end_is_uneven_when_companions_have_taken_different_openings(
    opened: tuple[int, int, int], is_uneven: bool
) -> None:
    process = Rehearsal(A, {})
    exchange = TreeExchange(process.course, (A, B, C), {})
    for one, last in zip((A, B, C), opened, strict=True):
        exchange.report(one, exchange.mine._replace(opened=last))
    assert exchange.is_uneven == is_uneven


def test_who_does_not_come_along_makes_no_end_uneven() -> None:
    process = Rehearsal(A, {})
    exchange = TreeExchange(process.course, (A, B, C), {})
    exchange.report(A, exchange.mine)
    exchange.report(B, exchange.mine)
    exchange.report(C, exchange.mine._replace(opened=9, installed=LATER))
    assert exchange.companions == (A, B) and not exchange.is_uneven
