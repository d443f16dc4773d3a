"""What a replica says of its component, made into records: alike for simulated replicas and live ones."""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.events import ViewId
from ordercast.model.ids import Instant
from ordercast.replicated.effects import Changed, Reason, Standing
from ordercast.trace.replica_records import ComponentChanged, Stage

DECISIONS = (
    Reason.BOOTSTRAP,
    Reason.QUORUM,
    Reason.LOADED,
    Reason.FORCED,
    Reason.ONE_SIDE,
)  # of a component that goes on
_STAGES = {
    Reason.VIEW: Stage.VIEW,
    Reason.ERA: Stage.VIEW,
    Reason.SPOKEN: Stage.VIEW,
    Reason.WITHOUT: Stage.VIEW,
    Reason.EXCLUDED: Stage.EXCLUDED,
    Reason.LOADED: Stage.LOADED,
    Reason.JOINED: Stage.LOADED,
    Reason.SIGNAL: Stage.SIGNAL,
    Reason.CUT_OFF: Stage.CUT_OFF,
    Reason.LOST: Stage.CUT_OFF,
}  # all others are decisions


@dataclass(slots=True)
class ComponentVoice:
    elects: bool = False  # the component is a primary one, or was attempted to be
    is_attempt: bool = False  # the last decision was one after the signal

    def record(
        self, at: Instant, life: int, view: ViewId | None, era: int, changed: Changed, count: int
    ) -> ComponentChanged:
        """`count`: commands of applications in its state."""
        decided = changed.reason in DECISIONS
        stage = _STAGES.get(changed.reason, Stage.DECISION)
        if decided or stage not in (Stage.SIGNAL, Stage.LOADED):
            self.elects = decided
        if decided or stage in (Stage.DECISION, Stage.CUT_OFF):
            self.is_attempt = decided and not changed.is_primary
        return ComponentChanged(
            at,
            life,
            stage,
            view,
            changed.is_primary,
            decided,
            self.elects,
            changed.standing is Standing.HOLDER,
            changed.holders,
            changed.members,
            changed.lineage,
            changed.term,
            count,
            changed.reason.value,
            era,
            changed.excluded,
            changed.round,
        )
