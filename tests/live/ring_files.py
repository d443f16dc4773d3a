"""Cluster files of several rings on loopback, strangers to those of other tests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from tests.ports import free_ports

QUICK = '[ring]\ntoken_loss = "300ms"\nconsensus = "100ms"\nannounce = "40ms"\nrest = "40ms"\npause = "100ms"\n'
_NUMBERS = count(1)


def ring_file(
    folder: Path,
    rings: Mapping[str, Sequence[str]],
    *,
    transport: str = "multicast",
    networks: Mapping[str, int] = {},
    crossed: bool = False,
    more: str = "",
    port: int | None = None,
    cluster: str = "",
) -> Path:
    """Write a file in which rings have these nodes, and return where it is. `networks`: of rings that have several;
    `crossed`: all rings have one multicast group; `more`: further lines, which may begin before the first table."""
    port = port or free_ports()
    cluster = cluster or f"rings {os.getpid()} {next(_NUMBERS)}"
    names = sorted({name for nodes in rings.values() for name in nodes})
    lines = [f'cluster = "{cluster}"', more, QUICK, '[clients]\nfolder = "."']
    for number, ring in enumerate(rings, 1):
        lines.append(f"[rings.{ring}]\nid = {number}")
        for network in range(networks.get(ring, 1)):
            lines.append(f"[[rings.{ring}.networks]]" if ring in networks else "")
            group = 70 if crossed else 70 + 10 * network + number
            lines.append(f'transport = "{transport}"\nport = {port}\ngroup = "239.192.79.{group}"')
    for node, name in enumerate(names, 1):
        legs = []
        for number, (ring, nodes) in enumerate(rings.items(), 1):
            addresses = [f'"127.{network}.{number}.{node}"' for network in range(networks.get(ring, 1))]
            if name in nodes:
                legs.append(f"{ring} = [{', '.join(addresses)}]" if ring in networks else f"{ring} = {addresses[0]}")
        lines.append(f"[nodes.{name}]\nid = {node}\nstatus_port = 0\nrings = {{ {', '.join(legs)} }}")
    file = folder / "cluster.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file
