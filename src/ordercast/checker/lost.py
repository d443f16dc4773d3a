"""Messages that are lost with their source: what those who come along deliver without something before it.

On an engine whose order is one among those who share groups, a process that is cut off may take with it a message that
nobody holds who comes along, while one of them has delivered a later one of the same source, and is not owed the first.
Who is owed both has to deliver the later one, as its companions do (virtual synchrony), and cannot have the first.
(Thesis, R2: of a site that fails, the last messages may be wrong.)

So a gap is nobody's fault if, and only if, all of this holds:

- the source of the missing message does not come along;
- what follows it was delivered in the transitional configuration, which is that of those who come along;
- none of them has delivered the missing one, ever;
- none of them had delivered what follows as safe, in the regular configuration: then all who are owed it had it, and
  what came before.
"""

from __future__ import annotations

from ordercast.checker.history import History
from ordercast.checker.life import Life, Stay
from ordercast.model.service import Service


class Lost:
    def __init__(self, history: History) -> None:
        self._history = history

    def is_lost(self, missing: int, life: Life, number: int) -> bool:
        """Whether a process could not have a message that it delivered another one without."""
        history = self._history
        if not history.is_by_groups:
            return False
        stay = next(stay for stay in life.stays if number in stay.numbers)
        if stay.view is None or stay.is_regular or history.placements().homes.get(missing) != stay.home:
            return False
        along = stay.view.members
        if history.identity(missing).process in along:
            return False
        companions = [one for process in along if (one := history.life(process)) is not None]
        return not any(missing in one.delivered or self._is_safe(one, number, stay) for one in companions)

    def _is_safe(self, life: Life, number: int, stay: Stay) -> bool:
        if self._history.columns.services[number] < Service.SAFE or number not in life.delivered:
            return False
        return any(number in one.numbers for one in life.stays if one.is_regular and one.home == stay.home)
