"""The page on the cluster file lists every key with its default."""

from __future__ import annotations

import json
import re
import tomllib
from enum import Enum
from pathlib import Path

from ordercast.cli.config import refusals
from ordercast.daemon.config.file import STATUS_PORT, load_config
from ordercast.daemon.config.keys import NODE, TABLES
from ordercast.daemon.config.node import ClientsConfig, NetworkConfig, NodeConfig, StatusConfig, TraceConfig
from ordercast.daemon.config.plan import plan_lines, plan_of
from ordercast.model.quantities import duration_text
from ordercast.networks.config import NetworksConfig
from tests.unit.daemon.fake_node import FakeNode

DOCS = Path(__file__).parents[3] / "docs"
MIB = 1 << 20


def shown(value: object) -> str:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, int) and value >= MIB:
        value = f"{value // MIB}MiB"
    return f"`{json.dumps(str(value) if isinstance(value, Path) else value)}`"


def expected() -> list[tuple[str, str]]:
    rows = [
        ("cluster", "required"),
        ("engine", shown(NodeConfig().engine)),
        ("nodes_version", shown(NodeConfig().nodes_version)),
    ]
    for table, defaults in (("network", NetworkConfig()), ("trace", TraceConfig())):
        rows += [(f"{table}.{key.name}", shown(getattr(defaults, key.field))) for key in TABLES[table]]
        if table == "network":
            rows += [("redundancy.…", ""), ("ring.…", ""), ("adaptive.…", ""), ("tree.…", "")]
    rows += [("status.address", shown(StatusConfig().address)), ("status.port", shown(STATUS_PORT))]
    rows.append(("status.hosts", shown(list(StatusConfig().hosts))))
    rows += [("status.token", "none"), ("status.insecure", "`false`")]
    clients = {"folder": '"/run/ordercast"', "mode": '"0600"', "port": "0", "queue_size_max": "0", "memory_max": "0"}
    clients["hold"] = f'"{duration_text(ClientsConfig().hold_ns)}"'
    for key in TABLES["clients"]:
        default = clients.get(key.name)
        usually = "none" if key.name == "certificates" else shown(getattr(ClientsConfig(), key.field))
        rows.append((f"clients.{key.name}", f"`{default}`" if default else usually))
    rows += [("security.key", "none"), ("security.insecure", "`false`"), ("state.folder", "none")]
    usual = NodeConfig()
    rows += [("inbox.size_max", shown(usual.inbox_size_max)), ("inbox.stall", shown(duration_text(usual.stall_ns)))]
    follows = {"token_port": "`network.port + 1`", "data_port": "`network.port`", "status_port": "`status.port`"}
    return rows + [(f"nodes.NAME.{key.name}", follows.get(key.name, "required")) for key in NODE]


def test_every_key_of_the_file_is_on_the_page_with_its_default() -> None:
    page = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")
    section = page.partition("## The cluster file")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) ?\| .*\|$", section, flags=re.MULTILINE)
    assert rows == expected()


def test_every_cluster_file_of_the_docs_would_start(tmp_path: Path) -> None:
    """None lacks what protects it from strangers; keys and certificates are of other hosts."""
    texts = [text.read_text(encoding="utf-8") for text in sorted((DOCS / "examples").glob("*.toml"))]
    for page in sorted(DOCS.rglob("*.md")):
        blocks = re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        texts += [block for block in blocks if "cluster = " in block and "[nodes." in block]
    assert len(texts) > 9
    for number, text in enumerate(texts):
        file = tmp_path / f"{number}.toml"
        file.write_text(text, encoding="utf-8")
        for name in tomllib.loads(text)["nodes"]:
            assert refusals(load_config(file, name))[0] == []


def test_the_guide_shows_what_config_check_shows() -> None:
    guide = (DOCS / "guides" / "run-a-cluster.md").read_text(encoding="utf-8")
    for title, _ in plan_lines(plan_of(FakeNode().config)):
        assert re.search(rf"^{title} ", guide, flags=re.MULTILINE), title


def test_every_key_of_several_networks_is_on_the_page_with_its_default() -> None:
    page = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")
    section = page.partition("## Several networks")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) ?\| .*\|$", section, flags=re.MULTILINE)
    usual = NetworksConfig()
    wanted = [
        ("replication", shown(usual.replication)),
        ("copies", shown(usual.copies)),
        ("networks.name", "its number"),
    ]
    for key in TABLES["redundancy"]:
        value = getattr(usual, key.field)
        default = duration_text(value) if key.field.endswith("_ns") else value
        wanted.append((f"redundancy.{key.name}", shown(default)))
    assert rows == wanted
