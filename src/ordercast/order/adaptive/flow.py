"""How many packets this process may send now."""

from __future__ import annotations

from ordercast.order.adaptive.merge import Merge

LEAST = 16  # packets that everybody may have on their way
PART = 4  # a good burst has this part of a share; so much of the window is acknowledged soon


def share_left(merge: Merge, window: int, backlog_max: int, wanted: int = 1) -> int:
    """A share of the window by weight, less what is not known to be everywhere; and no more than all may keep.

    Few large bursts cost less than many small ones. So nothing may be sent as long as what is left is little beside
    what is wanted, or so much is on its way that all will acknowledge it soon, and what is wanted is little."""
    newest = merge.line.newest
    share = max(LEAST, window * newest.weights[merge.me] // newest.period)
    mine, all_held = merge.streams[merge.me].count, sum([stream.count for stream in merge.streams])
    left, good = min(share - mine, backlog_max - all_held), min(newest.block, share // PART)
    is_crowded = all_held >= window // PART and mine >= good
    is_worth = left >= min(wanted, good) and (wanted >= good or not is_crowded)
    return max(0, left) if is_worth or not mine else 0


def somebody_is_behind(merge: Merge) -> bool:
    """An application of another member cannot take more deliveries."""
    return any(stream.mark is not None and stream.mark.is_behind for stream in merge.streams)
