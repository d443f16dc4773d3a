"""Faults planted in the order of a network: the paper's own rules where ours differ, and what is easily forgotten.

`test_planted.py` demands that each is caught in the runs named with it. To look for such runs:
`python -m tests.simulation.gateways.planted NAME 0 300`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways import births, views
from ordercast.order.gateways.coverage import Coverage
from ordercast.order.gateways.ends import Ends
from ordercast.order.gateways.forwarding import Forwarding
from ordercast.order.gateways.interest import Masks
from ordercast.order.gateways.items import (
    EVERYTHING,
    NOBODY_ELSE,
    Carried,
    Column,
    EndItem,
    Flooded,
    LogicalRing,
    NoticeItem,
    Processes,
    Stretch,
    domain_of,
)
from ordercast.order.gateways.known import Known
from ordercast.order.gateways.merging import Flush
from ordercast.order.gateways.network import RingNetwork
from ordercast.order.gateways.streams import RingStream
from ordercast.order.gateways.timeline import Timeline
from ordercast.order.gateways.views import Views
from ordercast.order.stamped.lanes import NEVER, NO_STAMP, Stamp
from tests.simulation.gateways import scenes
from tests.simulation.gateways.episodes import EPISODES, Episodes
from tests.simulation.gateways.hostile import Filtering, Run, Sleepy
from tests.simulation.gateways.ideal import World
from tests.simulation.gateways.scenes import Scene, judged

STEPS = 350
Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class PlantedFault:
    name: str
    plant: Plant
    seeds: tuple[int, ...]  # of runs of which at least one shows it; none: no short run is known that does
    world: type[World] = World
    in_episodes: bool = False
    scene: Scene | None = None  # the one run that shows it, instead of seeds

    def is_caught(self) -> bool:
        """Return whether the runs that are known to show the fault do; it is planted."""
        if self.scene is not None:
            return bool(judged(self.scene))
        return any(self.run(seed).judge() for seed in self.seeds)

    def run(self, seed: int) -> Run:
        return Episodes(seed, self.world, EPISODES) if self.in_episodes else Run(seed, self.world, STEPS)


def _agreed_rings(patch: pytest.MonkeyPatch) -> None:
    """The paper (C1): a gateway forwards what its ring delivers as agreed."""
    patch.setattr(World, "is_safe_ring", False)


def _old_ring_raised(patch: pytest.MonkeyPatch) -> None:
    """The paper (C2): a configuration change raises the front of the ring that ended to its own place."""
    right = Forwarding._take_end

    def wrong(self: Forwarding, end: EndItem) -> bool:
        if end.ring in self._known.streams:
            self._known.streams[end.ring].raise_front(end.successor.birth)
        return right(self, end)

    patch.setattr(Forwarding, "_take_end", wrong)


def _residual_by_stamp(patch: pytest.MonkeyPatch) -> None:
    """The paper (C3): residual packets keep the ring's name, copies are told by their timestamps."""
    patch.setattr(RingStream, "take_residual", lambda self, stretch, half: self.take(stretch))


def _half_a_merge(patch: pytest.MonkeyPatch) -> None:
    """The paper (C6): members merge without the topologies that did not come."""

    def wrong(self: Flush) -> bool:
        return self.tick is not None and len(self.topologies) >= max(1, len(self.halves) - 1)

    patch.setattr(Flush, "is_done", wrong)


def _natives_in_a_flush(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RingNetwork, "may_number", lambda self, domain: True)


def _front_beyond_cap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RingNetwork, "_is_capped", staticmethod(lambda flush: False))


def _anybodys_word(patch: pytest.MonkeyPatch) -> None:
    """A gateway is taken to be past a ring because another one says so."""

    def wrong(self: Ends, gateway: ProcessId, ring: ConfigurationId) -> bool:
        return any(
            domain_of(end.ring) == domain_of(ring)
            and gateway in end.half
            and (end.ring >= ring or end.successor.id > ring)
            for end in self
        )

    patch.setattr(Ends, "is_past", wrong)


def _merges_complete_parts_early(patch: pytest.MonkeyPatch) -> None:
    """Halves of a merge count as ended before the merge is done in the order."""
    right = Ends.take

    def wrong(self: Ends, end: EndItem, is_born: bool) -> bool:
        news = right(self, end, True)
        for half in end.successor.halves:
            self.add(EndItem(half.ring, half.members, end.successor, NOBODY_ELSE))
        return news

    patch.setattr(Ends, "take", wrong)


