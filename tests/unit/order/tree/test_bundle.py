"""The links of one process of a forest: one stands still only when both of its ends have had a processor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.effects import Unicast
from ordercast.model.ids import MILLISECOND, ConfigurationId, Incarnation, Instant, NodeId, process_id_from
from ordercast.order.links.codec import CALM
from ordercast.order.links.config import NEAR, near
from ordercast.order.tree.blocks import BlockKind, encode_count
from ordercast.order.tree.bundle import VISITS, WAIT_NS, Bundle

ONE, TWO = (process_id_from(NodeId(node), Incarnation(1)) for node in (1, 2))
FLAGS = 23  # where they are in a packet of a link
CONFIG = replace(NEAR, stall_ns=300 * MILLISECOND)


def unanswered() -> Bundle:
    """Return the links of a process whose packet to the other one is never acknowledged."""
    bundle = Bundle(CONFIG, b"c" * 8, ONE, ConfigurationId(4, ONE), (ONE, TWO))
    bundle.visited(1, Instant(0))
    bundle.send(TWO, b"block", Instant(0))
    assert list(bundle.flush(Instant(0)))
    return bundle


def passes(bundle: Bundle, visits: int | None) -> None:
    """Let a second pass, in which the control token comes so often."""
    for step in range(1, 101):
        now = Instant(step * 10 * MILLISECOND)
        if visits is None:
            bundle.visited(None, now)
        elif step % (100 // visits) == 0:
            bundle.visited(1 + step, now)
        list(bundle.flush(now))


@pytest.mark.parametrize("size", [1, 2, 22])
def test_what_has_no_whole_head_is_dropped(size: int) -> None:
    """Anybody may send it, and the kernel lets pass what begins like a packet."""
    bundle = unanswered()
    (error,) = bundle.read(b"oC" * 11, size, Instant(1))[:1]
    assert "without a whole head" in str(error)


@pytest.mark.parametrize("visits", [VISITS + 1, 20, None])
def test_a_link_that_stands_still_while_the_token_goes_round_is_broken(visits: int | None) -> None:
    """None: there is no token, and time alone counts."""
    bundle = unanswered()
    passes(bundle, visits)
    assert bundle.broken() == [TWO]
    assert bundle.broken() == [], "it is told once"


def test_a_link_whose_other_end_has_no_processor_is_not_broken() -> None:
    bundle = unanswered()
    passes(bundle, VISITS - 1)
    assert bundle.broken() == []


def test_what_leaves_since_somebody_waits_is_acknowledged_as_soon_as_other_packets() -> None:
    """A loss would be found a tenth of a second later else."""
    for hurries in (False, True):
        bundle = Bundle(CONFIG, b"c" * 8, ONE, ConfigurationId(4, ONE), (ONE, TWO))
        bundle.send(TWO, encode_count(BlockKind.SAFE, 1, 1), Instant(0), can_wait=True)
        now = Instant(0 if hurries else WAIT_NS[BlockKind.SAFE])
        if hurries:
            bundle.hurry(now)
        (unicast,) = bundle.flush(now)
        assert isinstance(unicast, Unicast)
        assert bool(unicast.bursts[0][0][FLAGS] & CALM) is not hurries


@pytest.mark.parametrize("patience", [20, 60, 120, 200, 300, 1000])
def test_a_link_is_broken_by_its_own_timers_however_long_its_patience_is(patience: int) -> None:
    """A process that is called when it wants to be was not paused, even if nobody else gives it anything to do."""
    config = near(patience * MILLISECOND)
    config.validate()
    bundle = Bundle(config, b"c" * 8, ONE, ConfigurationId(4, ONE), (ONE, TWO))
    bundle.visited(None, Instant(0))
    bundle.send(TWO, encode_count(BlockKind.SAFE, 1, 1), Instant(0), can_wait=True)
    while not (broken := bundle.broken()):
        now = bundle.next_deadline()
        assert now is not None and now <= 2 * patience * MILLISECOND + WAIT_NS[BlockKind.SAFE]
        list(bundle.flush(Instant(now + MILLISECOND // 2)))
    assert broken == [TWO]
