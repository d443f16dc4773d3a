"""How many hops deliveries of the adaptive engine take, judged in runs in which nothing but the way takes time: without
loss, faults and processing time agreed delivery takes two hops at most, safe delivery three, or four where
acknowledgements are gathered. The busiest sender needs one hop less once the order follows the senders.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.model.configuration import ConfigurationKind
from ordercast.model.ids import MILLISECOND, ProcessId, node_of
from ordercast.model.service import Service
from ordercast.sim.options import HARMFUL, SimOptions
from ordercast.trace.records import DeliveredBatch, Event, Installed, MessageId, Submitted

HOPS, SAFE_HOPS, GATHERED_HOPS = 2, 3, 4
ADAPTED_NS = 500 * MILLISECOND  # of a steady pattern, after which the order follows the senders,
ADAPTED = 50  # or so many messages
OVERTAKEN = 0.05  # share of the busiest sender's messages that others may overtake
TIMES = ("packet_ns", "byte_ns", "token_ns", "send_ns", "receive_ns", "clock_drift", "bandwidth")  # beside the way
BUSY = ("saturation", "clients", "replicas", "large_messages", "slow_hosts")  # with which senders wait for each other


def is_counted(options: SimOptions) -> bool:
    """Whether nothing but the way takes time in a run."""
    usual = SimOptions()
    is_kind = all(getattr(options, name) == getattr(usual, name) for name in HARMFUL)
    return is_kind and options.networks.count == 1 and not any(getattr(options, name) for name in (*TIMES, *BUSY))


class Hops:
    def __init__(self, options: SimOptions) -> None:
        self._hop, rates = options.delay_max_ns, sorted(options.rates, key=lambda rate: -rate.per_second)
        self._pace = options.adaptive.mark_ns * options.nodes
        self._is_gathered = options.nodes >= options.adaptive.gather_acks
        is_uneven = len(rates) == 1 or (len(rates) > 1 and rates[0].per_second > rates[1].per_second)
        self._busiest = rates[0].node if is_uneven else None
        self._formed_at = 0
        self._submitted: dict[MessageId, tuple[int, int]] = {}  # when, and the place among those of its host
        self._sent: dict[int, int] = {}  # messages of each host since the configuration was formed
        self._quick, self._slow = list[ProcessId](), list[ProcessId]()  # who sent; deliveries of the busiest sender's
        self._late: list[tuple[str, ProcessId]] = []

    def observe(self, event: Event) -> None:
        if isinstance(event, Installed) and event.configuration.kind is ConfigurationKind.REGULAR:
            self._formed_at = event.at
            self._submitted.clear()
            self._sent.clear()
        elif isinstance(event, Submitted):
            for message in event.messages:
                node = node_of(message.message.process)
                count = self._sent[node] = self._sent.get(node, 0) + 1
                self._submitted[message.message] = event.at, count
        elif isinstance(event, DeliveredBatch):
            self._judge(event)

    def _judge(self, event: DeliveredBatch) -> None:
        for one in event.messages:
            if one.message is None or one.message not in self._submitted:
                continue  # sent before all were together
            at, count = self._submitted[one.message]
            taken, allowed = event.at - at, self._allowed(one.service)
            if taken > allowed * self._hop + self._pace:
                text = f"{one.message} took {taken / self._hop:.2f} hops, {allowed} are allowed"
                self._late.append((text, event.process))
            is_adapted = at >= self._formed_at + ADAPTED_NS or count > ADAPTED
            if is_adapted and node_of(one.message.process) == self._busiest:
                is_quick = taken <= (allowed - 1) * self._hop + self._pace
                (self._quick if is_quick else self._slow).append(one.message.process)

    def _allowed(self, service: int) -> int:
        if service != Service.SAFE:
            return HOPS
        return GATHERED_HOPS if self._is_gathered else SAFE_HOPS

    @property
    def overtaken(self) -> float:
        """The share of deliveries of the busiest sender's messages that took a hop more, once the order follows it."""
        return len(self._slow) / max(1, len(self._slow) + len(self._quick))

    def findings(self) -> Iterator[tuple[str, ProcessId]]:
        """Return what took too long, and at whom."""
        yield from self._late
        if self.overtaken > OVERTAKEN:
            yield f"{self.overtaken:.0%} of its messages took a hop more than the busiest sender needs", self._slow[0]