def _since_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = Forwarding.accept

    def wrong(self: Forwarding, item: Flooded, since: Stamp, domain: int, half: Processes | None) -> bool:
        return right(self, item, NO_STAMP, domain, half)

    patch.setattr(Forwarding, "accept", wrong)


def _halves_speak_for_rings(patch: pytest.MonkeyPatch) -> None:
    """What a speaker has is taken for what all of its ring have, whatever half they came in."""
    patch.setattr(
        Coverage, "_shares_past", lambda self, member, speaker, ring, stamp: member in self._known.rings[ring].members
    )


def _last_words_speak_for_rings(patch: pytest.MonkeyPatch) -> None:
    """The last statement of one half is taken for one of the whole ring."""
    right = Coverage.state

    def wrong(self: Coverage, ring: Any, by: Any, half: Processes | None, entries: Any) -> bool:
        return right(self, ring, by, None, entries)

    patch.setattr(Coverage, "state", wrong)


def _residual_by_highest(patch: pytest.MonkeyPatch) -> None:
    """Residual packets are counted like regular ones, by the highest."""
    right = Coverage.count

    def wrong(self: Coverage, ring: ConfigurationId, column: Column, stamp: Stamp, is_regular: bool) -> None:
        right(self, ring, column._replace(half=None), stamp, is_regular)

    patch.setattr(Coverage, "count", wrong)


def _residual_not_onto_own_ring(patch: pytest.MonkeyPatch) -> None:
    right = Forwarding._put

    def wrong(self: Forwarding, domain: int, item: Flooded, since: Stamp, half: Processes | None) -> None:
        if not isinstance(item, Stretch) or half is None or self._known.own[domain] != item.ring:
            right(self, domain, item, since, half)

    patch.setattr(Forwarding, "_put", wrong)


def _regular_not_onto_next_ring(patch: pytest.MonkeyPatch) -> None:
    """Members of a ring that has ended are not told which of its last packets were regular elsewhere."""
    patch.setattr(Forwarding, "put_early", lambda self, domain: self._early[domain].clear())


def _out_of_order(patch: pytest.MonkeyPatch) -> None:
    """A gateway lets packets overtake what waits."""

    def wrong(self: Forwarding, item: Flooded, since: Stamp, domain: int | None, half: Processes | None) -> None:
        for other, queue in self.queues.items():
            if other != domain and not self._waits(other, item, half):
                queue.insert(
                    max(0, len(queue) - 1) if isinstance(item, Stretch) else len(queue), Carried(item, since, half)
                )

    patch.setattr(Forwarding, "forward", wrong)


def _birth_at_the_clock(patch: pytest.MonkeyPatch) -> None:
    """The paper (C8): a ring is born at the highest clock of its members, not above it."""
    patch.setattr(World, "birth_step", 0)


def _no_stamp_at_commit(patch: pytest.MonkeyPatch) -> None:
    """A new ring's tick does not look at the packets of the old ring."""
    patch.setattr(World, "stamps_at_commit", False)


def _no_waiting(patch: pytest.MonkeyPatch) -> None:
    """Rings without packets hold up nobody."""
    patch.setattr(RingStream, "bound", property(lambda self: self.runs[0].first if self.runs else NEVER))


def _nobody_leaves_at_the_front(patch: pytest.MonkeyPatch) -> None:
    """Members in no half known stay in the view until the ring is removed."""
    right = Known.missing

    def wrong(self: Known, ring: ConfigurationId) -> Processes:
        return NOBODY_ELSE if any(self.successors(ring)) else right(self, ring)

    patch.setattr(Known, "missing", wrong)


def _impatient(patch: pytest.MonkeyPatch) -> None:
    """Members are given up for a safe message although they can be heard."""

    def wrong(self: Timeline, packet: Stretch, stamp: Stamp) -> bool:
        self._drop(self._coverage.lacking(packet), stamp)
        return True

    patch.setattr(Timeline, "_give_up", wrong)


def _singletons(patch: pytest.MonkeyPatch) -> None:
    """The paper (C5): everybody steps into a ring of itself before a safe message that somebody lacks."""

    def wrong(self: Timeline, packet: Stretch, stamp: Stamp) -> bool:
        lacking = self._coverage.lacking(packet)
        if not self._known.heard.isdisjoint(lacking):
            return False
        if lacking:
            self._drop(self._known.members - {self._known.me}, stamp)
        return True

    patch.setattr(Timeline, "_give_up", wrong)


