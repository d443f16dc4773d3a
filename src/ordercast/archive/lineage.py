"""Lineage: which branch an archiver writes to, and with which number. Pure: a function of the ordered stream.

Archivers of a group are in its control group too, and hear of every change of it before the group's own news, at the
same place in the order. An archiver is *settled* when it knows its place. Archivers that are settled and have come
along together are at the same place, because they have read the same stream:

- A view of the control group that brings nobody with another history changes nothing. Settled archivers say where they
  are (SETTLED), for those who came.
- A transition says that some archivers are out of reach. What comes now they may have, or not, so it goes to a branch
  of its own, a fork. Who has the same of it is known at the next view, which names the branch; until then it waits.
- Where sides come together, each side says where it was (TIP). When every side has been heard, all go on with one new
  branch, the merge. Until then what comes waits.
- Who joins is not settled. It takes the place that a settled one says, fetches what it lacks up to there beside the
  group, while what comes waits, and bids to be settled (COMPLETE). When everybody who was there before it has gone, it
  bids to begin a branch of its own (CLAIM), behind the last place that it has, with a gap. Among bids that cross each
  other the first in the order holds.

The names of branches alone (`branches.py`) keep a place from having two contents; the statements only make
archivers share them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ordercast.archive.branches import Branch, Cause, branch_of
from ordercast.archive.entries import Gap, Item, count_of
from ordercast.archive.places import Place
from ordercast.archive.statements import Kind, Statement
from ordercast.model.events import Reason, Transition, View, ViewId

VIEWS_MAX = 1000  # of which anything is remembered


@dataclass(frozen=True, slots=True)
class Say:
    """To the control group, in order. The driver adds address, branch and what was seen of sinks at the place."""

    statement: Statement


@dataclass(frozen=True, slots=True)
class Begin:
    """What is written from here on goes to this branch. `sinks`: of the parents, when there are several."""

    branch: Branch
    sinks: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    item: Item


@dataclass(frozen=True, slots=True)
class Fetch:
    """Everything up to this place is wanted; `filled` is to be called when it is here. It replaces an earlier one."""

    place: Place
    speaker: str


@dataclass(frozen=True, slots=True)
class StopFetching:
    """There is nobody to fetch from: `stopped` stays where it is."""


Action = Say | Begin | Write | Fetch | StopFetching


@dataclass(frozen=True, slots=True)
class Control:
    """News of the control group, between the items that wait."""

    news: View | Transition


@dataclass(slots=True)
class _Joining:
    elders: set[str]  # who may be settled: who was there before, and who has become so
    first: ViewId  # with which one has joined
    origin: ViewId  # behind which the queue begins
    past: list[Item | Control] = field(default_factory=list)  # what came before that: to be fetched instead
    juniors: set[str] = field(default_factory=set)  # who came later
    adopted: Place | None = None
    claimed: Branch | None = None
    bid: int | None = None  # number of the statement


@dataclass(slots=True)
class _Merging:
    view: View
    needed: set[str]  # of whose sides a tip is awaited


@dataclass(slots=True)
class Lineage:
    group: str
    me: str
    stopped: Place | None = None  # the last that is on disk, of an earlier life; the driver keeps it up to date
    place: Place | None = None  # when settled: of the last entry
    view: View | None = None  # of the archivers
    actions: list[Action] = field(default_factory=list)  # for the driver, who clears it
    _joining: _Joining | None = None
    _merging: _Merging | None = None
    _is_parting: bool = False  # a transition has come, and not the view that follows it
    _queue: deque[Item | Control] = field(default_factory=deque)
    _tips: dict[ViewId, dict[str, Statement]] = field(default_factory=dict)
    _said: int = 0

    @property
    def is_settled(self) -> bool:
        return self.place is not None and self._merging is None and not self._is_parting

    @property
    def waiting(self) -> int:
        """Items and news that have no place yet."""
        return len(self._queue)

    # The ordered stream

    def on_control(self, news: View | Transition) -> None:
        if isinstance(news, View):
            self.view = news
            while len(self._tips) > VIEWS_MAX:
                del self._tips[next(iter(self._tips))]
            if news.reason is Reason.JOIN and self.me in news.who:
                self._joining = _Joining({*news.members} - {self.me}, news.id, news.id)
            elif news.reason is Reason.JOIN and self._joining is not None:
                self._joining.juniors.update(news.who)
        assert self.view is not None, "the first that is heard is the view with which one joins"
        if self.is_settled:
            self._step(Control(news))
            return
        self._queue.append(Control(news))
        if self._merging is not None:
            self._merging.needed.intersection_update(_here(news))
            self._look_at_tips()
        elif self._is_parting:
            self._advance()
        elif self._joining is not None:
            self._joining.elders.intersection_update(_along(news))
            self._look_at_elders(self._joining)

    def on_item(self, item: Item) -> None:
        """A message to the group, or news of it."""
        if self.is_settled:
            self._step(item)
        else:
            self._queue.append(item)

    def hears(self, sender: str) -> bool:
        """Whether this is an archiver: anybody may send to any group."""
        return self.view is not None and sender in self.view.members

    def on_statement(self, sender: str, statement: Statement) -> None:
        if not self.hears(sender):
            return
        match statement.kind:
            case Kind.TIP:
                self._tips.setdefault(statement.view, {})[sender] = statement
                self._look_at_tips()
            case Kind.SETTLED:
                self._on_settled(sender, statement)
            case Kind.COMPLETE | Kind.CLAIM:
                self._on_bid(sender, statement)

    def filled(self, place: Place) -> None:
        """Everything up to here is on disk. Not in order with the stream: so it has to be said there."""
        joining = self._joining
        if joining is not None and joining.adopted == place:
            assert self.view is not None
            joining.bid = self._say(Kind.COMPLETE, self.view.id, place)

    # Who joins

    def _on_settled(self, sender: str, statement: Statement) -> None:
        joining = self._joining
        if joining is None:
            return
        joining.elders.add(sender)
        if joining.adopted is None and joining.claimed is None:
            self._adopt(joining, sender, statement)

    def _on_bid(self, sender: str, statement: Statement) -> None:
        """The first in the order holds: everybody whom a bid concerns sees the same one first."""
        joining = self._joining
        if joining is None:
            return
        if sender == self.me:
            if statement.number == joining.bid:
                self._settle(joining)
        elif statement.kind is Kind.CLAIM and sender in joining.elders:
            self._give_way(joining)
        elif statement.kind is Kind.COMPLETE and sender in joining.juniors:
            joining.elders.add(sender)
            if joining.claimed is not None:
                self._give_way(joining)

    def _give_way(self, joining: _Joining) -> None:
        """To an elder who knows of nobody who has a history before its own, or to somebody younger who has one. Where
        it is it will say."""
        joining.adopted = joining.claimed = joining.bid = None
        self.actions.append(StopFetching())

    def _adopt(self, joining: _Joining, sender: str, statement: Statement) -> None:
        """What waits from before the view, and the view itself, is fetched instead; it is kept until it is here."""
        index = self._index_of(statement.view)
        if index is not None:
            joining.past += [self._queue.popleft() for _ in range(index + 1)]
            joining.origin = statement.view
        elif statement.view != joining.origin:
            return  # what waits begins behind it
        joining.adopted = statement.place
        self.actions.append(Fetch(statement.place, sender))

    def _index_of(self, view: ViewId) -> int | None:
        """Return where the news of this view stands in what waits."""
        for index, event in enumerate(self._queue):
            if isinstance(event, Control) and isinstance(event.news, View) and event.news.id == view:
                return index
        return None

    def _look_at_elders(self, joining: _Joining) -> None:
        if joining.elders or joining.bid is not None:
            return
        assert self.view is not None
        self._queue.extendleft(reversed(joining.past))  # nobody else has it
        joining.past, joining.origin = [], joining.first
        parents = () if self.stopped is None else (self.stopped,)
        branch = joining.claimed = branch_of(self.group, Cause.ROOT, joining.origin, (self.me,), parents)
        joining.adopted = None
        self.actions.append(StopFetching())
        joining.bid = self._say(Kind.CLAIM, self.view.id, Place(branch.name, branch.base))

    def _settle(self, joining: _Joining) -> None:
        """One's own bid has come back, and it holds."""
        self._joining = None
        if joining.claimed is not None:
            branch = joining.claimed
            self.place = Place(branch.name, branch.base)
            self.actions.append(Begin(branch))
            if branch.has_gap:
                self._step(Gap(branch.parents))
        else:
            self.place = joining.adopted
        assert self.place is not None and self.view is not None
        if self.view.id == joining.origin and self._index_of(joining.origin) is None:
            self._say(Kind.SETTLED, joining.origin, self.place)
        self._advance()

    # Settled

    def _step(self, event: Item | Control) -> None:
        assert self.place is not None
        if not isinstance(event, Control):
            self.place = Place(self.place.branch, self.place.number + count_of(event))
            self.actions.append(Write(event))
        elif isinstance(event.news, Transition):
            self._is_parting = True
        else:
            self._on_view(event.news)

    def _on_view(self, view: View) -> None:
        assert self.place is not None
        if view.reason is Reason.NETWORK and set(view.transitional) != set(view.members):
            self._say(Kind.TIP, view.id, self.place, view.transitional)
            needed = set(view.members)
            for later in self._queue:
                if isinstance(later, Control):
                    needed.intersection_update(_here(later.news))
            self._merging = _Merging(view, needed)
        elif view is self.view:
            self._say(Kind.SETTLED, view.id, self.place)

    def _go_on(self, branch: Branch, sinks: tuple[Mapping[str, Any], ...] = ()) -> None:
        self.place = Place(branch.name, branch.base)
        self.actions.append(Begin(branch, sinks))

    def _advance(self) -> None:
        """What waited has its place now, as far as nothing else has to be awaited."""
        while self._queue and self._merging is None:
            if not self._is_parting:
                self._step(self._queue.popleft())
            elif not self._part():
                return
        self._look_at_tips()

    def _part(self) -> bool:
        """Whether the view has come that ends the transition. Views of those who join do not."""
        assert self.place is not None
        ends = (
            (index, event.news)
            for index, event in enumerate(self._queue)
            if isinstance(event, Control) and isinstance(event.news, View) and event.news.reason is Reason.NETWORK
        )
        index, view = next(ends, (0, None))
        if view is None:
            return False
        self._is_parting = False
        self._go_on(branch_of(self.group, Cause.FORK, view.id, view.transitional, (self.place,)))
        for _ in range(index):
            event = self._queue.popleft()
            if not isinstance(event, Control):
                self._step(event)
        return True

    # Sides that come together

    def _look_at_tips(self) -> None:
        merging = self._merging
        if merging is None:
            return
        tips = self._tips.get(merging.view.id, {})
        covered = {name for tip in tips.values() for name in tip.side}
        if not merging.needed <= covered:
            return
        self._merging = None
        places = {tip.place: tip.sinks for tip in tips.values()}
        if len(places) > 1:
            parents = tuple(sorted(places))
            branch = branch_of(self.group, Cause.MERGE, merging.view.id, (), parents)
            self._go_on(branch, tuple(places[place] for place in parents))
        if merging.view is self.view:
            assert self.place is not None
            self._say(Kind.SETTLED, merging.view.id, self.place)
        self._advance()

    def _say(self, kind: Kind, view: ViewId, place: Place, side: tuple[str, ...] = ()) -> int:
        self._said += 1
        self.actions.append(Say(Statement(kind, view, place, self._said, side)))
        return self._said


def _here(news: View | Transition) -> tuple[str, ...]:
    return news.members if isinstance(news, View) else news.remaining


def _along(news: View | Transition) -> tuple[str, ...]:
    """Who has come here with the reader: of those who were lost and are back nothing can be awaited."""
    if isinstance(news, View) and news.reason is Reason.NETWORK:
        return news.transitional
    return _here(news)
