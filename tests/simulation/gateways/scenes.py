"""Scenes: single runs in which a rule is needed that random ones need seldom. Each returns the network as it ends.

Rings are ideal and do what they are told (`tests/conformance/network_play.py`). With all rules in force nothing is
wrong at the end; without the one, something is: `planted.py` says which.
"""

from __future__ import annotations

from collections.abc import Callable

from ordercast.model.notes import Occurrence
from ordercast.order.gateways.items import TopologyItem
from tests.conformance.network_play import NetworkPlay, line, parallel, people
from tests.simulation.gateways.judges import verdict

Scene = Callable[[], NetworkPlay]

# The hosts of `parallel`: 1 and 2 on the first domain, gateways 3 and 4, 5 and 6 on the second.
ALL = people(1, 2, 3, 4, 5, 6)
ROUNDS = 40


def judged(scene: Scene) -> list[str]:
    """Return what is wrong with a scene, in the end and after all have come together."""
    try:
        play = scene()
        for domain in play.domains:
            play.join(domain)
        play.settle()
    except AssertionError as error:
        return [f"assertion: {error}"]
    return verdict(play.world) + ([] if _is_together(play) else ["who can hear one another is not in one view"])


def _is_together(play: NetworkPlay) -> bool:
    alive = frozenset(host.id for host in play.world.alive)
    views = {host.view().id: host.view().members for host in play.world.alive}
    return list(views.values()) == [alive]


def residual_with_a_hole() -> NetworkPlay:
    """The first ring splits. One half had the packets a and c, the other a and b, which is safe. The first half says
    what it has, and is cut off before it hears of b: its members must leave just before b."""
    play = parallel()
    play.number(1, "a", people(1, 2, 3, 4))
    play.number(2, "b", people(2, 4), is_safe=True)
    play.number(1, "c", people(1, 3))
    play.deaf = {(who, 1) for who in (1, 2, 3, 4)}
    play.cut(1, people(1, 3), people(2, 4))
    play.install(1, 1, 3)
    play.deaf.clear()
    play.settle(installing=False)  # what they had comes to the second ring
    play.cut(2, people(3), people(4, 5, 6))
    play.settle()
    assert play.bodies(5) == ["a", "b", "c"] and play.bodies(1) == ["a", "c"]
    return play


def stated_behind_a_merge() -> NetworkPlay:
    """A safe message of 1 does not come to 5, which is cut off and comes back by a merge before 1 goes on. What the
    gateway states of the merged ring says nothing of what 5 has from before."""
    play = line()
    play.send(1, "safe", is_safe=True)
    play.host(4).raise_clock(play.host(1).clock + 10)
    play.send(4, "later")  # so that the second ring is known to be past the safe message, which it has not got
    play.settle_once()
    play.deaf = {(5, 2)}
    play.asleep = {1}
    play.settle()
    play.cut(2, people(3, 4), people(5))
    play.settle()
    play.deaf.clear()
    play.join(2)
    play.settle()
    play.asleep.clear()
    play.settle()
    assert "safe" in play.bodies(1) and "later" in play.bodies(5)
    return play


def held_and_not_handed_up() -> NetworkPlay:
    """All of the first ring have packets, and only the gateway 3 hands them up and tells how far the ring is, so that
    the second ring goes on; then 3 dies. The next ring must be born above what nobody on it has handed up."""
    play = parallel()
    play.send(5, "before")
    play.settle()
    play.slow = {(1, 1), (2, 1), (4, 1), (4, 2)}
    for number in range(6):
        play.send(3, f"m{number}", domain=1)
        play.settle()
        play.send(5, f"n{number}")
        play.settle()
    play.crash(3)
    play.slow.clear()
    play.settle()
    return play


def halves_of_two_minds() -> NetworkPlay:
    """The halves 3 5 and 4 6 of the second ring merge, over the first they are one network. Both have said what they
    are, but 4 and 6 have not heard it all when the ring falls apart: 3 and 5 merge, 4 and 6 give up, and are slow.
    Others must wait for their word."""
    play = parallel()
    play.cut(2, people(3, 5), people(4, 6))
    play.settle()
    play.join(2)
    play.install(2, 3, 4, 5, 6)
    for _ in range(ROUNDS):
        play.settle_once()
        flushes = [play.host(who).network.merging.flushes.get(2) for who in (3, 4, 5, 6)]
        if all(flush is not None and flush.tick is not None for flush in flushes):
            break
    play.deaf = {(4, 2), (6, 2)}
    play.settle()
    assert sum(_is_topology(packet.carried) for packet in play.ring(3, 2).log) == 2
    play.cut(2, people(3, 5), people(4, 6))
    play.install(2, 3, 5)
    play.deaf.clear()
    play.settle(installing=False)
    play.send(1, "meanwhile")
    play.settle(installing=False)
    play.install(2, 4, 6)
    play.settle()
    assert _is_together(play)
    return play


