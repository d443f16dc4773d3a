"""What a person should look at, worked out from a status: one sentence per matter, with what to do. Pure.

A healthy node says nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ordercast.daemon.status.parts import ClientsStatus, Refusal, SealingStatus, Status
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.model.quantities import size_text
from ordercast.session.counters import ClientRefusal

LAG_NS = 100 * MILLISECOND
FREE_MIN = 0.01  # of a file system
ADVICE_ON_REFUSALS = {
    Refusal.OTHER_CLUSTER: "give each cluster a multicast group and port of its own",
    Refusal.OTHER_ENGINE: "some node of this cluster runs another engine: give all the same one (see the alarms)",
    Refusal.OTHER_VERSION: "some node runs another version of Ordercast",
    Refusal.SEALED: "copy the key file of the others here, name it in [security], and start this node again",
    Refusal.STRANGER: "some other program sends to these ports",
    Refusal.UNLISTED: "bring the node list up to date, here or there (`ordercast cluster list`)",
    Refusal.MALFORMED: "packets are damaged or forged",
}


ADVICE_ON_CLIENTS = {
    ClientRefusal.WRONG: "some program there speaks another protocol, or another version of it",
    ClientRefusal.NAME: "each client of a daemon needs a name of its own",
    ClientRefusal.FULL: "raise sessions_max in [clients]",
    ClientRefusal.STRANGERS: "some program connects again and again and says nothing: see `ss -xp` and `ss -tp`",
    ClientRefusal.GREETING: "some program connects and says nothing: see `ss -xp` and `ss -tp`",
    ClientRefusal.GROUPS: "raise groups_max or memberships_max in [clients]",
    ClientRefusal.TLS: "their certificates, or this daemon's, are not in order: the audit log says who and why",
    ClientRefusal.RIGHTS: "the audit log says who lacked which right; [[rights]] in the file gives them",
}
STICKY = (ClientRefusal.FULL, ClientRefusal.STRANGERS, ClientRefusal.GROUPS)  # a bound that was reached
HOLD_NS = 2 * SECOND
MEMORY_PART = 0.75


def advised(status: Status) -> Status:
    return replace(status, warnings=tuple(_warnings(status)))


def _warnings(status: Status) -> Iterator[str]:
    yield from _membership(status)
    yield from _sockets(status)
    for network in status.networks:
        if network.state != "good":
            yield f"{network.name} is {network.state}: see the alarms, and `ordercast networks explain`"
    yield from _refusals(status)
    yield from _clients(status.clients)
    yield from _time(status)
    yield from _storage(status)
    yield from _sealing(status.sealing)
    if status.trace.error:
        yield f"the trace is not written: {status.trace.error}"


def _membership(status: Status) -> Iterator[str]:
    configuration = status.configuration
    if not configuration.is_ready:
        yield f"no configuration yet, the state is {configuration.state}: messages wait"
    if status.flow.stalled:
        yield status.flow.stalled
    if configuration.missing:
        yield f"not in the configuration: {', '.join(configuration.missing)}"
    if status.nodes is not None:
        yield from status.nodes.differences
        if status.nodes.is_removed:
            yield "this node was removed from the cluster: stop it, or add it again (`ordercast cluster add`)"


def _sockets(status: Status) -> Iterator[str]:
    asked = status.sockets.buffer_asked
    granted = min((lane.receive_buffer_size for lane in status.sockets.lanes), default=asked)
    if granted < asked:
        yield (
            f"the kernel granted a receive buffer of {size_text(granted)} instead of {size_text(asked)}: "
            f"sysctl -w net.core.rmem_max={asked}"
        )
    for lane in status.sockets.lanes:
        if lane.kernel_drops:
            drops = counted(lane.kernel_drops, "packet")
            yield f"{drops} found the {lane.name} buffer full: give it a larger one, or the host less to do"
        if lane.counters.send_failures:
            failures = counted(lane.counters.send_failures, "send")
            yield f"the kernel refused {failures} on the {lane.name} lane: see `ip route`"


def _refusals(status: Status) -> Iterator[str]:
    for kind, hint in ADVICE_ON_REFUSALS.items():
        if count := status.refused.get(kind.value, 0) + _refused_beneath(status.sealing, kind):
            yield f"{counted(count, 'packet')} refused ({kind.value}): {hint}"


def _refused_beneath(sealing: SealingStatus, kind: Refusal) -> int:
    """Return how many packets the seal refused for what an engine would have refused in the clear."""
    return sealing.refused.get(kind.value, 0) if kind is Refusal.OTHER_ENGINE else 0


def _storage(status: Status) -> Iterator[str]:
    storage = status.storage
    if storage.error is not None:
        yield f"the state folder {storage.folder} cannot be written: {storage.error}; see to the disk"
    if not storage.is_used:
        yield (
            "this node goes on without stable storage: if it restarts before the disk works again, its views may be "
            "numbered lower than before"
        )
    if storage.free is not None and storage.free < FREE_MIN:
        yield f"the file system of the state folder {storage.folder} has {storage.free:.1%} free: make room"


def _sealing(sealing: SealingStatus) -> Iterator[str]:
    if sealing.is_insecure:
        yield "packets are not sealed (insecure = true): whoever reaches the network can read them, and send"
    if sealing.awaited:
        yield (
            f"key {sealing.next} is used once {', '.join(sealing.awaited)} accept it: copy the key file there, and run "
            "`ordercast key reload`"
        )


def _clients(clients: ClientsStatus) -> Iterator[str]:
    called = clients.callback
    if called is not None and called.slow:
        yield (
            f"on_message took up to {called.longest_ns / MILLISECOND:.0f} ms, and {counted(called.slow, 'time')} more "
            "than 1 ms: everybody waits meanwhile; hand long work to a task or a thread"
        )
    if called is not None and called.raised:
        yield f"on_message has raised an exception {counted(called.raised, 'time')}: see the program's log"
    for hold in clients.holding:
        if hold.for_ns > HOLD_NS:
            yield (
                f"everybody has waited for the client {hold.client} for {hold.for_ns / SECOND:.0f} s: it has "
                f"{size_text(hold.waiting_size)} to read (policy hold)"
            )
    if clients.memory_size > MEMORY_PART * clients.memory_max:
        yield (
            f"clients take {size_text(clients.memory_size)} of {size_text(clients.memory_max)} of memory: beyond that, "
            "whoever takes the most is disconnected"
        )
    if clients.over_memory:
        gone = counted(clients.over_memory, "client")
        yield f"{gone} disconnected for taking too much memory: raise memory_max in [clients], or read faster"
    for kind in STICKY:
        if count := clients.refusals.get(kind.value):
            yield f"{counted(count, 'client')} refused ({kind.value}): {ADVICE_ON_CLIENTS[kind]}"


def _time(status: Status) -> Iterator[str]:
    pauses = status.pauses
    if pauses.count:
        when = f", the last time at {pauses.last_at:%H:%M:%S} UTC" if pauses.last_at else ""
        yield (
            f"this process did not run for up to {pauses.longest_ns / MILLISECOND:.0f} ms "
            f"({counted(pauses.count, 'time')}{when}): a busy host, a suspended machine, or a blocked event loop"
        )
    elif pauses.loop_lag_ns > LAG_NS:
        late = f"{pauses.loop_lag_ns / MILLISECOND:.0f} ms late within the last minute"
        yield f"the event loop was {late}: something else keeps it busy"
    yield from status.section.warnings(len(status.configuration.members))


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
