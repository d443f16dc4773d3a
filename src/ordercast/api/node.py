"""Node: a member of the cluster inside any asyncio program, with named groups. See `api/member.py` for its methods.

    async with ordercast.Node() as me:
        await me.join("orders")
        ...

A node belongs to the event loop on which it was started; see `thread.py` for a node with a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Self

from ordercast.api.callback import OnMessage
from ordercast.api.group_inbox import GroupInbox
from ordercast.api.member import Member
from ordercast.api.pieces import batch_from, size_of
from ordercast.api.waiters import Waiters
from ordercast.daemon.config.defaults import LOCAL_PORT_MAX
from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.host import GroupHost
from ordercast.daemon.participant import NodeFailed
from ordercast.groups.envelope import Head, decode_head
from ordercast.groups.layer import MessageRun, data_head, join_payload, leave_payload
from ordercast.groups.names import checked_group
from ordercast.model.arguments import given
from ordercast.model.configuration import Configuration
from ordercast.model.effects import Alarm
from ordercast.model.errors import UsageError
from ordercast.model.events import Batch
from ordercast.model.ids import Position
from ordercast.model.service import Service
from ordercast.session.handouts import Handout

HEADS_MAX = 1000  # that are remembered
DEFAULT_NAME = "app"


def _local(config: NodeConfig | None, cluster: str | None, port: int | None) -> NodeConfig | None:
    """Return the configuration of a node that is given a cluster or a port instead of one."""
    if cluster is None and port is None:
        return config
    if config is not None:
        raise UsageError("cluster and port are in the NodeConfig: give them there")
    if port is not None and not 0 < given(port, int, "port", "a number") <= LOCAL_PORT_MAX:
        raise UsageError(f"{port} is no port for the nodes of a machine: give one from 1 to {LOCAL_PORT_MAX}")
    if cluster is not None:
        given(cluster, str, "cluster", "its name")
    return NodeConfig().beside(cluster, port)


class Node(Member):
    def __init__(
        self,
        config: NodeConfig | None = None,
        *,
        name: str = DEFAULT_NAME,
        cluster: str | None = None,
        port: int | None = None,
        on_configuration: Callable[[Configuration], None] | None = None,
        on_alarm: Callable[[Alarm], None] | None = None,
        on_message: OnMessage | None = None,
        sinks: bool = False,
    ) -> None:
        """`name`: of this program among the clients of its node. `cluster` and `port`: of nodes of this machine without
        a NodeConfig, if several clusters are to run there. `on_configuration` is told of every change in the
        configuration of nodes, before the groups are; `on_alarm` of what a person should know, such as a network that
        fails; `on_message` is called with each event, in order, in the turn of the packet that brought it: there is no
        stream to read then. It may not block: the whole cluster waits meanwhile. `sinks`: show what queries of Spark
        send to a group, parts and markers of their rows; otherwise it is left out."""
        super().__init__()
        if config is not None and not isinstance(config, NodeConfig):
            raise UsageError(f"a Node takes a NodeConfig, not {config!r:.80}: load_config(FILE, NAME) reads a file")
        self.host = GroupHost(_local(config, cluster, port), on_configuration, on_alarm)
        size_max = self.host.config.inbox_size_max
        self.inbox = self.host.reading = GroupInbox(size_max, self.host.on_behind)
        self.inbox.shows_sinks = sinks
        if on_message is not None:
            self.callback = self.host.counters.callback = self.inbox.call(on_message)
        self._asked_name = name
        self._number = 0
        self._name = ""
        self._heads: dict[bytes, Head] = {}
        self._waiters = Waiters()
        self._pending: set[asyncio.Future[None]] = set()  # of requests that were not accepted yet

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *how: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Open everything and begin. What is in the way is told by a UsageError, and nothing is left open."""
        await self.host.start()
        try:
            self._number, self._name = self.host.open_session(self, self._asked_name)
        except UsageError:
            await self.host.leave()
            raise

    async def close(self) -> None:
        """Finish what was sent, tell the others, close. The others see a leave of the node, not a failure."""
        if self.host.is_running:
            self._tell_loss("the node was closed")
        await self.host.leave()

    @property
    def name(self) -> str:
        return self._name

    async def groups(self) -> dict[str, int]:
        self._check_usable()
        return self.host.named.table.groups()

    async def members(self, group: str) -> tuple[str, ...]:
        self._check_usable()
        return self.host.named.table.members_of(checked_group(group))

    # Sending

    def _check_usable(self) -> None:
        self.host.check_running()

    async def _ask(self, groups: tuple[str, ...], *, joins: bool) -> None:
        payload = join_payload(self._name, groups) if joins else leave_payload(self._name, groups)
        changes = self._waiters.changes(groups, joins=joins)
        await self._request([payload], Service.AGREED, len(groups))
        await asyncio.gather(*changes)

    async def _send(
        self,
        groups: tuple[str, ...],
        data: list[bytes],
        service: Service,
        *,
        confirm: bool,
        self_discard: bool,
        headed: bool,
    ) -> Position | None:
        self._check_usable()
        head = data_head(self._name, groups, self_discard=self_discard, confirm=confirm, headed=headed)
        largest = max(map(len, data))
        size_max = self.host.config.sizes.message_size_max - len(head)
        if largest > size_max:
            raise UsageError(
                f"a message of {largest:,} bytes is too large, at most {size_max:,} go to these groups: cut it up"
            )
        confirmation = self._waiters.confirmation(len(data)) if confirm else None
        await self._request([head + one for one in data], service)
        return None if confirmation is None else await confirmation

    async def _request(self, payloads: list[bytes], service: Service, changes: int = 0) -> None:
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.host.request(self._number, payloads, service, partial(_settle, accepted), changes)
        if not accepted.done():
            self._pending.add(accepted)
            try:
                await accepted
            finally:
                self._pending.discard(accepted)
        await self.host.give_turn()

    # What the host tells (see `host.Session`)

    def on_handout(self, handout: Handout) -> None:
        content = handout.content
        piece = self._batch(content) if isinstance(content, MessageRun) else content.news
        if isinstance(piece, Batch) and piece.headers and piece.groups == (self._name,):
            for rest in self._requests.without_replies(piece):
                self.inbox.put(rest, size_of(rest))
        else:
            self.inbox.put(piece, size_of(piece))
        self._waiters.saw(piece, self._name)

    def _batch(self, run: MessageRun) -> Batch:
        head = self._heads.get(run.head)
        if head is None:
            if len(self._heads) >= HEADS_MAX:
                self._heads.clear()
            head = self._heads[run.head] = decode_head(run.head)
        return batch_from(run, head)

    def on_confirmed(self, run: MessageRun) -> None:
        self._waiters.confirmed(len(run.payloads), run.places)

    def on_ended(self, why: str) -> None:
        self._tell_loss(why)
        error = NodeFailed(why)
        self._waiters.fail(error)
        for accepted in self._pending:
            if not accepted.done():
                accepted.set_exception(error)

    @property
    def waiting_size(self) -> int:
        return self.inbox.size

    @property
    def received_size(self) -> int:
        return 0

    def flush(self) -> None:
        pass


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
