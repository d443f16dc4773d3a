"""Whoever sends what nobody wants is told its place, though others carry around only that it is there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ordercast.order.gateways.own_packets import OwnPackets
from ordercast.order.stamped.lanes import Stamp
from tests.simulation.gateways.judges import verdict

from .network_play import NetworkPlay, parallel, people

WANTED, UNWANTED = 1, 2  # buckets


def _of_one_interest() -> NetworkPlay:
    """Nobody in two rings with two gateways wants anything but one bucket, and everybody knows that."""
    play = parallel(is_filtering=True)
    for who in range(1, 7):
        play.host(who).want(WANTED)
    for who in range(1, 7):
        play.send(who, f"unwanted, of {who}", mask=UNWANTED)
    play.settle()
    assert not any(play.host(who).placed for who in range(1, 7))
    return play


def _hollow_over_another_ring() -> NetworkPlay:
    """The gateway 3 sends. Its ring hands that up at 4 first, and 3 passes what 4 carries over the other ring."""
    play = _of_one_interest()
    play.slow = {(3, 1)}
    play.send(3, "lone", mask=UNWANTED)
    play.settle()
    assert not play.host(3).placed, "it has not come on its own ring yet"
    play.slow.clear()
    return play


def _safe_over_another_ring() -> NetworkPlay:
    """The same with two that ask for safe delivery, and one between them that is wanted and comes whole."""
    play = _of_one_interest()
    play.slow = {(3, 1)}
    play.send(3, "first", is_safe=True, mask=UNWANTED)
    play.send(3, "wanted", mask=WANTED)
    play.send(3, "second", is_safe=True, mask=UNWANTED)
    play.settle()
    assert "wanted" in play.bodies(3)
    play.slow.clear()
    return play


def _residual_where_it_was_sent() -> NetworkPlay:
    """3 sends, and passes what 4 carries over the other ring. Its own ring splits, and hands it up as residual."""
    play = _of_one_interest()
    play.slow = {(1, 1), (2, 1), (3, 1)}
    play.send(3, "lone", mask=UNWANTED)
    play.settle()
    play.cut(1, people(1, 2, 3), people(4))
    play.slow.clear()
    return play


def _regular_elsewhere() -> NetworkPlay:
    """1 sends, and its ring splits: it has that as residual. 3 has heard over the other ring that it is regular, and
    carries that onto the next ring of 1."""
    play = _of_one_interest()
    play.slow = {(1, 1), (2, 1), (3, 1)}
    play.send(1, "lone", mask=UNWANTED)
    play.settle()
    play.cut(1, people(1, 3), people(2, 4))
    play.slow.clear()
    return play


@pytest.mark.parametrize(
    ("play", "sender", "told"),
    [
        (_hollow_over_another_ring, 3, ["lone"]),
        (_safe_over_another_ring, 3, ["first", "second"]),
        (_residual_where_it_was_sent, 3, ["lone"]),
        (_regular_elsewhere, 1, ["lone"]),
    ],
)
def test_a_sender_is_told_the_place_of_what_came_back_hollow(
    play: Callable[[], NetworkPlay], sender: int, told: list[str]
) -> None:
    played = play()
    played.settle()
    assert verdict(played.world) == []
    assert [message.body.decode() for message in played.host(sender).placed] == told
    elsewhere = _places(played)
    assert [message.stamp for message in played.host(sender).placed] == [elsewhere[body] for body in told]


def test_without_that_it_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnPackets, "bare", lambda self, place: ())
    played = _hollow_over_another_ring()
    played.settle()
    assert verdict(played.world) != []


def _places(play: NetworkPlay) -> dict[str, Stamp]:
    """Return where others have what they were passed."""
    return {message.body.decode(): message.stamp for who in range(1, 7) for message in play.messages(who)}
