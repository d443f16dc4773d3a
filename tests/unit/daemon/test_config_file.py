"""A cluster file becomes what a node needs to know; what is wrong with it is said at once, with file, key and fix."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest

from ordercast.daemon.config.file import (
    STATUS_PORT,
    ConfigError,
    load_config,
    own_name,
    read_cluster,
)
from ordercast.daemon.config.judging import SMALLEST_PACKET
from ordercast.daemon.config.keys import (
    CLUSTER,
    COPIES,
    ENGINE,
    NAMED_NETWORK,
    NODE,
    NODES,
    NODES_VERSION,
    REPLICATION,
    SITES,
    TABLES,
)
from ordercast.daemon.config.node import ClientsConfig, NetworkConfig, NodeConfig, TraceConfig, TraceLevel, Transport
from ordercast.daemon.config.plan import plan_lines, plan_of
from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.catalogue import LIVE
from ordercast.order.gateways.config import GatewaysConfig
from ordercast.order.ring.config import RingConfig
from ordercast.order.tree.config import TreeConfig

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "cluster.toml"
NODE_A = '\n[nodes.a]\nid = 1\naddress = "10.0.0.1"\n'
NODE_B = '\n[nodes.b]\nid = 2\naddress = "10.0.0.2"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.toml"


def loaded(file: Path, text: str, name: str = "a") -> NodeConfig:
    file.write_text('cluster = "shop"\n' + text, encoding="utf-8")
    return load_config(file, name)


def problems(file: Path, text: str, name: str | None = "a") -> list[str]:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load_config(file, name)
    assert all(problem.startswith(f"{file}: ") for problem in raised.value.problems)
    assert all("\n" not in problem for problem in raised.value.problems)
    return [problem.removeprefix(f"{file}: ") for problem in raised.value.problems]


# What is read


def test_a_small_file_is_enough(file: Path) -> None:
    config = loaded(file, NODE_A + NODE_B, "b")
    assert (config.name, config.node, config.ring.cluster) == ("b", 2, "shop")
    assert [(peer.name, peer.address, peer.token_port, peer.data_port) for peer in config.peers] == [
        ("a", "10.0.0.1", 4701, 4700),
        ("b", "10.0.0.2", 4701, 4700),
    ]
    assert config.ring == RingConfig(cluster="shop")
    assert config.network == NetworkConfig()
    assert config.status.port == STATUS_PORT
    assert config.state_folder is None


def test_the_engine_is_chosen_at_the_top(file: Path) -> None:
    assert loaded(file, NODE_A).engine == "ring"
    assert loaded(file, 'engine = "ring"\n' + NODE_A).engine == "ring"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('"star"', f"there is no engine 'star'; daemons can run: {', '.join(LIVE)}"),
        ('"sequencer"', f"'sequencer' runs in the simulator alone; daemons can run: {', '.join(LIVE)}"),
        ("7", "7 is not a text: write it in quotes"),
    ],
)
def test_an_engine_that_daemons_cannot_run_is_refused(file: Path, value: str, why: str) -> None:
    assert problems(file, f'cluster = "shop"\nengine = {value}\n{NODE_A}') == [f"engine: {why}"]


TREE = 'cluster = "shop"\nengine = "tree"\n'


def test_the_tree_engine_has_a_table(file: Path) -> None:
    table = '[tree]\nbuilder = "shallow"\nopen_gap = "5ms"\nchannel_window = "64KiB"\n'
    config = loaded(file, 'engine = "tree"\n' + table + NODE_A + NODE_B, "a")
    assert config.tree == TreeConfig(builder="shallow", open_gap_ns=5 * MILLISECOND, channel_window=64 << 10)
    assert config.has_link_lane and not loaded(file, NODE_A).has_link_lane


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('[tree]\nbuilder = "oak"\n', "[tree] builder must be one of auto, shallow, heuristic-1"),
        ("[tree]\nentry_window = 1000\n", "[tree] entry_window must be at least channel_window (channel_window is"),
        ('[tree]\nlink_patience = "200ms"\n', "[tree] link_patience must be more than the ring's pause, 250ms"),
        ('[ring]\npause = "350ms"\n', "[tree] link_patience must be more than the ring's pause, 350ms"),
        ('[tree]\nclose_patience = "260ms"\n', "[tree] close_patience must be at least link_patience (close_patience"),
        ("[tree]\nopen_gap = 20\n", "tree.open_gap: 20 is not a duration: write a number and a unit in quotes"),
        ('[tree]\nsource_window = "big"\n', "tree.source_window: "),
        ("[tree]\nopen_gaps = 1\n", "tree.open_gaps is not a key: perhaps tree.open_gap is meant"),
    ],
)
def test_what_is_wrong_with_the_tree_engine_is_said(file: Path, table: str, why: str) -> None:
    (problem,) = problems(file, TREE + table + NODE_A)
    assert problem.startswith(why)


def test_a_plan_names_the_port_for_links_of_an_engine_that_has_them(file: Path) -> None:
    texts = 'engine = "tree"\n', ""
    tree, ring = (plan_of(loaded(file, text + NODE_A + NODE_B, "a")) for text in texts)
    assert ("link", "others reach it at 10.0.0.1:4829") in plan_lines(tree)
    assert "link" not in dict(plan_lines(ring))


def test_a_link_port_is_nobody_elses_port(file: Path) -> None:
    nodes = '[nodes.a]\nid = 1\naddress = "10.0.0.1"\n[nodes.b]\nid = 2\naddress = "10.0.0.1"\ntoken_port = 4829\n'
    (problem,) = problems(file, TREE + nodes)
    assert problem.endswith("(its link port, 128 above) too: give one of them another port")
    assert loaded(file, nodes, "a").engine == "ring"


ADAPTIVE = 'cluster = "shop"\nengine = "adaptive"\n'


def test_the_adaptive_engine_has_a_table_with_shares_by_name(file: Path) -> None:
    table = '[adaptive]\npolicy = "fixed"\nshares = { b = 3 }\nblock = 16\nask = "2ms"\nthreshold = 0.2\n'
    config = loaded(file, 'engine = "adaptive"\n' + table + NODE_A + NODE_B, "a")
    assert config.engine == "adaptive"
    assert config.adaptive == AdaptiveConfig(
        policy="fixed", shares=((2, 3),), block=16, ask_ns=2 * MILLISECOND, threshold=0.2
    )
    assert loaded(file, NODE_A).adaptive == AdaptiveConfig()


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("[adaptive]\nreach = 1000\n", "[adaptive] reach must be at least 8192 for 2 members"),
        ("[ring]\nmembers_max = 128\n", "[adaptive] reach must be at least 36864 for 128 members"),
        ('[adaptive]\npolicy = "fair"\n', "[adaptive] policy must be one of demand, window, fixed"),
        ("[adaptive]\nshares = { c = 3 }\n", "adaptive.shares.c: there is no [nodes.c]"),
        ("[adaptive]\nshares = { a = 0 }\n", "adaptive.shares: a node's weight must be within 1..10000, not 0"),
        ("[adaptive]\nshares = 3\n", "adaptive.shares: 3 is not a table of nodes: write { alpha = 3, beta = 1 }"),
        ("[adaptive]\nthreshold = 2.0\n", "[adaptive] threshold must be above 0 and below 1 (threshold is 2.0)"),
        ('[adaptive]\nthreshold = "1"\n', 'adaptive.threshold: "1" is not a number: write it without quotes'),
        ("[adaptive]\nask = 1\n", "adaptive.ask: 1 is not a duration: write a number and a unit in quotes"),
        ("[adaptive]\nblok = 1\n", "adaptive.blok is not a key: perhaps adaptive.block is meant"),
        ("[adaptive]\nblock = 0\n", "[adaptive] block must be at least 1 (block is 0)"),
    ],
)
def test_what_is_wrong_with_the_adaptive_engine_is_said(file: Path, table: str, why: str) -> None:
    (problem,) = problems(file, ADAPTIVE + table + NODE_A)
    assert problem.startswith(why)


def test_a_ring_may_have_more_members_than_the_reach_suits(file: Path) -> None:
    nodes = "".join(f'[nodes.n{n}]\nid = {n}\naddress = "10.0.1.{n}"\n' for n in range(1, 50))
    assert loaded(file, nodes, "n1").engine == "ring"
    (problem,) = problems(file, ADAPTIVE + nodes)
    assert problem.startswith("[adaptive] reach must be at least 16640 for 49 members")


def test_durations_sizes_and_choices_are_written_as_people_do(file: Path) -> None:
    config = loaded(
        file,
        '[network]\ntransport = "unicast"\nport = 5000\nmtu = 9000\nbuffer_size = "8MiB"\n'
        '[ring]\ntoken_loss = "1.2s"\naccelerated = true\nmessage_size_max = "1M"\n'
        '[trace]\nlevel = "full"\nfile_size_max = 1000\n[status]\nport = 0\n' + NODE_A,
    )
    assert config.network.transport is Transport.UNICAST
    assert config.network.buffer_size == 8 << 20
    assert (config.me().token_port, config.me().data_port) == (5001, 5000)
    assert config.ring.token_loss_ns == 1200 * MILLISECOND
    assert config.ring.accelerated
    assert config.ring.message_size_max == 1 << 20
    assert config.ring.packet_size_max == 9000 - 28
    assert config.trace.level is TraceLevel.FULL
    assert config.trace.file_size_max == 1000
    assert config.status.port is None


def test_a_packet_size_that_is_given_survives_the_node_working_it_out(file: Path) -> None:
    config = loaded(file, "[ring]\npacket_size_max = 1200\n" + NODE_A)
    assert config.ring.packet_size_max == config.with_packet_size().ring.packet_size_max == 1200


def test_ipv6_leaves_less_room_in_a_packet(file: Path) -> None:
    config = loaded(file, '[network]\ngroup = "ff15::4f43"\n[nodes.a]\nid = 0\naddress = "fd00::1"\n')
    assert config.ring.packet_size_max == 1500 - 48


def test_clients_are_served_at_a_unix_socket_and_over_tcp_where_a_port_is_given(file: Path) -> None:
    assert loaded(file, NODE_A).clients == ClientsConfig()
    text = '[clients]\nfolder = "run"\nmode = "0660"\nport = 4803\nsessions_max = 5\nqueue_size_max = "1MiB"\n'
    text += 'memory_max = "1GiB"\ngroups_max = 6\nmemberships_max = 7\nhold = "3s"\n'
    wanted = ClientsConfig(file.parent / "run", 0o660, "127.0.0.1", 4803, 5, 1 << 20, 1 << 30, 6, 7, 3 * 10**9)
    assert loaded(file, text + NODE_A).clients == wanted
    nothing = "[clients]\nport = 0\nqueue_size_max = 0\nmemory_max = 0\n"
    assert loaded(file, nothing + NODE_A).clients == ClientsConfig()
    assert problems(file, 'cluster = "shop"\n[clients]\nmode = 600\n' + NODE_A) == [
        'clients.mode: 600 is not a set of permissions: write octal digits in quotes, such as "0660"'
    ]


def test_folders_are_relative_to_the_file_and_each_node_has_its_own(file: Path) -> None:
    config = loaded(file, '[state]\nfolder = "state"\n[trace]\nfolder = "/var/traces"\n' + NODE_A)
    assert config.state_folder == file.parent / "state" / "a"
    assert config.trace.folder == Path("/var/traces")


def test_nodes_of_one_machine_have_status_ports_of_their_own(file: Path) -> None:
    text = NODE_A + "status_port = 4791\n" + NODE_B
    assert loaded(file, text, "a").status.port == 4791
    assert loaded(file, text, "b").status.port == STATUS_PORT


# Which node this is


def test_a_node_is_found_by_host_name_or_by_its_only_address(file: Path) -> None:
    file.write_text('cluster = "x"' + NODE_A + NODE_B, encoding="utf-8")
    cluster = read_cluster(file)
    assert own_name(cluster, "b", lambda _: True) == "b"
    assert own_name(cluster, "b.example.org", lambda _: True) == "b"
    assert own_name(cluster, "host", lambda address: address == "10.0.0.1") == "a"
    for is_here in (True, False):
        with pytest.raises(UsageError, match=r"no node is called host .*give --name, one of a, b"):
            own_name(cluster, "host", lambda _, found=is_here: found)  # type: ignore[misc]


def test_the_only_loopback_address_is_this_host(file: Path) -> None:
    text = 'cluster = "x"\n[nodes.here]\nid = 1\naddress = "127.0.0.1"\n'
    file.write_text(text, encoding="utf-8")
    assert load_config(file).name == "here"


def test_a_name_that_is_not_in_the_file(file: Path) -> None:
    text = 'cluster = "x"\n[nodes.alpha]\nid = 1\naddress = "10.0.0.1"\n'
    assert problems(file, text, "alfa") == ["there is no [nodes.alfa]: perhaps alpha is meant; the file has alpha"]


# What is refused

HEAD = 'cluster = "x"\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (NODE_A, 'cluster is missing: name the cluster at the top of the file, such as cluster = "shop"'),
        ("cluster = 3" + NODE_A, "cluster: 3 is not a text: write it in quotes"),
        (HEAD, "no nodes: add a table [nodes.NAME] with id and address for each"),
        (HEAD + "[netwrk]" + NODE_A, "netwrk is not a key: perhaps network is meant"),
        (HEAD + "[network]\ndata_port = 1" + NODE_A, "network.data_port is not a key: perhaps network.port is meant"),
        (HEAD + "[network]\ntoken_port = 1" + NODE_A, "network.token_port is not a key: perhaps network.port is meant"),
        (HEAD + "mtu = 1500" + NODE_A, "mtu is not a key: mtu belongs to [network]"),
        (HEAD + "ring = 3" + NODE_A, "ring: 3 stands where a table is expected: write [ring] above its keys"),
        (HEAD + '[ring]\ntoken_los = "1s"' + NODE_A, "ring.token_los is not a key: perhaps ring.token_loss is meant"),
        (
            HEAD + "[ring]\ntoken_loss_ns = 3" + NODE_A,
            "ring.token_loss_ns is not a key: perhaps ring.token_loss is meant",
        ),
        (
            HEAD + '[ring]\ncluster = "y"' + NODE_A,
            "ring.cluster is not a key: cluster belongs to the top of the file, before the first table",
        ),
        (
            HEAD + "[ring]\njoin = 40" + NODE_A,
            'ring.join: 40 is not a duration: write a number and a unit in quotes, such as "40ms"',
        ),
        (
            HEAD + '[ring]\njoin = "soon"' + NODE_A,
            "ring.join: 'soon' is not a duration: write a number and a unit, such as 80ms, 0.3s or 50us",
        ),
        (
            HEAD + '[ring]\nwindow = "many"' + NODE_A,
            'ring.window: "many" is not a whole number: write it without quotes and without a unit',
        ),
        (HEAD + "[ring]\naccelerated = 1" + NODE_A, "ring.accelerated: 1 is neither true nor false"),
        (
            HEAD + '[network]\nbuffer_size = "much"' + NODE_A,
            "network.buffer_size: 'much' is not a size: write bytes, such as 400, 4K or 1M",
        ),
        (
            HEAD + "[inbox]\nsize_max = 0" + NODE_A,
            "inbox.size_max: 0 does not hold a message: write at least 1024",
        ),
        (
            HEAD + '[inbox]\nsize_max = "1000"' + NODE_A,
            'inbox.size_max: "1000" does not hold a message: write at least 1024',
        ),
        (
            HEAD + '[network]\ntransport = "multcast"' + NODE_A,
            'network.transport: "multcast" is not one of multicast, unicast: perhaps multicast is meant',
        ),
        (
            HEAD + '[network]\ngroup = "10.1.1.1"' + NODE_A,
            "network.group: 10.1.1.1 is not a multicast address: write one of 224.0.0.0/4, such as 239.192.79.67",
        ),
        (HEAD + "[network]\nport = 70000" + NODE_A, "network.port: must be within 1..65535, not 70000"),
        (
            HEAD + "[network]\nmtu = 150" + NODE_A,
            f"network.mtu: 150 is too small: write at least {SMALLEST_PACKET + 28}",
        ),
        (
            HEAD + "[ring]\npacket_size_max = 9000" + NODE_A,
            "ring.packet_size_max: 9000 does not fit in network.mtu 1500: leave it out, or write at most 1472",
        ),
        (
            HEAD + "[network]\nbuffer_size = 1000" + NODE_A,
            "network.buffer_size: 1000 does not hold a rotation: write at least 1324800",
        ),
        (
            HEAD + '[nodes.a]\nid = 1\naddress = "fd00::1"',
            "network.group: 239.192.79.67 is not an IPv6 group as the nodes' addresses: write ff15::4f43",
        ),
        (
            HEAD + '[nodes.a]\nid = 1\naddress = "alpha.local"',
            'nodes.a.address: "alpha.local" is not an IP address: write it in digits, names are not looked up',
        ),
        (
            HEAD + '[nodes.a]\nid = 1\naddress = "0.0.0.0"',
            "nodes.a.address: 0.0.0.0 is not the address of one host: write the address at which others reach it",
        ),
        (HEAD + '[nodes.a]\naddress = "10.0.0.1"', "nodes.a.id is missing"),
        (HEAD + '[nodes.a]\nid = 99999\naddress = "10.0.0.1"', "nodes.a.id: must be within 0..32767, not 99999"),
        (HEAD + "[nodes]\na = 1", "nodes.a: 1 stands where a table is expected: write [nodes.a]"),
        (HEAD + NODE_A + "\nadress = 3", "nodes.a.adress is not a key: perhaps nodes.a.address is meant"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_the_key_and_the_fix(file: Path, text: str, sentence: str) -> None:
    assert problems(file, text) == [sentence]


def test_what_two_nodes_cannot_both_have(file: Path) -> None:
    same = '[nodes.b]\nid = 1\naddress = "10.0.0.1"\n[nodes.c]\nid = 3\naddress = "fd00::1"\n'
    assert problems(file, HEAD + NODE_A + same) == [
        "nodes.b.id: 1 is the id of nodes.a too: every node needs its own",
        "nodes.b.token_port: 10.0.0.1 port 4701 is nodes.a.token_port too: give one of them another port",
        "nodes.a has an IPv4 address and nodes.c an IPv6 address: use one for all",
    ]
    clash = '[network]\ntransport = "unicast"' + NODE_A + "token_port = 4700\n"
    assert problems(file, HEAD + clash) == [
        "nodes.a.data_port: 10.0.0.1 port 4700 is nodes.a.token_port too: give one of them another port"
    ]


def test_the_rules_of_the_ring_speak_of_the_keys_of_the_file(file: Path) -> None:
    found = problems(file, HEAD + '[ring]\ntoken_loss = "300ms"\nvisit_max = 800' + NODE_A)
    assert found == [
        "[ring] rest and token_retransmit together must be at most a third of token_loss "
        "(token_retransmit is 40ms, token_loss is 300ms, rest is 100ms)",
        "[ring] pause must be at most half of token_loss (token_loss is 300ms, pause is 250ms)",
        "[ring] visit_max must be at most window (window is 720, visit_max is 800)",
    ]
    assert not any("_ns" in sentence for sentence in found)


def test_all_problems_are_said_at_once(file: Path) -> None:
    found = problems(file, 'x = 1\n[network]\nttl = 0\n[ring]\nwindow = -1\n[nodes.a]\nid = "one"\n')
    assert len(found) == 6
    for key in ("x is", "cluster is", "network.ttl", "ring.window", "nodes.a.id", "nodes.a.address"):
        assert any(sentence.startswith(key) for sentence in found), key


def test_what_cannot_be_read_at_all(file: Path, tmp_path: Path) -> None:
    assert problems(file, "cluster = ") == ["not TOML: Invalid value (at end of document)"]
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config(tmp_path / "nowhere.toml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path)
    file.write_bytes(b"cluster = '\xff'")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(file)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = " + "[" * 100_000, "not TOML: arrays or tables are nested too deeply"),
        ("x = " + "9" * 5_000, "not TOML: a number has thousands of digits"),
    ],
)
def test_what_no_person_writes_is_refused_in_a_sentence(file: Path, text: str, why: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(file, "alpha")
    assert str(caught.value) == f"{file}: {why}"


def test_a_number_of_many_digits_is_shown_by_its_first(file: Path) -> None:
    file.write_text(f'cluster = "c"\n[status]\nport = {"9" * 4_000}\n[nodes.alpha]\nid = 1\naddress = "127.0.0.1"\n')
    with pytest.raises(ConfigError, match=r"status.port: must be within 0..65535, not 9{60}…$"):
        load_config(file, "alpha")


def test_names_of_the_host_are_read_for_the_status(file: Path) -> None:
    base = 'cluster = "c"\n[nodes.alpha]\nid = 1\naddress = "127.0.0.1"\n[status]\n'
    file.write_text(base + 'hosts = ["Alpha.example", "alpha"]')
    assert load_config(file, "alpha").status.hosts == ("alpha.example", "alpha")
    for wrong, why in (
        ('"alpha"', "is not a list of names"),
        ('["a:1"]', "is not the name of a host"),
        ("[1]", "is not the"),
    ):
        file.write_text(base + f"hosts = {wrong}")
        with pytest.raises(ConfigError, match=f"status.hosts: .*{why}"):
            load_config(file, "alpha")


def test_what_lets_others_in_gets_a_remark(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    folder.chmod(0o755)
    base = (
        'cluster = "c"\n[nodes.alpha]\nid = 1\naddress = "127.0.0.1"\n[trace]\nlevel = "control"\nfolder = "traces"\n'
    )
    file.write_text(base + '[clients]\nmode = "0777"')
    remarks = plan_of(load_config(file, "alpha")).remarks
    assert any("has mode 0777: every user of this machine may send and read" in remark for remark in remarks)
    assert any(remark.startswith(f"{folder} is open to other users of this machine (0755)") for remark in remarks)
    folder.chmod(0o700)
    file.write_text(base + '[clients]\nmode = "0660"')
    assert not any("this machine" in remark for remark in plan_of(load_config(file, "alpha")).remarks)


def test_the_smallest_packet_is_that_of_the_ring() -> None:
    RingConfig(packet_size_max=SMALLEST_PACKET).validate()
    with pytest.raises(UsageError):
        RingConfig(packet_size_max=SMALLEST_PACKET - 1).validate()


def test_a_node_has_a_name_that_its_clients_can_have_in_theirs(file: Path) -> None:
    text = 'cluster = "c"\n[nodes."a@b"]\nid = 1\naddress = "127.0.0.1"\n'
    (problem,) = problems(file, text, "a@b")
    assert problem.startswith("nodes.a@b: the daemon name 'a@b' has '@' in it: ")


# The example


def test_the_example_loads_for_each_of_its_nodes() -> None:
    for name in read_cluster(EXAMPLE).names:
        assert load_config(EXAMPLE, name).name == name


def test_the_example_shows_every_key_and_says_the_defaults_in_its_comments(file: Path) -> None:
    """With the # before keys removed it is the same configuration."""
    text = re.sub(r"^# (\w+ = )", r"\1", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    document = tomllib.loads(text)
    elsewhere = {SITES}  # three-sites.toml has it
    assert set(document) == {CLUSTER.name, ENGINE.name, NODES_VERSION.name, *TABLES, NODES} - elsewhere
    for table, keys in TABLES.items():
        if table in elsewhere:
            continue
        assert set(document[table]) == {key.name for key in keys}, table
    assert set(document["nodes"]["alpha"]) == {key.name for key in NODE}
    file.write_text(text, encoding="utf-8")
    assert replace(load_config(file, "alpha"), source=EXAMPLE) == load_config(EXAMPLE, "alpha")


def test_every_setting_has_a_key() -> None:
    for table, kind in (("network", NetworkConfig), ("trace", TraceConfig), ("clients", ClientsConfig)):
        assert [key.field for key in TABLES[table]] == [field.name for field in fields(kind) if field.name != "name"]
    assert NAMED_NETWORK[0].field == "name" and NAMED_NETWORK[1:] == TABLES["network"]
    of_redundancy = {key.field for key in (*TABLES["redundancy"], REPLICATION, COPIES)}
    assert of_redundancy == {field.name for field in fields(NetworksConfig)} - {"count", "names"}
    assert {key.field for key in TABLES["ring"]} == {field.name for field in fields(RingConfig)} - {"cluster"}
    assert {key.field for key in TABLES["gateways"]} == {field.name for field in fields(GatewaysConfig)}


def test_what_is_chosen_of_a_network_of_rings_is_read_and_judged(file: Path) -> None:
    chosen = '[gateways]\nfilter = false\ngateway_share = 1.5\ncarried_size_max = "1MiB"\n'
    node = '[nodes.a]\nid = 1\naddress = "127.0.0.1"\n'
    file.write_text('cluster = "c"\n' + chosen + node, encoding="utf-8")
    assert load_config(file, "a").gateways == GatewaysConfig(False, 1.5, 1 << 20)
    wrong = "[gateways]\ngateway_share = 0.5\nwaiting_size_max = 0\n"
    assert problems(file, 'cluster = "c"\n' + wrong + node, "a") == [
        "gateways.waiting_size_max must be at least 1",
        "gateways.gateway_share must be within 1..100",
    ]
    (problem,) = problems(file, 'cluster = "c"\n[gateways]\ngateway_share = "2"\n' + node, "a")
    assert problem.startswith('gateways.gateway_share: "2" is not a number: ')


# Several networks

SEVERAL = """
cluster = "shop"
replication = "passive"
[[networks]]
name = "red"
[[networks]]
transport = "unicast"
port = 4800
mtu = 1400
[redundancy]
token_hold = "5ms"
[nodes.a]
id = 1
addresses = ["10.0.0.1", "10.1.0.1"]
[nodes.b]
id = 2
addresses = ["10.0.0.2", "10.1.0.2"]
"""


def test_several_networks_are_read(file: Path) -> None:
    file.write_text(SEVERAL, encoding="utf-8")
    config = load_config(file, "a")
    assert [network.name for network in config.networks] == ["red", "network 1"]
    assert config.layer.replication is Replication.PASSIVE and config.layer.count == 2
    assert config.layer.token_hold_ns == 5_000_000
    first, second = config.on(0), config.on(1)
    assert (first.me().address, first.me().token_port) == ("10.0.0.1", 4701)
    assert (second.me().address, second.me().token_port, second.me().data_port) == ("10.1.0.1", 4801, 4800)
    assert second.network.transport is Transport.UNICAST
    assert config.ring.packet_size_max == 1372  # of the narrowest


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('addresses = ["10.0.0.1", "10.1.0.1"]', 'address = "10.0.0.1"'), "nodes.a.addresses is missing"),
        (('["10.0.0.1", "10.1.0.1"]', '["10.0.0.1"]'), "nodes.a.addresses: 1 for 2 networks: write one for each"),
        (('["10.0.0.1", "10.1.0.1"]', '"10.0.0.1"'), 'nodes.a.addresses: "10.0.0.1" is not a list of addresses'),
        (("[[networks]]\nname", "[network]\nttl = 1\n[[networks]]\nname"), "network and networks are both there"),
        (('"passive"', '"pasive"'), 'replication: "pasive" is not one of active, passive, active-passive: perhaps'),
        (('"passive"', '"active-passive"'), "[redundancy] active-passive replication needs more than one copy"),
        (('"5ms"', '"30ms"'), "[redundancy] token_hold must be at most half of token_retransmit (token_hold is 30ms"),
        (("token_hold", "token_hlod"), "redundancy.token_hlod is not a key: perhaps redundancy.token_hold is meant"),
        (("port = 4800", "prot = 4800"), "networks.1.prot is not a key: perhaps networks.1.port is meant"),
        (('"10.1.0.2"', '"10.1.0.1"'), "nodes.b.token_port: 10.1.0.1 port 4801 is nodes.a.token_port too"),
    ],
)
def test_what_is_wrong_with_several_networks(file: Path, change: tuple[str, str], why: str) -> None:
    found = problems(file, SEVERAL.replace(*change), "a")
    assert any(sentence.startswith(why) for sentence in found), found


