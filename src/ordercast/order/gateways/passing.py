"""Passing up: what the order of the network brings, as messages and configurations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ordercast.model.configuration import ChangeReason, Configuration, ConfigurationKind
from ordercast.model.effects import Deliver, Effect, Install, Parcel, Placed
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, Position, ProcessId
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.items import BegunMessage, Processes, Stretch
from ordercast.order.gateways.packets import parcels_of
from ordercast.order.gateways.timeline import Passed
from ordercast.order.gateways.views import NetworkView, id_from, view_number
from ordercast.order.large import LargeMessages
from ordercast.order.ring.two_queues import CONTROL_SENDER
from ordercast.order.stamped.lanes import Stamp, StampedRun
from ordercast.wire.header import Part

VIEW_SLOTS = 1 << 15  # slots from here on are those of views; no packet has so many messages


class PassingUp:
    """The stream of one process: it puts large messages together, and makes two configurations of each view."""

    def __init__(self, first: NetworkView, occurred: Counter[Occurrence]) -> None:
        self.view = first
        self.occurred = occurred  # whoever takes it empties it
        self.large = LargeMessages()
        self.unsound = 0  # packets whose bodies cannot be
        self.own = 0  # messages of this process that were passed up, or whose places were
        self._begun: dict[tuple[ProcessId, int], Stamp] = {}  # the first parts of messages, by originator and sender
        self._ending: _Ending | None = None  # members have left the view, which is not over for them

    def started(self) -> Effect:
        """Return the configuration in which a life begins."""
        view = self.view
        along = tuple(sorted(view.transitional))
        return Install(_configuration(view, ConfigurationKind.REGULAR, view.id, NO_CONFIGURATION, along, view.reason))

    def effects(
        self, passed: Iterable[Passed], me: ProcessId, is_for_users: Callable[[Stretch], bool] = lambda _: True
    ) -> list[Effect]:
        """Return what comes of what has passed. What users cannot be owed is left out, but for this process's own."""
        effects: list[Effect] = []
        for each in passed:
            if isinstance(each, NetworkView):
                effects += self._change(each)
            elif is_for_users(each.content) or each.content.originator == me:
                self._messages(each, me, effects)
        return effects

    def _messages(self, run: StampedRun[Stretch], me: ProcessId, effects: list[Effect]) -> None:
        tick, tag, _ = run.first
        stretch = run.content
        parcels: list[Parcel] = []
        for parcel, parts in parcels_of(stretch):
            if not parcel[2]:
                self.unsound += 1
            elif parcel[2][0] == CONTROL_SENDER:
                continue
            elif parts:
                for place, part in enumerate(parts):
                    if part == Part.FIRST:
                        self._begun[parcel[1], parcel[2][0]] = (tick, tag, parcel[0] + place)
                self.large.take(parcel, parts, parcels)
            else:
                parcels.append(parcel)
        if not parcels:
            return
        origin, own = ConfigurationId(tick, ProcessId(tag)), stretch.originator == me
        if self._ending is not None:
            self._ending.withheld.append((origin, parcels, own))
            self.occurred[Occurrence.SAFE_IN_TRANSITIONAL] += _count(parcels) if stretch.is_safe else 0
            return
        self.own += _count(parcels) if own else 0
        effects.append(Deliver(self.view.id, origin, parcels))

    def places(self, runs: Iterable[StampedRun[Stretch]]) -> list[Effect]:
        """Return the places of messages of this process that the order has passed without them: users here cannot be
        owed them. Large ones always come whole."""
        effects: list[Effect] = []
        for run in runs:
            tick, tag, _ = run.first
            parcels = [parcel for parcel, parts in parcels_of(run.content) if parcel[2] and not parts]
            if parcels:
                self.own += _count(parcels)
                effects.append(Placed(ConfigurationId(tick, ProcessId(tag)), parcels))
        return effects

    # Messages on both sides of a merge

    def begun(self) -> tuple[BegunMessage, ...]:
        """Return the messages whose last parts have not come."""
        parts = sorted(self.large.parts.items())
        return tuple(BegunMessage(*key, self._begun[key], b"".join(data)) for key, data in parts)

    def learn_begun(self, begun: Iterable[BegunMessage]) -> None:
        """Take the first parts of messages from another side of a merge, where more of them came."""
        for originator, sender, stamp, data in begun:
            key = originator, sender
            mine = sum(map(len, self.large.parts.get(key, ())))
            if key not in self.large.parts or (stamp, len(data)) > (self._begun[key], mine):
                self.large.put(key, data)
                self._begun[key] = stamp

    def _change(self, view: NetworkView) -> list[Effect]:
        """Return the effects of a view. Until their rings are gone, members who have left may deliver in the old
        view what is safe there: what comes up to that place is withheld, for the transitional configuration."""
        # The ring of one that has left may still bring the end of its message.
        begun = len(self.large)
        self.large.keep(view.sources)
        self.occurred[Occurrence.LARGE_CUT] += begun - len(self.large)
        self._begun = {key: self._begun[key] for key in self.large.parts}
        ending = self._ending = self._ending or _Ending(view, view.transitional)
        ending.along &= view.transitional
        ending.reasons.add(view.reason)
        return [] if view.is_provisional else self._end(ending, view)

    def _end(self, ending: _Ending, view: NetworkView) -> list[Effect]:
        old, self.view, self._ending = self.view, view, None
        self.own += sum(_count(parcels) for _, parcels, own in ending.withheld if own)
        along, reason = tuple(sorted(ending.along)), ending.reason(view)
        between = _between(old.id, view.id, along)
        return [
            Install(_configuration(ending.first, ConfigurationKind.TRANSITIONAL, between, old.id, along, reason)),
            *(Deliver(between, origin, parcels) for origin, parcels, _ in ending.withheld),
            Install(_configuration(view, ConfigurationKind.REGULAR, view.id, between, along, reason)),
        ]


@dataclass(slots=True)
class _Ending:
    """A view that members have left, until the next one that users are to have."""

    first: NetworkView  # where the transitional configuration begins
    along: Processes  # who comes along to the next one
    withheld: list[tuple[ConfigurationId, list[Parcel], bool]] = field(default_factory=list)  # bool: its own messages
    reasons: set[ChangeReason] = field(default_factory=set)  # of the changes since then

    def reason(self, view: NetworkView) -> ChangeReason:
        """Return why the view ended: a merge says so; otherwise the loss of a whole ring, or what came first."""
        if view.reason is ChangeReason.RINGS_MERGED:
            return view.reason
        return ChangeReason.RING_CUT_OFF if ChangeReason.RING_CUT_OFF in self.reasons else self.first.reason


def _count(parcels: Iterable[Parcel]) -> int:
    return sum(len(parcel[4]) for parcel in parcels)


def _configuration(
    view: NetworkView,
    kind: ConfigurationKind,
    name: ConfigurationId,
    previous: ConfigurationId,
    along: tuple[ProcessId, ...],
    reason: ChangeReason,
) -> Configuration:
    is_regular = kind is ConfigurationKind.REGULAR
    members = tuple(sorted(view.members)) if is_regular else along
    tick, tag, seq = view.place
    place = Position(ConfigurationId(tick, ProcessId(tag)), seq, VIEW_SLOTS + 2 * view.number + is_regular)
    return Configuration(kind, name, members, previous, along, reason, place)


def _between(old: ConfigurationId, new: ConfigurationId, along: tuple[ProcessId, ...]) -> ConfigurationId:
    """Return the id of the transitional configuration from one view to another, of those who come along: at a merge
    they may be fewer here than there."""
    return id_from(view_number(new) - 1, tuple(old), tuple(new), along)
