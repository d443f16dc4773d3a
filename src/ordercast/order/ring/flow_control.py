"""How many packets this visit may send. (Paper, section 4.4, Figure 4.17)

`received_seq` is the token's seq when it was last *received*. The paper's prose takes it when the token is forwarded,
which starves the last members of a saturated ring: see deviations, E4.

The paper's rule gives whoever comes first all that is free, which is fair in the long run only. Here the representative
writes on the token how many packets the coming rotation may have in all, the token counts how many are wanted, and each
member takes its part.

Three sums over the members travel on the token: packets sent again, packets that wait, members whose applications are
behind. Each member renews its part of them, so that all of them are complete at every hop. A part that nobody owns
(a forged or damaged token) would stay for ever; so they are counted a second time from zero, from one visit of the
representative to the next, and what was counted takes the place of the sums.
"""

from __future__ import annotations

from ordercast.model.ids import Seq
from ordercast.wire.messages import Counts

COUNT_MAX = 0xFFFFFFFF  # as far as the token can count packets
BEHIND_MAX = 0xFFFF  # and members


def renewed(sums: Counts, before: Counts, mine: Counts) -> Counts:
    """Sums over the members with my part in them renewed: it was `before`, now it is `mine`."""
    retransmitted, waiting, behind = sums[0] - before[0], sums[1] - before[1], sums[2] - before[2]
    if retransmitted < 0 or waiting < 0 or behind < 0:
        retransmitted, waiting, behind = max(0, retransmitted), max(0, waiting), max(0, behind)
    retransmitted, waiting, behind = retransmitted + mine[0], waiting + mine[1], behind + mine[2]
    if retransmitted > COUNT_MAX or waiting > COUNT_MAX or behind > BEHIND_MAX:
        return min(retransmitted, COUNT_MAX), min(waiting, COUNT_MAX), min(behind, BEHIND_MAX)
    return retransmitted, waiting, behind


def rotation_budget(window: int, backlog_max: int, seq: Seq, aru: Seq, retransmitted: int) -> int:
    """New packets of the coming rotation: the window less what had to be sent again, and no more than the stores can
    take of what is not known to be received by all. One member decides it for everybody, because the aru rises where
    one that is behind stands: its neighbours would leave nothing for the others."""
    return min(max(0, min(window - retransmitted, backlog_max - (seq - aru))), COUNT_MAX)


def fair_share(budget: int, wanted: int, waiting: int) -> int:
    """My part of the budget, as my wish is to the wishes of all; never nothing while there is a budget."""
    return min(budget, max(1, budget * wanted // max(1, waiting)))


def allowance(
    window: int,
    visit_max: int,
    share: int,
    seq: Seq,
    received_seq: Seq,
    retransmitted: int,
    visit_most: int | None = None,
) -> int:
    """New packets of this visit. Retransmissions come first, up to `visit_max`: they are what lets the window move on.
    They count against the rotation, those of this visit too, but not against this member's share: who happens to stand
    behind a member that misses packets would never send. Who may send more in this visit than others (`visit_most`)
    has no more room for it: receive buffers and stores are as large as `window` and `visit_max` say."""
    in_rotation = seq - received_seq + retransmitted
    most = visit_max if visit_most is None else visit_most
    return max(0, min(most, window + visit_max - in_rotation, share))
