"""Transitional sets: a view tells each process exactly who came along with it from the same old configuration.

A transitional view lists members of the old and of the new configuration, the process itself among them, and all of
them that install the new one come through this same view. The regular view after it repeats that list. The first view
of a life is regular, of the process alone, with nothing before it. (Definition of a transitional configuration, chapter
3; recovery steps 3 to 5.)
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.checker.truthful_sets import Arrivals, TruthfulSets
from ordercast.checker.verdict import Witness, view_text
from ordercast.model.configuration import Configuration
from ordercast.model.ids import ConfigurationId, ProcessId, process_text
from ordercast.model.promises import Promise


class TransitionalSets(TruthfulSets):
    promise = Promise.TRANSITIONAL_SETS
    rule = "every view told each process exactly who came along from its old configuration"

    def faults_of_arrival(self, arrived: Arrivals) -> Iterator[Witness]:
        by_old: dict[ConfigurationId, tuple[ProcessId, Configuration]] = {}
        for process, (old, transitional, new) in arrived.items():
            other, known = by_old.setdefault(old.id, (process, transitional))
            if (known.id, known.members) != (transitional.id, transitional.members):
                what = f"came from {old.id} through {transitional.id}, {process_text(other)} through {known.id}"
                yield self.witness(what, process, view=new.id)
            for member in transitional.members:
                if member in arrived and arrived[member].transitional.id != transitional.id:
                    came = view_text(arrived[member].old.id)
                    what = f"lists {process_text(member)} as coming along from {old.id}, but that came from {came}"
                    yield self.witness(what, process, view=transitional.id)
