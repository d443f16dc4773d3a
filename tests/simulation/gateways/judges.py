"""Judges of the order of a network: each looks at what processes delivered, and says what promise is broken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise

from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.gateways.items import Stretch
from ordercast.order.gateways.views import NetworkView
from tests.simulation.gateways.ideal import Host, Message, World

Judge = Callable[[World], Iterator[str]]


def _stays(host: Host) -> Iterator[tuple[NetworkView, list[Message], NetworkView | None]]:
    """Yield each view of a host with what was delivered in it, and the view after it."""
    view, messages = None, list[Message]()
    for event in host.events:
        if isinstance(event, Message):
            messages.append(event)
            continue
        if view is not None:
            yield view, messages, event
        view, messages = event, []
    assert view is not None
    yield view, messages, None


def _bodies(messages: list[Message]) -> tuple[bytes, ...]:
    return tuple(message.body for message in messages)


def order(world: World) -> Iterator[str]:
    """Places rise at every process, views among them, and nothing is delivered twice."""
    for host in world.hosts.values():
        last, view, seen = (0, 0, 0), None, set[bytes]()
        for event in host.events:
            if event.stamp < last or (isinstance(event, Message) and event.stamp <= last and event.body in seen):
                yield f"order at {host.id}: {event} after {last}"
            last = event.stamp
            if isinstance(event, Message):
                if event.body in seen:
                    yield f"twice at {host.id}: {event.body!r}"
                seen.add(event.body)
            elif view is not None and event.id <= view:
                yield f"view {event.id} after {view} at {host.id}"
            else:
                view = event.id


def one_place(world: World) -> Iterator[str]:
    """A message has one place, at all processes."""
    places: dict[bytes, tuple[int, int, int]] = {}
    for host in world.hosts.values():
        for event in host.events:
            if isinstance(event, Message) and places.setdefault(event.body, event.stamp) != event.stamp:
                yield f"{event.body!r} at {event.stamp} and at {places[event.body]}"


def agreed_prefix(world: World) -> Iterator[str]:
    """After one view id no two processes differ: what one delivers in a view is a prefix of what another does, as far
    as both are owed it."""
    stays: dict[ConfigurationId, list[tuple[Host, list[Message]]]] = defaultdict(list)
    for host in world.hosts.values():
        for view, messages, _ in _stays(host):
            stays[view.id].append((host, messages))
    for name, those in stays.items():
        longest, most = max(those, key=lambda stay: len(stay[1]))
        for host, messages in those if not world.is_filtering else ():
            if _bodies(most)[: len(messages)] != _bodies(messages):
                yield f"agreed prefix in {name}: {host.id} and {longest.id}"
        for (one, its), (other, others) in combinations(those, 2) if world.is_filtering else ():
            here, there = _shared(one, other, its), _shared(one, other, others)
            if here[: len(there)] != there[: len(here)]:
                yield f"agreed prefix in {name}: {one.id} and {other.id}"


def _shared(one: Host, other: Host, messages: list[Message]) -> tuple[bytes, ...]:
    """Return what both are owed."""
    return tuple(message.body for message in messages if one.is_owed(message) and other.is_owed(message))


def same_views(world: World) -> Iterator[str]:
    """A view id has one membership, one shape and one place."""
    views: dict[ConfigurationId, NetworkView] = {}
    for host in world.hosts.values():
        for event in host.events:
            if isinstance(event, NetworkView):
                first = views.setdefault(event.id, event)
                if (first.members, first.shape, first.stamp) != (event.members, event.shape, event.stamp):
                    yield f"view {event.id} differs at {host.id}"


def virtual_synchrony(world: World) -> Iterator[str]:
    """Whoever goes from one view to the same next one has delivered the same in between, as far as it is owed."""
    moves: dict[tuple[ConfigurationId, ConfigurationId], list[tuple[Host, list[Message]]]] = defaultdict(list)
    for host in world.hosts.values():
        for view, messages, after in _stays(host):
            if after is not None:
                moves[view.id, after.id].append((host, messages))
    for (name, _), those in moves.items():
        for (one, its), (other, others) in pairwise(those) if not world.is_filtering else combinations(those, 2):
            differing = set(_shared(one, other, its)) ^ set(_shared(one, other, others))
            if differing:
                yield f"virtual synchrony: {one.id} and {other.id} in {name}: {differing}"


def transitional_sets(world: World) -> Iterator[str]:
    """Transitional sets are truthful and mutual. Where they are too small it is counted."""
    came: dict[ConfigurationId, dict[ProcessId, tuple[ConfigurationId, NetworkView]]] = defaultdict(dict)
    for host in world.hosts.values():
        for view, _, after in _stays(host):
            if after is not None:
                came[after.id][host.id] = (view.id, after)
    for name, who in came.items():
        for one, (before, view) in who.items():
            for other, (its_before, its_view) in who.items():
                is_along = other in view.transitional
                if is_along and its_before != before:
                    yield f"the transitional set of {one} at {name} has {other}, which came from elsewhere"
                if is_along != (one in its_view.transitional):
                    yield f"the transitional sets of {one} and {other} at {name} are not mutual"
                world.counts["came along unknown"] += its_before == before and not is_along


def self_delivery(world: World) -> Iterator[str]:
    """A living process delivers what it sent, or is told the place of what it is not owed; one of both."""
    for host in world.alive:
        told = [event.body for event in (*host.events, *host.placed) if isinstance(event, Message)]
        if len(set(told)) < len(told):
            yield f"self delivery at {host.id}: {sorted(body for body in set(told) if told.count(body) > 1)} twice"
        yield from (f"self delivery at {host.id}: {one} is owed" for one in host.placed if host.is_owed(one))
        missing = [body for body in host.sent if body not in told]
        if missing:
            yield f"self delivery at {host.id}: {missing}"


def safe_delivery(world: World) -> Iterator[str]:
    """A safe message is delivered by all living members of the view in which anyone delivered it."""
    delivered = {
        host.id: {event.body for event in host.events if isinstance(event, Message)} for host in world.hosts.values()
    }
    for host in world.hosts.values():
        for view, messages, _ in _stays(host):
            for message in messages:
                for other in view.members if message.is_safe else ():
                    is_missing = message.body not in delivered[other] and world.hosts[other].is_owed(message)
                    if world.hosts[other].is_alive and is_missing:
                        yield f"safe: {message.body!r} delivered by {host.id}, never by {other}"


def safe_in_one_view(world: World) -> Iterator[str]:
    """What one delivers as safe in a view, whoever was in that view delivers in it, or in what ends it for its users:
    before the next view that is not provisional."""
    safe: dict[ConfigurationId, dict[bytes, Host]] = defaultdict(dict)
    before: dict[ConfigurationId, list[tuple[Host, set[bytes]]]] = defaultdict(list)
    for host in world.hosts.values():
        name, messages = None, list[Message]()
        for view, delivered, after in _stays(host):
            if not view.is_provisional:
                name = view.id
                messages = []
                safe[name].update((message.body, host) for message in delivered if message.is_safe)
            messages += delivered
            if name is not None and after is not None and not after.is_provisional:
                before[name].append((host, set(_bodies(messages))))
    for name, those in before.items():
        for host, bodies in those:
            for body, other in safe[name].items():
                message = next(each for each in other.events if isinstance(each, Message) and each.body == body)
                if body not in bodies and host.is_owed(message):
                    yield f"safe: {body!r} delivered by {other.id} in {name}, and by {host.id} not in it"


def causal(world: World) -> Iterator[str]:
    """A message lies above all that its sender had delivered before it sent it."""
    for host in world.hosts.values():
        for body, cause, tick in host.caused:
            if cause[0] >= tick:
                yield f"causal order: {host.id} sent {body!r} at tick {tick} after it had delivered {cause}"


def ticks_rise(world: World) -> Iterator[str]:
    """Ticks rise along a ring, and are above its birth."""
    for ring in world.rings.values():
        ticks = [ring.tick, *(packet.tick for packet in ring.log)]
        if any(after < before for before, after in pairwise(ticks)) or ring.tick in ticks[1:]:
            yield f"ticks of {ring.id} do not rise"


def carried_in_order(world: World) -> Iterator[str]:
    """A gateway puts the packets of a source on a ring in order, each of them once for each way they came."""
    for ring in world.rings.values():
        last: dict[tuple[object, ...], int] = {}
        for packet in ring.log:
            if (
                packet.carried is None
                or not isinstance(packet.carried.item, Stretch)
                or packet.carried.half is not None
            ):
                continue
            item = packet.carried.item
            key = (packet.sender, item.ring, packet.carried.since)
            if item.seqs[0] <= last.get(key, 0):
                yield f"{packet.sender} carried {item.ring} {item.seqs} onto {ring.id} after {last[key]}"
            last[key] = item.seqs[-1]


def sound(world: World) -> Iterator[str]:
    """No item came of a ring that nobody had told of."""
    for host in world.hosts.values():
        if host.network.forwarding.strange:
            yield f"{host.id} heard {host.network.forwarding.strange} items of unknown rings"


JUDGES: tuple[Judge, ...] = (
    order,
    one_place,
    agreed_prefix,
    same_views,
    virtual_synchrony,
    transitional_sets,
    self_delivery,
    safe_delivery,
    safe_in_one_view,
    causal,
    ticks_rise,
    carried_in_order,
    sound,
)


def verdict(world: World) -> list[str]:
    """Return all that is wrong with a run."""
    return [error for judge in JUDGES for error in judge(world)]
