"""Truthful sets: whoever a view lists as coming along did, and lists the process too.

What a transitional set is: `transitional_sets.py`. An engine that promises only truthful sets may leave out a
process that came from the same old configuration: too small a set costs a snapshot. Too large a one would be a silent
fork, for whoever is listed is taken to have had the same past.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ordercast.checker.base import Checker
from ordercast.checker.history import History
from ordercast.checker.life import Life
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness, view_text
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId, process_text
from ordercast.model.promises import Promise


class Arrival(NamedTuple):
    """How a process came to a regular configuration."""

    old: Configuration
    transitional: Configuration
    new: Configuration


Arrivals = dict[ProcessId, Arrival]  # at one regular configuration


class TruthfulSets(Checker):
    promise = Promise.TRUTHFUL_SETS
    rule = "whoever a view listed as coming along came from the same old configuration, and listed the other too"
    matter = Matter.CHANGE
    needs_messages = False

    def violations(self) -> Iterator[Witness]:
        for life in self.history.lives():
            for text, view in faults_of_chain(life):
                yield self.witness(text, life.process, view=view.id)
        for arrived in arrivals_in(self.history):
            yield from self.faults_of_arrival(arrived)

    def faults_of_arrival(self, arrived: Arrivals) -> Iterator[Witness]:
        for process, (old, transitional, _) in arrived.items():
            for member in transitional.members:
                if member not in arrived:
                    continue
                other = arrived[member]
                if other.old.id != old.id:
                    came = view_text(other.old.id)
                    what = f"lists {process_text(member)} as coming along from {old.id}, but that came from {came}"
                    yield self.witness(what, process, view=transitional.id)
                elif process not in other.transitional.members:
                    what = f"lists {process_text(member)} as coming along from {old.id}, but is not listed by it"
                    yield self.witness(what, process, view=transitional.id)


def arrivals_in(history: History) -> list[Arrivals]:
    """Return who installed each regular configuration, and through which transitional one from which old one."""
    arrivals: dict[ConfigurationId, Arrivals] = {}
    for life in history.lives():
        views = life.views()
        for old, transitional, new in zip(views, views[1:], views[2:], strict=False):
            if transitional.kind is ConfigurationKind.TRANSITIONAL and new.kind is ConfigurationKind.REGULAR:
                arrivals.setdefault(new.id, {})[life.process] = Arrival(old, transitional, new)
    return list(arrivals.values())


def faults_of_chain(life: Life) -> Iterator[tuple[str, Configuration]]:
    """Yield what one process can see by itself."""
    views = life.views()
    if not views:
        return
    first = views[0]
    alone = (life.process,)
    if (first.kind, first.previous, first.members, first.transitional) != (
        ConfigurationKind.REGULAR,
        NO_CONFIGURATION,
        alone,
        alone,
    ):
        yield "the first view of a life is not the regular view of the process alone", first
    for old, view in pairwise(views):
        yield from ((text, view) for text in _faults_of_step(life.process, old, view))


def _faults_of_step(process: ProcessId, old: Configuration, view: Configuration) -> Iterator[str]:
    coming = set(view.transitional)
    if process not in coming:
        yield "does not list the process itself as coming along"
    if view.kind is ConfigurationKind.TRANSITIONAL:
        if coming != set(view.members):
            yield "a transitional view whose members are not those who come along"
        if not set(view.members) <= set(old.members):
            yield f"lists members that were not in {old.id}"
        return
    if not coming <= set(view.members):
        yield "lists as coming along some that are not members"
    if old.kind is ConfigurationKind.TRANSITIONAL and coming != set(old.members):
        yield f"lists others as coming along than the transitional view {old.id}"
