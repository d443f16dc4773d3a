"""The relay of the demo: carries datagrams between two ports, or drops them, as it is told."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ordercast.demo import relay

PATIENCE_S = 150.0


class Network:
    """Two hosts with a relay between them. `lanes`: where each lane of a host ends, usually at itself."""

    def __init__(self, **lanes: str) -> None:
        self.sockets = {
            (number, lane): socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            for number in (1, 2)
            for lane in ("data", "token")
        }
        for each in self.sockets.values():
            each.bind((relay.HOST, 0))
            each.settimeout(PATIENCE_S)
        self.process = subprocess.Popen(
            [sys.executable, relay.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        links = [
            {
                "pair": pair,
                "host": relay.HOST,
                **{lane: self.port(pair[1], lanes.get(lane, lane)) for lane in ("data", "token")},
            }
            for pair in ((1, 2), (2, 1))
        ]
        self.doors = {tuple(door["pair"]): door for door in self.ask(links)}

    def port(self, number: int, lane: str) -> int:
        return int(self.sockets[number, lane].getsockname()[1])

    def ask(self, request: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def send(self, source: int, target: int, data: bytes, lane: str = "data") -> None:
        self.sockets[source, "data"].sendto(data, (relay.HOST, self.doors[source, target][lane]))

    def got(self, number: int, lane: str = "data") -> bytes:
        return self.sockets[number, lane].recv(1 << 16)

    def close(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        for each in self.sockets.values():
            each.close()
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network()
    yield made
    assert made.close() == 0  # it ends with its stdin


def test_what_one_sends_comes_out_at_the_other(network: Network) -> None:
    network.send(1, 2, b"hello")
    assert network.got(2) == b"hello"
    network.send(2, 1, b"a token", "token")
    assert network.got(1, "token") == b"a token"


def test_what_goes_to_a_pair_that_is_cut_is_dropped_and_counted_and_comes_never(network: Network) -> None:
    network.send(1, 2, b"before")
    assert network.ask([[1, 2]])["dropped"] == 0
    network.send(1, 2, b"meanwhile")
    network.send(1, 2, b"meanwhile", "token")
    network.send(2, 1, b"the other way")
    assert network.got(1) == b"the other way"
    assert network.ask([])["dropped"] == 2
    network.send(1, 2, b"after")
    assert [network.got(2), network.got(2)] == [b"before", b"after"]


def test_a_token_does_not_overtake_what_was_sent_before_it() -> None:
    network = Network(token="data")  # both come out at one port, so that their order can be seen
    network.process.send_signal(signal.SIGSTOP)  # it finds all at once, more than it reads in one go
    for number in range(200):
        network.send(1, 2, b"%d" % number)
    network.send(1, 2, b"a token", "token")
    network.process.send_signal(signal.SIGCONT)
    assert [network.got(2) for _ in range(201)] == [*(b"%d" % number for number in range(200)), b"a token"]
    assert network.close() == 0


def test_nobody_behind_a_door_does_no_harm(network: Network) -> None:
    network.sockets[2, "data"].close()
    for _ in range(3):
        network.send(1, 2, b"is anybody there?")
    network.sockets[2, "token"].sendto(b"still carried", (relay.HOST, network.doors[2, 1]["data"]))
    assert network.got(1) == b"still carried"