def _lacking_stay(patch: pytest.MonkeyPatch) -> None:
    """A safe message is delivered without those who lack it and cannot be heard, though they are still in the view."""

    def wrong(self: Timeline, packet: Stretch, stamp: Stamp) -> bool:
        return self._known.heard.isdisjoint(self._coverage.lacking(packet))

    patch.setattr(Timeline, "_give_up", wrong)


def _safe_is_agreed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coverage, "covers", lambda self, run: True)
    patch.setattr(Coverage, "lacking", lambda self, packet: NOBODY_ELSE)


def _back_by_a_birth(patch: pytest.MonkeyPatch) -> None:
    """A birth brings back members that have left."""
    patch.setattr(births, "_members", lambda known, parts, ring: ring.members)


def _claimed_by_the_first(patch: pytest.MonkeyPatch) -> None:
    """A member that is claimed by two rings is counted on the earlier one too."""

    def wrong(known: Any, parts: dict[ConfigurationId, Processes], ring: LogicalRing) -> Processes:
        domain = domain_of(ring.id)
        return ring.members & NOBODY_ELSE.union(*(who for part, who in parts.items() if domain_of(part) == domain))

    patch.setattr(births, "_members", wrong)


def _views_without_past(patch: pytest.MonkeyPatch) -> None:
    """Equal parts make equal views."""
    right = views.view_id

    def wrong(before: Any, stamp: Stamp, shape: Any, lost: Any = ()) -> ConfigurationId:
        number = max([views.view_number(right((), stamp, shape)), *(views.view_number(view) + 1 for view in before)])
        return views.id_from(number, stamp, shape)

    patch.setattr(views, "view_id", wrong)


def _all_come_along(patch: pytest.MonkeyPatch) -> None:
    """At a merge everybody in the old view and the new one is taken to come along."""
    patch.setattr(Views, "_companions", lambda self, ring: self.current.members)


def _sure_of_all(patch: pytest.MonkeyPatch) -> None:
    """A merge by residual speaks for all members of the ring."""
    right = Forwarding.say

    def wrong(self: Forwarding, item: Flooded, domain: int, since: Stamp = NO_STAMP) -> None:
        if isinstance(item, EndItem) and item.successor.is_merge:
            item = replace(item, sure=item.successor.members)
        right(self, item, domain, since)

    patch.setattr(Forwarding, "say", wrong)


def _caps_wake_nobody(patch: pytest.MonkeyPatch) -> None:
    """Fronts that are told just below a merge are no reason to tell one's own."""
    patch.setattr(NoticeItem, "is_cap", property(lambda self: False))


def _removed_at_the_cap(patch: pytest.MonkeyPatch) -> None:
    """A ring is deleted at a merge's cap, before the merge: whoever does so comes alone to it, and back."""
    patch.setattr(Timeline, "_end_of", lambda self, stream: max(self._known.place, stream.front))


def _mergers_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    """The birth of a merge does not wait for those who may have given it up."""
    patch.setattr(Timeline, "disputing", lambda self, ring: frozenset())


def _joins_before_interest(patch: pytest.MonkeyPatch) -> None:
    """A process joins a group before its interest in it is in force."""
    patch.setattr(World, "joins_in_time", False)


def _strangers_want_nothing(patch: pytest.MonkeyPatch) -> None:
    """A gateway does not ask whom a merge on its own attachment may bring."""
    patch.setattr(Masks, "_brings_strangers", lambda self, domain: False)


def _marks_without_interest(patch: pytest.MonkeyPatch) -> None:
    """Members of a ring that is to merge go on wanting what they wanted."""
    right = Masks.due
    patch.setattr(Masks, "due", lambda self, is_merging, is_alone=False: right(self, False, is_alone))
    patch.setattr(Masks, "want_everything_until", lambda self, stamp: None)
    patch.setattr(Masks, "in_force", property(lambda self: EVERYTHING))


def _interest_lowered_at_the_merge(patch: pytest.MonkeyPatch) -> None:
    """Members of a ring that has merged want everything only until they have passed the merge themselves."""
    patch.setattr(Masks, "want_everything_until", lambda self, stamp: None)


