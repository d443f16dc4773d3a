"""A link between two ends: what arrives, when, and how it ends."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.model.ids import MILLISECOND
from ordercast.order.links.config import FAR, NEAR, LinkConfig
from tests.unit.order.links.pair import Fate, pair_of

MS = MILLISECOND


def steady(delay: int) -> Fate:
    return lambda end, packet, now: [delay]


def lossy(seed: int, delay: int, loss: float) -> Fate:
    rng = Random(seed)
    return lambda end, packet, now: [] if rng.random() < loss else [delay]


@pytest.mark.parametrize("config", [FAR, NEAR], ids=["far", "near"])
@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3])
def test_everything_comes_once(config: LinkConfig, loss: float) -> None:
    pair = pair_of(config, lossy(3, 5 * MS, loss))
    sent = [b"%d" % n * (1 + n % 7) for n in range(400)]
    for at in range(0, 400, 10):
        pair.send(0, sent[at : at + 10])
        pair.run(pair.now + 3 * MS)
    pair.settle(20_000 * MS)
    assert pair.ends[0].failure is None
    assert sorted(pair.arrived[1]) == sorted(sent)
    if config.is_ordered:
        assert pair.arrived[1] == sent
