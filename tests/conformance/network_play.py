"""A network of rings that does what it is told: the order of several rings over ideal ones, act by act.

Who is on which domain is drawn once. Then rings are cut and joined, packets sent, kept from somebody, and everything
is let go on until nothing moves any more. `tests/simulation/gateways/ideal.py` has the rings.
"""

from __future__ import annotations

from ordercast.model.ids import ProcessId
from ordercast.order.gateways.items import EVERYTHING, Processes
from ordercast.order.gateways.views import NetworkView
from tests.simulation.gateways.ideal import Host, IdealRing, Message, Native, World

from .network_stage import people

ROUNDS_MAX = 300


class NetworkPlay:
    """Hosts are numbered from 1, in the order of their attachments."""

    def __init__(self, *attachments: tuple[int, ...], is_filtering: bool = False) -> None:
        self.world = World(1)
        self.world.is_filtering = is_filtering
        self.domains = sorted({domain for domains in attachments for domain in domains})
        self.deaf: set[tuple[int, int]] = set()  # who receives nothing on which domain
        self.slow: set[tuple[int, int]] = set()  # whose ring on which domain hands up nothing
        self.asleep: set[int] = set()  # whose order does not go on
        for domains in attachments:
            self.world.add(domains)

    def begin(self) -> NetworkPlay:
        """Let all domains form their rings, and all rings one network."""
        for domain in self.domains:
            self.join(domain)
        self.settle()
        return self

    # Acts

    def host(self, who: int) -> Host:
        return self.world.hosts[ProcessId(who)]

    def ring(self, who: int, domain: int) -> IdealRing:
        return self.world.rings[self.host(who).rings[domain]]

    def send(
        self, who: int, body: str, domain: int | None = None, is_safe: bool = False, mask: int = EVERYTHING
    ) -> None:
        """Let a host send a message, and number it on its ring at once."""
        host = self.host(who)
        where = host.domains[0] if domain is None else domain
        host.natives[where].append(Native(body.encode(), is_safe, mask))
        self.world.visit(host, where, 50)

    def cut(self, domain: int, *halves: Processes) -> None:
        """Let the hosts of a domain hear those of their own half alone, and form rings of them."""
        for cell, half in enumerate(halves):
            for process in half:
                self.world.cells[domain, process] = cell
        self.world.break_rings()
        for cell in range(len(halves)):
            self.world.reform(domain, cell)

    def join(self, domain: int) -> None:
        """Let all living hosts of a domain hear one another, and form one ring."""
        self.cut(domain, frozenset(host.id for host in self.world.alive if domain in host.domains))

    def crash(self, who: int) -> None:
        """Let a host die; the rings that it was on form anew without it."""
        host = self.host(who)
        host.is_alive = False
        self.world.break_rings()
        for domain in host.domains:
            self.join(domain)

    def install(self, domain: int, *hosts: int) -> None:
        """Let some hosts install the ring that they have agreed on."""
        for who in hosts:
            self.world.install(self.host(who), domain)

    def number(self, who: int, body: str, receivers: Processes, is_safe: bool = False) -> None:
        """Let a host send a message on its first ring that some receive, and others not."""
        self.send(who, body, is_safe=is_safe)
        ring = self.ring(who, self.host(who).domains[0])
        for process in receivers:
            ring.got[process].add(len(ring.log))

    def settle(self, *, installing: bool = True) -> None:
        """Let everything go on until nothing moves any more."""
        last: object = None
        for _ in range(ROUNDS_MAX):
            self._round(installing)
            now = self._state()
            if now == last:
                return
            last = now
        raise AssertionError("it does not come to an end")

    def settle_once(self) -> None:
        """Let everybody do something once."""
        self._round(True)

    def _round(self, installing: bool) -> None:
        world = self.world
        for host in world.alive:
            for domain in host.domains:
                if installing:
                    world.install(host, domain)
                world.visit(host, domain, 50)
        for host in world.alive:
            for domain in host.domains:
                if (host.id, domain) not in self.deaf:
                    for _ in range(20):
                        world.receive(host, domain)
                if (host.id, domain) not in self.slow:
                    world.deliver(host, domain, is_all=True)
                world.tell_lowest(domain, host)
            if host.id not in self.asleep:
                host.step()

    def _state(self) -> object:
        rings = [self.ring(host.id, domain) for host in self.world.alive for domain in host.domains]
        counts = [(len(ring.log), sum(map(len, ring.got.values())), sum(ring.delivered.values())) for ring in rings]
        return counts, [(len(host.events), host.network.known.place) for host in self.world.alive]

    # Questions

    def view(self, who: int) -> NetworkView:
        return self.host(who).view()

    def messages(self, who: int) -> list[Message]:
        return [event for event in self.host(who).events if isinstance(event, Message)]

    def bodies(self, who: int) -> list[str]:
        """Return what a host has delivered, in order."""
        return [message.body.decode() for message in self.messages(who)]

    def views(self, who: int) -> list[NetworkView]:
        """Return the views that a host went through, in order."""
        return [event for event in self.host(who).events if isinstance(event, NetworkView)]

    def delivered_in(self, who: int, view: NetworkView) -> list[str]:
        """Return what a host has delivered in a view."""
        found: list[str] = []
        is_there = False
        for event in self.host(who).events:
            if isinstance(event, NetworkView):
                is_there = event.id == view.id
            elif is_there:
                found.append(event.body.decode())
        return found


def line() -> NetworkPlay:
    """Return two rings with a gateway: 1 2 on the first, 3 between, 4 5 on the second."""
    return NetworkPlay((1,), (1,), (1, 2), (2,), (2,)).begin()


def parallel(*, is_filtering: bool = False) -> NetworkPlay:
    """Return two rings with two gateways, 3 and 4; 1 2 are on the first ring, 5 6 on the second."""
    return NetworkPlay((1,), (1,), (1, 2), (1, 2), (2,), (2,), is_filtering=is_filtering).begin()


def three_in_line() -> NetworkPlay:
    """Return three rings in line: 1 on the first, 2 between, 3 on the second, 4 between, 5 on the third."""
    return NetworkPlay((1,), (1, 2), (2,), (2, 3), (3,)).begin()


__all__ = ["NetworkPlay", "line", "parallel", "people", "three_in_line"]
