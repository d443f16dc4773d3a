"""What a live node counts, as plain numbers that rise. `status.py` makes a picture of them."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from ordercast.daemon.status.absences import Absences
from ordercast.daemon.status.alarms import Alarms
from ordercast.daemon.status.latency import DeliveryLatency
from ordercast.model.configuration import Configuration
from ordercast.model.ids import ConfigurationId, Instant
from ordercast.session.counters import CallbackCounters, ClientCounters

VIEWS_KEPT = 32


@dataclass(slots=True)
class SocketCounters:
    """One socket. The kernel's own drops are read from the socket when somebody asks."""

    packets_received: int = 0
    bytes_received: int = 0
    reads: int = 0  # one read brings many packets with GRO
    packets_sent: int = 0
    bytes_sent: int = 0
    sends: int = 0  # one send takes many packets with GSO
    receive_failures: int = 0
    send_failures: int = 0  # the kernel refused: no buffer, no route; the engine sends again what matters


@dataclass(slots=True)
class Counters:
    messages_submitted: int = 0
    messages_delivered: int = 0
    bytes_submitted: int = 0
    bytes_delivered: int = 0
    pauses: int = 0  # times when this process did not run for so long that a timer was very late
    longest_pause_ns: int = 0
    last_pause_at: Instant | None = None
    last_pause_ns: int = 0
    clients: ClientCounters = field(default_factory=ClientCounters)
    callback: CallbackCounters | None = None  # of the program that embeds the node
    refused: Counter[str] = field(default_factory=Counter)  # packets that are not for us or not well formed, by why
    occurred: Counter[str] = field(default_factory=Counter)  # rare events of the engine
    moves: Counter[str] = field(default_factory=Counter)  # "Operational → Gather", …
    views: deque[tuple[Instant, Configuration]] = field(default_factory=lambda: deque(maxlen=VIEWS_KEPT))
    remarks: dict[ConfigurationId, str] = field(
        default_factory=dict
    )  # on some of these views: how node lists differed then, who was back
    alarms: Alarms = field(default_factory=Alarms)
    absences: Absences = field(default_factory=Absences)
    latency: DeliveryLatency = field(default_factory=DeliveryLatency)

    def remark(self, view: ConfigurationId, text: str) -> None:
        kept = {each.id for _, each in self.views}
        self.remarks = {each: remark for each, remark in self.remarks.items() if each in kept} | {view: text}
