"""The MTU of interfaces and of paths: what a file leaves to the interface, and alarms of ways that are narrower."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.daemon.config.file import ConfigError, load_config
from ordercast.daemon.config.interfaces import JUMBO_MTU, with_mtus
from ordercast.daemon.config.node import AUTO_MTU, NetworkConfig, NodeConfig, Peer
from ordercast.daemon.sockets.mtu import PathWatch, interface_mtu, path_mtu
from ordercast.model.effects import AlarmKind
from ordercast.model.ids import NodeId

HERE = '[nodes.a]\nid = 1\naddress = "127.0.0.1"\n[nodes.b]\nid = 2\naddress = "127.0.0.2"\n'


def loaded(folder: Path, text: str) -> NodeConfig:
    (folder / "cluster.toml").write_text('cluster = "shop"\n' + text)
    return load_config(folder / "cluster.toml", "a")


def peers(*addresses: str) -> tuple[Peer, ...]:
    return tuple(Peer(NodeId(n), f"n{n}", address, 5000 + n, 6000 + n) for n, address in enumerate(addresses, 1))


def test_a_file_may_leave_it_to_the_interface(tmp_path: Path) -> None:
    config = loaded(tmp_path, f'[network]\nmtu = "auto"\n{HERE}')
    assert config.network.mtu == JUMBO_MTU and config.ring.packet_size_max == JUMBO_MTU - 28


def test_a_host_that_has_none_of_the_addresses_goes_by_ethernet() -> None:
    config = NodeConfig(network=NetworkConfig(mtu=AUTO_MTU), peers=peers("10.0.0.1", "10.0.0.2"))
    assert with_mtus(config, lambda address: None).network.mtu == 1500


@pytest.mark.parametrize("wrong", ['"wide"', "0", "1.5", "true"])
def test_what_is_no_mtu_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ConfigError, match="mtu"):
        loaded(tmp_path, f"[network]\nmtu = {wrong}\n{HERE}")


def test_each_network_has_the_interface_of_its_own_addresses() -> None:
    config = NodeConfig(network=NetworkConfig(mtu=AUTO_MTU), peers=peers("10.0.0.1", "10.0.0.2"))
    asked: list[str] = []

    def measure(address: str) -> int | None:
        asked.append(address)
        return 4000 if address == "10.0.0.2" else None

    assert with_mtus(config, measure).network.mtu == 4000 and asked == ["10.0.0.1", "10.0.0.2"]


def test_the_kernel_tells() -> None:
    assert (interface_mtu("127.0.0.1") or 0) >= 1500 and (path_mtu("127.0.0.1", "127.0.0.2") or 0) >= 1500
    assert interface_mtu("203.0.113.1") is None and path_mtu("203.0.113.1", "203.0.113.2") is None


def test_a_narrower_path_raises_one_alarm_and_another_when_it_changes() -> None:
    found = {"10.0.0.2": 9000, "10.0.0.3": 9000}
    config = NodeConfig(
        node=NodeId(1), network=NetworkConfig(mtu=9000), peers=peers("10.0.0.1", "10.0.0.2", "10.0.0.3")
    )
    watch = PathWatch(config, lambda own, other: found[other])
    assert list(watch.alarms()) == []
    found["10.0.0.3"] = 1500
    (alarm,) = watch.alarms()
    assert alarm.kind is AlarmKind.NARROW_PATH
    assert "the path to n3 (10.0.0.3) takes packets of 1500 bytes, and network.mtu is 9000" in alarm.text
    assert list(watch.alarms()) == []
    found["10.0.0.3"] = 1400
    assert len(list(watch.alarms())) == 1
    found["10.0.0.3"] = 9000
    assert list(watch.alarms()) == []
    found["10.0.0.3"] = 1400
    assert len(list(watch.alarms())) == 1
