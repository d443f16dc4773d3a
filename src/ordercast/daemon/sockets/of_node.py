"""The sockets of a node: of every network of every ring that it is on, and those towards other sites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.sockets.lanes import LaneSocket
from ordercast.daemon.sockets.network import Sockets
from ordercast.daemon.sockets.wide import WideSockets
from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import Attachment
from ordercast.order.sites.promised import WIDE
from ordercast.sealing.keys import KeyRing
from ordercast.sealing.packet import opening_of
from ordercast.wire.head import MAGIC

WINDOW_MIN = 24  # packets: smaller buffers than this need other help


@dataclass
class NodeSockets:
    networks: list[Sockets] = field(default_factory=list)  # of each attachment: one, or several that are redundant
    wide: WideSockets | None = None  # towards other sites

    def open(self, config: NodeConfig) -> NodeConfig:
        """Open the sockets of every network of every attachment; on the first a node without an id finds one. Return
        the configuration with it."""
        for attachment in range(len(config.attachments)):
            for number in range(len(config.attachments[attachment].networks)):
                place = config.attachments[attachment].on(number)
                sockets = Sockets(place, number, Attachment(attachment), has_links=config.has_link_lane)
                self.networks.append(sockets)
                config = sockets.config if config.node is None else config
        if config.has_sites:
            self.wide = WideSockets(config, WIDE)
        return config if config.name else replace(config, name=config.me().name)

    def close(self) -> None:
        for sockets in self.networks:
            sockets.close()
        if self.wide is not None:
            self.wide.close()

    def by_attachment(self) -> dict[Attachment, list[Sockets]]:
        """Return the sockets of each attachment, its networks in order."""
        found: dict[Attachment, list[Sockets]] = {}
        for sockets in self.networks:
            found.setdefault(sockets.attachment, []).append(sockets)
        return found

    def admit(self, keys: KeyRing | None) -> None:
        """Have the kernel drop what is sealed with none of these keys; without keys, what is not of Ordercast."""
        heads = (MAGIC,) if keys is None else tuple(map(opening_of, keys.accepted))
        for lane in self._lanes():
            lane.admit(heads)

    def _lanes(self) -> Iterator[LaneSocket]:
        for sockets in self.networks:
            yield from sockets.lanes
        if self.wide is not None:
            yield from self.wide.lanes

    def within_buffers(self, config: NodeConfig) -> tuple[NodeConfig, Alarm | None]:
        """A rotation must fit in the receive buffer that the kernel granted, or a busy moment loses packets. Return the
        configuration with a window that does, and an alarm if it had to become smaller."""
        ring = config.ring
        held = max(WINDOW_MIN, min(sockets.packets_held(ring.packet_size_max) for sockets in self.networks))
        if ring.window + ring.visit_max <= held:
            return replace(config, ring=replace(ring, window_max=min(ring.window_max, held - ring.visit_max))), None
        visit_max = min(ring.visit_max, held // 3)
        window = min(ring.window, held - visit_max)
        asked = config.attachments[0].network.buffer_size
        text = (
            f"the kernel grants a receive buffer of {self.networks[0].data.receive_buffer_size:,} bytes, so the window "
            f"is {window} packets instead of {ring.window}: raise net.core.rmem_max to {asked}"
        )
        fitting = replace(config, ring=replace(ring, window=window, window_max=window, visit_max=visit_max))
        return fitting, Alarm(AlarmKind.SMALL_BUFFER, text)
