"""Networks that fail in the ways that the paper lists, under a few busy hosts, and what is asked of every run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ordercast.model.effects import AlarmKind
from ordercast.model.ids import MICROSECOND, MILLISECOND, SECOND, node_of
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.ring.config import RingConfig
from ordercast.sim.faults import Fault, FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.topology import Line
from ordercast.trace.records import Installed

NODES = 4
BEGIN, MENDED, END = 400 * MILLISECOND, 3400 * MILLISECOND, 5400 * MILLISECOND
MESSAGES = 150
NETWORK = 1

WHOLE = Fault(BEGIN, FaultKind.DOWN, network=NETWORK)
NO_SEND = Fault(BEGIN, FaultKind.CUT, links=((2, 0), (2, 1), (2, 3)), network=NETWORK)
NO_RECEIVE = Fault(BEGIN, FaultKind.CUT, links=((0, 2), (1, 2), (3, 2)), network=NETWORK)
APART = Fault(BEGIN, FaultKind.CUT, links=((0, 2),), network=NETWORK)  # n2 is not the successor of n0
SUBSETS = Fault(BEGIN, FaultKind.PARTITION, groups=((0, 1), (2, 3)), network=NETWORK)
LOSSY = Fault(BEGIN, FaultKind.LOSSY, chance=0.2, network=NETWORK)
# Two faults of both networks; between any two hosts one network works, or a third host that answers requests.
LATER = BEGIN + 2 * SECOND


def mute(node: int, network: int, at: int) -> Fault:
    return Fault(
        at, FaultKind.CUT, links=tuple((node, other) for other in range(NODES) if other != node), network=network
    )


def deaf(node: int, network: int, at: int) -> Fault:
    return Fault(
        at, FaultKind.CUT, links=tuple((other, node) for other in range(NODES) if other != node), network=network
    )


PAIRS = {
    "two cannot send, at once": (mute(0, 0, BEGIN), mute(2, 1, BEGIN)),
    "two cannot send, one after the other": (mute(0, 0, BEGIN), mute(2, 1, LATER)),
    "two neighbours cannot send": (mute(0, 0, BEGIN), mute(1, 1, LATER)),
    "one cannot send, another not receive": (mute(0, 0, BEGIN), deaf(2, 1, LATER)),
    "two cannot receive": (deaf(0, 0, BEGIN), deaf(2, 1, LATER)),
    "who answers first is not heard": (
        Fault(BEGIN, FaultKind.CUT, links=((1, 0),), network=0),
        Fault(BEGIN, FaultKind.CUT, links=((0, 2), (1, 2), (2, 1), (3, 2)), network=1),
    ),
    "one sends on one and receives on the other": (mute(1, 0, BEGIN), deaf(1, 1, LATER)),
}
KINDS = {
    "whole": WHOLE,
    "one cannot send": NO_SEND,
    "one cannot receive": NO_RECEIVE,
    "two that are no neighbours": APART,
    "halves": SUBSETS,
    "a fifth is lost": LOSSY,
}


def networks(style: Replication, count: int | None = None) -> NetworksConfig:
    return NetworksConfig(count=count or (3 if style is Replication.ACTIVE_PASSIVE else 2), replication=style)


def options(
    style: Replication, *faults: Fault, messages: int = MESSAGES, count: int | None = None, end: int = END
) -> SimOptions:
    config = networks(style, count)
    delays = [Line(delay_min_ns=d * MICROSECOND, delay_max_ns=d * MICROSECOND) for d in (60, 90, 140)]
    return SimOptions(
        nodes=NODES,
        ring=replace(RingConfig(), packet_size_max=600, window=64, visit_max=16, backlog_max=400),
        networks=config,
        is_one_whole=True,
        lines=tuple(delays[: config.count]),
        messages=messages,
        receive_buffer=2000,
        faults=faults,
        fault_time_ns=end,
        settle_ns=20 * SECOND,
    )


@dataclass
class Story:
    """What happened to network 1, as its alarms tell."""

    result: Result

    def alarmed(self, kind: AlarmKind) -> dict[int, int]:
        """The first such alarm of each node on network 1: when."""
        first: dict[int, int] = {}
        for at, process, alarm in self.result.alarms:
            if alarm.kind is kind and alarm.network == NETWORK:
                first.setdefault(node_of(process), at)
        return first

    @property
    def found(self) -> dict[int, int]:
        return self.alarmed(AlarmKind.NETWORK_FAULTY)

    @property
    def repaired(self) -> dict[int, int]:
        return self.alarmed(AlarmKind.NETWORK_REPAIRED)

    @property
    def views(self) -> int:
        """Installed after the fault began."""
        return sum(isinstance(event, Installed) and event.at >= BEGIN for event in self.result.events)


def told(style: Replication, *faults: Fault, **more: Any) -> Story:
    return Story(simulate(options(style, *faults, **more), 1, keep_events=True))
