"""Normal operation: whatever is submitted goes out at once, at the next place that this process owns. (Paper, cases D,
K and C; deviations, D3 to D5)

No token goes round while a configuration lasts. The one with which it was formed is served until everybody is known to
have installed it: whoever has not may still need it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Broadcast, Burst, Effect
from ordercast.model.ids import Instant, ProcessId, Seq
from ordercast.model.notes import Occurrence
from ordercast.order.adaptive.codec import RESTS, AdaptiveKind, Mark, build_distribution, known_in, packed_known
from ordercast.order.adaptive.flow import Pace, burst_left
from ordercast.order.adaptive.lookout import Lookout, deaf_alarm
from ordercast.order.adaptive.marks import Voice
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.office import Office
from ordercast.order.adaptive.policy import LOOKS
from ordercast.order.adaptive.repair import Repair
from ordercast.order.adaptive.slots import Distribution, Place
from ordercast.order.adaptive.states.talking import Own, Talking, merge_of
from ordercast.order.adaptive.trips import Trips
from ordercast.order.membership.states import gather
from ordercast.order.membership.states.base import State
from ordercast.order.membership.states.working import Working
from ordercast.order.membership.step import Facts, Step
from ordercast.order.membership.timers import Timer
from ordercast.wire.messages import Token, Wake
from ordercast.wire.run import Load, PacketRun, build_runs

SIGNS = 2  # times the time for which a ring's token rests lies between two signs of life,
SIGNS_PER_LOSS = 4  # so many of which come at least within the time after which a member counts as silent


@dataclass(slots=True)
class Direct(Talking):
    watch: Lookout
    pace: Pace
    is_dozing: bool = False  # nobody sends: the policy looks seldom
    is_held: bool = False  # more may be sent when others have acknowledged what was
    is_stirred: bool = True  # packets came, or are missing, since what came was last acted upon
    acted_upon: tuple[Place, Place] = (0, 0)  # aru and safe at that time
    speaks_at: Instant | None = None  # for which Timer.MARK is armed
    is_asking: bool = False  # Timer.ASK may be armed

    @classmethod
    def enter(cls, origin: State, step: Step, text: str, own: Own) -> State:
        facts, config = step.facts, step.facts.config
        step.moved(origin.name, cls.name, None, text)
        facts.timers.only(Timer.LOOP, Timer.TOKEN_RETRANSMIT)
        ring = facts.installed
        count = len(ring.members)
        sign_ns = min(SIGNS * config.rest_ns, config.token_loss_ns // SIGNS_PER_LOSS)
        state = cls(
            own,
            merge_of(facts),
            Voice(own.config, sign_ns, max(1, config.window // max(8, 2 * count)), count, said_at=step.now),
            Repair(own.config.ask_ns, config.token_retransmit_ns, config.backlog_max),
            Office(own.config, own.policy, Trips(count, ring.index) if own.config.policy == "steady" else None),
            ring.heading.of_kind(AdaptiveKind.MARK),
            ring.heading.of_kind(AdaptiveKind.ASK),
            Lookout(count, ring.index, step.now),
            Pace(own.config.ask_ns),
        )
        own.policy.begin(ring.members)
        step.arm(Timer.ANNOUNCE, 0)
        if count > 1:
            facts.timers.arm(Timer.SILENCE, state.watch.due(step.now, config.token_loss_ns))
            step.arm(Timer.ADAPT, 0)
        facts.rosters.installed(step)
        facts.hearing.installed(facts.installed.members)
        return state.settle(step)

    # What comes

    def on_answer(self, run: PacketRun, number: int, transmitter: ProcessId, step: Step) -> None:
        """Packets were sent again."""
        member, is_third = self.merge.heading.places[run.originator], run.originator != transmitter
        self.repair.answered(member, number, run.count, step.now, is_third=is_third)

    def on_new(self, run: PacketRun, aru: Place, transmitter: ProcessId, step: Step) -> None:
        """Packets that are new came, with this aru in them; they are in their stream."""
        merge, originator, now = self.merge, run.originator, step.now
        self.is_stirred = True
        if self.watch.hear(merge.heading.places[originator], now, step.facts.config.token_loss_ns):
            self._vouched(originator == transmitter, step)
        self.voice.came(run.count, aru >= merge.streams[merge.me].place, now)
        self.own.policy.sent(originator, run.count, now)
        if self.is_dozing:
            self._awake(step)

    def on_mark(self, mark: Mark, transmitter: ProcessId, step: Step, *, is_new: bool) -> None:
        is_direct = step.facts.installed.members[mark.originator] == transmitter
        if is_new:
            stream = self.merge.streams[mark.originator]
            self.is_stirred = self.is_stirred or stream.high > stream.last
            if self.watch.hear(mark.originator, step.now, step.facts.config.token_loss_ns):
                self._vouched(is_direct, step)
            if is_direct and self.office.trips is not None:
                self.office.trips.heard(mark, step.now)
        if self.repair.pending:
            self.repair.spoken(mark.originator, mark.tick, is_third=not is_direct)

    def _vouched(self, is_direct: bool, step: Step) -> None:
        """A member that was doubted lives; others may have said so."""
        if not is_direct:
            self.occurred(Occurrence.VOUCHED, step)

    def on_data(self, fresh: list[PacketRun], step: Step) -> State:
        return self  # what recovery exchanged, sent again for somebody who has not installed yet

    def on_token(self, token: Token, step: Step) -> State:
        """The token of recovery, which nobody here needs any more."""
        facts = step.facts
        ring, exchange = facts.installed, facts.parts.exchange
        if not exchange.accepts(ring, token, step):
            facts.timers.cancel(Timer.TOKEN_LOSS)
            return self
        if not (ring.me == ring.representative and self._all_installed()):
            exchange.visit(ring, token, 0, lambda *_: [], step, lambda passed: passed)
        facts.timers.cancel(Timer.TOKEN_LOSS)
        return self

    def _all_installed(self) -> bool:
        merge = self.merge
        others = (stream for member, stream in enumerate(merge.streams) if member != merge.me)
        return all(stream.mark is not None or stream.high for stream in others)

    def on_wake(self, wake: Wake, step: Step) -> State:
        step.ignored(wake, "nothing rests here")
        return self

    def on_submission(self, step: Step) -> State:
        if step.facts.is_behind != self.voice.is_behind:
            self.voice.is_due = True
        return self.settle(step)

    def on_timer(self, timer: Timer, step: Step) -> State:
        facts = step.facts
        match timer:
            case Timer.TOKEN_RETRANSMIT:
                if not self._all_installed():
                    step.forward_again(facts.installed)
                return self
            case Timer.SILENCE:
                return self._look_around(step)
            case Timer.ADAPT:
                self._adapt(step)
            case Timer.ASK:
                merge = self.merge
                self.repair.review(merge, self._awaited(merge, facts), step.now)  # what came may have led to no more
                self._ask(self.repair.due_wishes(merge, step.now), step)
                self._answer(self.repair.due_answers(step.now), step)
            case Timer.MARK:
                self.speaks_at = None
                self.voice.is_due = self.voice.is_due or self.voice.is_time(step.now)
            case _:
                return Working.on_timer(self, timer, step)
        return self.settle(step)

    # What an input leads to

    def after_packets(self, step: Step) -> State:
        """Do what has become possible. Most marks tell one of several things that are waited for: nothing follows."""
        merge, facts = self.merge, step.facts
        if self.is_stirred or self.voice.is_due or self.acted_upon != (merge.aru, merge.safe):
            return self.settle(step)
        return self.settle(step) if merge.is_moved or facts.outbox or facts.leaving else self

    def settle(self, step: Step) -> State:
        """Do what has become possible; once more when own deliveries made room for what waits, since nothing else may
        come for long."""
        merge, facts = self.merge, step.facts
        window, backlog_max = facts.config.window, facts.config.backlog_max
        is_open = True
        while is_open:
            before = merge.discarded
            self._turn(merge, step)
            has_room = self.is_held and merge.discarded > before
            is_open = has_room and burst_left(merge, window, backlog_max, facts.outbox.packets()) > 0
        self.is_stirred, self.acted_upon = False, (merge.aru, merge.safe)
        return self.leave_if_done(step) if facts.leaving else self

    def _turn(self, merge: Merge, step: Step) -> None:
        """Send, say and deliver what has become possible. What others wait for goes out before own deliveries, and the
        rest after them."""
        facts = step.facts
        self.is_held = False
        if self.pace.place <= merge.aru:
            self.pace.ordered(step.now)
        if facts.outbox:
            self._send(step)
        deliveries: list[Effect] = []
        sent, self.is_awaited = len(step.effects), False
        if self.voice.members > 1:
            self._give_up(merge, step)
            if merge.delivered < merge.aru:
                merge.deliver(merge.aru, merge.safe, deliveries)
            if self._speak(merge, step):
                merge.advance(deliveries)
            awaited = self._awaited(merge, facts) if self.is_held or facts.leaving else merge.asked_safe
            self.repair.review(merge, awaited, step.now)
            self._arm(facts)
        else:
            merge.advance(deliveries)
        delivers_at = len(step.effects) if self.is_awaited else sent
        step.effects[delivers_at:delivers_at] = deliveries
        if merge.safe > merge.discarded or merge.line.ends <= merge.delivered:
            merge.discard()

    def _awaited(self, merge: Merge, facts: Facts) -> Place:
        """Return a place up to which others have to say that they know everything: not only a safe packet waits for it,
        but the first packets of this process, behind which there is no room for more, or its last, before it leaves."""
        mine = merge.streams[merge.me]
        first = mine.first_held if self.is_held and facts.outbox else mine.place if facts.leaving else 0
        return max(merge.asked_safe, min(first, merge.aru))

    def _send(self, step: Step) -> None:
        facts, merge = step.facts, self.merge
        outbox = facts.outbox
        if facts.is_behind or merge.behind:
            self.occurred(Occurrence.HELD_BY_APPLICATION, step)
            return
        if self._is_premature(merge, step):
            return
        bursts: list[Burst] = []
        before, aru, is_safe = merge.streams[merge.me].last, 0, 0
        is_left = True
        while is_left:
            allowed = burst_left(merge, facts.config.window, facts.config.backlog_max, outbox.packets())
            place = merge.next_place()
            if not allowed or place > merge.limit:
                self.is_held = not allowed
                self.occurred(Occurrence.HELD_BY_REACH if allowed else Occurrence.HELD_BY_WINDOW, step)
                break
            room = merge.line.at(place).slot_end(place) - place + 1
            loads = outbox.take(min(allowed, room))
            runs = self._built(merge, loads, Seq(place), facts, step)
            for run in runs:
                merge.sent(run)
                bursts.append(run.burst())
            (aru, _), is_safe, is_left = known_in(runs[-1]), runs[-1].is_safe, bool(outbox)
        if is_left and not self.voice.waiting:
            self.voice.is_due = True  # whoever shares out the places should know
        sent = merge.streams[merge.me].last - before
        facts.stats.packets_sent += sent
        self.own.policy.sent(facts.me, sent, step.now)
        if self.is_dozing:
            self._awake(step)
        if bursts and self.voice.members > 1:
            step.effects.append(Broadcast(bursts))
            self.voice.sent(aru, step.now, self.repair.patience() if is_safe else 0)
            if merge.streams[merge.me].place > merge.aru:
                self.pace.sent(merge.streams[merge.me].place, step.now)

    def _is_premature(self, merge: Merge, step: Step) -> bool:
        """Whether what waits should share packets with what is submitted later: a member holds up the order, or hosts
        are busy, and neither is a packet full nor does anybody wait for places of this process."""
        if self.repair.wants and self.repair.is_blocked(merge, step.now):
            return True
        if not self.pace.is_slow or merge.streams[merge.me].place <= merge.aru:
            return False
        if merge.frontiers[merge.me] <= merge.highest or step.facts.outbox.packets() > 1:
            return False
        self.occurred(Occurrence.HELD_BY_BUSY_HOSTS, step)
        return True

    def _built(self, merge: Merge, loads: list[Load], place: Seq, facts: Facts, step: Step) -> list[PacketRun]:
        """Return packets from a place on. A single one acknowledges itself; if nothing follows, it says that its sender
        rests."""
        aru: Place = merge.aru
        if len(loads) == 1 and len(loads[0][4]) == len(loads[0][1]):
            rest = 0 if facts.outbox else merge.line.at(place).rests[merge.me]
            if rest:
                loads = [(loads[0][0] | RESTS, *loads[0][1:])]
                self.occurred(Occurrence.PLACES_RESTS, step)
            aru = merge.aru_after(place, rest)
        known, number = packed_known(aru, merge.safe), merge.streams[merge.me].last + 1
        return build_runs(merge.heading, loads, facts.me, place, known, number)

    def _arm(self, facts: Facts) -> None:
        timers, repair, speaks_at = facts.timers, self.repair, self.voice.deadline()
        due = repair.deadline() if repair.wants or repair.pending else None
        if speaks_at != self.speaks_at:
            self.speaks_at = speaks_at
            timers.arm(Timer.MARK, speaks_at)
        if due is not None:
            timers.arm(Timer.ASK, due)
            self.is_asking = True
        elif self.is_asking:
            timers.cancel(Timer.ASK)
            self.is_asking = False

    # Who is here

    def _look_around(self, step: Step) -> State:
        """Whoever was not heard for long is gone, unless others vouch for it; who does not receive is expelled."""
        facts, config, merge = step.facts, step.facts.config, self.merge
        facts.timers.arm(Timer.SILENCE, self.watch.due(step.now, config.token_loss_ns))
        if self.watch.silent(step.now, config.token_loss_ns):
            return gather.Gather.leave_ring(self, ChangeReason.SILENT, step)
        doubted = self.watch.silent(step.now, config.token_loss_ns // 2)
        self._ask([self.repair.later_mark(merge, member) for member in doubted], step)
        patience = config.fail_to_receive_rotations * config.token_retransmit_ns
        deaf = self.watch.deaf(merge.arus, step.now, patience)
        if deaf is None:
            return self
        process = facts.installed.members[deaf]
        step.occurred(Occurrence.EXPELLED, process=process)
        step.alarm(deaf_alarm(process, patience))
        facts.proposal.fail([process])
        return gather.Gather.leave_ring(self, ChangeReason.FAILED_TO_RECEIVE, step, blamed=process)

    def forgive(self, now: Instant) -> None:
        """This process did not run: what others failed to say meanwhile is not their fault."""
        self.watch.forgive(now)

    # Adaptation

    def _adapt(self, step: Step) -> None:
        """Look at the senders, as long as this process is the book-keeper."""
        merge, policy = self.merge, self.own.policy
        if not self.office.is_mine(merge):
            return
        policy.look(step.now)
        self.is_dozing = policy.is_idle
        step.arm(Timer.ADAPT, self.own.config.adapt_ns * (LOOKS if self.is_dozing else 1))
        if (distribution := self.office.due(merge, self.voice.waiting, step.now)) is not None:
            self._announce_distribution(merge, distribution, step)

    def _awake(self, step: Step) -> None:
        self.is_dozing = False
        step.arm(Timer.ADAPT, self.own.config.adapt_ns)

    def _announce_distribution(self, merge: Merge, distribution: Distribution, step: Step) -> None:
        if distribution.keeper != merge.me:
            self.occurred(Occurrence.OFFICE_HANDED_OVER, step)
        place, aru, number = Seq(merge.next_place()), merge.aru, merge.streams[merge.me].last + 1
        run = build_distribution(merge.heading, step.facts.me, distribution, place, (aru, merge.safe), number)
        merge.sent(run)
        step.effects.append(Broadcast([run.burst()]))
        self.voice.sent(aru, step.now)

    def owes(self, facts: Facts) -> bool:
        merge = self.merge
        mine = merge.streams[merge.me].place
        return merge.safe < mine or merge.delivered < mine