def _holds_stop_carriers(patch: pytest.MonkeyPatch) -> None:
    """What gateways carry stops while somebody holds: nobody can tell that it holds no more."""
    right = World.visit

    def wrong(self: World, host: Any, domain: int, most: int) -> None:
        if host.network.may_send(domain):
            right(self, host, domain, most)

    patch.setattr(World, "visit", wrong)


PLANTED = (
    PlantedFault("joins before interest", _joins_before_interest, (5,), Filtering),
    PlantedFault("strangers want nothing", _strangers_want_nothing, (0,), Filtering),
    PlantedFault("marks without interest", _marks_without_interest, (30,), Filtering),
    PlantedFault("interest lowered at the merge", _interest_lowered_at_the_merge, (), Sleepy),
    PlantedFault("holds stop carriers", _holds_stop_carriers, (0,)),
    PlantedFault("agreed rings", _agreed_rings, (6,)),
    PlantedFault("old ring raised", _old_ring_raised, (1,)),
    PlantedFault("residual by stamp", _residual_by_stamp, (1,)),
    PlantedFault("half a merge", _half_a_merge, (0,)),
    PlantedFault("natives in a flush", _natives_in_a_flush, (0,)),
    PlantedFault("front beyond cap", _front_beyond_cap, (1,)),
    PlantedFault("anybody's word", _anybodys_word, (), scene=scenes.agreed_and_not_installed),
    PlantedFault("merges complete parts early", _merges_complete_parts_early, (), scene=scenes.lost_and_back),
    PlantedFault("since forgotten", _since_forgotten, (0,)),
    PlantedFault("halves speak for rings", _halves_speak_for_rings, (), scene=scenes.stated_behind_a_merge),
    PlantedFault("last words speak for rings", _last_words_speak_for_rings, (1,)),
    PlantedFault("residual by highest", _residual_by_highest, (), scene=scenes.residual_with_a_hole),
    PlantedFault("residual not onto own ring", _residual_not_onto_own_ring, (), scene=scenes.residual_of_others),
    PlantedFault("regular not onto next ring", _regular_not_onto_next_ring, (), scene=scenes.regular_elsewhere),
    PlantedFault("out of order", _out_of_order, (0,)),
    PlantedFault("birth at the clock", _birth_at_the_clock, (0,), in_episodes=True),
    PlantedFault("no stamp at commit", _no_stamp_at_commit, (), scene=scenes.held_and_not_handed_up),
    PlantedFault("no waiting", _no_waiting, (0,)),
    PlantedFault("nobody leaves at the front", _nobody_leaves_at_the_front, (), scene=scenes.a_half_that_some_hear_of),
    PlantedFault("impatient", _impatient, (1,)),
    PlantedFault("singletons", _singletons, (0,), in_episodes=True),
    PlantedFault("lacking stay", _lacking_stay, (), scene=scenes.residual_with_a_hole),
    PlantedFault("safe is agreed", _safe_is_agreed, (1,)),
    PlantedFault("back by a birth", _back_by_a_birth, (), scene=scenes.halves_of_two_minds),
    PlantedFault("claimed by the first", _claimed_by_the_first, (), scene=scenes.halves_of_two_minds),
    PlantedFault("views without past", _views_without_past, (7,)),
    PlantedFault("all come along", _all_come_along, (190,)),
    PlantedFault("sure of all", _sure_of_all, (), scene=scenes.halves_of_two_minds),
    PlantedFault("caps wake nobody", _caps_wake_nobody, (5,)),
    PlantedFault("removed at the cap", _removed_at_the_cap, ()),
    PlantedFault("mergers are not asked", _mergers_are_not_asked, (), scene=scenes.halves_of_two_minds),
)


def main(name: str, first: int, last: int, in_episodes: bool) -> None:
    """Say which runs show a fault: the first of them, and how many."""
    for fault in PLANTED:
        if name in ("all", fault.name) or (name == "uncaught" and not fault.seeds):
            fault = replace(fault, in_episodes=in_episodes)
            with pytest.MonkeyPatch.context() as patch:
                fault.plant(patch)
                found = {seed: errors[0] for seed in range(first, last) if (errors := fault.run(seed).judge())}
            seed, text = next(iter(found.items()), (None, ""))
            sys.stdout.write(f"{fault.name}: {len(found)} of {last - first}, first {seed} {text[:150]}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), "episodes" in sys.argv[4:])
