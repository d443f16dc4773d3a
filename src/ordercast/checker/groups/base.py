"""The shape that the checkers of the groups share: that of `checker/plain.py`, on a history of clients."""

from __future__ import annotations

from typing import ClassVar

from ordercast.checker.groups.history import GroupHistory, JudgedClient
from ordercast.checker.groups.matters import GroupMatter, has_group_matter
from ordercast.checker.plain import PlainChecker
from ordercast.checker.verdict import Witness
from ordercast.model.promises import GroupPromise
from ordercast.trace.client_records import ClientEvent


class GroupChecker(PlainChecker[ClientEvent]):
    promise: ClassVar[GroupPromise]
    matter: ClassVar[GroupMatter]

    def __init__(self, history: GroupHistory | None = None) -> None:
        self.history = GroupHistory() if history is None else history
        super().__init__(self.history)

    def is_exercised(self) -> bool:
        return has_group_matter(self.history, self.matter)

    def witness(self, what: str, client: JudgedClient, number: int | None = None) -> Witness:
        message = None if number is None else self.history.sendings[number].sent.message
        return Witness(f"{client}: {what}", client.id.process, message)
