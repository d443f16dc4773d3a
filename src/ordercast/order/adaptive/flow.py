"""How many packets this process may send now."""

from __future__ import annotations

from ordercast.order.adaptive.merge import Merge

LEAST = 16  # packets that everybody may have on their way
PART = 4  # a good burst has this part of a share; so much of the window is acknowledged soon


def share_left(merge: Merge, window: int, backlog_max: int) -> int:
    """A share of the window by weight, less what is not known to be everywhere; and no more than all may keep."""
    counts = [stream.count for stream in merge.streams]
    return max(0, min(_share(merge, window) - counts[merge.me], backlog_max - sum(counts)))


def burst_left(merge: Merge, window: int, backlog_max: int, wanted: int) -> int:
    """How many packets may go out now. Few large bursts cost less than many small ones, so none may as long as what is
    left is little beside what is wanted, or what is wanted is little and so much is on its way that all will soon
    acknowledge it."""
    left, mine = share_left(merge, window, backlog_max), merge.streams[merge.me].count
    if not mine:
        return left
    good = min(merge.line.newest.block, _share(merge, window) // PART)
    if wanted >= good and left >= good:
        return left
    is_crowded = mine >= good and sum([stream.count for stream in merge.streams]) >= window // PART
    return left if left >= wanted and not is_crowded else 0


def _share(merge: Merge, window: int) -> int:
    newest = merge.line.newest
    return max(LEAST, window * newest.weights[merge.me] // newest.period)
