"""Transitional sets: a view tells each process exactly who came along with it from the same old configuration.

A transitional view lists members of the old and of the new configuration, the process itself among them, and all of
them that install the new one come through this same view. The regular view after it repeats that list. The first view
of a life is regular, of the process alone, with nothing before it. (Definition of a transitional configuration, chapter
3; recovery steps 3 to 5.)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ordercast.checker.base import Checker
from ordercast.checker.life import Life
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness, view_text
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId, process_text
from ordercast.model.promises import Promise


class TransitionalSets(Checker):
    promise = Promise.TRANSITIONAL_SETS
    rule = "every view told each process exactly who came along from its old configuration"
    matter = Matter.CHANGE
    needs_messages = False

    def violations(self) -> Iterator[Witness]:
        for life in self.history.lives():
            for text, view in _faults_of_chain(life):
                yield self.witness(text, life.process, view=view.id)
        yield from self._faults_between()

    def _faults_between(self) -> Iterator[Witness]:
        """Who installed the same regular view, and through which transitional view from which old one?"""
        arrivals: dict[ConfigurationId, dict[ProcessId, tuple[Configuration, Configuration, Configuration]]] = {}
        for life in self.history.lives():
            views = life.views()
            for old, transitional, new in zip(views, views[1:], views[2:], strict=False):
                if transitional.kind is ConfigurationKind.TRANSITIONAL and new.kind is ConfigurationKind.REGULAR:
                    arrivals.setdefault(new.id, {})[life.process] = (old, transitional, new)
        for arrived in arrivals.values():
            yield from self._faults_of_arrival(arrived)

    def _faults_of_arrival(
        self, arrived: dict[ProcessId, tuple[Configuration, Configuration, Configuration]]
    ) -> Iterator[Witness]:
        by_old: dict[ConfigurationId, tuple[ProcessId, Configuration]] = {}
        for process, (old, transitional, new) in arrived.items():
            other, known = by_old.setdefault(old.id, (process, transitional))
            if (known.id, known.members) != (transitional.id, transitional.members):
                what = f"came from {old.id} through {transitional.id}, {process_text(other)} through {known.id}"
                yield self.witness(what, process, view=new.id)
            for member in transitional.members:
                if member in arrived and arrived[member][1].id != transitional.id:
                    came = view_text(arrived[member][0].id)
                    what = f"lists {process_text(member)} as coming along from {old.id}, but that came from {came}"
                    yield self.witness(what, process, view=transitional.id)


def _faults_of_chain(life: Life) -> Iterator[tuple[str, Configuration]]:
    """What one process can see by itself."""
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
