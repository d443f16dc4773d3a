"""What the views, starts and ends of a run say of its messages: where each may stand, and who owes what.

`Facts` are small however long the run is: one entry per process and per stay of it in a configuration. The reference
checkers judge the same events (`control_verdicts`); what they find of the views is their last word, and what they say
of messages holds when the messages are cleared (`clearing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ordercast.checker import Checkers, Verdict
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId
from ordercast.pipeline.verify.rows import Control, Ints, Unsound
from ordercast.trace.records import Crashed, Departed, Ended, Healed, Installed, Saturated, Started

FOREVER = (1 << 62) - 1
SLOT_BITS, PLACE_BITS = 17, 48  # of a place in a ring, and of the whole place; the rank of the ring is above
SLOT_MAX, SEQ_MAX = (1 << SLOT_BITS) - 1, (1 << (PLACE_BITS - SLOT_BITS)) - 1
RANK_MAX = (1 << (63 - PLACE_BITS)) - 1
NOWHERE = -1  # before every place


@dataclass(slots=True)
class Stay:
    """Of one process in one configuration."""

    view: Configuration
    begins: int  # idx of the row that installs it
    ring: ConfigurationId | None  # whose messages may be delivered here; None: nobody's


@dataclass(slots=True)
class Life:
    process: int
    stays: list[Stay] = field(default_factory=list)
    started_n: int | None = None
    gone_n: int = FOREVER  # it crashed or left with this event
    crashed: bool = False
    departed: bool = False
    # Of the stays, from the one before the first view on, in columns.
    begins: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    views: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    rings: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    ranks: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def is_running(self) -> bool:
        return not self.crashed and not self.departed

    def goes_past(self, ring: ConfigurationId) -> bool:
        """It installed a regular configuration after this ring."""
        return any(stay.view.id > ring for stay in self.stays if stay.view.kind is ConfigurationKind.REGULAR)


@dataclass(slots=True)
class Window:
    """A time of saturation, by numbers of events."""

    senders: tuple[ProcessId, ...]
    begins: int
    ends: int = FOREVER


@dataclass(slots=True)
class Facts:
    lives: list[Life]  # by process
    processes: Ints  # theirs, rising
    rings: list[
        ConfigurationId
    ]  # whose messages may be delivered anywhere, rising: the rank of a ring is its place here
    windows: list[Window]
    ended_n: int = FOREVER
    is_complete: bool = False
    is_healed: bool = False

    def index(self, process: int) -> int | None:
        """Of the life of this process."""
        found = int(np.searchsorted(self.processes, process))
        return found if found < len(self.lives) and self.lives[found].process == process else None


def control_verdicts(controls: list[Control]) -> list[Verdict]:
    """What the reference checkers say of a history without messages."""
    checkers = Checkers()
    for control in controls:
        checkers.observe(control.event)
    return checkers.verdicts()


def facts_from(controls: list[Control]) -> Facts:
    """`Unsound` when they say more than the fast judge understands; the reference checkers read everything."""
    lives: dict[int, Life] = {}
    facts = Facts([], np.zeros(0, np.int64), [], [])
    for control in controls:
        _add(facts, lives, control)
    facts.lives = [lives[process] for process in sorted(lives)]
    facts.processes = np.array([life.process for life in facts.lives], np.int64)
    facts.rings = sorted({stay.ring for life in facts.lives for stay in life.stays if stay.ring is not None})
    if len(facts.rings) > RANK_MAX:
        raise Unsound(f"more than {RANK_MAX} rings")
    ranks = {ring: rank for rank, ring in enumerate(facts.rings)}
    for life in facts.lives:
        _fill_columns(life, ranks)
    return facts


def _add(facts: Facts, lives: dict[int, Life], control: Control) -> None:
    event = control.event
    if isinstance(event, Healed):
        facts.is_healed = True
    elif isinstance(event, Saturated):
        if event.begins:
            facts.windows.append(Window(event.senders, control.n))
        elif facts.windows:
            facts.windows[-1].ends = min(control.n, facts.windows[-1].ends)
    elif isinstance(event, Ended):
        facts.ended_n, facts.is_complete = control.n, event.complete
    elif isinstance(event, Started | Installed | Crashed | Departed):
        life = lives.setdefault(control.process, Life(control.process))
        if isinstance(event, Started):
            if event.promises.prunes or event.promises.early:
                raise Unsound("engines that prune or deliver early are beyond the fast judge")
            life.started_n = control.n
        elif isinstance(event, Installed):
            _install(life, event.configuration, control.idx)
        else:
            life.gone_n = min(life.gone_n, control.n)
            life.departed |= isinstance(event, Departed)
            life.crashed = not life.departed


def _install(life: Life, view: Configuration, idx: int) -> None:
    before = life.stays[-1] if life.stays else None
    if before is not None and idx <= before.begins:
        raise Unsound("rows of a process are not numbered in the order of its events")
    ring: ConfigurationId | None = view.id
    if view.kind is ConfigurationKind.TRANSITIONAL:
        is_after_regular = before is not None and before.view.kind is ConfigurationKind.REGULAR
        ring = (
            before.view.id if before is not None and is_after_regular and before.view.id != NO_CONFIGURATION else None
        )
    life.stays.append(Stay(view, idx, ring))


def _fill_columns(life: Life, ranks: dict[ConfigurationId, int]) -> None:
    """With a stay before the first view, in which nothing may be delivered."""
    rings = [stay.ring for stay in life.stays]
    life.begins = np.array([-1, *(stay.begins for stay in life.stays)], np.int64)
    life.views = np.array([NO_CONFIGURATION, *(stay.view.id for stay in life.stays)], np.int64).reshape(-1, 2)
    life.rings = np.array([NO_CONFIGURATION, *(ring or NO_CONFIGURATION for ring in rings)], np.int64).reshape(-1, 2)
    life.ranks = np.array([NOWHERE, *(NOWHERE if ring is None else ranks[ring] for ring in rings)], np.int64)


def view_key(stay: Stay, ranks: dict[ConfigurationId, int]) -> int:
    """The position of a view as messages' positions are numbered; `Unsound` when it names another ring."""
    position = stay.view.position
    rank = ranks.get(position.origin)
    if rank is None or not 0 <= position.number <= SEQ_MAX or not 0 <= position.slot <= SLOT_MAX:
        raise Unsound("a view has a position on no ring of the run")
    return rank << PLACE_BITS | position.number << SLOT_BITS | position.slot
