"""Departures: what a replica says in the ordered stream of those who have gone and come back. Pure.

For structures of which members own parts (`structures/base.py`). All copies must let go of what somebody had at one
place in the order, so it is a command: the first of the holders says who is not in the group any more (GONE), and who
begins, or was cut off for a while, says that what it had is lost (BACK). Replicas, live and simulated, post them.
"""

from __future__ import annotations

from typing import Any

from ordercast.replicated.effects import Changed
from ordercast.replicated.structures.base import BACK_COMMAND, Owned, Structure, gone_command


class Departures:
    def __init__(self, structure: Structure[Any]) -> None:
        self._structure = structure if isinstance(structure, Owned) else None

    def back(self) -> bytes | None:
        """The command of one that begins, or was cut off."""
        return None if self._structure is None else BACK_COMMAND

    def gone(self, me: str, status: Changed | None) -> bytes | None:
        """The command that is due in a primary component, unless it is under way already."""
        if self._structure is None or status is None or status.holders[:1] != (me,):
            return None
        gone = [owner for owner in self._structure.owners() if owner.name not in status.members]
        return gone_command(gone) if gone else None
