"""Random schedules for the cores of replicas, on a model of a group instead of a ring: thousands in a second.

The model has what extended virtual synchrony promises and nothing more: one order in each view; who has delivered a
message before the signal can rely on all members of the view; those who go on together deliver the same after it; who
is cut off misses what follows. Views rise, but for those of daemons that lost their memory. Everything else is drawn:
who delivers when, who is with whom, who dies, whose connection breaks, who hangs (what comes for it waits, and it says
nothing), who has no patience with the others, and when a picture comes. At the end all is healed but those who hang,
without whom the others must get on; then these wake up, and everybody must have everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from ordercast.model.events import Reason as WhyView
from ordercast.model.events import Transition, View, ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.core import Core
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
    Spoilt,
    StopFetching,
    Why,
)
from ordercast.replicated.machine import Frozen
from ordercast.replicated.quorum import Rule

from .schedule_ledger import Broken, Ledger
from .schedule_words import Words

SLICE_SIZE = 1200  # bytes that are applied at once: two words


Sequenced = tuple[int, list[bytes]]  # the place of the last word, and all of them
Happening = Callable[[Core], list[Effect]]


def are_one(one: list[bytes], other: list[bytes]) -> bool:
    """One goes on where the other ends."""
    return all(left == right for left, right in zip(one, other, strict=False))


@dataclass(eq=False)
class Room:
    """A view of the group: its one order, and how far each member has delivered it."""

    view: ViewId
    members: tuple[str, ...]
    order: list[tuple[str, bytes]] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)  # how many each has delivered; who is cut off is not in it
    certain: int = 0  # how many anybody has delivered: safe delivery, all get them


@dataclass(eq=False)
class Replica:
    name: str
    core: Core
    machine: Words
    room: Room | None = None  # that it hears
    pictures: dict[Point, tuple[bytes, Frozen]] = field(default_factory=dict)
    fetch: Fetch | None = None
    waiting: dict[int, bytes] = field(default_factory=dict)  # that it submitted, by request
    is_behind: bool = False  # it was told to go on applying
    is_hung: bool = False
    backlog: list[Happening] = field(default_factory=list)  # what has come for one that hangs
    had: set[bytes] = field(default_factory=set)  # words that were in its state
    lineage: Lineage | None = None  # of its state

    @property
    def is_up_to_date(self) -> bool:
        """It knows in which view it is: who hangs, or wakes up, may still believe in an old one."""
        component = self.core._component
        return self.room is not None and component is not None and component.view.id == self.room.view

    def check_memory(self) -> None:
        """What was applied here is never given up (but it may have to be applied again, to another's state)."""
        if self.core.held:
            return
        lost = self.had.difference(self.machine.words)
        if lost:
            raise Broken(f"the state of {self.name} was replaced by one without {sorted(lost)}")
        self.had = set(self.machine.words)


def _came(sender: str, payload: bytes, core: Core) -> list[Effect]:
    return core.on_messages(sender, [payload])


def _viewed(view: View, core: Core) -> list[Effect]:
    return core.on_view(view)


class Schedule:
    def __init__(self, seed: int, rule: Rule, names: Sequence[str], *, hangs: bool = True) -> None:
        self.rng = Random(seed)
        self.rule = rule
        self.names = tuple(names)
        self.crashes = self.rng.choice((0.0, 0.003, 0.01))  # the chance of one in a step
        self.is_begun = seed % 2 == 0  # before anything else happens
        self.alive: dict[str, Replica] = {}
        self.known: set[str] = set()
        self.rooms: list[Room] = []
        self.confirmed: dict[Lineage | None, dict[Term, Sequenced]] = {}  # by term, the longest that was
        self.ledger = Ledger(rule.goes_on)
        self.has_crashed = False
        self.counts: dict[str, int] = {}
        self._views, self._lives, self._words = count(1), count(1), count(1)
        self._memory = Random(f"memory {seed}")  # of its own: where daemons remember, it changes nothing
        self._forgets = self._memory.choice((0.0, 0.3, 0.9))  # the chance that who is cut off comes to such a daemon
        self._silence = Random(f"silence {seed}")
        self._hangs = self._silence.choice((0.0, 0.01, 0.05)) if hangs else 0.0  # the chance that one does, in a step
        self._rings = dict.fromkeys(self.names, 0)  # by replica, the last ring that its daemon knows

    # The group

    def regroup(self, groups: Sequence[Sequence[str]]) -> None:
        """The network has changed: these are together now, and everybody else is alone."""
        old = {id(room): room for replica in self.alive.values() if (room := replica.room) is not None}
        parts: dict[str, tuple[str, ...]] = {name: tuple(group) for group in groups for name in group}
        waiting: dict[str, list[bytes]] = {}
        for room in old.values():
            self._close(room, parts, waiting)
        for group in groups:
            self._open(group, waiting)

    def _close(self, room: Room, parts: dict[str, tuple[str, ...]], waiting: dict[str, list[bytes]]) -> None:
        """All of it that anybody has delivered before the signal, everybody delivers; of the rest those who go on
        together deliver the same. What a sender does not deliver itself was never sent: it says it in the next view."""
        certain = room.certain
        together: dict[tuple[str, ...], list[str]] = {}
        for name in (name for name in room.members if name in room.at):
            together.setdefault(parts.get(name, ()), []).append(name)
        delivered: list[list[int]] = []  # of each group, places in the order
        unsent: set[int] = set()
        for group in together.values():
            rest = [
                place
                for place, (sender, _) in enumerate(room.order[certain:], certain)
                if sender in group or self.rng.random() < 0.5
            ]
            cut = self.rng.randrange(len(rest) + 1)
            delivered.append(rest[:cut])
            for place in rest[cut:]:
                sender, payload = room.order[place]
                if sender in group:
                    unsent.add(place)
                    waiting.setdefault(sender, []).append(payload)
        for group, rest in zip(together.values(), delivered, strict=True):
            for name in group:
                places = (*range(room.at[name], certain), *(place for place in rest if place not in unsent))
                self._end_room(self.alive[name], room, group, [room.order[place] for place in places])

    def _end_room(self, replica: Replica, room: Room, group: Sequence[str], rest: Sequence[tuple[str, bytes]]) -> None:
        transition = Transition("g", tuple(group), room.view)
        self._happen(replica, lambda core: core.on_transition(transition))
        for sender, payload in rest:
            self._happen(replica, partial(_came, sender, payload))
        replica.room = None

    def _open(self, group: Sequence[str], waiting: dict[str, list[bytes]]) -> None:
        members = tuple(sorted(name for name in group if name in self.alive))
        if not members:
            return
        ring = max(self._rings[name] for name in members) + 1
        self._rings.update(dict.fromkeys(members, ring))
        configuration = ConfigurationId(ring, ProcessId(next(self._views)))
        room = Room(ViewId(configuration, Position(configuration, 0, 0)), members)
        self.rooms = [*self.rooms[-20:], room]
        room.order = [(name, payload) for name in members for payload in waiting.get(name, ())]
        self.rng.shuffle(room.order)
        for name in members:
            replica = self.alive[name]
            replica.room, room.at[name] = room, 0
            view = View("g", members, (), WhyView.NETWORK, (), room.view)
            self._happen(replica, partial(_viewed, view))

    def deliver(self, replica: Replica, most: int = 1) -> None:
        room = replica.room
        while room is not None and most and replica.room is room and room.at[replica.name] < len(room.order):
            sender, payload = room.order[room.at[replica.name]]
            room.at[replica.name] += 1
            room.certain = max(room.certain, room.at[replica.name])
            most -= 1
            self._happen(replica, partial(_came, sender, payload))

    def _happen(self, replica: Replica, what: Happening) -> None:
        if replica.is_hung:
            replica.backlog.append(what)
        else:
            self._carry_out(replica, what(replica.core))

    def wake(self, replica: Replica) -> None:
        replica.is_hung = False
        backlog, replica.backlog = replica.backlog, []
        for what in backlog:
            self._carry_out(replica, what(replica.core))

    def go_on(self, replica: Replica) -> None:
        if replica.is_behind and not replica.is_hung:
            replica.is_behind = False
            self._carry_out(replica, replica.core.go_on())

    # What happens to replicas

    def start(self, name: str) -> None:
        machine = Words()
        core = Core(name, next(self._lives), machine, self.rule, founding=name not in self.known, slice_size=SLICE_SIZE)
        self.known.add(name)
        self.alive[name] = Replica(name, core, machine)

    def crash(self, name: str) -> None:
        self.has_crashed = True
        replica = self.alive.pop(name)
        if replica.room is not None:
            replica.room.at.pop(name, None)

    def cut_off(self, name: str) -> None:
        """Its connection is gone: it hears nothing more of this view, and comes back as a new member."""
        replica = self.alive[name]
        if replica.room is not None:
            replica.room.at.pop(name, None)
            replica.room = None
        replica.backlog.clear()
        replica.is_hung = False
        self._carry_out(replica, replica.core.cut_off(name))
        if self._memory.random() < self._forgets:
            self._rings[name] = 0

    def restart_daemons(self) -> None:
        """Of some replicas, when all is quiet: they come back with what they had."""
        self.settle()
        for name in sorted(self.alive):
            if self._memory.random() < 0.7:
                self.cut_off(name)
        self._regroup_somehow()

    def lose_patience(self, replica: Replica) -> None:
        if not replica.is_hung:
            self._carry_out(replica, replica.core.lose_patience())

    def submit(self, replica: Replica) -> None:
        if replica.is_hung:
            return
        word = b"%d" % next(self._words)
        number, effects = replica.core.submit(word)
        replica.waiting[number] = word
        self._carry_out(replica, effects)

    def transfer(self, replica: Replica) -> None:
        """The picture comes, if a donor that is with it has it."""
        fetch = replica.fetch
        if fetch is None or replica.room is None or replica.is_hung:
            return
        for donor in fetch.donors:
            other = self.alive.get(donor.name)
            if other is None or other.is_hung:
                continue
            if other.core.me.life == donor.life and other.room is replica.room:
                picture = other.pictures.get(fetch.point)
                if picture is not None:
                    replica.fetch = None
                    self._carry_out(replica, replica.core.loaded(fetch.point, picture[0], picture[1].pieces()))
                    return

    # Effects

    def _carry_out(self, replica: Replica, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    if replica.room is not None:
                        replica.room.order += [(replica.name, payload) for payload in effect.payloads]
                case Confirm():
                    self._confirmed(replica, effect)
                case Fetch():
                    replica.fetch = effect
                case StopFetching():
                    replica.fetch = None
                case Freeze():
                    replica.pictures[effect.point] = effect.preface, effect.frozen
                case Release():
                    del replica.pictures[effect.point]
                case Changed():
                    self._changed(replica, effect)
                case Refuse():
                    self._refused(replica, effect)
                case GoOn():
                    replica.is_behind = True
                case Spoilt():
                    raise effect.error
        replica.core.check_invariants()
        self._forgive(replica)
        replica.check_memory()
        self.ledger.look(replica.core, replica.machine.words)

    def _forgive(self, replica: Replica) -> None:
        """When all who have a voice have lost everything they begin anew, though one without a voice has a state."""
        if not self.rule.weight(replica.name) and replica.core.lineage != replica.lineage:
            replica.had.clear()
            self.ledger.forgive(replica.core)
        replica.lineage = replica.core.lineage

    def _confirmed(self, replica: Replica, confirm: Confirm) -> None:
        word = replica.waiting.pop(confirm.request)
        self.ledger.confirmed(replica.core, word)
        if self.rule.goes_on:
            if word not in replica.machine.words:
                raise Broken(f"{replica.name} was told that {word!r} is confirmed, and does not have it")
            return
        machine = replica.machine
        if (confirm.position, word) not in zip(machine.places, machine.words, strict=True):
            raise Broken(f"{word!r} was confirmed in place {confirm.position} and is not there")
        sequence = machine.words[: machine.words.index(word) + 1]
        confirmed = self.confirmed.setdefault(replica.core.lineage, {})
        for _, other in confirmed.values():
            if not are_one(other, sequence):
                raise Broken(f"confirmed sequences {other} and {sequence}")
        term = replica.core.term
        assert term is not None
        confirmed[term] = max((confirm.position, sequence), confirmed.get(term, (0, [])))

    def _refused(self, replica: Replica, refuse: Refuse) -> None:
        word = replica.waiting.pop(refuse.request)
        if refuse.why is Why.NOT_PRIMARY:
            self.ledger.refused.add(word)
            for other in self.alive.values():
                self.ledger.look(other.core, other.machine.words)

    def _changed(self, replica: Replica, changed: Changed) -> None:
        self.counts[changed.reason.name] = self.counts.get(changed.reason.name, 0) + 1
        self.ledger.changed(replica.core, changed)
        if changed.is_primary and not self.rule.goes_on:
            self._check_alone(replica)
            if changed.reason in (Reason.QUORUM, Reason.LOADED):
                self._check_primary(replica, changed)

    def _check_alone(self, replica: Replica) -> None:
        """The network changes for all at once here, so no two rooms are ever primary at a time."""
        for other in self.alive.values():
            if (
                other.core.is_primary
                and replica.is_up_to_date
                and other.is_up_to_date
                and other.room is not replica.room
            ):
                raise Broken(f"two primary components at a time, of {replica.name} and of {other.name}")

    def _check_primary(self, replica: Replica, changed: Changed) -> None:
        if replica.name not in changed.holders or changed.term is None:
            return
        words = replica.machine.words  # it may still have to apply some of them
        for term, (position, sequence) in self.confirmed.get(changed.lineage, {}).items():
            is_before = term < changed.term or (term > changed.term and replica.is_up_to_date)
            if is_before and (changed.count < position or not are_one(words, sequence)):
                raise Broken(f"{replica.name} is primary with {words}, and {sequence} was confirmed before")

    # A whole run

    def run(self, steps: int) -> None:
        for name in self.names:
            self.start(name)
        self.regroup([self.names])
        if self.is_begun:
            self.settle()
        for _ in range(steps):
            if self._forgets and self._memory.random() < 0.02:
                self.restart_daemons()
            self._step()
            self._be_silent()
        self.heal()

    def _be_silent(self) -> None:
        """Drawn by a generator of its own: where nobody hangs, it changes nothing."""
        if not self._hangs or not self.alive:
            return
        rng, replica = self._silence, self.alive[self._silence.choice(sorted(self.alive))]
        draw = rng.random()
        if draw < self._hangs and not replica.is_hung:
            replica.is_hung = True
            self.counts["hung"] = self.counts.get("hung", 0) + 1
        elif draw < 3 * self._hangs and replica.is_hung:
            self.wake(replica)
        elif rng.random() < 0.1:
            self.lose_patience(self.alive[rng.choice(sorted(self.alive))])

    def _step(self) -> None:
        rng = self.rng
        replica = self.alive[rng.choice(sorted(self.alive))] if self.alive else None
        draw = rng.random()
        if draw < 0.05 or replica is None:
            self._regroup_somehow()
        elif draw < 0.05 + self.crashes:
            self.crash(replica.name)
        elif draw < 0.08 + self.crashes:
            self.cut_off(replica.name)
        elif draw < 0.10 + self.crashes and len(self.alive) < len(self.names):
            self.start(rng.choice(sorted(set(self.names) - set(self.alive))))
        elif draw < 0.3:
            self.submit(replica)
        elif draw < 0.4:
            self.transfer(replica)
        elif draw < 0.45:
            self.go_on(replica)
        else:
            self.deliver(replica, rng.randrange(1, 6))

    def _regroup_somehow(self) -> None:
        rng = self.rng
        names = sorted(self.alive)
        rng.shuffle(names)
        sizes = rng.choice((1, 1, 2, 3))
        groups: list[list[str]] = [[] for _ in range(sizes)]
        for name in names:
            rng.choice(groups).append(name)
        self.regroup([group for group in groups if group])

    def heal(self) -> None:
        for name in self.names:
            if name not in self.alive:
                self.start(name)
        self.regroup([self.names])
        self.settle()
        for name in self.names:
            self.wake(self.alive[name])
        self.settle()
        if not any(replica.core.is_primary for replica in self.alive.values()):
            self.counts["blocked"] = 1
            return
        for replica in self.alive.values():
            self.submit(replica)
        self.settle()
        self._check_end()

    def settle(self) -> None:
        """Until nothing moves."""
        for _ in range(1000):
            before = self._picture_of_all()
            for name in self.names:
                if name in self.alive:
                    self.deliver(self.alive[name], 100)
                    self.transfer(self.alive[name])
                    self.go_on(self.alive[name])
            if before != self._picture_of_all():
                continue
            for _ in range(3):  # to ask who is still there, to give them time, to go on without them
                for replica in self.alive.values():
                    self.lose_patience(replica)
            if before == self._picture_of_all():
                self._check_quiet()
                return
        raise Broken("it never settles")

    def _check_quiet(self) -> None:
        for name, replica in self.alive.items():
            room = replica.room
            if room is not None and not replica.is_hung and replica.core.round is not None:
                raise Broken(f"{name} waits for a decision, and nobody says anything more")

    def _picture_of_all(self) -> list[object]:
        return [
            (
                name,
                replica.fetch,
                replica.is_behind,
                len(replica.machine.words),
                replica.room and replica.room.at[name],
                replica.room and len(replica.room.order),
                len(replica.backlog),
            )
            for name, replica in sorted(self.alive.items())
        ]

    def _check_end(self) -> None:
        first = self.alive[self.names[0]].machine.words
        for name, replica in self.alive.items():
            if not replica.core.is_primary or replica.machine.words != first:
                raise Broken(f"{name} has {replica.machine.words}, the first has {first}")
            if replica.waiting or replica.core.outstanding:
                raise Broken(f"{name} has no answer to {sorted(replica.waiting.values())}")
            if replica.pictures:
                raise Broken(f"{name} keeps pictures for nobody")
        if len(set(first)) != len(first):
            raise Broken(f"something was applied twice: {first}")
        if not self.has_crashed:
            self.ledger.check_end(first)
