"""Several rings in a cluster file: who is on which, and everything that is refused or remarked on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.daemon.config.file import ConfigError, load_config, read_cluster
from ordercast.daemon.config.node import Transport
from ordercast.daemon.config.plan import plan_lines, plan_of
from ordercast.daemon.config.rings import ring_remarks

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "three-rings.toml"
TWO = """
cluster = "plant"
[rings.office]
id = 1
port = 4800
[rings.lab]
id = 2
group = "239.192.79.68"
mtu = 1400
[nodes.n1]
id = 1
rings = { office = "10.0.1.11" }
[nodes.n2]
id = 2
rings = { lab = "10.0.2.12" }
[nodes.g1]
id = 9
rings = { lab = "10.0.2.9", office = "10.0.1.9" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.toml"


def problems(file: Path, text: str) -> list[str]:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_cluster(file)
    return [problem.removeprefix(f"{file}: ") for problem in raised.value.problems]


def remarks(file: Path, text: str, name: str = "n1") -> list[str]:
    file.write_text(text, encoding="utf-8")
    return list(ring_remarks(load_config(file, name)))


def test_rings_are_read(file: Path) -> None:
    file.write_text(TWO, encoding="utf-8")
    config = load_config(file, "g1")
    assert config.engine == "gateways"
    assert [(ring.name, ring.number) for ring in config.my_rings] == [("lab", 2), ("office", 1)]
    lab, office = config.attachments
    assert (lab.me().address, lab.me().token_port) == ("10.0.2.9", 4701)
    assert (office.me().address, office.me().token_port) == ("10.0.1.9", 4801)
    assert [peer.name for peer in lab.peers] == ["n2", "g1"]
    assert [peer.name for peer in config.peers] == ["n1", "n2", "g1"]
    assert config.ring.packet_size_max == 1372  # what is carried must fit on every ring
    assert config.with_packet_size().ring == config.ring
    assert config.places == ("lab", "office")


def test_a_file_without_rings_is_one_ring(file: Path) -> None:
    file.write_text('cluster = "shop"\n[nodes.a]\nid = 1\naddress = "10.0.0.1"\n', encoding="utf-8")
    config = load_config(file, "a")
    assert (config.engine, config.my_rings, config.places) == ("ring", (), ("",))
    assert config.attachments == (config,)


def test_a_ring_may_have_several_networks() -> None:
    config = load_config(EXAMPLE, "west")
    hall, office = config.attachments
    assert [network.name for network in hall.networks] == ["red", "blue"]
    assert hall.on(1).me().address == "10.1.3.9"
    assert office.layer.count == 1 and hall.layer.count == 2
    assert config.places == ("hall, red", "hall, blue", "office")
    assert read_cluster(EXAMPLE).common.rings[1].network.transport is Transport.UNICAST


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("id = 2\ngroup", "id = 1\ngroup"), "rings.lab.id: 1 is the id of rings.office too: give it another"),
        (("[rings.lab]\nid = 2\n", "[rings.lab]\n"), "rings.lab.id is missing: give each ring a number of its own"),
        (("id = 2\ngroup", "id = 256\ngroup"), "rings.lab.id: must be within 1..255, not 256"),
        (('rings = { office = "10.0.1.11" }', ""), "nodes.n1.rings is missing: write rings = { office = "),
        (('rings = { office = "10.0.1.11" }', "rings = {}"), "nodes.n1.rings: a table says no ring: write"),
        (
            ('rings = { office = "10.0.1.11" }', 'address = "10.0.1.11"'),
            "nodes.n1.address: this file has [rings]: write rings = {",
        ),
        (
            ('{ office = "10.0.1.11" }', '{ offce = "10.0.1.11" }'),
            "nodes.n1.rings.offce: there is no [rings.offce]: perhaps office is meant",
        ),
        (
            ('{ office = "10.0.1.11" }', '{ office = ["10.0.1.11", "10.0.1.12"] }'),
            "nodes.n1.rings.office: 2 addresses in one domain: write one",
        ),
        (('"10.0.1.11"', '"here"'), 'nodes.n1.rings: office: "here" is not an IP address'),
        (("[rings.lab]", "[network]\nttl = 2\n[rings.lab]"), "network and rings are both there: write what [network]"),
        (('cluster = "plant"', 'cluster = "plant"\nengine = "ring"'), 'engine: "ring" is for one ring, and this file'),
        (("mtu = 1400", "mtu = 150"), "rings.lab.mtu: 150 is too small: write at least"),
        (('"239.192.79.68"', '"ff15::1"'), "rings.lab.group: ff15::1 is not an IPv4 group as the nodes' addresses"),
        (("[rings.lab]", "[rings.attic]\nid = 7\n[rings.lab]"), "rings.attic: no node is on it"),
        (("id = 9", "id = 1"), "nodes.g1.id: 1 is the id of nodes.n1 too"),
        (('"10.0.2.12"', '"10.0.2.9"'), "nodes.g1.token_port: 10.0.2.9 port 4701 is nodes.n2.token_port too"),
        (("[rings.lab]", '[rings."a.b"]\nid = 7\n[rings.lab]'), "rings.a.b: a ring's name has up to 32 letters"),
    ],
)
def test_what_is_wrong_with_rings(file: Path, change: tuple[str, str], why: str) -> None:
    found = problems(file, TWO.replace(*change, 1))
    assert any(sentence.startswith(why) for sentence in found), found


def test_at_most_255_rings(file: Path) -> None:
    rings = "".join(f"[rings.r{number}]\nid = {number}\n" for number in range(1, 257))
    found = problems(file, f'cluster = "x"\n{rings}[nodes.a]\nid = 1\nrings = {{ r1 = "10.0.0.1" }}\n')
    assert "rings: there are 256: write at most 255" in found


def test_what_stands_in_the_place_of_rings(file: Path) -> None:
    found = problems(file, 'cluster = "x"\nrings = 3\n[nodes.a]\nid = 1\nrings = { r1 = "10.0.0.1" }\n')
    assert found[0] == "rings: 3 stands where tables are expected: write [rings.NAME] above each"


def test_a_gateway_that_is_alone_is_remarked_on(file: Path) -> None:
    assert remarks(file, TWO) == [
        "g1 alone joins office and lab: when it fails the network is in 2; add a second gateway"
    ]
    second = '[nodes.g2]\nid = 10\nrings = { lab = "10.0.2.10", office = "10.0.1.10" }\n'
    assert remarks(file, TWO + second) == []


def test_rings_without_a_path_are_remarked_on(file: Path) -> None:
    apart = TWO.replace('lab = "10.0.2.9", ', "")
    assert remarks(file, apart) == [
        "no path of gateways leads from office to lab: they are networks of their own until some node is on a ring of "
        "each"
    ]


def test_a_circle_has_no_gateway_that_is_alone() -> None:
    assert list(ring_remarks(load_config(EXAMPLE, "alpha"))) == []


def test_the_plan_shows_the_rings(file: Path) -> None:
    file.write_text(TWO, encoding="utf-8")
    lines = plan_lines(plan_of(load_config(file, "g1")))
    assert [text for title, text in lines if title == "ring"] == [
        "lab (id 2), with n2: tokens 10.0.2.9 port 4701, data group 239.192.79.68 port 4700, on the interface of "
        "10.0.2.9",
        "office (id 1), with n1: tokens 10.0.1.9 port 4801, data group 239.192.79.67 port 4800, on the interface of "
        "10.0.1.9",
    ]
    assert ("engine", "gateways") in lines
    assert any("g1 alone joins" in text for _, text in lines)
