"""Runs a node as a daemon: until a signal, then leaves in order. Logs what an operator wants to know meanwhile.

Whoever embeds a node does not need this. `cli/daemon.py` is the command above it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from ordercast import __version__
from ordercast.daemon import management
from ordercast.daemon.audit import Audited
from ordercast.daemon.clients.certificates import certificates_of
from ordercast.daemon.clients.door import Door
from ordercast.daemon.clients.server import ClientServer, ready_folder
from ordercast.daemon.config.file import load_config
from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.config.plan import plan_of
from ordercast.daemon.descriptors import raise_limit, room_from, room_text
from ordercast.daemon.host import GroupHost
from ordercast.daemon.logs import describe, fields
from ordercast.daemon.loop_errors import LoopErrors
from ordercast.daemon.status.advice import ADVICE_ON_CLIENTS, ADVICE_ON_REFUSALS, counted
from ordercast.daemon.status.alarms import REPEAT_NS, KeptAlarm, text_of
from ordercast.daemon.status.guard import guard_of
from ordercast.daemon.status.http import StatusServer
from ordercast.daemon.status.parts import change_text
from ordercast.daemon.status.places import own_port
from ordercast.daemon.status.report import Meter, ObservedNode, refusals, status_of, view_change
from ordercast.daemon.systemd import Notifier
from ordercast.model.configuration import Configuration, ConfigurationKind
from ordercast.model.errors import UsageError
from ordercast.model.ids import Instant, ProcessId
from ordercast.model.quantities import size_text

TICK_S = 1.0

_log = logging.getLogger(__name__)


async def run_daemon(config: NodeConfig, notifier: Notifier) -> None:
    """Returns after an orderly leave; UsageError when it cannot start, NodeFailed when it ended by itself."""
    door = Door(certificates_of(config), config.rights)
    guard = guard_of(config)
    room = room_from(raise_limit(), config.clients.sessions_max)
    within = replace(config.clients, sessions_max=room.sessions_max)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(LoopErrors())
    if config.source is not None:
        loop.add_signal_handler(signal.SIGHUP, lambda: None)  # what is being read need not be read again
    ready_folder(config.clients)
    async with AsyncExitStack() as stack:
        node = GroupHost(config, lambda view: reporter.on_view(view))
        if config.source is not None:
            node.as_loaded = load_config(config.source, config.name)
        reporter = Reporter(node)
        await stack.enter_async_context(node)
        describe(node=node.config.name)
        reporter.started()
        clients = await stack.enter_async_context(ClientServer(node, within, room.strangers_max, door))
        addresses = [str(address) for address in clients.addresses]
        _log.info("clients at %s", " and ".join(addresses), extra=fields(clients=addresses))
        if config.clients.port is not None and door.certificates is None:
            place = f"{config.clients.address} port {config.clients.port}"
            door.audit.tell(Audited.INSECURE, f"clients are served in the clear at {place}", place=place)
        _log.info("%s", room_text(room), extra=fields(sessions_max=room.sessions_max, open_files=room.limit))
        status, port = config.status, config.status.port
        if port is not None:
            served = StatusServer(node, status.address, own_port(node.config, port), status.hosts, guard)
            server = await stack.enter_async_context(served)
            where = fields(status=f"{server.url}/status")
            _log.info("status at %s/status, metrics at %s/metrics", server.url, server.url, extra=where)
        notifier.tell(READY="1", STATUS=reporter.line())
        name = await _until_signal(node, notifier, reporter)
        notifier.tell(STOPPING="1", STATUS="leaving")
        _log.info("%s: leaving in order", name)
    _log.info("left: the others were told")


async def _until_signal(node: GroupHost, notifier: Notifier, reporter: Reporter) -> str:
    """The name of the signal. A second one ends the process at once. SIGHUP reloads the file meanwhile."""
    loop = asyncio.get_running_loop()
    reloading: set[asyncio.Task[None]] = set()

    def on_hangup() -> None:
        task = loop.create_task(_reload(node))
        reloading.add(task)
        task.add_done_callback(reloading.discard)

    if node.config.source is not None or node.sealing is not None:
        loop.add_signal_handler(signal.SIGHUP, on_hangup)
    came: asyncio.Future[str] = loop.create_future()

    def on_signal(number: signal.Signals) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        came.set_result(number.name)

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, on_signal, each)
    ended = asyncio.create_task(node.wait_ended())
    ticking = asyncio.create_task(_tick(reporter, notifier))
    try:
        await asyncio.wait((came, ended, ticking), return_when=asyncio.FIRST_COMPLETED)
        if node.is_removed and not came.done():
            _log.warning("%s; it serves nobody and waits to be stopped", ended.exception() or "this node has left")
            await came
            return came.result()
        for task in (ended, ticking):
            if task.done():
                task.result()
        return came.result() if came.done() else "the node ended"
    finally:
        ended.cancel()
        ticking.cancel()
        await asyncio.gather(ended, ticking, return_exceptions=True)


async def _reload(node: GroupHost) -> None:
    if node.sealing is not None:
        await _rekey(node)
    if node.config.source is None:
        return
    try:
        document = await management.reload(node)
    except UsageError as error:
        _log.error("the file was not reloaded, nothing has changed: %s", error)
        return
    what = "is new" if document["changed"] else "has not changed"
    _log.info("the file was reloaded: the node list, version %s, %s", document["version"], what)
    for what, said in (("rights", "the rights of clients are new"), ("certificates", "the certificates are new")):
        if document[what]:
            _log.info("%s", said)
    if document["restart"]:
        _log.warning("what else has changed in the file needs a restart: %s", ", ".join(document["restart"]))


async def _rekey(node: GroupHost) -> None:
    try:
        document = await management.rekey(node)
    except UsageError as error:
        _log.error("the key file was not read again, nothing has changed: %s", error)
        return
    _log.info("the key file was read: key %s is used, key %s is next", document["used"], document["next"])


async def _tick(reporter: Reporter, notifier: Notifier) -> None:
    interval = TICK_S if notifier.watchdog_s is None else min(TICK_S, notifier.watchdog_s / 3)
    while True:
        reporter.tick()
        if notifier.watchdog_s is not None:
            notifier.tell(WATCHDOG="1", STATUS=reporter.line())
        else:
            notifier.tell(STATUS=reporter.line())
        await asyncio.sleep(interval)


@dataclass(slots=True)
class Reporter:
    """Turns what a node counts into log lines: each matter when it begins, then at most once a minute."""

    node: ObservedNode
    _meter: Meter = field(default_factory=Meter)
    _members: tuple[ProcessId, ...] | None = None
    _alarms_seen: int = 0  # number of the last alarm that was logged
    _said: dict[str, tuple[Instant, int]] = field(default_factory=dict)  # by matter: when, and the count then

    def started(self) -> None:
        config, sockets = self.node.config, self.node.sockets
        plan = plan_of(config)
        asked, granted = config.attachments[0].network.buffer_size, sockets.data.receive_buffer_size
        _log.info(
            "Ordercast %s: %s of cluster %s, node %s; tokens at %s, data at %s; segmentation %s",
            __version__,
            config.name,
            config.sizes.cluster,
            config.node,
            sockets.token.where,
            sockets.data.where,
            "on" if sockets.segmentation else "off",
            extra=fields(version=__version__, cluster=config.sizes.cluster, node_id=config.node),
        )
        for place, more in zip(config.places[1:], self.node.networks[1:], strict=True):
            _log.info("%s: tokens at %s, data at %s", place, more.token.where, more.data.where)
        for remark in plan.remarks:
            _log.log(logging.INFO if config.is_on_one_machine else logging.WARNING, "%s", remark)
        if granted < asked:
            _log.warning(
                "the kernel granted a receive buffer of %s instead of %s: %s",
                size_text(granted),
                size_text(asked),
                plan.sysctl or f"sysctl -w net.core.rmem_max={asked}",
                extra=fields(asked=asked, granted=granted),
            )

    def on_view(self, view: Configuration) -> None:
        change = view_change(self.node, datetime.now(UTC), view, self._members)
        if view.kind is not ConfigurationKind.REGULAR:
            return
        self._members = view.members
        _log.log(
            logging.WARNING if change.gone and not change.is_leave else logging.INFO,
            "%s",
            change_text(change),
            extra=fields(
                view=change.id,
                members=change.members,
                joined=change.joined,
                gone=change.gone,
                restarted=change.restarted,
                reason=change.reason,
            ),
        )

    def tick(self) -> None:
        for entry in self.node.counters.alarms.after(self._alarms_seen):
            self._alarms_seen = entry.number
            self._warn(entry)
        for matter, count, noun, what in self._matters():
            self._say(matter, count, noun, what)

    def _warn(self, entry: KeptAlarm) -> None:
        alarm = entry.alarm
        since = f" (and {counted(entry.before, 'time')} since the last of these lines)" if entry.before else ""
        _log.warning(
            "%s: %s%s", alarm.kind.value, text_of(alarm, self.node.name_of), since, extra=fields(alarm=alarm.kind.value)
        )

    def line(self) -> str:
        """Everything in one line."""
        status = status_of(self.node, self._meter)
        names = " ".join(member.name for member in status.configuration.members)
        rate = status.rates.messages_delivered
        here = f"{status.engine} {status.configuration.id} of {names}"
        return f"{status.configuration.state.lower()}, {here}; {rate:,.0f} messages/s"

    def _matters(self) -> Iterator[tuple[str, int, str, str]]:
        refused = refusals(self.node.counters)
        for kind, advice in ADVICE_ON_REFUSALS.items():
            yield kind.value, refused[kind.value], "packet", f"refused ({kind.value}): {advice}"
        clients = self.node.counters.clients.refusals
        for why, advice in ADVICE_ON_CLIENTS.items():
            yield f"clients: {why.value}", clients[why], "client", f"refused ({why.value}): {advice}"
        lanes = [lane for network in self.node.networks for lane in (("token", network.token), ("data", network.data))]
        for name, lane in lanes:
            yield f"drops {name}", lane.kernel_drops(), "packet", f"found the {name} receive buffer full"
            yield f"sends {name}", lane.counters.send_failures, "send", f"on the {name} lane refused by the kernel"

    def _say(self, matter: str, count: int, noun: str, what: str) -> None:
        now = self.node.now()
        at, before = self._said.get(matter, (None, 0))
        if count > before and (at is None or now - at >= REPEAT_NS):
            _log.warning("%s %s", counted(count - before, noun), what, extra=fields(matter=matter, count=count))
            self._said[matter] = now, count
