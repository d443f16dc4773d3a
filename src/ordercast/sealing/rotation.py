"""When another key is used: as soon as all accept it who are members, or were heard within a day. Which keys a process
may take without parting from those with whom it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def understands(after: KeyRing, before: KeyRing, used: Iterable[int]) -> bool:
    """Tell whether these keys open what is sealed with one of those in use; a later key may have an earlier one's
    number."""
    return any(
        number in after.accepted and before.secrets.get(number, after.secrets.get(number)) == after.secrets.get(number)
        for number in used
    )
