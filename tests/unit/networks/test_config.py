from __future__ import annotations

from dataclasses import replace

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.ring.config import RingConfig

TWO = NetworksConfig(count=2)


def test_the_defaults_suit_the_default_ring() -> None:
    for style in Replication:
        NetworksConfig(count=3, replication=style).validate(RingConfig(), 14)


def test_one_network_has_nothing_to_be_wrong() -> None:
    NetworksConfig(token_hold_ns=0, proof=0).validate(RingConfig(), 100)


@pytest.mark.parametrize(
    ("config", "nodes", "why"),
    [
        (replace(TWO, count=9), 4, "1 to 8 networks, not 9"),
        (replace(TWO, replication=Replication.ACTIVE_PASSIVE), 4, "copies = 2 with 2 networks"),
        (replace(TWO, count=3, replication=Replication.ACTIVE_PASSIVE, copies=1), 4, "more than one copy"),
        (replace(TWO, token_hold_ns=21 * MILLISECOND), 4, "at most half of token_retransmit_ns"),
        (replace(TWO, token_hold_ns=20 * MILLISECOND), 40, "divided by the 40 nodes"),
        (replace(TWO, replication=Replication.PASSIVE), 15, "together must be at most nine tenths"),
        (replace(TWO, replication=Replication.PASSIVE), 32, "raise token_loss_ns to 1778 ms"),
        (replace(TWO, catch_up=2), 4, "catch_up must be more than the number of networks"),
        (replace(TWO, message_lag_max=100), 4, "at least visit_max = 180"),
        (replace(TWO, proof=0), 4, "proof must be at least 1"),
    ],
)
def test_what_does_not_go_together_is_said(config: NetworksConfig, nodes: int, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        config.validate(RingConfig(), nodes)


def test_what_is_advised_for_many_members_is_enough() -> None:
    config = replace(TWO, replication=Replication.PASSIVE)
    config.validate(RingConfig(token_loss_ns=1778 * MILLISECOND), 32)
    with pytest.raises(UsageError, match="nine tenths"):
        config.validate(RingConfig(token_loss_ns=1777 * MILLISECOND), 32)


def test_networks_have_names_or_numbers() -> None:
    config = NetworksConfig(count=2, names=("red",))
    assert (config.name(0), config.name(1)) == ("red", "network 1")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (NetworksConfig(), "one network"),
        (NetworksConfig(count=2), "2 networks, active"),
        (NetworksConfig(count=2, replication=Replication.PASSIVE, copies=3), "2 networks, passive"),
        (NetworksConfig(count=3, replication=Replication.ACTIVE_PASSIVE), "3 networks, active-passive, 2 copies"),
    ],
)
def test_what_members_have_to_agree_on_in_words(config: NetworksConfig, words: str) -> None:
    assert config.in_words == words
