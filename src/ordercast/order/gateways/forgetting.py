"""The stable place: everybody in the network is past it, so what lies below is forgotten.

Each ring learns the lowest place of its members from its token; gateways tell it in their notices. The lowest of all
parts is stable. Whatever only explains how things came to be before it is of no use to anybody: nothing at or below it
will be ordered, asked for or merged again. So memory does not grow with the number of changes.
"""

from __future__ import annotations

from collections import defaultdict

from ordercast.model.ids import ConfigurationId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.coverage import Coverage
from ordercast.order.gateways.items import EndItem, OwnWord, domain_of
from ordercast.order.gateways.known import Known
from ordercast.order.stamped.lanes import NO_STAMP, Stamp


class Stability:
    """How far all members of each ring are known to be."""

    __slots__ = ("_coverage", "_done", "_known", "_lowest")

    def __init__(self, known: Known, coverage: Coverage) -> None:
        self._known = known
        self._coverage = coverage
        self._lowest: dict[ConfigurationId, Stamp] = defaultdict(lambda: NO_STAMP)
        self._done: Stamp = NO_STAMP  # everything below it is forgotten

    def hear(self, ring: ConfigurationId, stamp: Stamp) -> None:
        """Hear that all members of a ring are past a place."""
        if stamp > self._lowest[ring]:
            self._lowest[ring] = stamp

    def of(self, ring: ConfigurationId) -> Stamp:
        """Return a place that all members of a ring are known to be past."""
        return self._lowest.get(ring, NO_STAMP)

    def forget(self) -> bool:
        """Forget what lies below the stable place; return whether there was anything to forget."""
        known = self._known
        known.stable = max(known.stable, self._stable())
        if known.stable <= self._done or len(known.rings) == len(known.parts):
            return False
        self._done = known.stable
        known.ends.forget(self._is_needed, self._is_word_needed)
        kept = self._kept_rings()
        known.occurred[Occurrence.NETWORK_FORGOTTEN] += len(kept) < len(known.rings)
        known.rings = {ring: value for ring, value in known.rings.items() if ring in kept}
        known.names.forget(kept)
        known.streams = {ring: value for ring, value in known.streams.items() if ring in kept}
        known.born &= kept
        known.merges = {merge for merge in known.merges if merge > known.stable}
        members = known.members
        known.bases = {at: base for at, base in known.bases.items() if at[0] in members or base in kept}
        self._coverage.forget(known.stable, kept)
        for ring in self._lowest.keys() - kept:
            del self._lowest[ring]
        known.changed()
        return True

    def _stable(self) -> Stamp:
        known = self._known
        alone = {known.me}
        return min(
            (known.place if members == alone else self.of(ring) for ring, members in known.parts.items() if members),
            default=NO_STAMP,
        )

    def _is_needed(self, end: EndItem) -> bool:
        return end.ring in self._known.parts or end.successor.birth > self._known.stable

    def _is_word_needed(self, word: OwnWord) -> bool:
        """Whether a word may still complete a part."""
        domain = domain_of(word.ring)
        return any(
            domain_of(part) == domain
            and word.gateway in self._known.rings[part].gateways
            and (word.ring >= part or word.successor > part)
            for part in self._known.parts
        )

    def _kept_rings(self) -> set[ConfigurationId]:
        """Return the rings that matter. Copies of what a ring brought may come as long as not everybody has passed it,
        though the ring was cut off and is gone here."""
        known = self._known
        kept = set(known.parts) | set(known.own.values())
        for end in known.ends:
            kept |= {end.ring, end.successor.id}
        for ring in known.rings.values():
            newest = max(known.streams[ring.id].front, self._coverage.newest(ring.id))
            if newest > known.stable:  # the front of a ring is never below its birth
                kept.add(ring.id)
        return kept
