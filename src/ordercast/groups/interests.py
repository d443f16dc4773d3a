"""Interests: which groups this daemon wants from an engine that prunes, and which joins may be submitted.

A daemon wants a group from the first request of a client here to join it, until no client here is in it and no such
request is on its way. A join is submitted only when the engine has said that it is subscribed to all its groups: from
then on nothing that is sent there can pass the daemon by. An engine that prunes nothing says so at once. The daemon
itself is wanted from the beginning: messages to its clients by name name it as their destination.

An engine that is told that a group is given up does not answer an earlier wish for it any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ordercast.groups.envelope import daemon_destination
from ordercast.groups.table import Table
from ordercast.model.inputs import Interest


class Interests:
    def __init__(self, daemon: str, table: Table) -> None:
        self._table = table
        self._joins: Counter[str] = Counter()  # requests to join that have not come in order yet, by group
        self._wanted: dict[str, bool] = {}  # groups that the engine was told of, and whether it is subscribed to them
        self._changes: list[Interest] = []  # not yet told
        self._want(daemon_destination(daemon))

    def changes(self) -> list[Interest]:
        """Return what the engine is to be told now; it is taken as told."""
        changes, self._changes = self._changes, []
        return changes

    @property
    def has_changes(self) -> bool:
        return bool(self._changes)

    def is_ready(self, groups: Iterable[str]) -> bool:
        """Whether a join of these groups may be submitted."""
        return all(self._wanted.get(group) for group in groups)

    def ask(self, groups: Iterable[str]) -> None:
        """A client here asks to join these groups."""
        for group in groups:
            self._joins[group] += 1
            if group not in self._wanted:
                self._want(group)

    def subscribed(self, groups: Iterable[str]) -> None:
        """The engine has said so."""
        self._wanted.update((group, True) for group in groups if group in self._wanted)

    def came(self, groups: Iterable[str], *, is_join: bool) -> None:
        """A join, a leave or a disconnection of a client here has come in order; or a join will never be submitted."""
        for group in groups:
            if is_join:
                self._joins[group] -= 1
            if self._joins[group] <= 0:
                del self._joins[group]
                if group in self._wanted and not self._table.local_sessions(group):
                    del self._wanted[group]
                    self._changes.append(Interest(group, is_wanted=False))

    def _want(self, group: str) -> None:
        self._wanted[group] = False
        self._changes.append(Interest(group, is_wanted=True))
