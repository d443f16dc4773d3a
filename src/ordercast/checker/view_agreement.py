"""View agreement: one id is one configuration for all (Theorems 4.1, 4.4).

Two views with one id have the same kind and members; those who make the same step from one configuration to the next
see the same change, in every field. At each process the views form a chain: each names the one before it, regular and
transitional alternate, the process is a member, and every delivery names the configuration it is in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ordercast.checker.base import Checker
from ordercast.checker.life import Life
from ordercast.checker.matters import Matter
from ordercast.checker.verdict import Witness, view_text
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.ids import NO_CONFIGURATION, ConfigurationId, ProcessId, process_text
from ordercast.model.promises import Promise


class ViewAgreement(Checker):
    promise = Promise.VIEW_AGREEMENT
    rule = "all who installed a configuration saw the same one, each in an unbroken chain"
    matter = Matter.SHARED
    needs_messages = False

    def violations(self) -> Iterator[Witness]:
        by_id: dict[ConfigurationId, tuple[ProcessId, Configuration]] = {}
        by_step: dict[tuple[ConfigurationId, ConfigurationId], tuple[ProcessId, Configuration]] = {}
        for life in self.history.lives():
            yield from self._chain(life)
            for view in life.views():
                other, known = by_id.setdefault(view.id, (life.process, view))
                if (known.kind, known.members) != (view.kind, view.members):
                    what = f"has another kind or other members than at {process_text(other)}"
                    yield self.witness(what, life.process, view=view.id)
                    continue
                other, known = by_step.setdefault((view.previous, view.id), (life.process, view))
                if known != view:
                    what = f"differs in {_differing(known, view)} from the same step at {process_text(other)}"
                    yield self.witness(what, life.process, view=view.id)

    def _chain(self, life: Life) -> Iterator[Witness]:
        before: Configuration | None = None
        for stay in life.stays:
            for named in stay.misnamed:
                what = f"delivered in view {view_text(stay.id)}, naming view {view_text(named)}"
                yield self.witness(what, life.process, view=stay.id)
            if stay.view is not None:
                for text in _faults(life.process, before, stay.view):
                    yield self.witness(text, life.process, view=stay.id)
                before = stay.view


def _faults(process: ProcessId, before: Configuration | None, view: Configuration) -> Iterator[str]:
    if process not in view.members:
        yield "installed by a process that is no member of it"
    installed = NO_CONFIGURATION if before is None else before.id
    if view.previous != installed:
        yield f"names {view_text(view.previous)} as the configuration before it, which was {view_text(installed)}"
    if before is None and view.kind is not ConfigurationKind.REGULAR:
        yield "the first view is not regular"
    if before is not None and before.kind is view.kind:
        yield f"two {view.kind.value} views follow on each other"


def _differing(first: Configuration, second: Configuration) -> str:
    return ", ".join(
        field.name for field in fields(Configuration) if getattr(first, field.name) != getattr(second, field.name)
    )
