"""Two ways to find a network that does not bring what others bring. Both look at what is received and at nothing else.

`Problems` belongs to the active style: tokens that a network failed to bring before the timer. `ArrivalCounts` is the
module of Figure 5: how many packets of one kind from one member each network brought. Sporadic losses are forgiven in
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ordercast.model.ids import Instant

NOBODY_TO_COMPARE = 1 << 62  # packets, before the next look


class Problems:
    """One counter per network: it rises when the token timer ran out without a copy from there, and falls with time and
    with copies that came in time. (Section 5)"""

    __slots__ = ("_brought", "_decay_ns", "_decay_tokens", "_decayed_at", "counters", "threshold")

    def __init__(self, networks: int, threshold: int, decay_ns: int, decay_tokens: int) -> None:
        self.threshold = threshold
        self._decay_ns = decay_ns
        self._decay_tokens = decay_tokens
        self.counters = [0] * networks
        self._brought = [0] * networks  # tokens in time since the counter last fell
        self._decayed_at = Instant(0)

    def brought(self, network: int) -> None:
        if not self.counters[network]:
            return
        self._brought[network] += 1
        if self._brought[network] >= self._decay_tokens:
            self._brought[network] = 0
            self.counters[network] -= 1

    def expired(self, missing: Iterable[int], now: Instant) -> list[int]:
        """The token timer ran out, and these had not brought it. Returns those that have failed too often."""
        periods = (now - self._decayed_at) // self._decay_ns
        self._decayed_at = Instant(self._decayed_at + periods * self._decay_ns)
        self.counters = [max(0, counter - periods) for counter in self.counters]
        failed: list[int] = []
        for network in missing:
            self.counters[network] += 1
            if self.counters[network] >= self.threshold:
                failed.append(network)
        return failed

    def reset(self) -> None:
        self.counters = [0] * len(self.counters)
        self._brought = [0] * len(self.counters)


class ArrivalCounts:
    """Packets of one kind from one member, by network. Only networks in `judged` are compared. (Figure 5)"""

    __slots__ = ("_catch_up", "_due", "_span", "_threshold", "counts", "judged", "left")

    def __init__(self, networks: int, threshold: int, catch_up: int, judged: tuple[int, ...]) -> None:
        self._threshold = threshold
        self._catch_up = catch_up
        self.counts = [0] * networks
        self.reset(judged)

    def reset(self, judged: tuple[int, ...]) -> None:
        self.judged = judged
        self.counts = [0] * len(self.counts)
        self._due = self._catch_up  # when so many have come, something is forgiven
        self.left = self._span = 0  # how many may still come before a look is worth while, and might after the last
        self.look()

    def add(self, network: int, count: int = 1) -> Sequence[int]:
        """So many came. Returns the networks that are too far behind; mostly none, and at little cost."""
        self.counts[network] += count
        self.left -= count
        return () if self.left > 0 else self.look()

    def look(self) -> list[int]:
        """Whoever is behind can be too far behind only after as many more have come as are `left`."""
        judged, counts = self.judged, self.counts
        if len(judged) < 2:
            self.left = self._span = NOBODY_TO_COMPARE
            return []
        most = max([counts[network] for network in judged])
        lead = most - min([counts[network] for network in judged])
        self._due -= self._span - self.left
        if self._due <= 0:
            lead = self._forgive(most, lead)
        self.left = self._span = min(self._due, max(1, self._threshold - lead + 1))
        if lead <= self._threshold:
            return []
        return [network for network in judged if most - counts[network] > self._threshold]

    def _forgive(self, most: int, lead: int) -> int:
        """Slowly raise what is behind, so that losses over a long time do not add up. Returns the lead that is left."""
        steps = 1 + -self._due // self._catch_up
        self._due += steps * self._catch_up
        if lead:
            for network in self.judged:
                self.counts[network] = min(most, self.counts[network] + steps)
        return max(0, lead - steps)
