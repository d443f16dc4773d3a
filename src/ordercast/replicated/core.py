"""The core of one replica: what to send, apply, confirm, fetch and keep. Pure: no clock, no I/O, no randomness.

Inputs: the events of one group in order (`on_view`, `on_transition`, `on_messages`, `cut_off`), the application
(`submit`, `synchronise`), and the transfer (`loaded`). Every method gives effects, to be carried out in order.

At every view all members say what they have. When all have been heard, everybody decides alike (`decision.py`):

    primary, before the signal    what is held is applied, then what came in this view; commands are applied and
                                  confirmed as they come. Safe delivery: all members get them, or end
    primary, after the signal     the same sequence, held and not applied; it is only an attempt, for others may have
                                  decided before the signal, or not at all
    not primary                   commands are refused. Who lacks the best state fetches it, and when that makes a
                                  quorum the view becomes primary, at the place of its LOADED
    several sides that went on    commands wait while their states are united (`sides.py`), and come after that

A command is applied in a decided primary view before its signal, and confirmed only when it is applied: whoever was a
member then has it in its track, applied or held, and a later quorum has one of them who has forgotten nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import Transition, View, ViewId
from ordercast.model.lineage import Lineage
from ordercast.replicated.component import Component
from ordercast.replicated.copy import Arriving, Copy, Due
from ordercast.replicated.decision import DONORS_MAX, Decision, Knowledge, decide, decide_united, donors_of
from ordercast.replicated.effects import (
    Changed,
    Confirm,
    Effect,
    Fetch,
    Freeze,
    GoOn,
    Point,
    Reason,
    Refuse,
    Release,
    Send,
    Standing,
    StopFetching,
    Why,
)
from ordercast.replicated.machine import SideState, StateMachine, Unites
from ordercast.replicated.pictures import Pictures
from ordercast.replicated.quorum import Life, Rule
from ordercast.replicated.requests import Requests
from ordercast.replicated.sides import Side, Uniting, picture_point, uniter_of
from ordercast.replicated.track import Held, MemoryTail, Tails, Track
from ordercast.replicated.wire import (
    ADDRESS_SIZE_MAX,
    Force,
    Loaded,
    Loading,
    Message,
    State,
    United,
    decode,
    decode_command,
    encode_force,
    encode_loaded,
    encode_state,
    encode_united,
    is_command,
)

SLICE_SIZE = 256 << 10  # bytes of commands that are applied at once: a few milliseconds


class Core:
    def __init__(
        self,
        name: str,  # in full
        life: int,  # 64 bits, never the same again, of this replica or another
        machine: StateMachine,
        rule: Rule,
        *,
        address: bytes = b"",  # for fetchers, goes into STATE
        founding: bool = False,  # the first life of this replica ever: only such ones begin under LastMajority
        outstanding_max: int = 1024,
        tails: Tails = MemoryTail,  # for what comes while a state is on its way
        slice_size: int = SLICE_SIZE,
    ) -> None:
        if len(address) > ADDRESS_SIZE_MAX:
            raise UsageError(f"an address of {len(address)} bytes is too long: at most {ADDRESS_SIZE_MAX}")
        if rule.goes_on and not isinstance(machine, Unites):
            raise UsageError("a state of which every side goes on must have a way to unite them: unite()")
        self.me = Life(name, life, 0)
        self.malformed = 0  # messages that could not be read
        self._rule = rule
        self._address = address
        self._tails = tails
        self._slice_size = slice_size
        self._founding = founding
        self._copy = Copy(machine)
        self._knowledge = Knowledge()
        self._component: Component | None = None
        self._arriving: tuple[Point, Arriving] | None = None
        self._arrived: tuple[Point, bytes, Iterable[bytes]] | None = None  # before the decision that says if it counts
        self._pictures = Pictures()
        self._due: Due | None = None  # one that is not taken yet
        self._will_go_on = False  # a GoOn is not answered yet
        self._requests = Requests(life, outstanding_max)

    # Questions

    @property
    def is_primary(self) -> bool:
        return self._component is not None and self._component.is_live

    @property
    def standing(self) -> Standing:
        if self._copy.track is None:
            return Standing.FRESH
        is_current = self._component is not None and self._component.has_best
        return Standing.HOLDER if is_current else Standing.STALE

    @property
    def count(self) -> int:
        """Commands applied here."""
        return 0 if self._copy.track is None else self._copy.track.applied

    @property
    def term(self) -> ViewId | None:
        return None if self._copy.track is None else self._copy.track.term

    @property
    def lineage(self) -> Lineage | None:
        return None if self._copy.track is None else self._copy.track.lineage

    @property
    def is_deciding(self) -> bool:
        """A round is open."""
        return self._component is not None and self._component.decision is None

    @property
    def pending(self) -> int:
        """Commands that came in the round that is open."""
        return 0 if self._component is None else len(self._component.pending)

    @property
    def held(self) -> int:
        """Commands that have their places here and are not applied."""
        return 0 if self._copy.track is None else len(self._copy.track.held)

    @property
    def is_behind(self) -> bool:
        """Commands of this component are still to be applied here: a `go_on` will."""
        return self.is_primary and self._copy.is_behind and self.standing is Standing.HOLDER

    def unapplied(self) -> Iterator[bytes]:
        """The commands that a primary component still has to apply here, in order: its state has them already."""
        return self._copy.unapplied() if self.is_primary else iter(())

    @property
    def arriving_lineage(self) -> Lineage | None:
        """Of the state that is being fetched."""
        return None if self._arriving is None else self._arriving[1].track.lineage

    @property
    def pictures(self) -> int:
        """That are kept for others."""
        return len(self._pictures.points)

    @property
    def outstanding(self) -> int:
        """Requests without an answer."""
        return len(self._requests.waiting)

    # The group's events

    def on_view(self, view: View) -> list[Effect]:
        """Whatever was not decided of the view before never will be."""
        effects = self._stop_uniting()
        self._component, self._due = Component(view), None
        track, arriving = self._copy.track, self._arriving
        self._requests.state_is_sent()
        state = State(
            view.id,
            self.me.life,
            self.me.stint,
            self._copy.is_voter,
            self._copy.is_kept,
            self._founding,
            None if track is None else track.rank,
            self._knowledge.formed,
            self._knowledge.attempts,
            None if arriving is None else Loading(arriving[0], arriving[1].track.rank),
            self._pictures.points,
            self._address,
        )
        return [*effects, Send((encode_state(state),)), self._changed(Reason.VIEW)]

    def on_transition(self, transition: Transition) -> list[Effect]:
        component = self._component
        if component is None or component.is_signalled:
            return []
        was_live = component.is_live
        component.is_signalled = True
        return [self._changed(Reason.SIGNAL)] if was_live else []

    def on_messages(self, sender: str, payloads: Iterable[bytes]) -> list[Effect]:
        """Messages in a row from one sender to the group. Bytes that cannot be read are counted and ignored."""
        effects: list[Effect] = []
        for payload in payloads:
            component = self._component
            if component is None:
                continue  # not in the group, by its own word
            try:
                if is_command(payload):
                    self._on_command(component, Held(sender, payload), effects)
                else:
                    self._on_message(component, sender, decode(payload), effects)
            except WireError:
                self.malformed += 1
        return effects

    def cut_off(self, name: str) -> list[Effect]:
        """The stream has a gap (Left, Reconnected, Dropped): what comes next is a View of a new membership, under this
        name. The state stays, but has no vote before it is loaded again; what waits is sent again by and by."""
        effects: list[Effect] = [Release(point) for point in self._pictures.retain(())]
        effects += self._stop_uniting()
        component = self._component
        if self._arriving is not None:
            effects.append(StopFetching(self._arriving[0]))
            self._arriving[1].track.held.close()
        self.me = Life(name, self.me.life, self.me.stint + 1)
        self._arriving = self._arrived = self._component = self._due = None
        self._copy.cut_off(is_settled=component is None or component.is_settled)
        return [*effects, self._changed(Reason.CUT_OFF)]

    # The application

    def submit(self, command: bytes) -> tuple[int, list[Effect]]:
        """The number of the request, which a Confirm or a Refuse will name (at once, among these effects, it may be).
        Requests of which neither has come are sent again when a primary component is known that may lack them."""
        return self._submit(command, is_noop=False)

    def synchronise(self) -> tuple[int, list[Effect]]:
        """A command that does nothing: when it is confirmed, everything that was confirmed anywhere before the call is
        applied here. For linearised reads: read in the same breath as the Confirm."""
        return self._submit(b"", is_noop=True)

    def force(self) -> list[Effect]:
        """Go on without a quorum, with the best state that is here, at whatever loss: for operators who know that those
        who are missing will never come back with what they had. Does nothing where there is a primary component."""
        component = self._component
        if component is None or not component.may_be_forced:
            return []
        return [Send((encode_force(Force(component.view.id)),))]

    def send_again(self) -> list[Effect]:
        """The driver is not sure that what was sent went out: all that waits for an answer is sent once more."""
        if self._component is None or not self._requests.waiting:
            return []
        return [Send(tuple(self._requests.payload(number) for number in self._requests.waiting))]

    def _submit(self, command: bytes, *, is_noop: bool) -> tuple[int, list[Effect]]:
        component = self._component
        if component is not None and component.refuses:
            number = self._requests.skip()
            return number, [Refuse(number, Why.NOT_PRIMARY)]
        if self._requests.is_full:
            number = self._requests.skip()
            return number, [Refuse(number, Why.BUSY)]
        number = self._requests.add(command, is_noop=is_noop)
        if component is None:
            return number, []  # not in the group: sent when there is a primary component
        return number, [Send((self._requests.payload(number),))]

    # The transfer

    def loaded(self, point: Point, preface: bytes, pieces: Iterable[bytes]) -> list[Effect]:
        """The picture of `point` is here: `preface` and `pieces` as its Freeze had them. Calls `machine.load`, now or
        when the round of a new view is over; `pieces` must stay readable until another Fetch or a StopFetching.
        WireError when the picture is not the one that was asked for: nothing has changed, fetch again. (The picture
        of a side is kept beside, until all of them are here.)"""
        component = self._component
        if component is not None and component.uniting is not None and component.uniting.point == point:
            return self._fetched_side(component, component.uniting, preface, pieces)
        if self._arriving is None or self._arriving[0] != point:
            return []
        if component is None or component.decision is None:
            self._arrived = point, preface, pieces
            return []
        effects: list[Effect] = []
        self._load(component, preface, pieces, effects)
        return effects

    def go_on(self) -> list[Effect]:
        """The answer to a GoOn."""
        self._will_go_on = False
        effects: list[Effect] = []
        if self._component is not None and self._component.decision is not None:
            self._catch_up(self._component, effects)
        return effects

    def _load(self, component: Component, preface: bytes, pieces: Iterable[bytes], effects: list[Effect]) -> None:
        assert self._arriving is not None
        self._copy.load(self._arriving[1], preface, pieces)
        self._arriving = self._arrived = None
        component.has_best = True
        self._catch_up(component, effects)
        if not component.is_signalled:
            effects.append(Send((encode_loaded(Loaded(component.view.id, self.me.life, self.me.stint)),)))

    # Messages

    def _on_command(self, component: Component, held: Held, effects: list[Effect]) -> None:
        command = decode_command(held.payload)
        if held.name not in component.view.members:
            return  # who has gone: its state may not be here, and its command speaks of what is in it
        if component.decision is None or component.is_uniting:
            component.pending.append(held)
        elif component.is_primary:
            self._sequence(component, (held,), effects)
        elif command.life == self.me.life:
            self._refuse(command.request, effects)

    def _sequence(self, component: Component, more: Iterable[Held], effects: list[Effect]) -> None:
        """These have their places now. Who is being loaded keeps them for later."""
        if self._arriving is not None:
            self._arriving[1].track.extend(more)
        elif component.has_best and self._copy.track is not None:
            self._copy.track.extend(more)
            if component.is_live and not self._will_go_on:
                self._apply(effects)

    def _apply(self, effects: list[Effect]) -> None:
        """As much of what is held as may be applied at once; a GoOn when there is more."""
        due = self._due
        self._apply_some(self._slice_size, None if due is None else due.count, effects)
        if due is not None and due.count == self.count:
            self._take_picture(due, effects)
        if self._copy.is_behind and not self._will_go_on:
            self._will_go_on = True
            effects.append(GoOn())

    def _apply_some(self, size_max: int, count_max: int | None, effects: list[Effect]) -> None:
        for life, request, (position, result) in self._copy.apply_held(size_max, count_max):
            if life == self.me.life and self._requests.settle(request) is not None:
                effects.append(Confirm(request, position, result))

    def _refuse(self, number: int, effects: list[Effect]) -> None:
        request = self._requests.settle(number)
        if request is not None:
            effects.append(Refuse(number, Why.NOT_PRIMARY if request.copies == 1 else Why.UNCERTAIN))

    def _on_message(self, component: Component, sender: str, message: Message, effects: list[Effect]) -> None:
        match message:
            case State() if component.decision is None:
                component.add(sender, message)
                if component.is_complete:
                    self._decide(component, effects)
            case Loaded() if component.admits(sender, message):
                self._on_loaded(component, sender, effects)
            case United() if component.admits_united(sender, message):
                self._on_united(component, message, effects)
            case Force() if component.may_be_forced and message.view == component.view.id:
                self._on_force(component, effects)
            case _:
                pass  # it came too late, or is not for this view

    def _on_loaded(self, component: Component, sender: str, effects: list[Effect]) -> None:
        """One more has the state, at everybody from the same place in the order on."""
        component.holders.add(sender)
        component.step += 1
        was_primary = component.is_primary
        if not was_primary:
            component.is_primary = self._is_quorum(component)
        if component.is_primary:
            self._form(component)
            if not was_primary:
                self._place_pending(component, effects)
                self._catch_up(component, effects)
        if self._due is not None:
            self._due.lives.discard(component.life(sender))
        effects += [Release(point) for point in self._pictures.loaded(component.life(sender))]
        is_new = component.is_primary and not was_primary
        effects.append(self._changed(Reason.LOADED if is_new else Reason.JOINED))

    def _on_force(self, component: Component, effects: list[Effect]) -> None:
        """It is another sequence from here on: whoever comes with more of the old one has something else."""
        component.is_primary = True
        for track in (self._copy.track if component.has_best else None, self._arriving and self._arriving[1].track):
            if track is not None:
                track.lineage = Lineage(component.view.id)
        self._form(component)
        effects.append(self._changed(Reason.FORCED))
        self._catch_up(component, effects)

    def _is_quorum(self, component: Component) -> bool:
        """Sides that were united go on when all who were on them have the new state: were there one who has it, and
        died, they would unite once more without what it had confirmed."""
        if self._rule.goes_on:
            return component.are_all_loaded()
        return self._rule.is_quorum(component.voters(), self._knowledge.electorates())

    # The decision

    def _decide(self, component: Component, effects: list[Effect]) -> None:
        decision = decide(component.view.id, component.states, self._rule)
        self._knowledge = decision.knowledge
        if self._copy.track is not None and self._copy.track.lineage in decision.forgotten:
            self._copy.forget()
        if decision.reason is Reason.BOOTSTRAP and decision.best is not None:
            self._copy.begin(Track(decision.best.lineage, decision.best.term))
        self._take_up(component, decision, effects)

    def _take_up(self, component: Component, decision: Decision, effects: list[Effect]) -> None:
        component.settle(decision)
        component.has_best = self.me.name in decision.holders
        self._aim(component, decision, effects)
        if component.is_primary:
            self._form(component)
        if component.has_best and component.is_live:
            self._apply(effects)
        self._keep_pictures(component, decision, effects)
        if decision.sides:
            self._meet(component, decision.sides, effects)
        if not component.is_uniting:
            self._place_pending(component, effects)
        self._take_arrived(component, effects)
        effects.append(self._changed(decision.reason))
        self._catch_up(component, effects)

    def _form(self, component: Component) -> None:
        """The holders are a primary component, from this place in the order on. After the signal it is an attempt."""
        component.is_uniting = False
        if self._arriving is not None:
            self._form_track(self._arriving[1].track, component)
        elif component.has_best and self._copy.track is not None:
            self._form_track(self._copy.track, component)
        if not self._rule.goes_on:
            is_attempt, electorate = component.is_signalled, component.electorate()
            self._knowledge = self._knowledge.with_attempt(electorate) if is_attempt else Knowledge(electorate)
        if self.me.name in component.holders:
            self._copy.is_voter = self._copy.is_kept = True

    def _form_track(self, track: Track, component: Component) -> None:
        track.term = component.view.id
        if self._rule.goes_on:
            track.lineage = Lineage(component.view.id)

    def _aim(self, component: Component, decision: Decision, effects: list[Effect]) -> None:
        """What to fetch now, if anything."""
        name, best = self.me.name, decision.best
        if name in decision.continuing:
            if not component.is_signalled and self._arrived is None:
                effects.append(self._fetch(decision.continuing[name], component, decision))
            return
        self._arrived = None
        if self._arriving is not None:
            self._arriving[1].track.held.close()
        if best is not None and name in decision.lacking and not component.is_signalled:
            track = Track(best.lineage, best.term, best.length, best.digest, self._tails())
            self._arriving = decision.point, Arriving(best.length, best.digest, track)
            effects.append(self._fetch(decision.point, component, decision))
        elif self._arriving is not None:
            effects.append(StopFetching(self._arriving[0]))
            self._arriving = None

    def _fetch(self, point: Point, component: Component, decision: Decision) -> Fetch:
        """Fetchers begin with different donors."""
        names = donors_of(point, decision, component.states)
        fetchers = sorted({*decision.lacking, *decision.continuing})
        start = fetchers.index(self.me.name) % len(names)
        return Fetch(point, tuple(component.donor(name) for name in names[start:] + names[:start]))

    def _keep_pictures(self, component: Component, decision: Decision, effects: list[Effect]) -> None:
        """Those that somebody still fetches, and a new one for those who begin."""
        wanted = set(decision.continuing.values()) if component.has_best else set()
        effects += [Release(point) for point in self._pictures.retain(wanted)]
        for point in self._pictures.points:
            readers = (name for name, other in decision.continuing.items() if other == point)
            self._pictures.keep(point, map(component.life, readers))
        is_donor = self.me.name in donors_of(decision.point, decision, component.states)
        if is_donor and decision.lacking and not component.is_signalled:
            track = self._copy.track
            assert track is not None
            due = Due(decision.point, track.count, {component.life(name) for name in decision.lacking})
            if self.is_behind:
                self._due = due  # what was decided is the state with all that is held
            else:
                self._take_picture(due, effects)

    def _take_picture(self, due: Due, effects: list[Effect]) -> None:
        self._due = None
        if due.lives:
            self._pictures.keep(due.point, due.lives)
            effects.append(Freeze(due.point, self._copy.preface(due.count), self._copy.machine.freeze()))

    def _place_pending(self, component: Component, effects: list[Effect]) -> None:
        pending, component.pending = component.pending, []
        if component.is_primary:
            self._sequence(component, pending, effects)
            return
        for held in pending:
            command = decode_command(held.payload)
            if command.life == self.me.life:
                self._refuse(command.request, effects)

    def _take_arrived(self, component: Component, effects: list[Effect]) -> None:
        """A picture that came during the round."""
        if self._arrived is None or self._arriving is None:
            return
        point, preface, pieces = self._arrived
        try:
            self._load(component, preface, pieces, effects)
        except WireError:
            self._arrived = None
            self.malformed += 1
            assert component.decision is not None
            effects.append(self._fetch(point, component, component.decision))

    def _catch_up(self, component: Component, effects: list[Effect]) -> None:
        """The state here is the component's: apply what is held, and find what became of the requests."""
        if not component.has_best:
            return
        if component.is_live:
            self._apply(effects)
            if self._copy.is_behind:
                return  # what became of the requests may be in there
        payloads = []
        for number in list(self._requests.unheard()):
            outcome = self._copy.sessions.outcome(self.me.life, number)
            if outcome is not None:
                self._requests.settle(number)
                effects.append(Confirm(number, *outcome))
            elif component.is_live:
                payloads.append(self._requests.payload(number))
        if payloads:
            effects.append(Send(tuple(payloads)))

    # Several sides (see `sides.py`)

    def _meet(self, component: Component, sides: tuple[Side, ...], effects: list[Effect]) -> None:
        """What each side holds it applies, as a branch of its own, so that its picture is complete."""
        mine = next((side for side in sides if self.me.name in side.members), None)
        if component.is_signalled or mine is None or self._copy.track is None:
            return
        self._copy.track.lineage = Lineage(component.view.id, mine.number)
        self._apply_some(sys.maxsize, None, effects)
        uniter = uniter_of(sides)
        if self.me.name == uniter:
            component.uniting = Uniting(component.view.id, sides)
            component.uniting.have(mine, self._copy.sessions)
            self._fetch_side(component, component.uniting, effects)
        elif uniter not in mine.members and self.me.name in mine.members[:DONORS_MAX]:
            due = Due(picture_point(component.view.id, mine), self._copy.track.count, {component.life(uniter)})
            self._take_picture(due, effects)

    def _fetch_side(self, component: Component, uniting: Uniting, effects: list[Effect]) -> None:
        side = uniting.wanted
        if side is None:
            numbers = tuple(side.number for side in uniting.needed())
            united = United(component.view.id, self.me.life, self.me.stint, numbers)
            effects.append(Send((encode_united(united),)))
            return
        donors = (component.donor(name) for name in side.members[:DONORS_MAX])
        effects.append(Fetch(picture_point(component.view.id, side), tuple(donors)))

    def _fetched_side(
        self, component: Component, uniting: Uniting, preface: bytes, pieces: Iterable[bytes]
    ) -> list[Effect]:
        uniting.take(preface, pieces)
        effects: list[Effect] = []
        if not component.is_signalled:
            self._fetch_side(component, uniting, effects)
        return effects

    def _on_united(self, component: Component, united: United, effects: list[Effect]) -> None:
        assert component.decision is not None
        sides = [side for side in component.decision.sides if side.number in united.numbers]
        uniter = uniter_of(component.decision.sides)
        decision = decide_united(component.view.id, component.states, sides, uniter)
        uniting, component.uniting = component.uniting, None
        if uniting is not None and len(sides) > 1:
            assert decision.best is not None and isinstance(self._copy.machine, Unites)
            states = [SideState(side.number, side.members, uniting.fetched[side.number].pieces) for side in sides]
            self._copy.machine.unite(states)
            self._copy.begin(Track(*decision.best))
            self._copy.sessions = uniting.sessions(sides)
        self._take_up(component, decision, effects)

    def _stop_uniting(self) -> list[Effect]:
        component = self._component
        point = None if component is None or component.uniting is None else component.uniting.point
        return [] if point is None else [StopFetching(point)]

    def _changed(self, reason: Reason) -> Changed:
        component = self._component
        return Changed(
            self.is_primary,
            self.standing,
            () if component is None else tuple(sorted(component.holders)),
            () if component is None else component.view.members,
            self.term,
            self.count + self.held if self.is_behind else self.count,
            reason,
            self.lineage,
        )

    def check_invariants(self) -> None:
        track, component = self._copy.track, self._component
        assert track is not None or not self._copy.is_voter, "a voter without a state"
        assert track is None or 0 <= len(track.held) <= track.count, "more is held than there is"
        if component is not None and component.is_live and component.has_best:
            assert track is not None and (not track.held or self._will_go_on), "a live component, and nobody applies"
            assert track.term == component.view.id, "the term is not the component's"
            assert track.held or track.digest == self._copy.applied_digest
        assert self._arriving is None or component is None or not component.has_best, "fetching what is here"
