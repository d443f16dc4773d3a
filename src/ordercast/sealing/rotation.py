"""When another key is used: as soon as all accept it who are members, or were heard within a day."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.ids import Instant, ProcessId, node_of
from ordercast.sealing.keys import KeyRing
from ordercast.sealing.lives import Lives


def awaited(
    keys: KeyRing, lives: Lives, away: dict[int, Instant], members: Sequence[ProcessId], me: ProcessId
) -> list[int]:
    """Return the nodes that have not said that they accept the wanted key; `away`: those heard lately that are not
    present."""
    newest = lives.newest()
    accepting = {node for node, life in newest.items() if keys.wanted in life.accepted}
    needed = {node_of(member) for member in members} | set(newest) | set(away)
    return sorted(needed - accepting - {node_of(me)})
