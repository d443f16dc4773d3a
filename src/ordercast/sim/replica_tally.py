"""What a campaign with replicas wants to have seen."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ordercast.replicated.effects import Changed, Reason
from ordercast.replicated.voice import DECISIONS

if TYPE_CHECKING:
    from ordercast.sim.replica import Replica


class Moment(Enum):
    """When a replica is killed with intent."""

    ROUND = "round"  # all are saying what they have
    JOINING = "joining"  # it is being loaded
    DONATING = "donating"  # another has just got a piece from it
    ATTEMPTED = "attempted"  # it has decided after the signal
    CONFIRMING = "confirming"  # it has just been confirmed something


class ReplicaOccurrence(Enum):
    """The rows that a swarm of replicas adds to its table."""

    BOOTSTRAP = "replicas: began with the empty state"
    PRIMARY = "replicas: primary component decided"
    ATTEMPT = "replicas: primary component attempted, after the signal"
    ATTEMPTED_BEGINNING = "replicas: beginning attempted, after the signal"
    FORGOTTEN = "replicas: beginning found to have failed"
    PRIMARY_LOADED = "replicas: primary component by a replica that was loaded"
    MINORITY = "replicas: not a quorum"
    NO_STATE = "replicas: nobody has a state"
    ERA = "replicas: asked once more, for views were numbered anew"
    HUNG = "replicas: hung, and silent"
    STRANGER = "replicas: member that never says anything"
    IMPATIENT = "replicas: patience with a silent member is over"
    EXCLUDED = "replicas: excluded by the others"
    EXCLUDED_PRIMARY = "replicas: primary component decided without a silent member"
    SPOKEN = "replicas: asked once more, for a silent member has spoken"
    HELD_LOST = "replicas: holder of a lock lost its connection"
    ABANDONED_ROUND = "replicas: round abandoned"
    PENDING = "replicas: command came before the decision"
    PENDING_LOST = "replicas: round abandoned with commands that came in it"
    HELD = "replicas: command held after a signal"
    HELD_APPLIED = "replicas: held commands applied in a later view"
    HELD_DROPPED = "replicas: held commands replaced by another's state"
    HELD_TRANSFERRED = "replicas: picture with commands that are held"
    KEPT = "replicas: command kept by a replica that is being loaded"
    BATCH = "replicas: commands that travel together"
    QUEUED = "replicas: command waits for room"
    GAVE_UP = "replicas: caller gave up before its command was sent"
    UNSENT = "replicas: connection lost before all was sent"
    READ = "replicas: linearised read"
    BACK = "replicas: owner says that it is back"
    GONE = "replicas: owner said to be gone"
    CONFIRMED = "replicas: command confirmed"
    CONFIRMED_LATE = "replicas: command confirmed after its sender was cut off"
    REFUSED = "replicas: command refused, nobody will apply it"
    REFUSED_ONCE_SENT = "replicas: command refused when it came back"
    UNCERTAIN = "replicas: command refused, a copy may be applied"
    TWICE = "replicas: command came twice"
    SENT_AGAIN = "replicas: command sent again"
    HELD_BACK = "replicas: command kept back behind another of its sender"
    AHEAD = "replicas: command that came without the one before it"
    FETCH = "replicas: transfer began"
    FETCHED = "replicas: transfer complete"
    FETCHED_IN_ROUND = "replicas: transfer complete while a round was open"
    CONTINUED = "replicas: transfer continued in another view"
    RESUMED = "replicas: transfer resumed with another donor"
    TROUBLED = "replicas: piece lost or damaged, or the connection to its donor broke"
    BEGUN_AGAIN = "replicas: transfer begun again from the first piece"
    STOPPED = "replicas: transfer abandoned"
    FROZEN = "replicas: picture kept for others"
    STALE_LOADED = "replicas: stale replica loaded"
    FRESH_LOADED = "replicas: fresh replica loaded"
    SLICED = "replicas: held commands applied in slices"
    SLICED_IN_ROUND = "replicas: view changed while held commands were applied in slices"
    FROZEN_LATER = "replicas: picture taken when what was held was applied"
    KILLED = "replicas: killed"
    KILLED_PRIMARY = "replicas: killed in a primary component"
    KILLED_ROUND = "replicas: killed while a round was open"
    KILLED_JOINING = "replicas: killed while it was being loaded"
    KILLED_DONATING = "replicas: killed while another was fetching from it"
    KILLED_ATTEMPTED = "replicas: killed between an attempt and the next decision"
    KILLED_HOLDING = "replicas: killed with commands that it held"
    KILLED_WAITING = "replicas: killed with requests that had no answer"
    KILLED_CONFIRMING = "replicas: killed just when it was confirmed something"
    KILLED_WRITING = "replicas: killed in the middle of a write to its journal"
    DISK_LOST = "replicas: journal lost for good"
    POWER_CUT = "replicas: the power of all hosts failed"
    REMEMBERED = "replicas: began with what its journal knew"
    TORN = "replicas: journal with a torn end cut off"
    PICTURED = "replicas: began with a picture in its journal"
    NEW_LIFE = "replicas: started again without memory"
    SURVIVED = "replicas: outlived its daemon"
    RECONNECTED = "replicas: joined again with its state"
    ENDED_PRIMARY = "replicas: run ended in a primary component"
    ENDED_BLOCKED = "replicas: run ended without a primary component"
    WRONG_PICTURE = "replicas: wrong picture refused"


NEVER = frozenset({ReplicaOccurrence.WRONG_PICTURE})  # with a core that is right
DURABLE = frozenset(
    {
        ReplicaOccurrence.KILLED_WRITING,
        ReplicaOccurrence.DISK_LOST,
        ReplicaOccurrence.POWER_CUT,
        ReplicaOccurrence.REMEMBERED,
        ReplicaOccurrence.TORN,
        ReplicaOccurrence.PICTURED,
    }
)  # where journals are kept


def row_of_decision(changed: Changed) -> ReplicaOccurrence | None:
    rows = {
        Reason.ERA: ReplicaOccurrence.ERA,
        Reason.EXCLUDED: ReplicaOccurrence.EXCLUDED,
        Reason.SPOKEN: ReplicaOccurrence.SPOKEN,
        Reason.NO_QUORUM: ReplicaOccurrence.MINORITY,
        Reason.NO_STATE: ReplicaOccurrence.NO_STATE,
        Reason.BOOTSTRAP: ReplicaOccurrence.BOOTSTRAP,
        Reason.QUORUM: ReplicaOccurrence.PRIMARY,
        Reason.LOADED: ReplicaOccurrence.PRIMARY_LOADED,
    }
    if changed.reason in DECISIONS and not changed.is_primary:
        is_beginning = changed.reason is Reason.BOOTSTRAP
        return ReplicaOccurrence.ATTEMPTED_BEGINNING if is_beginning else ReplicaOccurrence.ATTEMPT
    return rows.get(changed.reason)


def rows_of_death(replica: Replica) -> list[ReplicaOccurrence]:
    """What a replica that is killed was doing."""
    core, row = replica.desk.core, ReplicaOccurrence
    rows = {
        row.KILLED: True,
        row.KILLED_PRIMARY: core.is_primary,
        row.KILLED_ROUND: core.is_deciding,
        row.KILLED_JOINING: replica.desk.is_fetching,
        row.KILLED_DONATING: replica.replicas.is_donating(replica),
        row.KILLED_ATTEMPTED: replica.witness.voice.is_attempt,
        row.KILLED_HOLDING: core.held > 0,
        row.KILLED_WAITING: core.outstanding > 0,
    }
    return [each for each, is_so in rows.items() if is_so]
