"""Conversations with one member of the adaptive engine, q: `>` what it hears or does, `<` what comes of it. Members are
p, q and r; a slot has one place. (Paper: Chockler, Huleihel, Dolev, section 4.2; cases V, C, D, K, B of section 4.3)

    p sends at N             p gives up N         (it uses no place below N any more)
    p announces A B C at N   (weights of p, q, r from the next base on)
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from ordercast.model.effects import Effect
from ordercast.order.adaptive import slots
from ordercast.order.adaptive.codec import build_distribution
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.slots import Distribution, base_after
from tests.unit.order.adaptive.test_merge import MEMBERS, delivered, ended, mark, packet, plan_of
from tests.unit.order.rings import TWO, make_ring

NAMES = "pqr"
REACH = 300
THE_PAPERS = (0, 1, 0, 1, 0, 0, 2, 0)  # p, q, p, q, p, p, r, p


class Listener:
    """The order as q knows it."""

    def __init__(self) -> None:
        ring = make_ring(TWO)
        self.merge = Merge(ring, ring.id, AdaptiveConfig(block=1, period=8, reach=REACH), 100)
        self._ticks = 0

    def give(self, line: str) -> list[str]:
        name, verb, *words = line.split()
        member = NAMES.index(name)
        number = self.merge.streams[member].last + 1
        if verb == "sends":
            run = packet(int(words[1]), number, MEMBERS[member])
            self.merge.sent(run) if member == self.merge.me else self.merge.take(run, number)
        elif verb == "announces":
            place, newest = int(words[4]), self.merge.line.newest
            base = base_after(place, newest.base, REACH)
            weights = tuple(map(int, words[:3]))
            distribution = Distribution(newest.number + 1, base, 1, 8, weights)
            run = build_distribution(self.merge.heading, MEMBERS[member], distribution, place, (0, 0), number)
            self.merge.take(run, number)
        elif member == self.merge.me:
            self.merge.give_up(int(words[1]))
        else:
            self._ticks += 1
            self.merge.hear(mark(member, self._ticks, number - 1, int(words[1])))
        return self._said()

    def _said(self) -> list[str]:
        effects: list[Effect] = []
        self.merge.advance(effects)
        frontiers = self.merge.frontiers
        lowest = min(range(3), key=frontiers.__getitem__)
        said = [f"delivers {' '.join(map(str, places))}"] if (places := delivered(effects)) else []
        if self.merge.is_moved:
            self.merge.is_moved = False
            said.append(f"moves to {self.merge.known(self.merge.me)}")
        return [*said, f"waits for {NAMES[lowest]} at {frontiers[lowest]}"]


def play(text: str, listener: Listener | None = None) -> Merge:
    """Fail when q does anything else than the text says; return its order."""
    listener = listener or Listener()
    lines = [line.strip() for line in dedent(text).splitlines() if line.strip()]
    actual: list[str] = []
    for line in lines:
        if line.startswith(">"):
            actual += [line, *(f"< {said}" for said in listener.give(line[1:].strip()))]
    assert actual == lines, "\n".join(["q does this:", *actual])
    return listener.merge


def test_the_papers_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slots are p, q, p, q, p, p, r, p: the first is p's, the second q's, and each is waited for or given up."""
    monkeypatch.setattr(slots, "even_sequence", lambda weights: THE_PAPERS)
    play(
        """
        > p sends at 1
          < delivers 1
          < waits for q at 2
        > p sends at 3
          < waits for q at 2
        > q sends at 2
          < delivers 2 3
          < waits for q at 4
        > q gives up 9
          < waits for p at 5
        > p sends at 5
          < delivers 5
          < waits for p at 6
        > r sends at 7
          < waits for p at 6
        > p gives up 8
          < delivers 7
          < waits for p at 8
        > p sends at 8
          < delivers 8
          < waits for p at 9
        """
    )


def test_a_distribution_takes_over_when_all_have_moved() -> None:
    """Case C: p announces at 4 that q has six slots of eight from 305 on. Nobody passes the base before r has moved."""
    merge = play(
        """
        > p sends at 1
          < delivers 1
          < waits for q at 2
        > p announces 1 6 1 at 4
          < moves to 305
          < waits for r at 3
        > p gives up 305
          < waits for r at 3
        > r sends at 6
          < delivers 6
          < waits for r at 9
        > r gives up 305
          < waits for q at 305
        > q sends at 305
          < delivers 305
          < waits for q at 306
        """
    )
    assert merge.line.at(304).number == 0 and merge.line.at(305).weights == (1, 6, 1)


def test_a_recovery_in_which_only_some_knew_a_place_to_be_void() -> None:
    """Case V: p is gone. q had heard that p gives up its places below 50, r had not: what it heard decides nothing, and
    both deliver the same. Had q's aru been on its Commit entry, the places up to it would be void for both."""
    known = play(
        """
        > r sends at 3
          < waits for p at 1
        > p gives up 50
          < waits for q at 2
        """
    )
    unknown = play(
        """
        > r sends at 3
          < waits for p at 1
        """
    )
    assert ended(known, plan_of(0)) == ended(unknown, plan_of(0)) == ([], [3], 0)
    assert known.arus[known.me] == 1
    told = play(
        """
        > r sends at 3
          < waits for p at 1
        """
    )
    assert ended(told, plan_of(3)) == ([3], [], 3)
