from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ordercast.model.errors import UsageError
from ordercast.order.ring.config import COMPARED, RING_RELEVANT, RingConfig


def test_the_defaults_are_valid() -> None:
    RingConfig().validate()


POSITIVE = [
    "packet_size_max",
    "message_size_max",
    "queue_size_max",
    "window",
    "visit_max",
    "backlog_max",
    "requests_max",
    "token_retransmit_ns",
    "token_loss_ns",
    "join_ns",
    "consensus_ns",
    "announce_ns",
    "rest_ns",
    "hold_down_ns",
    "pause_ns",
    "fail_to_receive_rotations",
    "accelerated_window",
    "members_max",
]


@pytest.mark.parametrize("name", POSITIVE)
def test_every_number_must_be_at_least_1(name: str) -> None:
    values: dict[str, Any] = {name: 0}
    with pytest.raises(UsageError, match=f"{name} must be at least 1"):
        RingConfig(**values).validate()


BROKEN = [
    ({"packet_size_max": 158}, "packet_size_max must be within 159..65507"),
    ({"packet_size_max": 65508}, "packet_size_max must be within 159..65507"),
    ({"members_max": 1001}, "members_max must be at most 1000"),
    ({"join_ns": 60, "consensus_ns": 119}, "join_ns must be at most half of consensus_ns"),
    ({"token_retransmit_ns": 300_000_000}, "token_retransmit_ns must be at most a third of token_loss_ns"),
    ({"rest_ns": 400_000_000}, "rest_ns and token_retransmit_ns together must be at most a third of token_loss_ns"),
    ({"window": 179}, "visit_max must be at most window"),
    ({"backlog_max": 899}, "backlog_max must be at least window + visit_max"),
    ({"queue_size_max": (16 << 20) + 63}, "queue_size_max must exceed message_size_max by at least 64 bytes"),
]


@pytest.mark.parametrize(("values", "sentence"), BROKEN)
def test_each_broken_rule_gives_its_sentence(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        RingConfig(**values).validate()
    assert sentence in str(raised.value).split("; ")


KEPT = [
    {"packet_size_max": 159},
    {"packet_size_max": 65507},
    {"members_max": 1000},
    {"join_ns": 60, "consensus_ns": 120},
    {"window": 180},
    {"backlog_max": 900},
    {"queue_size_max": (16 << 20) + 64},
]


@pytest.mark.parametrize("values", KEPT)
def test_the_edge_of_each_rule_is_allowed(values: dict[str, Any]) -> None:
    RingConfig(**values).validate()


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(UsageError) as raised:
        RingConfig(window=63, members_max=1001, requests_max=0).validate()
    assert str(raised.value).split("; ") == [
        "requests_max must be at least 1",
        "members_max must be at most 1000",
        "visit_max must be at most window",
    ]


def test_more_requests_than_a_token_can_carry_are_refused() -> None:
    with pytest.raises(UsageError, match="requests_max"):
        RingConfig(requests_max=4097).validate()


def test_a_packet_has_room_for_its_header_and_for_being_wrapped() -> None:
    config = RingConfig(packet_size_max=1472)
    assert config.body_size_max == 1472 - 59 - 18 - 11
    assert config.whole_size_max == config.body_size_max - 7


@pytest.mark.parametrize("place", range(len(RING_RELEVANT)))
def test_a_digest_changes_with_its_key_and_with_no_other(place: int) -> None:
    config = RingConfig()
    key = RING_RELEVANT[place]
    values: dict[str, Any] = {key: True if key == "accelerated" else getattr(config, key) + 1}
    changed = replace(config, **values).digests()
    differing = [at for at, (old, new) in enumerate(zip(config.digests(), changed, strict=True)) if old != new]
    assert differing == [place]


def test_what_is_beneath_has_a_digest_of_its_own() -> None:
    config = RingConfig()
    *same, one = config.digests()
    *others, two = config.digests("2 networks, active")
    assert same == others and one != two and len(COMPARED) == len(config.digests())


def test_local_keys_have_no_digest() -> None:
    assert RingConfig(queue_size_max=17 << 20, pause_ns=1, visit_max=1).digests() == RingConfig().digests()


@pytest.mark.parametrize(
    ("config", "members", "window"),
    [
        (RingConfig(), 1, 720),
        (RingConfig(), 8, 720),
        (RingConfig(), 9, 810),
        (RingConfig(), 16, 1440),
        (RingConfig(), 32, 2880),
        (RingConfig(), 128, 2880),
        (RingConfig(window_max=1000), 16, 1000),
        (RingConfig(window_max=100), 16, 720),
        (RingConfig(backlog_max=1000), 16, 820),
        (RingConfig(window=4, visit_max=2), 9, 4),
    ],
)
def test_the_window_grows_with_members_beyond_eight(config: RingConfig, members: int, window: int) -> None:
    config.validate()
    assert config.window_of(members) == window
    assert config.window_of(members) + config.visit_max <= config.backlog_max
