"""The file of rings on one machine is one that daemons take, without a remark on its rings."""

from __future__ import annotations

import socket
from asyncio.subprocess import Process
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ordercast.cli.circle import Placed, circle, circle_file
from ordercast.cli.daemons import Daemon
from ordercast.cli.up import hints_for, running_of
from ordercast.cli.wide_area import sites_file, sites_from
from ordercast.daemon.config.file import read_cluster
from ordercast.daemon.config.rings import ring_remarks
from ordercast.model.errors import UsageError


@pytest.mark.parametrize(("rings", "each"), [(1, 2), (2, 1), (2, 2), (3, 2), (3, 4), (24, 2)])
def test_the_file_is_sound(tmp_path: Path, rings: int, each: int) -> None:
    placed = circle(rings, each)
    file = tmp_path / "cluster.toml"
    file.write_text(circle_file(placed, 4700, 4790), encoding="utf-8")
    cluster = read_cluster(file)
    assert len(placed) == rings * each and cluster.names == tuple(one.name for one in placed)
    assert sum(one.is_gateway for one in placed) == (rings if rings > 1 else 0)
    for one in placed:
        assert tuple(ring.name for ring in cluster.node(one.name).my_rings) == one.rings
    assert list(ring_remarks(cluster.node(placed[0].name))) == []


@pytest.mark.parametrize(
    ("engine", "shown"),
    [("ring", set()), ("gateways", {"topology"}), ("sites", {"sites"}), ("tree", {"graph show"})],
)
def test_what_shows_the_engine_is_named_also_where_there_is_one_ring_or_site(engine: str, shown: set[str]) -> None:
    process = cast(Process, SimpleNamespace(pid=7, returncode=None))
    daemon = Daemon(1, process, "n1", status="http://127.0.0.1:4790/status")
    rings = {"n1": Placed("n1", ("s1",))} if engine in ("gateways", "sites") else {}
    typed = {command for command, _ in hints_for([daemon], rings, engine)}
    found = {what for what in ("topology", "sites", "graph show") if f"ordercast {what} :4790" in typed}
    assert found == shown


def test_the_nodes_whose_ports_are_taken_run_already(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.1.1", 0))
        port = one.getsockname()[1] - 1
        file.write_text(circle_file(circle(3, 2), port, 4790), encoding="utf-8")
        assert running_of(file) == {"n1"}
        file.write_text(sites_file(sites_from("east=2,west=1", None), port, 4790), encoding="utf-8")
        assert running_of(file) == {"n1"}
    assert running_of(file) == set()


def test_another_port_is_another_cluster() -> None:
    """Clusters of one user have one key: packets of one that are copied to another must not open there."""
    named = {
        text.partition('cluster = "')[2].partition('"')[0]
        for port in (4700, 4930)
        for text in (circle_file(circle(2, 2), port, 4790), sites_file(sites_from("2", None), port, 4790))
    }
    assert named == {"rings", "sites", "rings-4930", "sites-4930"}


def test_a_site_that_is_there_twice_is_named() -> None:
    with pytest.raises(UsageError, match="east is there twice: write each site once"):
        sites_from("east=2,east=1", None)


def test_too_many_are_refused() -> None:
    with pytest.raises(UsageError, match="25 rings of 2 daemons are 50, and this machine takes 48"):
        circle(25, 2)
