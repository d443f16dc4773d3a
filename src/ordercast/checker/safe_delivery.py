"""Safe delivery: what one delivers as safe in a configuration, all its members deliver, or they fail (Theorem 4.15).

When p delivers a safe message in configuration C (a regular one R, or the transitional one that ends R), every member q
of C must deliver it before its next regular configuration after R, wherever that is: a member that never
installed C is bound as well, since its acknowledgement is what p relied on. So q, having not delivered it, violates the
promise if it installed a later regular configuration, or if it still runs at the end of a complete record whose network
had healed. If q crashed or left before, it owes nothing.

Where those who are cut off may be in different configurations when a message reaches them, this does not say where q
delivers it. So it is asked besides: what p delivers as safe in R, whoever else was in R delivers there or in the
transitional configuration that ends R, if it delivers it at all. Where a message belongs to one configuration at
everybody, agreed delivery has asked that of all messages.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.base import Checker
from ordercast.checker.life import Stay
from ordercast.checker.matters import Matter
from ordercast.checker.sequences import common_length, longest, stays_of_views
from ordercast.checker.verdict import Witness
from ordercast.model.ids import ConfigurationId, ProcessId, process_text
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.trace.records import Gap


class SafeDelivery(Checker):
    promise = Promise.SAFE_DELIVERY
    rule = "what was delivered as safe was delivered by every member that did not fail"
    matter = Matter.SAFE

    def violations(self) -> Iterator[Witness]:
        for view, member, number in self._undelivered():
            what = self._broken(member, number, view)
            if what is not None:
                yield self.witness(f"delivered as safe, but {process_text(member)} {what}", member, number, view)
        if not self.history.shares_views and not self.history.is_by_groups:
            yield from self._elsewhere()

    def _elsewhere(self) -> Iterator[Witness]:
        """What somebody delivered as safe in a regular configuration, and another who was in it delivered in another
        one."""
        for view, stays in stays_of_views(self.history).items():
            if len(stays) == 1 or not stays[0][1].is_regular:
                continue
            safe = self._safe_in([stay for _, stay in stays])
            for life, stay in stays:
                others = (safe - set(stay.numbers)) & life.delivered
                if not others:
                    continue
                there = others.difference(*(each.numbers for each in life.stays if each.home == view))
                homes = {number: each.home for each in life.stays for number in there.intersection(each.numbers)}
                for number, home in sorted(homes.items()):
                    what = f"delivered as safe in a view that {process_text(life.process)} was in, who delivers it in"
                    yield self.witness(f"{what} {home}", life.process, number, view)

    def doubts(self) -> Iterator[Witness]:
        if not self.history.is_complete:
            yield from self.cut_short()
        elif self.history.healed is None:
            for view, member, number in self._undelivered():
                life = self.history.life(member)
                if life is None or life.is_running:
                    what = f"delivered as safe, but not yet by {process_text(member)}, and the network never healed"
                    yield self.witness(what, member, number, view)

    def _undelivered(self) -> Iterator[tuple[ConfigurationId, ProcessId, int]]:
        """Each configuration, member and message that someone delivered there as safe and this member never did."""
        for view, stays in stays_of_views(self.history).items():
            safe = self._safe_in([stay for _, stay in stays])
            members = stays[0][1].view.members if safe and stays[0][1].view is not None else ()
            for member in members:
                life = self.history.life(member)
                missing = safe if life is None else safe - life.delivered
                for number in self.owed.among(life, sorted(missing)):
                    yield view, member, number

    def _safe_in(self, stays: list[Stay]) -> set[int]:
        sequences = [stay.numbers for stay in stays]
        reference = longest(sequences)
        result = set(self.history.at_least(Service.SAFE, reference))
        for sequence in sequences:
            if common_length(sequence, reference) < len(sequence):
                result.update(self.history.at_least(Service.SAFE, sequence))
        return result

    def _broken(self, member: ProcessId, number: int, view: ConfigurationId) -> str | None:
        """Why this member should have delivered it, if it should."""
        life = self.history.life(member)
        if life is None:
            return None if self.history.lacks(member, Gap.END) else "never started"
        by_groups = self.history.is_by_groups  # then it may have been ordered again, after an earlier configuration
        passed = life.regular_after(view) if by_groups else self.history.passed(life, number)
        if passed is not None:
            return f"installed view {passed} without having delivered it"
        if life.is_running and self.history.is_complete and self.history.healed is not None:
            return "never delivered it and still runs"
        return None
