"""The legal moves between states, and nothing else. The node asserts them; the diagram in the docs is drawn from
them. (Paper, Figure 4.3, rebuilt)"""

from __future__ import annotations

STARTING = "Starting"
OPERATIONAL = "Operational"
GATHER = "Gather"
COMMIT = "Commit"
RECOVERY = "Recovery"
GONE = "Gone"

STATES = (STARTING, OPERATIONAL, GATHER, COMMIT, RECOVERY, GONE)

MOVES = frozenset(
    {
        (STARTING, OPERATIONAL),  # the ring seq is stored, or no longer waited for: the ring of one is installed
        (OPERATIONAL, GATHER),  # token lost, Join, another ring heard, failure to receive, a member left
        (OPERATIONAL, GONE),  # orderly leave
        (GATHER, GATHER),  # the sets grew, or consensus led to nothing
        (GATHER, COMMIT),  # consensus and I am representative; or a Commit token that agrees with me
        (COMMIT, GATHER),  # Commit token lost, a member started over, a member left
        (COMMIT, RECOVERY),  # second rotation, and the ring seq is stored, or no longer waited for
        (RECOVERY, GATHER),  # token lost, a member started over or left, failure to receive
        (RECOVERY, OPERATIONAL),  # installed
    }
)
