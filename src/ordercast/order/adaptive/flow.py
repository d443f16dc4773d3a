"""How many packets this process may send now."""

from __future__ import annotations

from ordercast.order.adaptive.merge import Merge

LEAST = 16  # packets that everybody may have on their way


def share_left(merge: Merge, window: int, backlog_max: int) -> int:
    """A share of the window by weight, less what is not known to be everywhere; and no more than all may keep."""
    newest = merge.line.newest
    share = max(LEAST, window * newest.weights[merge.me] // newest.period)
    mine = merge.streams[merge.me].count
    return max(0, min(share - mine, backlog_max - sum(stream.count for stream in merge.streams)))


def somebody_is_behind(merge: Merge) -> bool:
    """An application of another member cannot take more deliveries."""
    return any(stream.mark is not None and stream.mark.is_behind for stream in merge.streams)
