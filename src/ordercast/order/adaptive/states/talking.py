"""What a process says in normal operation, beside its messages: marks, requests, and answers to others'."""

from __future__ import annotations

from dataclasses import dataclass, field

from ordercast.model.effects import Broadcast, Burst, SendTo
from ordercast.model.ids import Instant
from ordercast.model.notes import Distributed, Marked, Occurrence
from ordercast.order.adaptive.codec import Ask, Wish, encode_ask, encode_mark
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.marks import NEVER, Voice
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.office import Office
from ordercast.order.adaptive.policy import Policy
from ordercast.order.adaptive.repair import Answers, Repair
from ordercast.order.adaptive.stats import AdaptiveStats
from ordercast.order.membership.states.working import Working
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.timers import Timer
from ordercast.wire.header import Heading, retransmitted


@dataclass(slots=True)
class Own:
    """What outlives the configurations of a process."""

    config: AdaptiveConfig
    policy: Policy
    stats: AdaptiveStats = field(default_factory=AdaptiveStats)


def merge_of(facts: Facts) -> Merge:
    assert isinstance(facts.past, Merge)
    return facts.past


@dataclass(slots=True)
class Talking(Working):
    own: Own
    merge: Merge
    voice: Voice
    repair: Repair
    office: Office
    mark_heading: Heading
    ask_heading: Heading
    is_awaited: bool = field(default=False, kw_only=True)  # others wait for what this process says now
    noted: set[Occurrence] = field(default_factory=set, kw_only=True)  # what happened in this configuration already

    def on_ask(self, ask: Ask, step: Step) -> None:
        """The originator answers at once; others wait for their turn."""
        merge = self.merge
        asker = merge.heading.places[ask.transmitter]
        merge.hear_aru(asker, ask.aru)
        numbers: list[tuple[int, int]] = []
        for wish in ask.wishes:
            if wish.originator != merge.me:
                self.repair.asked(asker, wish, merge, step.now)
            elif wish.last:
                numbers += [(merge.me, number) for number in self.repair.unanswered(wish, step.now)]
            else:
                self.voice.is_due = True
        step.facts.stats.packets_requested += len(numbers)
        self._answer(Answers(numbers, []), step)

    def _give_up(self, merge: Merge, step: Step) -> None:
        """Places that others wait for are given up at once; some ahead, as long as nothing waits here."""
        voice, frontier, highest = self.voice, merge.frontiers[merge.me], merge.highest
        voice.waits_until = NEVER
        if frontier <= highest:
            if voice.is_due or voice.may_be_urgent(step.now):
                self._give_way(merge, step)
            return
        newest = merge.line.newest
        if frontier - highest >= newest.ahead or not newest.turns[merge.me]:
            return
        if self._beyond(merge, step) >= 2 * (frontier - highest):
            if newest.waits_for_turn(merge.me, voice.heard):
                return
            self.occurred(Occurrence.PLACES_AHEAD, step)
            merge.give_up(highest + 1 + self._beyond(merge, step))
            voice.is_due = True

    def _give_way(self, merge: Merge, step: Step) -> None:
        self.occurred(Occurrence.PLACES_URGENT, step)
        merge.give_up(merge.highest + 1 + self._beyond(merge, step))
        self.voice.is_due, self.voice.waits_until = True, NEVER
        self.is_awaited = True

    def _beyond(self, merge: Merge, step: Step) -> int:
        return 0 if step.facts.outbox else merge.line.newest.beyond_now(merge.me, self.voice.heard)

    def _speak(self, merge: Merge, step: Step) -> bool:
        """Say what is due; True when places were given up with it, so that more may be known."""
        voice, teller = self.voice, merge.teller
        voice.look(merge, step.now, tells=teller == merge.me)
        if merge.is_moved:
            self._tell_move(merge, step)
        is_time, is_urgent = voice.ack_at <= step.now, merge.asked_safe > voice.aru
        if is_urgent:
            self.is_awaited = True
        if is_time or is_urgent or merge.asked_safe > voice.stable:
            self._acknowledge(merge, step, is_time=is_time, is_urgent=is_urgent)
        if not voice.is_due:
            return False
        gives_way = voice.waits_until != NEVER
        if gives_way:
            self._give_way(merge, step)
        packet = self._next_mark(merge, step)
        step.effects.append(Broadcast([(packet, len(packet))]))
        voice.said(merge, step.now, is_behind=step.facts.is_behind)
        self.own.stats.marks += 1
        if step.facts.verbose:
            told = voice.tick, merge.known(merge.me), merge.aru, merge.safe, voice.waiting
            step.note(Marked(step.facts.installed.id, *told))
        return gives_way

    def _tell_move(self, merge: Merge, step: Step) -> None:
        merge.is_moved, self.voice.is_due = False, True
        self.own.stats.distributions += 1
        newest, ring = merge.line.newest, step.facts.installed
        step.note(Distributed(ring.id, newest.number, newest.base, ring.members[newest.keeper], newest.weights))
        self.occurred(Occurrence.DISTRIBUTION_ADOPTED, step)
        if self.office.is_mine(merge):
            step.arm(Timer.ADAPT, self.own.config.adapt_ns)

    def _acknowledge(self, merge: Merge, step: Step, *, is_time: bool, is_urgent: bool) -> None:
        """Safe packets, beyond what was acknowledged, are acknowledged at once, others in time: to all, or, where
        members are many, to the one who tells all."""
        voice, teller = self.voice, merge.teller
        if teller is None or teller == merge.me:
            owes = is_urgent if teller is None else voice.owes_stable(merge)
            voice.is_due = voice.is_due or is_time or owes
        elif not voice.is_due and (is_urgent or is_time):
            self.occurred(Occurrence.ACKS_GATHERED, step)
            step.effects.append(SendTo(step.facts.installed.members[teller], self._next_mark(merge, step)))
            voice.gathered(merge, Instant(step.now + self.repair.patience()) if is_urgent else NEVER)

    def _next_mark(self, merge: Merge, step: Step) -> bytes:
        facts = step.facts
        mark = self.voice.mark(merge, facts.outbox.packets(), is_behind=facts.is_behind)
        if (trips := self.office.trips) is not None:
            mark = mark._replace(echo=trips.echo(step.now))
            trips.said(mark.tick, step.now)
        return encode_mark(self.mark_heading, facts.me, mark)

    def _ask(self, wishes: list[Wish], step: Step) -> None:
        if not wishes:
            return
        facts = step.facts
        self.own.stats.asks += 1
        for wish in wishes:
            self.occurred(Occurrence.PACKET_ASKED if wish.last else Occurrence.MARK_ASKED, step)
        packet = encode_ask(self.ask_heading, facts.me, self.merge.aru, wishes)
        step.effects.append(Broadcast([(packet, len(packet))]))

    def _answer(self, answers: Answers, step: Step) -> None:
        facts, merge = step.facts, self.merge
        bursts: list[Burst] = []
        for originator, number in answers.packets:
            packet = merge.streams[originator].packet(number)
            if packet is not None:
                self.repair.answered(originator, number, 1, step.now, is_third=originator != merge.me)
                bursts.append((retransmitted(packet, facts.me), len(packet)))
                if originator != merge.me:
                    self.own.stats.answers += 1
                    self.occurred(Occurrence.THIRD_ANSWERED, step)
        if bursts:
            facts.stats.packets_retransmitted += len(bursts)
            step.effects.append(Broadcast(bursts))
        for originator in answers.marks:
            mark = merge.streams[originator].mark
            if mark is not None:
                self.own.stats.relayed += 1
                self.occurred(Occurrence.MARK_RELAYED, step)
                packet = encode_mark(self.mark_heading, facts.me, mark)
                step.effects.append(Broadcast([(packet, len(packet))]))

    def occurred(self, what: Occurrence, step: Step) -> None:
        """Note what happens often once in a configuration."""
        if what not in self.noted:
            self.noted.add(what)
            step.occurred(what)
