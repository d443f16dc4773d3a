"""Whoever comes alone to a merge of rings says so in the order, and is in the view of the others from there on."""

from __future__ import annotations

from ordercast.order.gateways.items import TopologyItem
from tests.simulation.gateways.judges import verdict

from .network_play import NetworkPlay, people

# Rings in line: 2 on the first, gateway 1, 3 on the second, gateway 4, 5 on the third.
ROUNDS = 60


def _alone_at_a_merge() -> NetworkPlay:
    """The halves 1 3 and 4 of the second ring merge. 3 has heard what both have to say, but not how far the first ring
    is, when it loses 1: for 3 the first ring ends below the merge, and 3 comes to the merge from a view of its own."""
    play = NetworkPlay((1, 2), (1,), (2,), (2, 3), (3,))
    for domain in (1, 3):
        play.join(domain)
    play.cut(2, people(1, 3), people(4))
    play.settle()
    play.join(2)
    play.install(2, 1, 3, 4)
    ring = play.ring(1, 2)
    for _ in range(ROUNDS):
        play.settle_once()
        said = [seq for seq, packet in enumerate(ring.log, start=1) if _is_topology(packet.carried)]
        if any(flush.tick is not None for flush in play.host(3).network.merging.flushes.values()):
            play.deaf = {(3, 2), (4, 2)}
        if len(said) == 2:
            break
    for who in people(3, 4):
        ring.got[who] |= set(range(1, said[1] + 1))
    play.cut(2, people(1), people(3, 4))
    play.deaf.clear()
    play.settle()
    return play


def _is_topology(carried: object) -> bool:
    return isinstance(getattr(carried, "item", None), TopologyItem)


def test_whoever_comes_alone_to_a_merge_has_the_same_members_as_the_others_in_the_end() -> None:
    play = _alone_at_a_merge()
    play.join(2)
    play.settle()
    assert {play.view(who).members for who in range(1, 6)} == {people(1, 2, 3, 4, 5)}
    assert verdict(play.world) == []


def test_whoever_comes_alone_to_a_merge_is_in_the_view_of_the_others_after_the_next() -> None:
    """Until it has said that it is back its views have ids of their own."""
    play = _alone_at_a_merge()
    play.join(2)
    play.settle()
    assert len({play.view(who).id for who in range(1, 6)}) == 1
