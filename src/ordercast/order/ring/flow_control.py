"""How many packets this visit may send. (Paper, section 4.4, Figure 4.17)

`received_seq` is the token's seq when it was last *received*. The paper's prose takes it when the token is forwarded,
which starves the last members of a saturated ring: see deviations, E4.
"""

from __future__ import annotations

from ordercast.model.ids import Seq


def allowance(
    window: int, visit_max: int, backlog_max: int, seq: Seq, received_seq: Seq, aru: Seq, retransmitted: int
) -> int:
    """New packets of this visit. Retransmissions come first, up to `visit_max`: they are what lets the window move on.
    They count against the rotation, those of this visit too, but not against this member's share: who happens to stand
    behind a member that misses packets would never send."""
    in_rotation = seq - received_seq + retransmitted
    unstable = seq - aru
    return max(0, min(visit_max, window + visit_max - in_rotation, backlog_max - unstable))
