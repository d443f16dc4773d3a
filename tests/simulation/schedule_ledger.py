"""The ledger of a schedule: what was confirmed where first, what each replica has of it, and whose a term is.

The state alone does not tell all. A command that was confirmed may have its place at those who live and be applied by
none of them, and the one who confirmed it is dead: then it is lost when they give up the place, and no state shows it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.core import Core
from ordercast.replicated.effects import Changed, Standing
from ordercast.replicated.wire import decode_command


class Broken(AssertionError):
    """A promise was."""


@dataclass(frozen=True)
class Possession:
    """What has its place at a replica, applied or held."""

    lineage: Lineage | None = None
    term: Term | None = None
    words: frozenset[bytes] = frozenset()


@dataclass
class Ledger:
    goes_on: bool  # every side
    first: dict[bytes, dict[Lineage | None, Term]] = field(default_factory=dict)  # of each word, where it was confirmed
    refused: set[bytes] = field(default_factory=set)  # for certain
    components: dict[Term, object] = field(default_factory=dict)  # that were primary
    _had: dict[int, Possession] = field(default_factory=dict)  # by life
    _terms: dict[int, Term] = field(default_factory=dict)  # of each life, the last primary one

    def confirmed(self, core: Core, word: bytes) -> None:
        assert core.term is not None
        self.first.setdefault(word, {}).setdefault(core.lineage, core.term)

    def look(self, core: Core, applied: Collection[bytes]) -> None:
        """What was confirmed before a replica's state was last decided current, and has its place there, keeps it."""
        track, before = core._copy.track, self._had.get(core.me.life, Possession())
        held = () if track is None else (decode_command(each.payload).data for each in track.held)
        words = frozenset((*applied, *held)) if track is not None else frozenset()
        wrong = self.refused.intersection(applied)
        if wrong:
            raise Broken(f"{core.me.name} has applied what was refused for certain: {sorted(wrong)}")
        lost = [word for word in before.words - words if self._must_stay(word, before)]
        if lost:
            raise Broken(f"{core.me.name} was to keep {sorted(lost)}, which were confirmed, and has no place for them")
        self._had[core.me.life] = Possession(core.lineage, core.term, words)

    def forgive(self, core: Core) -> None:
        """What this replica had may be replaced."""
        self._had.pop(core.me.life, None)

    def _must_stay(self, word: bytes, had: Possession) -> bool:
        where = self.first.get(word, {})
        if self.goes_on:
            return bool(where)
        term = where.get(had.lineage)
        return term is not None and had.term is not None and term <= had.term

    def changed(self, core: Core, changed: Changed) -> None:
        """A term is that of one component, and who is in one is only in later ones after it."""
        if not changed.is_primary or changed.standing is not Standing.HOLDER or changed.term is None:
            return
        assert core._component is not None
        component = core._component.view.id, core._component.round
        if self.components.setdefault(changed.term, component) != component:
            raise Broken(f"two components of term {changed.term}")
        if changed.term < self._terms.get(core.me.life, changed.term):
            raise Broken(f"{core.me.name} is in a component of {changed.term} after a later one")
        self._terms[core.me.life] = changed.term

    def check_end(self, words: Collection[bytes]) -> None:
        """Nobody ever lost its memory."""
        lost = self.first.keys() - set(words)
        if lost:
            raise Broken(f"{sorted(lost)} were confirmed, everybody is here, and nobody has them")