def test_replication_needs_several_networks(file: Path) -> None:
    found = problems(file, 'cluster = "x"\nreplication = "active"' + NODE_A)
    assert found == [
        "replication is there, but one network alone: write [[networks]] for each of them, or leave it out"
    ]


def test_the_example_of_several_networks_loads() -> None:
    example = EXAMPLE.with_name("two-networks.toml")
    for name in read_cluster(example).names:
        assert len(load_config(example, name).networks) == 2


def test_a_table_of_another_engine_is_told(file: Path) -> None:
    text = 'cluster = "c"\nengine = "{}"\n[tree]\nlink_patience = "400ms"\n[ring]\nwindow = 900\n' + NODE_A + NODE_B
    file.write_text(text.format("ring"))
    (remark,) = (remark for remark in plan_of(load_config(file, "a")).remarks if "no effect" in remark)
    assert remark == '[tree] has no effect: the engine is "ring", and that table is for engine = "tree"'
    file.write_text(text.format("tree"))
    assert not any("no effect" in remark for remark in plan_of(load_config(file, "a")).remarks)


def test_another_port_is_another_cluster() -> None:
    """One user has one key: what is sealed for one of the clusters must not open in the other."""
    usual = NodeConfig()
    beside = usual.beside(None, 4900)
    assert (beside.network.port, beside.ring.cluster) == (4900, f"{usual.ring.cluster}-4900")
    assert usual.beside(None, None) == usual.beside(None, usual.network.port) == usual
    assert usual.beside("plant", 4900).ring.cluster == "plant"