def _is_topology(carried: object) -> bool:
    return carried is not None and isinstance(getattr(carried, "item", None), TopologyItem)


def residual_of_others() -> NetworkPlay:
    """The first ring splits, and one half had one packet more. The gateway of the other half hears it while it is still
    on the old ring, and must put it on its next one: 2 is there, and on no other."""
    play = parallel()
    play.number(1, "last", people(1, 3))
    play.deaf = {(who, 1) for who in (1, 2, 3, 4)}
    play.cut(1, people(1, 3), people(2, 4))
    play.install(1, 1, 3)
    play.deaf.clear()
    play.settle(installing=False)
    play.settle()
    assert _is_together(play) and play.bodies(2) == ["last"]
    return play


def regular_elsewhere() -> NetworkPlay:
    """Two packets of the first ring are regular at 4 alone, which carries them to the second ring. There 3 hears one
    while it is still on the first ring, and one when it is no longer. It must put both on its next ring, for 1 had them
    when the ring ended, and does not know that they are regular."""
    play = parallel()
    play.slow = {(1, 1), (2, 1), (3, 1)}
    play.send(2, "first")
    play.settle()
    play.slow.add((3, 2))
    play.send(2, "second")
    play.settle()
    play.cut(1, people(1, 3), people(2, 4))
    play.install(1, 1, 3)
    play.slow.clear()
    play.settle()
    assert _is_together(play)
    return play


def lost_and_back() -> NetworkPlay:
    """The halves 3 5 and 4 6 of the second ring are to merge, when 4 6 is lost with the way over the first ring. The
    merge brings it back, and 1 has heard of that before it goes on. All the same it was lost, as for the others."""
    play = parallel()
    play.cut(2, people(3, 5), people(4, 6))
    play.settle()
    play.join(2)
    play.install(2, 3, 4, 5, 6)
    play.deaf = {(5, 2)}
    play.settle()
    play.asleep = {1}
    play.cut(1, people(1, 2, 3), people(4))
    play.settle()
    play.deaf.clear()
    play.settle()
    play.asleep.clear()
    play.settle()
    assert _is_together(play)
    assert not any(host.network.known.occurred[Occurrence.NETWORK_ALONE_AT_MERGE] for host in play.world.alive)
    return play


def agreed_and_not_installed() -> NetworkPlay:
    """All of the first ring agree on the next one, which 1 and 3 install, and 2 and 4 do not: they go on otherwise.
    What 3 says of them is not their word."""
    play = parallel()
    play.join(1)
    play.install(1, 1, 3)
    play.settle(installing=False)
    play.cut(1, people(1, 3), people(2, 4))
    play.settle()
    assert _is_together(play)
    return play


def a_half_that_some_hear_of() -> NetworkPlay:
    """Rings in a circle: 1 2 3, 2 4 5 and 3 5 6. The second one splits into 2 4 and 5, each with a packet that the
    other lacks. Then the way over 3 is lost: 1 never hears what 5 had, 6 does. For 1 the view ends at the front."""
    play = NetworkPlay((1,), (1, 2), (1, 3), (2,), (2, 3), (3,)).begin()
    play.number(5, "lower", people(5))
    play.number(4, "higher", people(2, 4))
    play.deaf = {(who, 2) for who in (2, 4, 5)}
    play.cut(2, people(2, 4), people(5))
    play.install(2, 2, 4)
    play.deaf.clear()
    play.settle(installing=False)
    play.cut(1, people(1, 2), people(3))
    play.settle()
    assert play.bodies(1) == ["higher"] and play.bodies(6) == ["lower", "higher"]
    return play


SCENES: tuple[Scene, ...] = (
    *(residual_with_a_hole, stated_behind_a_merge, held_and_not_handed_up, halves_of_two_minds),
    *(residual_of_others, regular_elsewhere, lost_and_back, agreed_and_not_installed, a_half_that_some_hear_of),
)
