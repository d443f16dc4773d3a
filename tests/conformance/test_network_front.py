"""What one half of a ring has as residual packets, and the front of the ring says that all have."""

from __future__ import annotations

import pytest

from tests.simulation.gateways.judges import verdict

from .network_play import parallel, people


@pytest.mark.parametrize("is_safe", [False, True], ids=["agreed", "safe"])
@pytest.mark.parametrize("sender", [1, 2])
def test_what_is_residual_here_and_regular_elsewhere_is_passed_before_those_elsewhere_are_lost(
    sender: int, is_safe: bool
) -> None:
    """3 and 4 join the rings of 1 and 2, and hand up a packet of the first one. 3 says so on the second ring, and 4
    brings it to the first, where 2 hears it at the end: 2 has the packet, and not the token that says that all have."""
    play = parallel()
    play.slow = {(2, 1)}
    play.send(sender, "last", is_safe=is_safe)
    play.settle()
    play.cut(1, people(2), people(1, 3, 4))
    play.slow.clear()
    play.settle()
    assert "last" in play.bodies(2)
    assert verdict(play.world) == []
