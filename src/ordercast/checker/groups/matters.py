"""What a history of clients must contain before a judge of groups has anything to judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from ordercast.model.service import Service

if TYPE_CHECKING:
    from ordercast.checker.groups.history import GroupHistory


class GroupMatter(Enum):
    """The value says what is missing where there is none."""

    VIEW = "no client had a view of a group"
    SECOND_VIEW = "no client had a second view of a group"
    SHARED_VIEW = "no two clients had the same view"
    PLACED_VIEW = "no configuration of the daemons is known in which a group had a view"
    COMPANY = "no two clients went together from one view to the next"
    SIGNAL = "no client had a transitional signal"
    SENT = "no client sent anything"
    SENT_INSIDE = "no client sent anything to a group that it was in"
    GOT = "no client got a message"
    FIFO = "no client got a message that asked for fifo order or better"
    CAUSAL = "no client got a message that asked for causal order or better"
    AGREED = "no client got an agreed or safe message"
    SAFE = "no client got a safe message"
    CONFIRMATION = "no client asked for the place of a message"
    SURVIVOR = "no client was left at the end"


def has_group_matter(history: GroupHistory, matter: GroupMatter) -> bool:
    """Whether the history contains it, or somebody who counted says so."""
    return matter in history.matters or _LOOKS[matter](history)


def _is_got(service: Service, history: GroupHistory) -> bool:
    return any(receipt.service >= service for _, _, receipt in history.receipts)


def _is_shared(history: GroupHistory) -> bool:
    return any(len(stays) > 1 for stays in history.by_view().values())


def _is_company(history: GroupHistory) -> bool:
    moves = [(group, stay.view.id, stay.next.view.id) for _, group, stay in history.stays() if stay.next is not None]
    return len(moves) > len(set(moves))


_LOOKS: Mapping[GroupMatter, Callable[[GroupHistory], bool]] = {
    GroupMatter.VIEW: lambda history: any(True for _ in history.stays()),
    GroupMatter.SECOND_VIEW: lambda history: any(stay.before is not None for _, _, stay in history.stays()),
    GroupMatter.SHARED_VIEW: _is_shared,
    GroupMatter.PLACED_VIEW: lambda history: any(
        stay.view.id.configuration in history.configurations for _, _, stay in history.stays()
    ),
    GroupMatter.COMPANY: _is_company,
    GroupMatter.SIGNAL: lambda history: any(stay.signals for _, _, stay in history.stays()),
    GroupMatter.SENT: lambda history: bool(history.sendings),
    GroupMatter.SENT_INSIDE: lambda history: any(sending.owed for sending in history.sendings),
    GroupMatter.GOT: lambda history: bool(history.receipts),
    GroupMatter.FIFO: partial(_is_got, Service.FIFO),
    GroupMatter.CAUSAL: partial(_is_got, Service.CAUSAL),
    GroupMatter.AGREED: partial(_is_got, Service.AGREED),
    GroupMatter.SAFE: partial(_is_got, Service.SAFE),
    GroupMatter.CONFIRMATION: lambda history: any(sending.sent.confirm for sending in history.sendings),
    GroupMatter.SURVIVOR: lambda history: any(client.end is None for client in history.clients.values()),
}
