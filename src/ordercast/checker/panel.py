"""All checkers on one history, which is indexed once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.checker.agreed_delivery import AgreedDelivery
from ordercast.checker.base import Checker
from ordercast.checker.causal import Causal
from ordercast.checker.fairness import Fairness
from ordercast.checker.fifo import Fifo
from ordercast.checker.history import History
from ordercast.checker.integrity import Integrity
from ordercast.checker.liveness import Liveness
from ordercast.checker.matters import Matter
from ordercast.checker.multiple_group_order import MultipleGroupOrder
from ordercast.checker.no_duplicates import NoDuplicates
from ordercast.checker.safe_delivery import SafeDelivery
from ordercast.checker.self_delivery import SelfDelivery
from ordercast.checker.total_order import TotalOrder
from ordercast.checker.transitional_sets import TransitionalSets
from ordercast.checker.truthful_sets import TruthfulSets
from ordercast.checker.verdict import Verdict, combined
from ordercast.checker.view_agreement import ViewAgreement
from ordercast.checker.view_monotony import ViewMonotony
from ordercast.checker.virtual_synchrony import VirtualSynchrony
from ordercast.checker.whole_messages import WholeMessages
from ordercast.model.promises import Promise
from ordercast.trace.records import Event

CHECKERS: Mapping[Promise, type[Checker]] = {
    checker.promise: checker
    for checker in (
        Integrity,
        NoDuplicates,
        SelfDelivery,
        Fifo,
        Causal,
        TotalOrder,
        MultipleGroupOrder,
        AgreedDelivery,
        SafeDelivery,
        VirtualSynchrony,
        TransitionalSets,
        TruthfulSets,
        ViewAgreement,
        ViewMonotony,
        WholeMessages,
        Fairness,
        Liveness,
    )
}


class Checkers:
    """The panel. Feed it the events of one history in order, then ask; it never raises on account of a history."""

    def __init__(
        self,
        promises: Iterable[Promise] | None = None,
        catalogue: Mapping[Promise, type[Checker]] = CHECKERS,
        matters: Iterable[Matter] = (),
    ) -> None:
        """`matters`: what others counted in messages that are not among the events."""
        self._history = History()
        self._history.matters.update(matters)
        wanted = set(catalogue if promises is None else promises)
        self._checkers = [checker(self._history) for promise, checker in catalogue.items() if promise in wanted]

    def observe(self, event: Event) -> None:
        try:
            self._history.observe(event)
        except Exception as error:
            self._history.add_fault(f"an event could not be read: {type(error).__name__}: {error}")

    def verdicts(self) -> list[Verdict]:
        """One per promise that is asked for, in the order of `Promise`. May be asked at any time, and again later."""
        return [checker.verdict() for checker in self._checkers if checker.is_asked()]

    def verdict(self) -> Verdict:
        """All of them in one: the worst wins."""
        return combined(self.verdicts())


def check(history: Iterable[Event], promises: Iterable[Promise] | None = None) -> Verdict:
    """The combined verdict on a whole history."""
    checkers = Checkers(promises)
    for event in history:
        checkers.observe(event)
    return checkers.verdict()
