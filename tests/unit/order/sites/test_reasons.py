"""Why a view follows another one, as people are told."""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.sites.convening import reason_of
from ordercast.order.sites.views import Fragment, WideProposal, WideView

A, B, C = (ProcessId(number) for number in (1, 2, 3))


def ring(seq: int, site: int, *members: ProcessId, reason: ChangeReason = ChangeReason.STARTED) -> Fragment:
    return Fragment(ConfigurationId(seq, members[0]), site, members, reason)


def view(*fragments: Fragment) -> WideView:
    attempt = ConfigurationId(8, A)
    return WideView(attempt, WideProposal(attempt, fragments, ()), 0)


EAST, WEST = ring(4, 0, A, B), ring(4, 1, C)


def test_who_leaves_in_order_is_told_from_who_is_lost() -> None:
    both = view(EAST, WEST)
    assert reason_of(both, (ring(8, 0, A, reason=ChangeReason.LEFT), WEST), ()) is ChangeReason.LEFT
    assert reason_of(both, (ring(8, 0, A, reason=ChangeReason.TOKEN_LOST), WEST), ()) is ChangeReason.SITE_RING_CHANGED
    lost = ring(8, 1, C, reason=ChangeReason.TOKEN_LOST)
    assert reason_of(both, (ring(8, 0, A, reason=ChangeReason.LEFT), lost), ()) is ChangeReason.SITE_RING_CHANGED


def test_sites_come_and_go() -> None:
    assert reason_of(view(EAST), (EAST, WEST), ()) is ChangeReason.SITE_HEARD
    assert reason_of(view(EAST, WEST), (EAST,), ()) is ChangeReason.SITE_LOST


def test_the_last_of_a_site_may_leave_in_order() -> None:
    far = ring(4, 2, ProcessId(4))
    assert reason_of(view(EAST, WEST), (EAST,), {C}) is ChangeReason.LEFT
    assert reason_of(view(EAST, WEST, far), (EAST,), {C}) is ChangeReason.SITE_LOST
