"""Two ends of a link and a path between them that tests make as bad as they like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from ordercast.model.effects import packets_of
from ordercast.model.errors import WireError
from ordercast.model.ids import Incarnation, Instant, NodeId, process_id_from
from ordercast.order.links.config import LinkConfig
from ordercast.order.links.link import Link, Tags
from ordercast.order.links.regulator import Regulator
from ordercast.wire.head import cluster_id_from

CLUSTER = cluster_id_from("links")
ENDS = tuple(process_id_from(NodeId(node), Incarnation(1)) for node in (0, 1))

# Called as fate(from which end, packet, now); returns after which times copies arrive.
Fate = Callable[[int, bytes, int], list[int]]
PACKETS_MAX = 10_000  # of one pair: no test has so much to send


class Broken(AssertionError):
    """A promise of links that did not hold."""


def make_link(
    config: LinkConfig, end: int, now: int = 0, regulator: Regulator | None = None, tags: tuple[int, int] = (7, 7)
) -> Link:
    """Return the end with this number, 0 or 1."""
    me, peer = ENDS[end], ENDS[1 - end]
    return Link(config, CLUSTER, me, peer, Tags(tags[end], tags[1 - end]), Instant(now), regulator)


@dataclass
class Pair:
    """Both ends of a link, driven as an engine drives them. Payloads that arrived are kept by end."""

    ends: list[Link]
    fate: Fate
    now: int = 0
    is_checked: bool = True
    arrived: tuple[list[bytes], list[bytes]] = field(default_factory=lambda: ([], []))
    times: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    riders: tuple[list[bytes], list[bytes]] = field(default_factory=lambda: ([], []))
    on_wire: list[tuple[int, int, bytes]] = field(default_factory=list)  # when, from which end, packet
    late: tuple[list[bytes], list[bytes]] = field(default_factory=lambda: ([], []))  # went up after their packet came
    dropped: int = 0
    _events: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)

    def send(self, end: int, payloads: list[bytes], is_urgent: bool = False) -> None:
        self.ends[end].send(payloads, is_urgent)
        self.flush(end)

    def flush(self, end: int) -> None:
        for packet in packets_of(self.ends[end].flush(Instant(self.now))):
            self.on_wire.append((self.now, end, packet))
            for delay in self.fate(end, packet, self.now):
                heappush(self._events, (self.now + delay, next(self._order), 1 - end, packet))
        if len(self.on_wire) > PACKETS_MAX:
            raise Broken("an idle link is not silent")
        if self.is_checked:
            self.ends[end].check_invariants()

    def run(self, until: int) -> None:
        """Let time pass up to this moment."""
        while (when := self._next_time()) is not None and when <= until:
            assert when >= self.now
            self.now = when
            if self._events and self._events[0][0] == when:
                self._arrive()
            for end in (0, 1):
                due = self.ends[end].next_deadline
                if due is not None and due <= when:
                    self.flush(end)
                    after = self.ends[end].next_deadline
                    assert after is None or after > when, "a deadline that does not pass"
        self.now = until

    def settle(self, limit: int) -> None:
        """Let time pass until nothing is under way."""
        while self.now < limit and not all(link.is_quiet or link.failure for link in self.ends):
            self.run(self.now + 10_000_000)

    def _next_time(self) -> int | None:
        times: list[int] = [due for link in self.ends if (due := link.next_deadline) is not None]
        times += [self._events[0][0]] if self._events else []
        return max(min(times), self.now) if times else None

    def take_over(self, older: Pair) -> None:
        """Let packets come that are still under way between former ends."""
        self._events, self._order = older._events, older._order

    def _arrive(self) -> None:
        _, _, end, packet = heappop(self._events)
        try:
            arrival = self.ends[end].receive(packet, Instant(self.now))
        except WireError:
            self.dropped += 1
            return
        self._note_late(end, packet, arrival.payloads)
        self.arrived[end].extend(arrival.payloads)
        self.times[end].extend([self.now] * len(arrival.payloads))
        self.riders[end].append(arrival.rider)
        self.flush(end)

    def _note_late(self, end: int, packet: bytes, payloads: list[bytes]) -> None:
        """A payload that is not in the packet that just came has waited here, unless it came in parts."""
        self.late[end].extend(one for one in payloads if one not in packet and len(one) < len(packet))


def pair_of(config: LinkConfig, fate: Fate, make: Callable[..., Link] = make_link) -> Pair:
    return Pair([make(config, 0), make(config, 1)], fate)
