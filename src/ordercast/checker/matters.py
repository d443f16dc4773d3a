"""What a history must contain before a judge has anything to judge; without it a kept promise is NOT EXERCISED.

Each judge of `checker/` names one matter. The judges of large runs count messages by columns and tell what they found
through `History.matters`, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from ordercast.model.ids import ConfigurationId, node_of
from ordercast.model.service import Service

if TYPE_CHECKING:
    from ordercast.checker.history import History


class Matter(Enum):
    """The value says what is missing where there is none."""

    SENT = "no message was submitted"
    DELIVERED = "no message was delivered"
    FIFO = "no message that asked for fifo order or better was delivered"
    CAUSAL = "no message that asked for causal order or better was delivered"
    AGREED = "no agreed or safe message was delivered"
    SAFE = "no safe message was delivered"
    CHANGE = "no process changed its configuration"
    RISE = "no process installed a second configuration, and none came back"
    SHARED = "no two processes installed the same configuration"
    COMPANY = "no two processes went together from one configuration to the next"
    SATURATION = "no view was saturated long enough to judge"
    SURVIVOR = "no process ran at the end"


DELIVERIES = {
    Matter.DELIVERED: Service.UNRELIABLE,
    Matter.FIFO: Service.FIFO,
    Matter.CAUSAL: Service.CAUSAL,
    Matter.AGREED: Service.AGREED,
    Matter.SAFE: Service.SAFE,
}


def has_matter(history: History, matter: Matter) -> bool:
    """Whether the history contains it, or somebody who counted says so."""
    return matter in history.matters or _LOOKS[matter](history)


def _is_sent(history: History) -> bool:
    return any(history.at_least(Service.RELIABLE, life.submitted) for life in history.lives())


def _is_delivered(service: Service, history: History) -> bool:
    services = history.columns.services
    if max(services, default=-1) < service:
        return False
    return any(services[number] >= service for life in history.lives() for number in life.delivered)


def _is_changed(history: History) -> bool:
    return any(len(life.stays) > 2 for life in history.lives())


def _is_rising(history: History) -> bool:
    nodes = [node_of(life.process) for life in history.lives()]
    return _is_changed(history) or len(nodes) > len(set(nodes))


def _is_shared(history: History) -> bool:
    seen: set[ConfigurationId] = set()
    for life in history.lives():
        mine = {stay.id for stay in life.stays[1:]}
        if mine & seen:
            return True
        seen |= mine
    return False


def _is_company(history: History) -> bool:
    seen: set[tuple[ConfigurationId, ConfigurationId]] = set()
    for life in history.lives():
        mine = {(left.id, entered.id) for left, entered in life.moves()}
        if mine & seen:
            return True
        seen |= mine
    return False


_LOOKS: Mapping[Matter, Callable[[History], bool]] = {
    Matter.SENT: _is_sent,
    **{matter: partial(_is_delivered, service) for matter, service in DELIVERIES.items()},
    Matter.CHANGE: _is_changed,
    Matter.RISE: _is_rising,
    Matter.SHARED: _is_shared,
    Matter.COMPANY: _is_company,
    Matter.SATURATION: lambda history: False,  # the judge of fairness knows it when it has judged
    Matter.SURVIVOR: lambda history: bool(history.running()),
}
