"""Cluster files of several sites on loopback, strangers to those of other tests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from tests.ports import free_ports

_NUMBERS = count(1)


def site_file(
    folder: Path,
    sites: Mapping[str, Sequence[str]],
    *,
    more: str = "",
    links: Sequence[str] = (),
    wide: Mapping[str, tuple[int, int]] = {},
) -> Path:
    """Write a file in which sites have these nodes, and return where it is. `links`: lines of tables [[links]]; `wide`:
    at which port of 127.0.0.1 others reach a node, and where it listens; `more`: lines before the first table. Timers
    are the usual ones: a busy machine is not a fault."""
    port, cluster = free_ports(), f"sites {os.getpid()} {next(_NUMBERS)}"
    lines = [f'cluster = "{cluster}"\nengine = "sites"', more, '[clients]\nfolder = "."']
    node = 0
    for number, (site, names) in enumerate(sites.items(), 1):
        lines.append(f'[sites.{site}]\nid = {number}\nport = {port}\ngroup = "239.192.79.{70 + number}"')
        for name in names:
            node += 1
            lines.append(f'[nodes.{name}]\nid = {node}\nsite = "{site}"\nstatus_port = 0')
            lines.append(f'address = "127.0.{number}.{node}"')
            if name in wide:
                reached, listens = wide[name]
                lines.append(f'wide = "127.0.0.1"\nwide_port = {reached}\nlink_port = {listens}')
    lines += [f"[[links]]\n{link}" for link in links]
    file = folder / "cluster.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file
