"""All checkers of groups on one history, which is indexed once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.checker.groups.agreed_delivery import AgreedDelivery
from ordercast.checker.groups.base import GroupChecker
from ordercast.checker.groups.history import GroupHistory
from ordercast.checker.groups.liveness import Precision, SelfDelivery, Termination
from ordercast.checker.groups.matters import GroupMatter
from ordercast.checker.groups.messages import Confirmations, Integrity, NoDuplicates
from ordercast.checker.groups.order import Causal, Fifo, MultipleGroupOrder, TotalOrder
from ordercast.checker.groups.reach import Reach
from ordercast.checker.groups.safe_delivery import SafeDelivery
from ordercast.checker.groups.sane_views import SaneViews
from ordercast.checker.groups.synchrony import Signals, VirtualSynchrony
from ordercast.checker.groups.transitional_sets import TransitionalSets
from ordercast.checker.groups.views import InitialView, SelfInclusion, ViewAgreement, ViewMonotony
from ordercast.checker.plain import PlainPanel
from ordercast.checker.verdict import Verdict
from ordercast.model.promises import GroupPromise
from ordercast.trace.client_records import ClientEvent

GROUP_CHECKERS: Mapping[GroupPromise, type[GroupChecker]] = {
    checker.promise: checker
    for checker in (
        InitialView,
        SelfInclusion,
        ViewMonotony,
        TransitionalSets,
        ViewAgreement,
        Reach,
        NoDuplicates,
        Integrity,
        Confirmations,
        VirtualSynchrony,
        Signals,
        SaneViews,
        Fifo,
        Causal,
        TotalOrder,
        MultipleGroupOrder,
        AgreedDelivery,
        SafeDelivery,
        SelfDelivery,
        Termination,
        Precision,
    )
}


class GroupCheckers(PlainPanel[ClientEvent]):
    def __init__(self, promised: Iterable[GroupPromise] | None = None, matters: Iterable[GroupMatter] = ()) -> None:
        """`promised`: what the groups of the engine promise; None: what it says when it starts, else everything.
        `matters`: what others counted in messages that are not among the events."""
        history = GroupHistory()
        history.matters.update(matters)
        history.promised = None if promised is None else frozenset(promised)
        super().__init__(history, [checker(history) for checker in GROUP_CHECKERS.values()])


def check_groups(history: Iterable[ClientEvent], promised: Iterable[GroupPromise] | None = None) -> Verdict:
    """The combined verdict on a whole history."""
    checkers = GroupCheckers(promised)
    for event in history:
        checkers.observe(event)
    return checkers.verdict()
