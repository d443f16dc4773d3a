"""ENDs and words: which rings ended, for whom, and which gateways have said so themselves.

An END of one half says nothing of the others. A ring is complete only when every gateway of it that can still be heard
is past it by its own word: then nothing more can come of it. A word is an END whose `sure` names the gateway. ENDs of
one half with two successors are two facts (a merge by residual, and a next ring).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId
from ordercast.order.gateways.items import NOBODY_ELSE, EndItem, LogicalRing, OwnWord, Processes, domain_of

_Key = tuple[ConfigurationId, Processes, ConfigurationId]


class Ends:
    """All ENDs and words that still matter."""

    __slots__ = ("_by_ring", "_by_successor", "_ends", "_past", "_sure", "_words")

    def __init__(self) -> None:
        self._ends: dict[_Key, EndItem] = {}
        self._by_ring: dict[ConfigurationId, list[EndItem]] = defaultdict(list)
        self._by_successor: dict[ConfigurationId, list[EndItem]] = defaultdict(list)
        self._sure: dict[ConfigurationId, Processes] = {}  # by successor: who went on to it, by their own word
        self._words: set[OwnWord] = set()
        # By gateway and domain: the highest ring it left and the highest it went on to.
        self._past: dict[tuple[ProcessId, int], tuple[ConfigurationId, ConfigurationId]] = {}

    # What is asked

    def __iter__(self) -> Iterator[EndItem]:
        return iter(self._ends.values())

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def words(self) -> Iterable[OwnWord]:
        return self._words

    def of(self, ring: ConfigurationId) -> list[EndItem]:
        """Return the ENDs of a ring."""
        return self._by_ring.get(ring, [])

    def into(self, successor: ConfigurationId) -> list[EndItem]:
        """Return the ENDs that name a ring as the successor."""
        return self._by_successor.get(successor, [])

    def sure_of(self, successor: ConfigurationId) -> Processes:
        return self._sure.get(successor, NOBODY_ELSE)

    def is_past(self, gateway: ProcessId, ring: ConfigurationId) -> bool:
        """Whether a gateway has left a ring, by its own word: rings of a domain rise at each process."""
        left, entered = self._past.get((gateway, domain_of(ring)), (NO_CONFIGURATION, NO_CONFIGURATION))
        return left >= ring or entered > ring

    def is_complete(self, ring: LogicalRing, me: ProcessId, heard: Processes) -> bool:
        """Whether nothing more can come of a ring that this process is no longer on."""
        return all(gateway == me or gateway not in heard or self.is_past(gateway, ring.id) for gateway in ring.gateways)

    # What comes

    def take(self, end: EndItem, is_born: bool) -> bool:
        """Take an END that was heard; return whether it says anything new. The halves of a merge count only once it is
        born: until then it completes no part but the one that the END names."""
        successor = end.successor.id
        self._sure[successor] = self.sure_of(successor) | end.sure
        words = {OwnWord(gateway, end.ring, successor) for gateway in end.sure & end.half}
        if is_born:
            words |= self._words_of_halves(end.successor, end.sure)
        is_known = (end.ring, end.half, successor) in self._ends
        if is_known and words <= self._words:
            return False
        self.add(end)
        self.add_words(words)
        return True

    def add(self, end: EndItem) -> None:
        """Keep an END, if it is not known."""
        key = (end.ring, end.half, end.successor.id)
        if key not in self._ends:
            self._ends[key] = end
            self._by_ring[end.ring].append(end)
            self._by_successor[end.successor.id].append(end)

    def add_merge(self, ring: LogicalRing) -> None:
        """Hear that a merge is born: each of its halves ended in it, and whoever is sure of it has left its half."""
        for half in ring.halves:
            self.add(EndItem(half.ring, half.members, ring, NOBODY_ELSE))
        self.add_words(self._words_of_halves(ring, self.sure_of(ring.id)))

    def add_words(self, words: Iterable[OwnWord]) -> None:
        for word in words:
            self._words.add(word)
            at = (word.gateway, domain_of(word.ring))
            left, entered = self._past.get(at, (NO_CONFIGURATION, NO_CONFIGURATION))
            self._past[at] = (max(left, word.ring), max(entered, word.successor))

    @staticmethod
    def _words_of_halves(ring: LogicalRing, sure: Processes) -> set[OwnWord]:
        return {OwnWord(gateway, half.ring, ring.id) for half in ring.halves for gateway in sure & half.members}

    # What goes

    def forget(self, is_needed: Callable[[EndItem], bool], is_word_needed: Callable[[OwnWord], bool]) -> None:
        """Keep only the ENDs that are needed, and words that are or belong to such an END."""
        ends, words = [end for end in self._ends.values() if is_needed(end)], self._words
        self._ends, self._by_ring, self._by_successor = {}, defaultdict(list), defaultdict(list)
        for end in ends:
            self.add(end)
        self._sure = {ring: sure for ring, sure in self._sure.items() if ring in self._by_successor}
        self._words, self._past = set(), {}
        self.add_words(word for word in words if word.successor in self._by_successor or is_word_needed(word))
