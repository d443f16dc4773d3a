"""How much a process sends to each group: others are told when it has doubled or halved, and not too often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ordercast.model.ids import SECOND, Instant
from ordercast.order.tree.control import SenderLoad

NAMED_MAX = 1_000  # groups in one word


class Loads:
    def __init__(self, gap_ns: int) -> None:
        self._gap_ns = gap_ns
        self._counts: Counter[str] = Counter()  # messages since the last look
        self._said: dict[str, int] = {}  # messages a second, as others know them
        self._since: Instant | None = None

    def begin(self) -> None:
        """A configuration begins, in which nothing was said."""
        self._said = {}

    def count(self, groups: Iterable[str], messages: int) -> None:
        for name in groups:
            self._counts[name] += messages

    @property
    def next_look(self) -> Instant | None:
        """When to ask again whether others are to be told."""
        return None if self._since is None else Instant(self._since + self._gap_ns)

    def due(self, now: Instant) -> SenderLoad | None:
        """Return what others are to be told, if there is anything."""
        if self._since is None or now - self._since < self._gap_ns:
            self._since = now if self._since is None else self._since
            return None
        counts, self._counts = self._counts, Counter()
        names = sorted({*counts, *self._said})
        rates = {name: counts[name] * SECOND // (now - self._since) for name in names}
        self._since = now
        news = [(name, rate) for name, rate in rates.items() if _is_news(self._said.get(name, 0), rate)][:NAMED_MAX]
        self._said.update(news)
        return SenderLoad(tuple(news)) if news else None


def _is_news(said: int, rate: int) -> bool:
    return rate > 2 * said or 2 * rate < said
