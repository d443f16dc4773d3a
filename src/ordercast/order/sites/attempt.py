"""An attempt at a view, at one daemon: what its tape has brought of it so far."""

from __future__ import annotations

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.sites.frames import ReadyFrame, StateFrame
from ordercast.order.sites.plan import UnitId, WidePlan, plan_of
from ordercast.order.sites.views import WideProposal


class WideAttempt:
    def __init__(self, proposal: WideProposal, me: ProcessId) -> None:
        self.proposal = proposal
        self.me = me
        self.rank = proposal.rank_of[me]
        self.states: dict[ProcessId, StateFrame] = {}
        self.ready: set[ProcessId] = set()
        self.plan: WidePlan | None = None  # once all STATEs are here
        self.lacking: set[UnitId] = set()  # what has still to come
        self.has_all = False  # lines and commits were taken over
        self.is_said = False  # READY is on its way

    @property
    def id(self) -> ConfigurationId:
        return self.proposal.id

    def take_state(self, state: StateFrame) -> bool:
        """Take a STATE; True when it is the last one: there is a plan now. One that knows more or fewer streams of its
        view than another does was forged."""
        if state.process in self.states or state.process not in self.proposal.rank_of:
            return False
        if any(one.view == state.view and len(one.lines) != len(state.lines) for one in self.states.values()):
            return False
        self.states[state.process] = state
        if len(self.states) < len(self.proposal.members):
            return False
        self.plan = plan_of(self.proposal, self.states, self.me)
        self.lacking = set(self.plan.lacking)
        return True

    def take_ready(self, ready: ReadyFrame) -> bool:
        """Take a READY; True when all have said it."""
        if ready.process in self.proposal.rank_of:
            self.ready.add(ready.process)
        return len(self.ready) == len(self.proposal.members) and self.plan is not None

    def missing(self) -> set[int]:
        """Return the ranks of fragments that have not said all that is waited for."""
        said = self.states.keys() if self.plan is None else self.ready
        return {rank for member, rank in self.proposal.rank_of.items() if member not in said}
