"""From STATEs to how a view ends: who comes along, who sends what, the line, the commits, the signal. Pure.

*Companions* are those with the same installed view. The line of a stream is the highest of theirs, L the lowest of
these lines. Below L everything is delivered; from L on a message that is ordered only if its sender is in the commits:
beyond L something may be missing that nobody here has heard of, and a message might follow from it.

Where only hollow copies of a unit are left, and a daemon lacks it for which it was, others may have delivered what
follows, since they did not want it; that daemon can not. It is an *orphan*: it comes along with nobody, and ends the
view alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.sites.frames import StateFrame
from ordercast.order.sites.views import SEQ_STEP, WideProposal, WideView, next_seq
from ordercast.order.stamped.lanes import Stamp

States = Mapping[ProcessId, StateFrame]
UnitId = tuple[int, int]  # rank in the old view, stamp


@dataclass(frozen=True, slots=True)
class WidePlan:
    view: WideView  # that begins
    companions: tuple[ProcessId, ...]
    lines: tuple[int, ...]  # of the streams of the view that ends
    commits: frozenset[ProcessId]
    signal: Stamp  # the transitional view lies behind this place
    is_orphan: bool  # this daemon does not come along: nobody has what it is owed
    lacking: frozenset[UnitId]  # what this daemon has to get
    to_send: dict[UnitId, int]  # what this daemon sends, and for which fragments of the new view, as bits

    @property
    def lowest_line(self) -> int:
        return min(self.lines)


def plan_of(proposal: WideProposal, states: States, me: ProcessId) -> WidePlan:
    """Return the plan of one daemon; those of its companions differ in what they lack and send alone."""
    mine = states[me]
    groups = {view: _companions(view, states) for view in sorted({state.view for state in states.values()})}
    companions = groups[mine.view]
    is_orphan = me not in companions
    if is_orphan:
        companions = (me,)
    said = [states[process] for process in companions]
    lines = tuple(max(line) for line in zip(*(state.lines for state in said), strict=True))
    signal = max(state.place for state in said)
    have = {state.process: _Said(state) for state in said}
    own = have[me]
    return WidePlan(
        view=_view_of(proposal, states, sum(map(len, groups.values())) < len(states)),
        companions=companions,
        lines=lines,
        commits=frozenset(process for state in said for process in state.commits),
        signal=(*signal, 0),
        is_orphan=is_orphan,
        lacking=frozenset(unit for one in have.values() for unit in one.all if own.lacks(unit)),
        to_send=_to_send(proposal, list(have.values()), own),
    )


def _companions(view: ConfigurationId, states: States) -> tuple[ProcessId, ...]:
    """Return those who come along from a view: all who have it, but for orphans and who becomes one without them."""
    said = [_Said(state) for _, state in sorted(states.items()) if state.view == view]
    while True:
        whole = {unit for one in said for unit in one.held}
        hollow = {unit: needs for one in said for unit, needs in one.hollow.items() if unit not in whole}
        kept = [
            one for one in said if not any(needs >> one.rank & 1 and one.lacks(unit) for unit, needs in hollow.items())
        ]
        if len(kept) == len(said):
            return tuple(one.process for one in kept)
        said = kept


def _view_of(proposal: WideProposal, states: States, has_orphans: bool) -> WideView:
    """Return the view that begins: its seq lies above all that any daemon knows, and leaves room for views of
    orphans."""
    highest = max(state.seq for state in states.values())
    seq = proposal.id.seq if highest < proposal.id.seq else next_seq(highest)
    seq += SEQ_STEP if has_orphans else 0
    base = max(state.clock for state in states.values())
    return WideView(ConfigurationId(seq, proposal.id.representative), proposal, base)


class _Said:
    """A STATE, with sets of what is held."""

    def __init__(self, state: StateFrame) -> None:
        self.process = state.process
        self.lines = state.lines
        self.rank = state.rank
        self.held = {(rank, stamp) for rank, held in enumerate(state.held) for stamp in held}
        self.hollow = {(rank, stamp): needs for rank, held in enumerate(state.hollow) for stamp, needs in held}
        self.all = self.held | self.hollow.keys()

    def lacks(self, unit: UnitId) -> bool:
        rank, stamp = unit
        return stamp >= self.lines[rank] and unit not in self.all


def _to_send(proposal: WideProposal, said: list[_Said], mine: _Said) -> dict[UnitId, int]:
    """Return what this daemon is the smallest holder of, and who lacks it. Who holds it whole comes before who does
    not."""
    smaller = {unit for one in said if one.process < mine.process for unit in one.held}
    others = {unit for one in said for unit in (one.all if one.process < mine.process else one.held)}
    to_send = {}
    for unit in (mine.held - smaller) | (mine.hollow.keys() - others):
        needs = 0
        for one in said:
            if one.lacks(unit):
                needs |= 1 << proposal.rank_of[one.process]
        if needs:
            to_send[unit] = needs
    return to_send
