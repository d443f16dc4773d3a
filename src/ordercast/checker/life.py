"""What one process did from start to end, as the history's index keeps it.

A life is a chain of stays, one per configuration; a stay holds what was delivered in it. Messages are numbers here (see
`History`), so that lists of them compare at the speed of C and share their elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise

from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId
from ordercast.trace.records import Started

SLOT_BITS = 32


def place_from(number: int, slot: int) -> int:
    """Return number and slot of a position in one number that sorts as the pair does."""
    return (number << SLOT_BITS) + slot


def place_text(place: int) -> str:
    return f"{place >> SLOT_BITS}/{place & ((1 << SLOT_BITS) - 1)}"


@dataclass(slots=True)
class Run:
    """Consecutive deliveries whose positions have one origin; `places` runs parallel to `numbers`."""

    origin: ConfigurationId
    numbers: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Stay:
    """The time between the installation of one configuration and the next. The first stay of a life has no view."""

    view: Configuration | None
    home: ConfigurationId = NO_CONFIGURATION  # the regular one whose messages belong here: itself, or the one it ends
    runs: list[Run] = field(default_factory=list)  # one, unless the engine mixes origins
    misnamed: list[ConfigurationId] = field(
        default_factory=list
    )  # other views that deliveries made here claimed to be in
    is_stored: bool = True  # its seq is on stable storage, as far as the process said

    @property
    def numbers(self) -> list[int]:
        """What was delivered here, in order. Not to be changed by the reader."""
        if len(self.runs) == 1:
            return self.runs[0].numbers
        return list(chain.from_iterable(run.numbers for run in self.runs))

    @property
    def length(self) -> int:
        return sum(len(run.numbers) for run in self.runs)

    @property
    def id(self) -> ConfigurationId:
        return NO_CONFIGURATION if self.view is None else self.view.id

    @property
    def is_regular(self) -> bool:
        return self.view is not None and self.view.kind is ConfigurationKind.REGULAR


@dataclass(slots=True)
class Life:
    """One process, which is one incarnation: a restarted node begins another life."""

    process: ProcessId
    started: Started | None = None
    stays: list[Stay] = field(default_factory=lambda: [Stay(None)])
    submitted: list[int] = field(default_factory=list)
    submitted_before_view: int = 0  # how many of `submitted` were accepted before the current configuration
    delivered: set[int] = field(default_factory=set)
    delivered_count: int = 0
    view: ConfigurationId | None = None  # the current configuration
    run: Run | None = None  # the last of the current stay
    home: ConfigurationId = NO_CONFIGURATION  # that of the stay of the last delivery
    home_count: int = 0  # how many were delivered in stays of that home
    has_storage: bool = True  # it has not said that it goes on without
    wanted: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # destinations: from which event to which
    opened: dict[tuple[ConfigurationId, int], frozenset[str]] = field(default_factory=dict)  # groups by epoch
    crashed: bool = False
    departed: bool = False

    @property
    def is_running(self) -> bool:
        return not self.crashed and not self.departed

    def views(self) -> list[Configuration]:
        return [stay.view for stay in self.stays if stay.view is not None]

    def regular_views(self) -> list[Configuration]:
        return [view for view in self.views() if view.kind is ConfigurationKind.REGULAR]

    def regular_after(self, configuration: ConfigurationId) -> ConfigurationId | None:
        """Return the regular configuration that the process installed after this one, or past it."""
        return next((view.id for view in self.regular_views() if view.id > configuration), None)

    def regular_past(self, origin: ConfigurationId, place: int) -> ConfigurationId | None:
        """Return the first regular configuration that the process installed at a position above this one."""
        for view in self.regular_views():
            position = view.position
            if (position.origin, place_from(position.number, position.slot)) > (origin, place):
                return view.id
        return None

    def runs(self) -> Iterator[tuple[Stay, Run]]:
        for stay in self.stays:
            for run in stay.runs:
                yield stay, run

    def moves(self) -> Iterator[tuple[Stay, Stay]]:
        """Each configuration that was left, with the one that came directly after it."""
        return pairwise(self.stays[1:])

    def numbers_of_homes(self) -> dict[ConfigurationId, list[int]]:
        """Return what was delivered in each regular configuration and the transitional one that ends it, in order."""
        parts: dict[ConfigurationId, list[list[int]]] = {}
        for stay, run in self.runs():
            parts.setdefault(stay.home, []).append(run.numbers)
        return {home: lists[0] if len(lists) == 1 else list(chain(*lists)) for home, lists in parts.items()}
