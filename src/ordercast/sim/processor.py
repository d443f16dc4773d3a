"""What packets cost a host in time: taking each from its network, and processing it.

Copies that come on several networks are taken one by one, and each of them costs that. Only the first is ordered and
delivered: the others are known by their numbers and dropped, which costs nothing more. With one network there are no
copies, and nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.inputs import Lane, Packet
from ordercast.order.traffic import Traffic
from ordercast.sim.options import SimOptions


class Processor:
    __slots__ = ("_options", "_processed", "_remembers", "_slowness", "_traffic")

    def __init__(self, options: SimOptions, traffic: Traffic, slowness: float) -> None:
        self._options = options
        self._traffic = traffic
        self._slowness = slowness
        self._remembers = options.networks.count > 1 and options.sealed is None  # names are sealed
        self._processed: set[bytes] = set()

    def receiving_ns(self, packets: Sequence[Packet]) -> int:
        options = self._options
        cost = options.receive_ns * len(packets)
        for data, size, lane, _, _ in packets:
            if self._remembers and self._is_copy(data):
                continue
            cost += options.token_ns if lane is Lane.TOKEN else options.packet_ns + options.byte_ns * size
        return int(cost * self._slowness)

    def sending_ns(self, copies: int = 1) -> int:
        return int(self._options.send_ns * copies * self._slowness)

    def _is_copy(self, data: bytes | memoryview) -> bool:
        """Tell whether this is a copy of one that was here before. From now on there was one."""
        name = self._traffic.name(bytes(data))
        if name is None or name in self._processed:
            return name is not None
        self._processed.add(name)
        return False
