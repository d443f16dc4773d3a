"""What a process of the adaptive engine says and remembers of what was delivered, when its ring ends. (Deviations:
packets say what is safe, and plans are remembered)"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.model.service import Service
from ordercast.order.adaptive.codec import AdaptiveKind, Mark, encode_mark, packed_known
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.adaptive.node import AdaptiveNode
from ordercast.wire.codec import encode
from ordercast.wire.header import SAFE
from ordercast.wire.messages import CommitEntry
from ordercast.wire.run import build_runs

from .solo import ONE, RING, SMALL, THREE, TRIO, TWO, Solo, story

CONFIG = AdaptiveConfig()


def adaptive(me: ProcessId = TWO) -> Solo:
    make = partial(AdaptiveNode, adaptive=CONFIG)
    settings = tuple(CONFIG.settings.values())
    return Solo(me, replace(SMALL, members_max=8), make=make, settings=settings).to_operational()


def direct(solo: Solo, place: int, text: str, *, service: Service, aru: int = 0, safe: int = 0) -> bytes:
    """A packet of ONE, which knows everything up to `aru`, and that all do up to `safe`."""
    heading = solo.node.ring.heading.of_kind(AdaptiveKind.DIRECT)
    data = text.encode()
    load = SAFE * (service is Service.SAFE), (0,), (len(data),), (int(service),), [data], b"", b""
    (run,) = build_runs(heading, [load], ONE, Seq(place), packed_known(aru, safe), place)
    return run.packet(Seq(place))


def test_what_companions_had_delivered_is_said_on_the_next_commit_token() -> None:
    """ONE had delivered up to 5, and is gone before the ring is installed: what came of that may be here, through the
    exchange, and its places are to be in the regular configuration at whoever comes along next."""
    solo = adaptive()
    solo.lose_ring().recover(CommitEntry(ONE, True, RING, Seq(0), Seq(5)), CommitEntry(THREE, True, RING))
    solo.lose_ring().fail(ONE).agree().written()
    mine = next(entry for entry in solo.commit_forwarded.members if entry.process == solo.me)
    assert mine.high_delivered == 5


@pytest.mark.parametrize("is_together", [False, True])
def test_what_comes_with_the_commit_token_is_delivered_before_it_is_said(is_together: bool) -> None:
    """ONE has delivered `cause`, which is safe, sends `effect`, which says so, and is gone. THREE reads that in one
    look at the network with the Commit token, or in the one before."""
    solo = adaptive(THREE)
    old = solo.node.configuration.id
    solo.give_packets(direct(solo, 1, "cause", service=Service.SAFE))
    marks = solo.node.ring.heading.of_kind(AdaptiveKind.MARK)
    solo.give_packets(encode_mark(marks, TWO, Mark(TRIO.index(TWO), 1, 0, 200, 0, 0, 0, False, None)))
    solo.lose_ring().fail(ONE).give(*solo.agreement())
    companion = CommitEntry(TWO, True, old, Seq(1), Seq(0))
    commit = solo.first_commit((TWO, THREE), ConfigurationId(solo.join.ring_seq + 4, TWO), (companion,))
    reads = [direct(solo, 2, "effect", service=Service.AGREED, aru=1, safe=1), encode(solo.cluster, commit)]
    before = len(solo.log)
    for packets in [reads] if is_together else [[read] for read in reads]:
        solo.give_packets(*packets)
    mine = next(entry for entry in solo.commit_forwarded.members if entry.process == THREE)
    assert mine.high_delivered >= 1
    solo.written()
    solo.give(solo.second_commit((companion,)))
    while solo.node.state_name != "Operational":
        solo.pass_token(aru=solo.token().seq)
    assert story(solo.log[before:]) == ["cause", "effect", "(2 3)", "[2 3]"]
