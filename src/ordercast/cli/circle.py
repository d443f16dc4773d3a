"""A network of rings on one machine, as a cluster file: what `ordercast up --rings` runs.

Each ring has its own part of the loopback network (127.0.1.x, 127.0.2.x, …) and its own multicast group, so that rings
are as far from each other as on LANs of their own. Gateways join each ring with the next, and the last with the first.
"""

from __future__ import annotations

from typing import NamedTuple

from ordercast.daemon.config.node import LOCAL_NODES_MAX, name_at
from ordercast.model.errors import UsageError

FIRST_GROUP = 100  # the last byte of the first ring's multicast address


class Placed(NamedTuple):
    """A daemon, and the rings that it is on."""

    name: str
    rings: tuple[str, ...]

    @property
    def is_gateway(self) -> bool:
        return len(self.rings) > 1


def circle(rings: int, each: int) -> list[Placed]:
    """Return the daemons of so many rings: of each, the last joins it with the next. UsageError when that are too
    many."""
    if rings * each > LOCAL_NODES_MAX:
        raise UsageError(
            f"{rings} rings of {each} daemons are {rings * each}, and this machine takes {LOCAL_NODES_MAX}"
        )
    placed: list[Placed] = []
    ordinary = each - 1 if rings > 1 else each
    for ring in range(rings):
        name = f"r{ring + 1}"
        placed += [Placed(f"n{ring * ordinary + number + 1}", (name,)) for number in range(ordinary)]
    if rings > 1:
        placed += [Placed(f"g{ring + 1}", (f"r{ring + 1}", f"r{(ring + 1) % rings + 1}")) for ring in range(rings)]
    return placed


def circle_file(placed: list[Placed], port: int, status_port: int) -> str:
    """Return the cluster file of these daemons. The status of the first is at `status_port`, and so on."""
    cluster = f'cluster = "{name_at("rings", port)}"'
    rings = sorted({ring for one in placed for ring in one.rings}, key=lambda ring: (len(ring), ring))
    lines = ["# A network of rings on one machine, made by `ordercast up --rings`.", cluster]
    for number, ring in enumerate(rings, 1):
        group = f"239.192.79.{FIRST_GROUP + number - 1}"
        lines += ["", f"[rings.{ring}]", f"id = {number}", f'group = "{group}"', f"port = {port}"]
    for node, one in enumerate(placed, 1):
        legs = ", ".join(f'{ring} = "127.0.{rings.index(ring) + 1}.{node}"' for ring in one.rings)
        status = f"status_port = {status_port + node - 1}"
        lines += ["", f"[nodes.{one.name}]", f"id = {node}", f"rings = {{ {legs} }}", status]
    return "\n".join(lines) + "\n"
