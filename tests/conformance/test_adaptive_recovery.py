"""What a recovery of the adaptive engine remembers when it fails. (Deviations: packets say what is safe, and plans are
remembered)"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ordercast.model.ids import Seq
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.node import AdaptiveNode
from ordercast.wire.messages import CommitEntry

from .solo import ONE, RING, SMALL, THREE, Solo

CONFIG = AdaptiveConfig()


def test_what_companions_had_delivered_is_said_on_the_next_commit_token() -> None:
    """ONE had delivered up to 5, and is gone before the ring is installed: what came of that may be here, through the
    exchange, and its places are to be in the regular configuration at whoever comes along next."""
    solo = Solo(
        config=replace(SMALL, members_max=8),
        make=partial(AdaptiveNode, adaptive=CONFIG),
        settings=tuple(CONFIG.settings.values()),
    ).to_operational()
    solo.lose_ring().recover(CommitEntry(ONE, True, RING, Seq(0), Seq(5)), CommitEntry(THREE, True, RING))
    solo.lose_ring().fail(ONE).agree().written()
    mine = next(entry for entry in solo.commit_forwarded.members if entry.process == solo.me)
    assert mine.high_delivered == 5
