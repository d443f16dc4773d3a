"""A wrong argument of a member's call gets a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from ordercast import Node, NodeConfig, connect
from ordercast.groups.names import checked_destinations
from ordercast.model.arguments import check_timeout
from ordercast.model.errors import UsageError
from ordercast.model.headers import checked_headers
from ordercast.model.service import Service
from ordercast.replicated import Barrier
from ordercast.session.payloads import checked_service


@pytest.mark.parametrize("to", [5, None, b"orders", {"orders": 1}])
def test_a_message_goes_to_names(to: Any) -> None:
    with pytest.raises(UsageError, match="a message goes to a group, or to several in a list, not to"):
        checked_destinations(to)
    assert checked_destinations(iter(["a", "b", "a"])) == ("a", "b")


@pytest.mark.parametrize("service", [3, 9, "safe", None])
def test_a_service_is_one_of_them(service: Any) -> None:
    with pytest.raises(UsageError, match=r"use one of ordercast\.Service"):
        checked_service(service)
    assert checked_service(Service.SAFE) is Service.SAFE


def test_headers_are_names_with_texts() -> None:
    wrong: Any = ["trace"]
    with pytest.raises(UsageError, match="headers are names with texts"):
        checked_headers(wrong)


def test_a_node_of_this_machine_has_a_cluster_and_a_port() -> None:
    config = Node(cluster="x", port=6100).host.config
    assert (config.ring.cluster, config.network.port, config.is_local) == ("x", 6100, True)
    with pytest.raises(UsageError, match="70000 is no port for the nodes of a machine"):
        Node(port=70_000)
    with pytest.raises(UsageError, match="are in the NodeConfig: give them there"):
        Node(NodeConfig(), port=6100)


@pytest.mark.parametrize("word", ["reconnect", "sinks"])
def test_a_choice_is_yes_or_no(word: str) -> None:
    wrong: Any = {word: "yes"}
    with pytest.raises(UsageError, match=f"{word}='yes' is neither yes nor no: write {word}=True"):
        connect(**wrong)


@pytest.mark.parametrize("word", ["on_lost", "on_message"])
def test_what_is_called_can_be(word: str) -> None:
    wrong: Any = {word: 3}
    with pytest.raises(UsageError, match=f"{word}=3 cannot be called: give a function"):
        connect(**wrong)


@pytest.mark.parametrize("address", ["", "  "])
def test_no_address_is_left_out_and_not_empty(address: str) -> None:
    with pytest.raises(UsageError, match="is no address: write tcp://HOST:PORT"):
        connect(address)


@pytest.mark.parametrize("timeout", [-1, "5", True, float("nan")])
def test_what_is_no_timeout_is_refused(timeout: object) -> None:
    with pytest.raises(UsageError, match="is no timeout: give seconds"):
        check_timeout(timeout)


def test_a_barrier_is_for_a_number_of_parties() -> None:
    wrong: Any = "3"
    with pytest.raises(UsageError, match="'3' is no number of parties: give how many must arrive"):
        Barrier(wrong)
