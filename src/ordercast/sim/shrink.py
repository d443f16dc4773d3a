"""Shrinks a run that fails: finds options with fewer messages, faults and hosts under which the same seed still fails.

Each step tries something smaller, and keeps it if a promise is broken that was broken before. What the run drew for
itself (faults at random times) is written out first, so that each fault can be left out alone. Deterministic: the same
run shrinks to the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from ordercast.checker import Outcome
from ordercast.model.errors import UsageError
from ordercast.model.ids import SECOND
from ordercast.sim.calm_swarm import usual_options
from ordercast.sim.faults import Fault
from ordercast.sim.options import SimOptions
from ordercast.sim.run import simulate

TRIES_MAX = 400  # runs
PATIENCE_NS = SECOND // 2  # with a run that does not settle: most such runs are not wanted
UNSETTLED = "not settled"  # the last of what is broken, where it is so

# What makes a run another one, rather than a smaller one; and what is shrunk by its own rules.
_KEPT = frozenset(
    (
        *("engine", "nodes", "messages", "faults", "fault_time_ns", "clients", "groups", "services", "topics"),
        *("replicas", "structure", "founders", "replica_weights", "networks", "lines", "attachments", "site_links"),
        *("sites", "tree", "adaptive", "baseline", "sealed", "settle_ns"),
    )
)
_COUNTS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)


class Shrunk(NamedTuple):
    options: SimOptions
    tries: int

    @property
    def events(self) -> int:
        """What happens in it: messages, or deeds of clients, and faults."""
        return self.options.submissions + len(self.options.faults) + self.options.random_faults


@dataclass(slots=True)
class _Search:
    options: SimOptions
    seed: int
    broken: frozenset[object]
    tries: int = 0
    seen: set[SimOptions] = field(default_factory=set)

    def keeps(self, smaller: SimOptions) -> bool:
        """Have these options instead, if the run still fails."""
        if smaller == self.options or smaller in self.seen or self.tries >= TRIES_MAX:
            return False
        self.tries += 1
        self.seen.add(smaller)
        found = failures_of(smaller, self.seed)
        if not self.broken.intersection(found) or not {UNSETTLED}.intersection(found) <= self.broken:
            return False
        self.options = smaller
        return True


def shrink(options: SimOptions, seed: int) -> Shrunk | None:
    """None when the run does not fail."""
    struck: list[Fault] = []
    broken = failures_of(options, seed, lambda at, fault: struck.append(replace(fault, at=at)))
    if not broken:
        return None
    search = _Search(options, seed, frozenset(broken))
    search.keeps(replace(options, settle_ns=min(options.settle_ns, PATIENCE_NS)))
    search.keeps(replace(search.options, random_faults=0, ambushes=0, faults=tuple(struck)))
    before = None
    while before != search.options and search.tries < TRIES_MAX:
        before = search.options
        _calm_down(search)
        _leave_out_faults(search)
        _have_fewer(search)
    return Shrunk(search.options, search.tries + 1)


def failures_of(options: SimOptions, seed: int, on_fault: Callable[[int, Fault], None] | None = None) -> list[object]:
    """Return what is broken: promises, the kind of an exception, or that it never settles."""
    try:
        result = simulate(options, seed, on_fault=on_fault)
    except UsageError:
        return []  # there is no such run
    except Exception as error:
        return [type(error)]
    found: list[object] = [verdict.promise for verdict in result.verdicts if verdict.outcome is Outcome.INVALID]
    return found if result.settled else [*found, UNSETTLED]


def _calm_down(search: _Search) -> None:
    """Take what the run can do without: all at once, or one by one."""
    usual = usual_options(search.options.engine)
    names = [each.name for each in fields(SimOptions) if each.name not in _KEPT]

    def calm(which: Sequence[str]) -> SimOptions:
        changes: dict[str, Any] = {name: getattr(usual, name) for name in which}
        return replace(search.options, **changes)

    if not search.keeps(calm(names)):
        for name in names:
            search.keeps(calm([name]))


def _leave_out_faults(search: _Search) -> None:
    """In portions that are halved (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input)."""
    size = len(search.options.faults)
    while size:
        start = 0
        while start < len(search.options.faults):
            faults = search.options.faults
            if not search.keeps(replace(search.options, faults=faults[:start] + faults[start + size :])):
                start += size
        size //= 2


def _have_fewer(search: _Search) -> None:
    for smaller in _fewer(search.options):
        if search.keeps(smaller):
            return _have_fewer(search)
    return None


def _fewer(options: SimOptions) -> Iterator[SimOptions]:
    for messages in _COUNTS:
        if messages < options.messages:
            yield replace(options, messages=messages)
    for nodes in range(1, options.nodes):
        if not options.attachments and all(fault.node < nodes for fault in options.faults):
            yield replace(options, nodes=nodes, founders=min(options.founders, nodes))
    if len(options.services) > 1:
        yield from (replace(options, services=(service,)) for service in options.services)
    last = max((fault.at + fault.duration_ns for fault in options.faults), default=0)
    for time_ns in (last, options.fault_time_ns // 2):
        if last <= time_ns < options.fault_time_ns and time_ns:
            yield replace(options, fault_time_ns=time_ns)
