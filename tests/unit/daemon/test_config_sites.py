"""Several sites in a cluster file: who is in which, which are joined, and everything that is refused or remarked on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ordercast.cli.cluster import _write_toml
from ordercast.daemon.config.file import ConfigError, load_config, read_cluster
from ordercast.daemon.config.node import LINK_OFFSET, LinkProtocol, NodeConfig, WidePlace
from ordercast.daemon.config.plan import plan_lines, plan_of
from ordercast.daemon.config.rings import site_remarks
from ordercast.daemon.host import GroupHost
from ordercast.daemon.management import _others_changed, listing
from ordercast.model.ids import MILLISECOND, Instant
from ordercast.order.catalogue import ENGINES

pytestmark = pytest.mark.skipif(not ENGINES["sites"].is_live, reason="daemons do not run the engine yet")

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "three-sites.toml"
NODES = """
[nodes.a]
id = 1
site = "east"
address = "10.0.1.1"
wide = "203.0.113.1"
[nodes.b]
id = 2
site = "west"
address = "10.0.2.2"
wide = "198.51.100.2"
wide_port = 4900
link_port = 4801
"""
SITES = "[sites.east]\nid = 1\n[sites.west]\nid = 2\nport = 4800\n"
TWO = f'cluster = "shop"\n[sites]\ndelta = "50ms"\nlink_loss = "900ms"\n{SITES}{NODES}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.toml"


def problems(file: Path, text: str) -> list[str]:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_cluster(file)
    return [problem.removeprefix(f"{file}: ") for problem in raised.value.problems]


def test_sites_are_read(file: Path) -> None:
    file.write_text(TWO, encoding="utf-8")
    config = load_config(file, "a")
    assert config.engine == "sites" and config.has_sites
    assert [(site.name, site.number) for site in config.my_rings] == [("east", 1)]
    assert (config.sites.delta_ns, config.sites.links.silence_ns) == (50 * MILLISECOND, 900 * MILLISECOND)
    ((far, protocol),) = config.beyond()
    assert (far.name, protocol) == ("b", LinkProtocol.UDP)
    assert far.wide_place == WidePlace("198.51.100.2", 4900, 4801)
    assert config.me().wide_place == WidePlace("203.0.113.1", 4701 + LINK_OFFSET, 4701 + LINK_OFFSET)
    assert [peer.name for peer in config.attachments[0].peers] == ["a"]
    assert not config.attachments[0].others()


def test_links_are_those_of_the_file(file: Path) -> None:
    third = '[sites.south]\nid = 3\n[nodes.c]\nid = 3\nsite = "south"\naddress = "10.0.3.3"\n'
    links = '[[links]]\nbetween = ["east", "west"]\nprotocol = "tcp"\n[[links]]\nbetween = ["west", "south"]\n'
    file.write_text(TWO + third + links, encoding="utf-8")
    config = load_config(file, "a")
    assert [(peer.name, protocol) for peer, protocol in config.beyond()] == [("b", LinkProtocol.TCP)]
    assert [remark.partition(":")[0] for remark in site_remarks(config)] == [
        "the link between east and west alone joins its two sides",
        "the link between west and south alone joins its two sides",
    ]
    file.write_text(TWO + third + '[[links]]\nbetween = ["east", "west"]\n', encoding="utf-8")
    assert any("no links lead from east, west to south" in remark for remark in site_remarks(load_config(file, "a")))


def test_an_engine_for_sites_without_any_is_told() -> None:
    (remark,) = site_remarks(NodeConfig(engine="sites"))
    assert remark.startswith("no sites are named")
    assert not list(site_remarks(NodeConfig()))


def test_config_check_shows_site_and_links(file: Path) -> None:
    file.write_text(TWO, encoding="utf-8")
    lines = plan_lines(plan_of(load_config(file, "a")))
    assert ("link", "to west by UDP: b at 198.51.100.2:4900") in lines
    assert any(title == "site" and text.startswith("east (id 1), with nobody else") for title, text in lines)
    others = plan_lines(plan_of(load_config(file, "b")))
    assert ("link", "others reach it at 198.51.100.2:4900; it listens at port 4801") in others


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'engine = "ring"\n{TWO}', 'engine: "ring" is for one place, and this file has [sites.NAME]: write "sites"'),
        (
            'cluster = "shop"\nengine = "sites"\n[nodes.a]\nid = 1\naddress = "10.0.0.1"\n',
            'engine: "sites" needs sites: write [sites.NAME] for each, and site = "NAME" for each node',
        ),
        (
            TWO.replace('site = "west"', 'site = "wset"'),
            "nodes.b.site: there is no [sites.wset]: perhaps west is meant",
        ),
        (TWO.replace('site = "west"\n', ""), "nodes.b.site is missing: write the name of one of [sites]"),
        (
            TWO.replace('address = "10.0.2.2"\n', ""),
            "nodes.b.address is missing: write where the nodes of its site reach it",
        ),
        (TWO.replace("id = 2\nport", "id = 1\nport"), "sites.west.id: 1 is the id of sites.east too: give it another"),
        (
            TWO + '[[links]]\nbetween = ["east"]\n',
            'links.0.between: a list does not name two sites: write them in brackets, such as ["east", "west"]',
        ),
        (TWO + '[[links]]\nbetween = ["east", "north"]\n', "links.0.between: there is no [sites.north]"),
        (
            TWO + '[[links]]\nbetween = ["east", "east"]\n',
            "links.0.between: east is there twice: a link joins two sites",
        ),
        (
            TWO + '[[links]]\nbetween = ["east", "west"]\nprotocol = "sctp"\n',
            'links.0.protocol: "sctp" is not one of udp, tcp',
        ),
        (
            TWO + '[[links]]\nbetween = ["east", "west"]\n[[links]]\nbetween = ["west", "east"]\n',
            "links.1.between: west and east have a link already: leave one out",
        ),
        (
            TWO.replace('wide = "198.51.100.2"', 'wide = "203.0.113.1"').replace(
                "wide_port = 4900", "wide_port = 4829"
            ),
            "nodes.b.wide_port: other sites reach nodes.a at 203.0.113.1 port 4829 too: give one of them another",
        ),
        (
            TWO.replace('delta = "50ms"', 'record = "1s"'),
            "[sites] record must be more than twice hello (hello is 1s, record is 1s)",
        ),
        (
            TWO
            + "".join(
                f"[sites.s{number}]\nid = {number}\nport = {4800 + number}\n"
                f'[nodes.n{number}]\nid = {number}\nsite = "s{number}"\naddress = "10.0.3.{number}"\n'
                for number in range(3, 66)
            ),
            "sites: 65 are too many: a view has 64 at most",
        ),
    ],
    ids=lambda value: value[:40] if value.startswith(("engine:", "nodes", "sites", "links", "[sites] ")) else "",
)
def test_what_is_wrong_is_said_with_key_and_fix(file: Path, text: str, expected: str) -> None:
    assert expected in problems(file, text)


def test_a_node_list_is_shown_as_a_file_has_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(TWO, encoding="utf-8")
    config = load_config(file, "a")
    engine = SimpleNamespace(roster=config.attachments[0].roster, roster_differences=lambda now: ())
    host = SimpleNamespace(config=config, engine=engine, members=(), now=lambda: Instant(0))
    _write_toml(listing(cast(GroupHost, host)))
    written = f'cluster = "shop"\n{capsys.readouterr().out}'.replace("[nodes", f"{SITES}[nodes", 1)
    file.write_text(written, encoding="utf-8")
    assert [(peer.entry, peer.rings, peer.wide_place) for peer in load_config(file, "a").peers] == [
        (peer.entry, peer.rings, peer.wide_place) for peer in config.peers
    ]


def test_nodes_of_other_sites_wait_for_a_restart(file: Path) -> None:
    """The list of a node's own site is taken by a reload; links are settled at the start."""
    file.write_text(TWO, encoding="utf-8")
    before = load_config(file, "a")
    more = '[nodes.c]\nid = 3\nsite = "{}"\naddress = "10.0.1.3"\n'
    file.write_text(TWO + more.format("east"), encoding="utf-8")
    assert _others_changed(before, load_config(file, "a")) == []
    file.write_text(TWO + more.format("west"), encoding="utf-8")
    assert _others_changed(before, load_config(file, "a")) == ["nodes of other sites"]
    file.write_text(TWO.replace("wide_port = 4900", "wide_port = 4901"), encoding="utf-8")
    assert _others_changed(before, load_config(file, "a")) == ["nodes of other sites"]


def test_the_example_is_sound() -> None:
    config = load_config(EXAMPLE, "alpha")
    assert config.engine == "sites" and len(config.rings) == 3 and len(config.site_links) == 3
