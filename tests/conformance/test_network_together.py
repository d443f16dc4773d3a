"""Two that stay together lose the same members at the same place, however much later one of them comes there, and
deliver the same packets of a ring that has ended, whichever way they came."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ordercast.model.ids import ConfigurationId
from ordercast.order.gateways.forwarding import Forwarding
from ordercast.order.gateways.items import Stretch
from ordercast.order.gateways.known import Known
from tests.simulation.gateways.judges import verdict
from tests.simulation.gateways.scenes import regular_elsewhere

from .network_play import NetworkPlay, parallel, people

# 1 and 2 are on the first ring alone, 5 and 6 on the second; gateways 3 and 4 join them.
ROUNDS = 40


def _of_two_halves() -> NetworkPlay:
    """The second ring has split into 3 5 and 4 6, and is whole again."""
    play = parallel()
    play.cut(2, people(3, 5), people(4, 6))
    play.settle()
    play.join(2)
    play.install(2, 3, 4, 5, 6)
    return play


def _asleep_while_a_merged_ring_forms_anew() -> NetworkPlay:
    """4 is lost on the first ring. 1 comes to that only after the second ring has merged, and formed anew with 4."""
    play = _of_two_halves()
    play.deaf = {(5, 2)}
    play.settle()
    play.slow = {(4, 2)}
    play.host(1).raise_clock(play.host(1).clock + 50)
    play.send(1, "x")
    play.settle()
    play.asleep = {1}
    play.cut(1, people(1, 2, 3), people(4))
    play.settle()
    play.deaf.clear()
    play.slow.clear()
    play.settle()
    play.join(2)
    play.settle()
    play.asleep.clear()
    play.settle()
    return play


def _asleep_while_a_merged_ring_splits() -> NetworkPlay:
    """4 is lost on the first ring. 1 comes to that only after the second ring has merged, and split without 4."""
    play = _of_two_halves()
    for _ in range(ROUNDS):
        play.settle_once()
        flushes = [play.host(who).network.merging.flushes.get(2) for who in (3, 4, 5, 6)]
        if sum(len(flush.marks) if flush else 0 for flush in flushes) >= 8 and not play.slow:
            play.slow = {(who, 1) for who in (1, 2, 3, 4)}
        if all(flush is not None and flush.tick is not None for flush in flushes):
            break
    play.deaf = {(5, 2)}
    play.settle()
    play.asleep = {1}
    play.cut(1, people(1, 2, 3), people(4))
    play.slow.clear()
    play.settle()
    play.deaf.clear()
    play.settle()
    play.cut(2, people(3, 5, 6), people(4))
    play.settle()
    play.asleep.clear()
    play.settle()
    return play


@pytest.mark.parametrize("play", [_asleep_while_a_merged_ring_forms_anew, _asleep_while_a_merged_ring_splits])
def test_what_a_merge_brings_that_is_still_to_come_counts_for_nobody(
    play: Callable[[], NetworkPlay], monkeypatch: pytest.MonkeyPatch
) -> None:
    played = play()
    assert verdict(played.world) == []
    assert _last_views(played, 1) == _last_views(played, 2)
    monkeypatch.setattr(Known, "ends_in_order", lambda self: list(self.ends))
    played = play()
    assert _last_views(played, 1) != _last_views(played, 2)


def _last_views(play: NetworkPlay, who: int, count: int = 6) -> list[ConfigurationId]:
    return [view.id for view in play.views(who)[-count:]]


def _regular_at_a_gateway_alone() -> NetworkPlay:
    """A packet of the first ring is regular at 4, which carries it to the second ring, and is lost there before it says
    how far the first ring is. 3 has heard the packet on the second ring, and 1 has it when the first ring ends."""
    play = parallel()
    play.slow = {(1, 1), (2, 1), (3, 1), (3, 2), (5, 2)}
    play.deaf = {(3, 2), (5, 2)}
    play.send(2, "last")
    play.settle()
    ring = play.ring(3, 2)
    items = [packet.carried.item if packet.carried is not None else None for packet in ring.log]
    carried = next(seq for seq, item in enumerate(items, 1) if isinstance(item, Stretch))
    for process in people(3, 5):
        ring.got[process] |= set(range(1, carried + 1))
    play.world.hand_up(play.host(3), ring, carried)
    play.cut(1, people(1, 3), people(2, 4))
    play.cut(2, people(3, 5), people(4, 6))
    play.slow.clear()
    play.deaf.clear()
    play.settle()
    return play


def test_what_is_regular_elsewhere_is_regular_at_all_who_go_on_from_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 puts on its next ring what came another way, so that 1 takes it for regular, and nothing that is known of the
    ring to one of them alone decides where members leave."""
    played = _regular_at_a_gateway_alone()
    assert _last_views(played, 1, 5) == _last_views(played, 3, 5) == _last_views(played, 5, 5)
    monkeypatch.setattr(Forwarding, "put_early", lambda self, domain: None)
    played = _regular_at_a_gateway_alone()
    assert _last_views(played, 1, 5) != _last_views(played, 3, 5) == _last_views(played, 5, 5)


def test_no_regular_packet_is_hidden_by_a_later_one_that_came_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    played = regular_elsewhere()
    assert verdict(played.world) == []
    assert [played.bodies(who) for who in range(1, 7)] == [["first", "second"]] * 6
    monkeypatch.setattr(Forwarding, "put_early", lambda self, domain: None)
    assert regular_elsewhere().bodies(1) == ["second"]
