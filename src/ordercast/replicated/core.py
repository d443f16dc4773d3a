"""The core of one replica: what to send, apply, confirm, fetch and keep. Pure: no clock, no I/O, no randomness.

Inputs: the events of one group in order (`on_view`, `on_transition`, `on_messages`, `cut_off`), the application
(`submit`, `synchronise`), and the transfer (`loaded`). Every method gives effects, to be carried out in order. What may
be asked about it is in `facts.py`; what goes between replicas to load one is in `exchange.py`.

At every view all members say what they have (once more if views were numbered anew). When all have been heard but
those who are silent for long, and are excluded at a place in the order (`component.py`), everybody decides alike
(`decision.py`):

    primary, before the signal    what is held is applied, then what came in this view; commands are applied and
                                  confirmed as they come. Safe delivery: all members get them, or end
    primary, after the signal     the same sequence, held and not applied; it is only an attempt, for others may have
                                  decided before the signal, or not at all
    not primary                   commands are refused. Who lacks the best state fetches it, and when that makes a
                                  quorum the view becomes primary, at the place of its LOADED
    several sides that went on    commands wait while their states are united (`uniting.py`), and come after that

A command is applied in a decided primary view before its signal, and confirmed only when it is applied: whoever was a
member then has it in its track, applied or held, and a later quorum has one of them who has forgotten nothing.

One name of a group is one structure, under one quorum. Who says that it has another is no replica of this one: it is
not heard, and ends by its own insight, or the replica here does (`_meet_stranger`).

When the application raises while it changes the copy here, the copy counts as none from there on: nothing is applied
to it or confirmed from it, nobody gets it, and others hear at every view that there is neither a state nor a vote.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import Transition, View
from ordercast.model.lineage import Lineage
from ordercast.replicated.component import Component, era_to_take_up
from ordercast.replicated.decision import Decision, Knowledge, decide
from ordercast.replicated.effects import Effect, GoOn, Point, Reason, Refuse, Send, Spoilt, Why
from ordercast.replicated.exchange import Arrived
from ordercast.replicated.machine import StateMachine, Unites
from ordercast.replicated.quorum import Life, Majority, Rule, mark_of
from ordercast.replicated.remembering import Remembering
from ordercast.replicated.sides import side_of
from ordercast.replicated.stance import Remembered
from ordercast.replicated.track import Held, MemoryTail, Tails, Track
from ordercast.replicated.uniting import Uniter
from ordercast.replicated.wire import (
    ADDRESS_SIZE_MAX,
    Ask,
    Durable,
    Exclude,
    Force,
    Here,
    Loaded,
    Message,
    State,
    United,
    decode,
    decode_command,
    encode_ask,
    encode_exclude,
    encode_force,
    encode_here,
    encode_loaded,
    encode_state,
    is_command,
    is_structure_name,
)

SLICE_SIZE = 256 << 10  # bytes of commands that are applied at once: a few milliseconds


class Core(Remembering):
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
        remembered: Remembered | None = None,  # what the journal knows; None: there is no journal
        structure: str = "",  # what the machine is called; those who are called otherwise are none of these replicas
    ) -> None:
        if len(address) > ADDRESS_SIZE_MAX:
            raise UsageError(f"an address of {len(address)} bytes is too long: at most {ADDRESS_SIZE_MAX}")
        if structure and not is_structure_name(structure):
            raise UsageError(f"a structure cannot be called {structure!r}: give it a name of Python's, in ASCII")
        if rule.goes_on and not isinstance(machine, Unites):
            raise UsageError("a state of which every side goes on must have a way to unite them: unite()")
        super().__init__(Life(name, life, 0), machine, rule, outstanding_max, tails)
        self._address = address
        self._structure = structure
        self._founding = founding
        self._slice_size = slice_size
        self._uniter = Uniter(self._copy, self._exchange)
        if remembered is not None:
            if not isinstance(rule, Majority):
                raise UsageError("a journal needs configured voices: use Majority, or leave out the journal")
            self._remember(remembered)

    # The group's events

    def on_view(self, view: View) -> list[Effect]:
        effects: list[Effect] = []
        self._open(Component(view, self.era), Reason.VIEW, effects)
        return effects

    def _open(self, component: Component, reason: Reason, effects: list[Effect]) -> None:
        """Whatever was not decided before never will be."""
        self._uniter.stop(effects)
        self._exchange.on_view()
        is_behind = self._calendar.enter(component.view.id)
        self._component = component
        self._requests.state_is_sent()
        self._say_state(component, effects, is_behind=is_behind)
        effects.append(self._changed(reason))

    def _say_state(self, component: Component, effects: list[Effect], *, is_behind: bool) -> None:
        """After the signal nobody would hear it in this view."""
        if not component.is_signalled:
            founding = self._founding and not self._copy.is_spoilt
            state = self._state(component, behind=is_behind, founding=founding, address=self._address)
            named = state._replace(structure=self._structure, quorum=mark_of(self._rule))
            effects.append(Send((encode_state(named),)))

    def on_transition(self, transition: Transition) -> list[Effect]:
        component = self._component
        if component is None or component.is_signalled:
            return []
        was_live = component.is_live
        component.is_signalled = True
        return [self._changed(Reason.SIGNAL)] if was_live else []

    def on_messages(self, sender: str, payloads: Iterable[bytes], is_again: bool = False) -> list[Effect]:
        """Messages in a row from one sender to the group. What comes from one who is no member is counted and ignored,
        and so are bytes that cannot be read. `is_again`: their places say so."""
        effects: list[Effect] = []
        for payload in payloads:
            component = self._component
            if component is None:
                continue  # not in the group, by its own word
            if sender not in component.view.members:
                self.foreign += 1
                continue
            try:
                if is_command(payload):
                    if is_again:
                        self._came_again(payload)
                    self._on_command(component, Held(sender, payload), effects)
                else:
                    self._on_message(component, sender, decode(payload), effects)
            except WireError:
                self.malformed += 1
        return effects

    def cut_off(self, name: str, reason: Reason = Reason.CUT_OFF) -> list[Effect]:
        """The stream has a gap (Left, Reconnected, Dropped), or has ended: what comes next, if anything, is a View of a
        new membership, under this name. The state stays, but has no vote before it is loaded again; what waits is sent
        again by and by."""
        effects: list[Effect] = []
        self._exchange.cut_off(effects)
        self._uniter.stop(effects)
        component, self._component = self._component, None
        self.me = Life(name, self.me.life, self.me.stint + 1)
        self._copy.cut_off(is_settled=component is None or component.is_settled_for(self.me.name))
        return [*effects, self._changed(reason)]

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
        """Go on without a quorum, with the best state that is here, or the empty one if nobody has any, at whatever
        loss: for operators who know that those who are missing will never come back with what they had. Does nothing
        where there is a primary component."""
        component = self._component
        if component is None or not component.refuses:
            return []
        return [Send((encode_force(Force(component.view.id)),))]

    def lose_patience(self) -> list[Effect]:
        """The driver has waited long enough for those who have not said what they have, or not answered: the others go
        on without them. While sides are united it is asked first who is still there. Does nothing when nobody is
        waited for."""
        component = self._component
        if component is None or component.is_signalled or self.me.name not in component.states:
            return []  # the next view comes anyway; or it is this replica whose word is not even out yet
        view, number, awaited = component.view.id, component.round, component.awaited
        component.patience += 1
        if component.is_uniting and component.answered is not None and component.patience < 2:
            return []  # who is asked has a whole time to answer
        if component.is_uniting and not awaited:
            return [Send((encode_ask(Ask(view, number)),))]
        return [Send((encode_exclude(Exclude(view, number, awaited)),))] if awaited else []

    def send_again(self) -> list[Effect]:
        """The driver is not sure that what was sent went out: all that waits for an answer is sent once more."""
        if self._component is None or not self._requests.waiting:
            return []
        return [Send(tuple(self._requests.payload(number) for number in self._requests.waiting))]

    def _submit(self, command: bytes, *, is_noop: bool) -> tuple[int, list[Effect]]:
        component = self._component
        if self.refuses:
            number = self._requests.skip()
            return number, [Refuse(number, Why.NOT_PRIMARY)]
        if self._requests.is_full:
            number = self._requests.skip()
            return number, [Refuse(number, Why.BUSY)]
        requests = self._requests
        number = requests.add(command, is_noop=is_noop)
        if component is None:
            requests.is_behind = True
            return number, []  # not in the group: sent when there is a primary component
        if requests.is_behind:
            requests.waiting[number].is_held = True
            return number, []  # nor does it overtake what waits for that
        return number, [Send((self._requests.payload(number),))]

    # The transfer

    def loaded(self, point: Point, preface: bytes, pieces: Iterable[bytes]) -> list[Effect]:
        """The picture of `point` is here: `preface` and `pieces` as its Freeze had them. Calls `machine.load`, now or
        when the round of a new view is over; `pieces` must stay readable until another Fetch or a StopFetching.
        WireError when the picture is not the one that was asked for: nothing has changed, fetch again. (The picture
        of a side is kept beside, until all of them are here.)"""
        component = self._component
        effects: list[Effect] = []
        if component is not None and self._uniter.is_fetching(point):
            self._uniter.fetched(self.me, component, preface, pieces, effects)
        elif not self._exchange.is_fetching(point):
            pass  # it is wanted no more
        elif component is None or component.decision is None:
            self._exchange.arrived = Arrived(point, preface, pieces)
        else:
            self._load(component, preface, pieces, effects)
        return effects

    def go_on(self) -> list[Effect]:
        """The answer to a GoOn."""
        self._will_go_on = False
        effects: list[Effect] = []
        if self._component is not None and self._component.decision is not None:
            self._catch_up(self._component, effects)
        return effects

    # Messages

    def _came_again(self, payload: bytes) -> None:
        command = decode_command(payload)
        if command.life == self.me.life:
            self._requests.came_again(command.request)

    def _on_command(self, component: Component, held: Held, effects: list[Effect]) -> None:
        command = decode_command(held.payload)
        if held.name in component.excluded or self.me.name in component.excluded:
            return  # its state is not here, and its command speaks of what is in it
        if component.decision is None or component.is_uniting:
            component.pending.append(held)
        elif component.is_primary:
            self._sequence(component, (held,), effects)
        elif command.life == self.me.life:
            self._requests.refuse(command.request, effects, is_certain=not component.is_attempt)

    def _on_message(self, component: Component, sender: str, message: Message, effects: list[Effect]) -> None:
        match message:
            case State() if what := self._difference(message):
                self._meet_stranger(sender, message, what, effects)
            case State() if component.is_of_round(message):
                self._on_state(component, sender, message, effects)
            case Exclude() if silent := component.silent(sender, message):
                self._on_exclude(component, silent, effects)
            case Ask() if component.is_uniting and component.is_of_round(message) and sender in component.states:
                component.answered, component.patience = set(), 0
                effects.append(Send((encode_here(Here(message.view, message.round)),)))
            case Here() if component.answered is not None and component.is_of_round(message):
                component.answered.add(sender)
            case Durable() if component.is_of_round(message):
                self._on_durable(component, sender, message, effects)
            case Loaded() if component.admits(sender, message):
                self._on_loaded(component, sender, effects)
            case United() if component.admits_united(sender, message):
                self._on_united(component, message, effects)
            case Force() if component.refuses and message.view == component.view.id and sender in component.states:
                self._on_force(component, effects)
            case _:
                pass  # it came too late, or is not for this view

    def _on_state(self, component: Component, sender: str, state: State, effects: list[Effect]) -> None:
        if sender in component.excluded:
            self._open(component.begun_again(self.era, component.excluded - {sender}), Reason.SPOKEN, effects)
        elif component.is_open:
            component.hear(sender, state)
            if component.is_complete:
                self._end_round(component, effects)

    def _difference(self, state: State) -> str:
        """Return what makes whoever says this no replica of this one; "": nothing."""
        if state.structure and self._structure not in ("", state.structure):
            return f"a {state.structure} under this name, and here is a {self._structure}: give it another name"
        if state.quorum and mark_of(self._rule) not in (0, state.quorum):
            return "another quorum under this name: give all replicas of it the same, or another name"
        return ""

    def _meet_stranger(self, sender: str, state: State, what: str, effects: list[Effect]) -> None:
        """One of the two has to go: who has no state, or else whose name comes later. Both see it alike, and a round
        waits for who goes."""
        has_state = self._copy.track is not None
        is_wrong = sender < self.me.name if has_state == (state.rank is not None) else not has_state
        if is_wrong and not self._copy.is_spoilt:
            self._spoil(UsageError(f"{sender} has {what}"), effects)

    def _on_exclude(self, component: Component, silent: set[str], effects: list[Effect]) -> None:
        if component.is_uniting:
            reason = Reason.EXCLUDED if self.me.name in silent else Reason.WITHOUT
            self._open(component.begun_again(self.era, component.excluded | silent), reason, effects)
            return
        component.exclude(silent)
        if self.me.name in silent:
            component.pending.clear()
            effects.append(self._changed(Reason.EXCLUDED))
        if component.is_complete:
            self._end_round(component, effects)

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
        self._exchange.on_loaded(component.life(sender), effects)
        is_new = component.is_primary and not was_primary
        effects.append(self._changed(Reason.LOADED if is_new else Reason.JOINED))

    def _on_durable(self, component: Component, sender: str, durable: Durable, effects: list[Effect]) -> None:
        """It may come before the decision is known here."""
        if component.has_safe(sender, durable.length, self._rule):
            self._lifted(component, effects)

    def _lifted(self, component: Component, effects: list[Effect]) -> None:
        """More is safe at a quorum."""
        if not (component.has_best and component.is_live) or self._will_go_on:
            return
        was_behind = self.count < (component.floor or 0)
        self._apply(effects)
        if was_behind and not self.is_behind:
            self._catch_up(component, effects)

    def _on_united(self, component: Component, united: United, effects: list[Effect]) -> None:
        try:
            decision = self._uniter.on_united(component, united)
        except Exception as error:
            self._spoil(error, effects)
        else:
            self._take_up(component, decision, effects)

    def _on_force(self, component: Component, effects: list[Effect]) -> None:
        """It is another sequence from here on: whoever comes with more of the old one has something else. Where nobody
        has a state all who are here begin with the empty one."""
        component.is_primary = component.is_forced = True
        component.step += 1
        if not component.holders:
            component.holders = set(component.states)
            component.has_best = not self._copy.is_spoilt
            if component.has_best:
                self._copy.begin(Track(Lineage(component.term, 1), component.term))
        track = self._track(component)
        if track is not None:
            track.lineage = Lineage(component.term, 1)  # 0 is a beginning, which may turn out to have failed
        self._form(component)
        effects.append(self._changed(Reason.FORCED))
        self._catch_up(component, effects)

    def _is_quorum(self, component: Component) -> bool:
        """Sides that were united go on when all who were on them have the new state: were there one who has it, and
        died, they would unite once more without what it had confirmed."""
        if self._rule.goes_on:
            return component.are_all_loaded()
        return self._rule.is_quorum(component.voters(), self._knowledge.electorates())

    # Applying and confirming

    def _place_pending(self, component: Component, effects: list[Effect]) -> None:
        pending, component.pending = component.pending, []
        if component.is_primary:
            self._sequence(component, pending, effects)
            return
        for held in pending:
            command = decode_command(held.payload)
            if command.life == self.me.life:
                self._requests.refuse(command.request, effects, is_certain=not component.is_attempt)

    def _sequence(self, component: Component, more: Iterable[Held], effects: list[Effect]) -> None:
        """These have their places now. Who is being loaded keeps them for later."""
        track = self._track(component)
        if track is None:
            return
        if self.memory and component.has_best:
            more = list(more)
            self._note_commands(more)
        track.extend(more)
        if component.has_best and component.is_live and not self._will_go_on:
            self._apply(effects)

    def _apply(self, effects: list[Effect]) -> None:
        """As much of what is held as may be applied at once; a GoOn when there is more."""
        due, limit = self._exchange.due, self._limit
        self._apply_some(self._slice_size, limit if due is None else min(limit, due.count), effects)
        if due is not None and due.count == self.count:
            self._exchange.take_picture(due, effects)
        if self.count < self._limit and not self._will_go_on:
            self._will_go_on = True
            effects.append(GoOn())

    def _apply_some(self, size_max: int, count_max: int | None, effects: list[Effect]) -> None:
        again: list[bytes] = []
        try:
            for life, request, outcome in self._copy.apply_held(size_max, count_max):
                if life == self.me.life and outcome is None:
                    self.ahead += 1
                    again += self._requests.came_ahead(request)
                elif life == self.me.life and outcome is not None:
                    self._requests.confirm(request, outcome, effects)
        except Exception as error:
            self._spoil(error, effects)
        if again:
            effects.append(Send(tuple(again)))

    def _spoil(self, error: Exception, effects: list[Effect]) -> None:
        self._copy.spoil()
        self._exchange.cut_off(effects)
        if self._component is not None:
            self._component.has_best = False
        effects.append(Spoilt(error))

    def _track(self, component: Component) -> Track | None:
        """The component's sequence: that of the state here, or of the one that is on its way."""
        return self._copy.track if component.has_best else self._exchange.track

    def _catch_up(self, component: Component, effects: list[Effect]) -> None:
        """The state here is the component's: apply what is held, and find what became of the requests."""
        if not component.has_best:
            return
        if component.is_live:
            self._apply(effects)
            if self.is_behind or self._copy.is_spoilt:
                return  # what became of the requests may be in there
        payloads = []
        for number in list(self._requests.unheard()):
            outcome = self._copy.sessions.outcome(self.me.life, number)
            if outcome is not None:
                self._requests.confirm(number, outcome, effects)
            elif component.is_live:
                payloads.append(self._requests.payload(number))
        if payloads:
            effects.append(Send(tuple(payloads)))
        self._requests.is_behind = not component.is_live

    # The decision

    def _end_round(self, component: Component, effects: list[Effect]) -> None:
        """Who is excluded follows what the others do, and takes no part in it: it has its own era, and no decision."""
        era, is_excluded = era_to_take_up(component.states.values()), self.me.name in component.excluded
        if component.era_decided >= (component.era_said if era is None else era):
            era = component.era_decided + 1  # others may have decided this view in that one: no two have one term
        if era is None and is_excluded:
            component.is_left_out = True
        elif era is None:
            self._decide(component, effects)
        else:
            if not is_excluded:
                self._calendar.take_up(era, component.view.id)
            component.ask_again(era)
            self._say_state(component, effects, is_behind=is_excluded)
            if not component.is_signalled:
                effects.append(self._changed(Reason.ERA))

    def _decide(self, component: Component, effects: list[Effect]) -> None:
        decision = decide(component.term, component.states, self._rule)
        self._knowledge = decision.knowledge
        if self._copy.track is not None and self._copy.track.lineage in decision.forgotten:
            self._copy.forget()
        if decision.reason is Reason.BOOTSTRAP and decision.best is not None and self._holds(decision):
            self._copy.begin(Track(decision.best.lineage, decision.best.term))
        self._take_up(component, decision, effects)

    def _holds(self, decision: Decision) -> bool:
        return self.me.name in decision.holders and not self._copy.is_spoilt

    def _take_up(self, component: Component, decision: Decision, effects: list[Effect]) -> None:
        component.settle(decision)
        component.has_best = self._holds(decision)
        self._exchange.aim(self.me.name, component, decision, effects)
        if component.is_primary:
            self._form(component)
        if component.has_best and component.is_live:
            self._apply(effects)
        self._exchange.keep_pictures(self.me.name, component, decision, effects)
        if decision.sides:
            self._meet(component, decision, effects)
        if not component.is_uniting:
            self._place_pending(component, effects)
        if component.refuses:
            self._requests.refuse_held(effects)
        self._take_arrived(component, effects)
        effects.append(self._changed(decision.reason))
        self._catch_up(component, effects)

    def _form(self, component: Component) -> None:
        """The holders are a primary component, from this place in the order on. After the signal it is an attempt."""
        component.is_uniting = False
        track = self._track(component)
        if track is not None:
            track.term = component.term
            if self._rule.goes_on:
                track.lineage = Lineage(component.term)
        if component.floor is None and track is not None:
            component.floor = track.count
        if component.is_gated and component.is_signalled:
            return  # what is confirmed is safe at a quorum, which knows that it was decided: an attempt binds nobody
        if not self._rule.goes_on:
            is_attempt, electorate = component.is_signalled, component.electorate(self._knowledge.formed)
            self._knowledge = self._knowledge.with_attempt(electorate) if is_attempt else Knowledge(electorate)
        component.lift(self._rule)
        if self.me.name in component.holders and not self._copy.is_spoilt:
            self._copy.is_voter = self._copy.is_kept = True

    def _meet(self, component: Component, decision: Decision, effects: list[Effect]) -> None:
        """What each side holds it applies, as a branch of its own, so that its picture is complete."""
        mine = side_of(self.me.name, decision.sides)
        if component.is_signalled or mine is None or self._copy.track is None:
            return
        self._copy.track.lineage = Lineage(component.term, mine.number)
        self._apply_some(sys.maxsize, None, effects)
        if not self._copy.is_spoilt:
            self._uniter.meet(self.me, component, mine, effects)

    def _take_arrived(self, component: Component, effects: list[Effect]) -> None:
        """A picture that came during the round."""
        arrived = self._exchange.arrived
        if arrived is None:
            return
        try:
            self._load(component, arrived.preface, arrived.pieces, effects)
        except WireError:
            self.malformed += 1
            assert component.decision is not None
            self._exchange.fetch_again(arrived.point, self.me.name, component, component.decision, effects)

    def _load(self, component: Component, preface: bytes, pieces: Iterable[bytes], effects: list[Effect]) -> None:
        self._exchange.load(preface, pieces)
        component.has_best = True
        self._note_replaced()
        self._catch_up(component, effects)
        if not component.is_signalled and not self._copy.is_spoilt:
            effects.append(Send((encode_loaded(Loaded(component.view.id, self.me.life, self.me.stint)),)))
