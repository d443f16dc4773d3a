"""How many packets this process may send now."""

from __future__ import annotations

from ordercast.order.adaptive.merge import Merge

LEAST = 16  # packets that everybody may have on their way
PART = 4  # a burst that is shorter than it could be has at least this part of a share


def share_left(merge: Merge, window: int, backlog_max: int, wanted: int = 1) -> int:
    """A share of the window by weight, less what is not known to be everywhere; and no more than all may keep. Nothing
    as long as that is little beside what is wanted, and more becomes free: few large bursts cost less than many."""
    newest = merge.line.newest
    share = max(LEAST, window * newest.weights[merge.me] // newest.period)
    mine = merge.streams[merge.me].count
    left = min(share - mine, backlog_max - sum([stream.count for stream in merge.streams]))
    return max(0, left) if not mine or left >= min(wanted, newest.block, share // PART) else 0


def somebody_is_behind(merge: Merge) -> bool:
    """An application of another member cannot take more deliveries."""
    return any(stream.mark is not None and stream.mark.is_behind for stream in merge.streams)
