"""What the views, starts and ends of a run say of its messages: where each may stand, and who owes what.

`Facts` are small however long the run is: one entry per process and per stay of it in a configuration. The reference
checkers judge the same events (`control_verdicts`); what they find of the views is their last word, and what they say
of messages holds when the messages are cleared (`clearing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ordercast.checker import Checkers, Verdict
from ordercast.checker.matters import Matter
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, Position, ProcessId
from ordercast.model.promises import Promise
from ordercast.model.service import Service
from ordercast.pipeline.verify.rows import Control, Ints, JudgedWhole, Unsound
from ordercast.trace.columns import signed
from ordercast.trace.records import Crashed, Departed, Ended, Healed, Installed, Saturated, Started, Wanted

FOREVER = (1 << 62) - 1
NOWHERE = -1  # before every place, and before every configuration


@dataclass(slots=True)
class Stay:
    """The stay of one process in one configuration."""

    view: Configuration
    begins: int  # idx of the row that installs it
    home: ConfigurationId | None  # the regular one whose messages belong here: itself, or the one it ends; None: none


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
    ranks: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # of the homes
    offset: int = 0  # of its first view among `Facts.positions`
    wanted: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # destinations: from which event to which

    @property
    def is_running(self) -> bool:
        return not self.crashed and not self.departed

    def goes_past(self, home: ConfigurationId) -> bool:
        """Tell whether it installed a regular configuration after this one."""
        return any(stay.view.id > home for stay in self.stays if stay.view.kind is ConfigurationKind.REGULAR)


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
    homes: list[ConfigurationId]  # of all stays, rising: the rank of one is its place here
    positions: list[Position]  # of all views, life by life
    windows: list[Window]
    ended_n: int = FOREVER
    is_complete: bool = False
    is_healed: bool = False
    is_live: bool = False  # numbers of events are times, of clocks that differ
    prunes: bool = False  # a message reaches only those who want it
    shares_views: bool = True  # all who deliver a message do so in one configuration, or in the one that ends it
    early: tuple[int, ...] = ()  # services whose messages come before their place, weaker than causal order

    @property
    def is_plain(self) -> bool:
        """Whether all deliver all, in one order: then amounts say what sets of messages would."""
        return not self.prunes and not self.early

    def index(self, process: int) -> int | None:
        """Return the index of this process's life."""
        found = int(np.searchsorted(self.processes, process))
        return found if found < len(self.lives) and self.lives[found].process == process else None


def control_verdicts(controls: list[Control], matters: set[Matter]) -> list[Verdict]:
    """What the reference checkers say of a history without messages, in which these matters were counted."""
    checkers = Checkers(matters=matters)
    for control in controls:
        checkers.observe(control.event)
    return checkers.verdicts()


def facts_from(controls: list[Control], *, is_live: bool = False) -> Facts:
    """`Unsound` when they say more than the fast judge understands; the reference checkers read everything."""
    lives: dict[int, Life] = {}
    facts = Facts([], np.zeros(0, np.int64), [], [], [], is_live=is_live)
    for control in controls:
        _add(facts, lives, control)
    facts.lives = [lives[process] for process in sorted(lives)]
    facts.processes = np.array([life.process for life in facts.lives], np.int64)
    facts.homes = sorted({stay.home for life in facts.lives for stay in life.stays if stay.home is not None})
    ranks = {home: rank for rank, home in enumerate(facts.homes)}
    for life in facts.lives:
        _fill_columns(life, ranks)
        life.offset = len(facts.positions)
        facts.positions += [stay.view.position for stay in life.stays]
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
    elif isinstance(event, Started | Installed | Crashed | Departed | Wanted):
        life = lives.setdefault(control.process, Life(control.process))
        if isinstance(event, Started):
            life.started_n = control.n
            promises = event.promises.promises
            if Promise.MULTIPLE_GROUP_ORDER in promises and Promise.TOTAL_ORDER not in promises:
                raise JudgedWhole("its engine promises no total order: judge so large a run by `ordercast check`")
            facts.prunes, facts.shares_views = event.promises.prunes, event.promises.shares_views
            facts.early = tuple(sorted(service for service in event.promises.early if service < Service.CAUSAL))
        elif isinstance(event, Wanted):
            _want(life, event, control.n)
        elif isinstance(event, Installed):
            _install(life, event.configuration, control.idx)
        else:
            life.gone_n = min(life.gone_n, control.n)
            life.departed |= isinstance(event, Departed)
            life.crashed = not life.departed


def _want(life: Life, event: Wanted, n: int) -> None:
    for destination in event.destinations:
        times = life.wanted.setdefault(destination, [])
        if event.begins:
            times.append((n, FOREVER))
        elif times and times[-1][1] == FOREVER:  # else a wish is given up that was never answered
            times[-1] = times[-1][0], n


def _install(life: Life, view: Configuration, idx: int) -> None:
    before = life.stays[-1] if life.stays else None
    if before is not None and idx <= before.begins:
        raise Unsound("rows of a process are not numbered in the order of its events")
    home: ConfigurationId | None = view.id
    if view.kind is ConfigurationKind.TRANSITIONAL:
        is_after_regular = before is not None and before.view.kind is ConfigurationKind.REGULAR
        home = (
            before.view.id if before is not None and is_after_regular and before.view.id != NO_CONFIGURATION else None
        )
    life.stays.append(Stay(view, idx, home))


def _fill_columns(life: Life, ranks: dict[ConfigurationId, int]) -> None:
    """Fill the columns; each life has a stay before its first view, in which nothing may be delivered."""
    homes = [stay.home for stay in life.stays]
    ids = [NO_CONFIGURATION, *(stay.view.id for stay in life.stays)]
    life.begins = np.array([-1, *(stay.begins for stay in life.stays)], np.int64)
    life.views = np.array([(signed(seq), signed(representative)) for seq, representative in ids], np.int64)
    life.ranks = np.array([NOWHERE, *(NOWHERE if home is None else ranks[home] for home in homes)], np.int64)
