"""What a process of a network of rings keeps does not grow with the number of ring changes, nor with that of messages.

`bench/network_memory.py` measures it over thousands of changes and a million messages.
"""

from __future__ import annotations

from bench.network_memory import entries_of, measure

from ordercast.order.gateways.network import RingNetwork
from tests.conformance.network_play import NetworkPlay, line, people

MARGIN = 1.05
CHANGES = 4  # of a round: two halves, the ring that joins them, and the one that they become


def _changes(play: NetworkPlay, rounds: int) -> int:
    """Let a ring split and merge so often, with messages of all; return the most that anybody then keeps."""
    for number in range(rounds):
        domain, alone = ((1, 1), (2, 5))[number % 2]
        others = people(1, 2, 3) if domain == 1 else people(3, 4, 5)
        play.cut(domain, people(alone), others - {alone})
        play.settle()
        play.join(domain)
        for who in range(1, 6):
            play.send(who, f"{number}.{who}", is_safe=who == 2)
        play.settle()
    return max(_kept(host.network) for host in play.world.alive)


def _kept(network: RingNetwork) -> int:
    """Return how many entries an order has, without the list of rings that were deleted last, which is bounded."""
    return sum(entries_of([network]).values()) - sum(entries_of([network.known.deleted]).values())


def test_the_order_keeps_as_much_after_200_ring_changes_as_after_50() -> None:
    play = line()
    early = _changes(play, 52 // CHANGES)
    late = _changes(play, 148 // CHANGES)
    assert late <= early * MARGIN


def test_the_engine_keeps_as_much_after_many_changes_as_after_few() -> None:
    entries = [row[3] for row in measure(16, 800)]
    assert max(entries[4:]) <= max(entries[:4]) * MARGIN
