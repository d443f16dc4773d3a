"""Watching a network: since when something waits, and what a person should be told of gateways and rings.

A `NetworkWatch` is shown a snapshot a few times a second. It remembers since when the same packet or change is next in
the order, since when each holder holds, which gateways and rings were there before, and raises an alarm when one of
them is lost, and another when it is back. Nodes are compared, not processes: who restarts is back. Whoever
left in order is not lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import MILLISECOND, SECOND, Duration, Instant, NodeId, ProcessId, node_of
from ordercast.order.gateways.items import Processes
from ordercast.order.gateways.observed import Awaiting, NetworkSnapshot
from ordercast.order.stamped.lanes import Stamp

LOOK_NS = 250 * MILLISECOND  # between two looks, at least
SILENT_NS = 2 * SECOND  # that delivery waits for a ring, before it is an alarm
HELD_NS = 1 * SECOND  # that users are held, before it is said that nothing may be sent


class _Gateway(NamedTuple):
    process: ProcessId
    domains: frozenset[int]


class _Silence(NamedTuple):
    since: Instant
    text: str


class NetworkWatch:
    """What one process remembers of what it saw."""

    def __init__(self, names: Mapping[int, str], node_names: Mapping[NodeId, str]) -> None:
        """`names` are those of the domains that this process knows, by number."""
        self._names, self._node_names = names, node_names
        self.due = Instant(0)  # of the next look
        self._waiting: tuple[Stamp, Instant] | None = None  # what is next in the order, and since when it is
        self._holding: dict[tuple[ProcessId, int], Instant] = {}  # since when, by process and number of the hold
        self._held = ""  # who holds, and why, since it has lasted
        self._gateways: dict[NodeId, _Gateway] = {}  # as they are, or were when they were lost
        self._lost: set[NodeId] = set()  # those of them that were told to be
        self._peopled: dict[int, Processes] = {}  # who was last seen on each other domain, gateways aside
        self._cut: set[int] = set()  # domains of these where nobody can be heard
        self._silences: dict[int, _Silence] = {}  # rings that were told to be silent, by domain

    # What is asked

    def waits_since(self, waiting: Awaiting) -> Instant | None:
        """Return when this was first seen to be next in the order; None if it is new."""
        return self._waiting[1] if self._waiting is not None and self._waiting[0] == waiting.stamp else None

    def holds_since(self, process: ProcessId, number: int) -> Instant | None:
        """Return when a hold was first seen; None if it is new."""
        return self._holding.get((process, number))

    def stalled(self) -> str | None:
        """Return why nothing flows, once that has lasted; None as long as all is well."""
        return next((silence.text for silence in self._silences.values()), self._held or None)

    def name(self, domain: int) -> str:
        return self._names.get(domain, f"ring {domain}")

    def _nodes(self, nodes: Iterable[NodeId]) -> str:
        return " ".join(self._node_names.get(node, f"n{node}") for node in sorted(nodes))

    # Looking

    def look(self, seen: NetworkSnapshot, now: Instant) -> list[Alarm]:
        """Look at a network; return what a person should be told."""
        self.due = Instant(now + LOOK_NS)
        self._look_at_waiting(seen, now)
        return [*self._look_at_gateways(seen), *self._look_at_domains(seen), *self._look_for_silence(seen, now)]

    def _look_at_waiting(self, seen: NetworkSnapshot, now: Instant) -> None:
        waiting = seen.waiting
        if waiting is None:
            self._waiting = None
        elif self._waiting is None or self._waiting[0] != waiting.stamp:
            self._waiting = waiting.stamp, now
        keys = [(hold.process, hold.number) for hold in seen.holds]
        self._holding = {key: self._holding.get(key, now) for key in keys}
        lasting = [hold for hold in seen.holds if now - self._holding[hold.process, hold.number] >= HELD_NS]
        self._held = "; ".join(
            f"{self._nodes([node_of(hold.process)])} asks everybody to stop sending: {hold.reason}" for hold in lasting
        )

    def _look_at_gateways(self, seen: NetworkSnapshot) -> list[Alarm]:
        here = {node_of(each): _Gateway(each, frozenset(domains)) for each, domains in seen.gateways.items()}
        near = {ring.domain for ring in seen.rings}
        alarms = [self._gateway_back(here[node]) for node in sorted(self._lost & here.keys())]
        self._gateways = {node: last for node, last in self._gateways.items() if last.process not in seen.departed}
        self._lost &= self._gateways.keys()
        gone = sorted(self._gateways.keys() - here.keys() - self._lost)
        # Who joined none of the rings that are left went with them.
        lost = [node for node in gone if self._gateways[node].domains & near]
        alarms += [self._gateway_lost(self._gateways[node], here, near) for node in lost]
        self._lost = (self._lost - here.keys()).union(lost)
        self._gateways = {node: self._gateways[node] for node in self._lost} | here
        return alarms

    def _gateway_lost(self, gateway: _Gateway, here: Mapping[NodeId, _Gateway], near: Set[int]) -> Alarm:
        others = [node for node, other in sorted(here.items()) if len(other.domains & gateway.domains) > 1]
        if others:
            rest = f"{self._nodes(others)} still {'do' if len(others) > 1 else 'does'}; see whether it runs"
        elif gateway.domains <= near:
            rest = "others keep the network in one piece, by longer ways; see whether it runs"
        else:
            rest = "it was the only way; see whether it runs, and give them a second one"
        text = f"the gateway {self._called(gateway)} no longer joins {self._listed(gateway.domains)}: {rest}"
        return Alarm(AlarmKind.GATEWAY_LOST, text, gateway.process)

    def _gateway_back(self, gateway: _Gateway) -> Alarm:
        text = f"the gateway {self._called(gateway)} joins {self._listed(gateway.domains)} again"
        return Alarm(AlarmKind.GATEWAY_BACK, text, gateway.process)

    def _called(self, gateway: _Gateway) -> str:
        return self._nodes([node_of(gateway.process)])

    def _look_at_domains(self, seen: NetworkSnapshot) -> list[Alarm]:
        """Tell which domains are cut off: everybody is gone who was on them alone, and no two gateways hear each other
        there."""
        mine = next((domains for process, domains in seen.attachments if process == seen.me), ())
        people: dict[int, set[ProcessId]] = {}
        for process, domains in seen.attachments:
            if len(domains) == 1 and (len(mine) > 1 or domains != mine):
                people.setdefault(domains[0], set()).add(process)
        heard = people.keys() | {ring.domain for ring in seen.rings if len(ring.members) > 1}
        remaining = {domain: processes - seen.departed for domain, processes in self._peopled.items()}
        self._peopled = {domain: processes for domain, processes in remaining.items() if processes}
        self._cut &= self._peopled.keys()
        back = self._cut & heard
        gone = self._peopled.keys() - heard - self._cut
        self._cut = (self._cut - heard) | gone
        self._peopled |= {domain: frozenset(processes) for domain, processes in people.items()}
        return [*self._one_again(back), *self._in_two(gone)]

    def _in_two(self, domains: Set[int]) -> Iterator[Alarm]:
        if domains:
            text = (
                f"nobody on {self._listed(domains)} can be heard, where {self._people(domains)} had been: unless they "
                "left in order the network is in two, and each side goes on by itself; look at the gateways between"
            )
            yield Alarm(AlarmKind.NETWORK_IN_TWO, text, domain=min(domains))

    def _one_again(self, domains: Set[int]) -> Iterator[Alarm]:
        if domains:
            text = f"{self._listed(domains)} can be heard again, with {self._people(domains)}"
            yield Alarm(AlarmKind.NETWORK_ONE_AGAIN, text, domain=min(domains))

    def _people(self, domains: Iterable[int]) -> str:
        return self._nodes(node_of(process) for domain in domains for process in self._peopled[domain])

    def _look_for_silence(self, seen: NetworkSnapshot, now: Instant) -> list[Alarm]:
        waiting = seen.waiting
        since = now if self._waiting is None else self._waiting[1]
        rings = {ring.id: ring for ring in seen.rings}
        late = {rings[front].domain: rings[front] for front in waiting.fronts} if waiting is not None else {}
        alarms = []
        for domain in sorted(self._silences.keys() - late.keys()):
            lasted = now - self._silences.pop(domain).since
            text = f"{self.name(domain)} is heard again, after {lasted / SECOND:.1f} s in which delivery waited for it"
            alarms.append(Alarm(AlarmKind.RING_HEARD, text, duration=Duration(lasted), domain=domain))
        if now - since < SILENT_NS:
            return alarms
        for domain, ring in sorted(late.items()):
            if domain not in self._silences:
                who = (
                    f"see its gateways {self._nodes(map(node_of, ring.gateways))}"
                    if ring.gateways
                    else "see its members"
                )
                text = (
                    f"{self.name(domain)} has said nothing for {(now - since) / SECOND:.1f} s, and "
                    f"{seen.undelivered} packets wait for it here: {who}"
                )
                self._silences[domain] = _Silence(since, text)
                alarms.append(Alarm(AlarmKind.RING_SILENT, text, duration=Duration(now - since), domain=domain))
        return alarms

    def _listed(self, domains: Iterable[int]) -> str:
        return " and ".join(self.name(domain) for domain in sorted(domains))
