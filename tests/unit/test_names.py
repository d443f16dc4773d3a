"""One noun, one meaning: public classes of the packages that meet have names of their own, and words of one engine stay
with it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ordercast"
PACKAGES = ("model", "wire", "order", "networks", "groups", "session", "api", "daemon")


def _public_names(source: str) -> list[str]:
    """Return the names of public classes and of public unions that a module defines."""
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript):
            names += [name.id for name in node.targets if isinstance(name, ast.Name)]
    return [name for name in names if name[0].isupper() and not name.isupper()]


def _sources() -> dict[str, str]:
    """Return the source of every module of the packages, by its path."""
    files = [file for package in PACKAGES for file in sorted((SOURCE / package).rglob("*.py"))]
    return {str(file.relative_to(SOURCE)): file.read_text(encoding="utf-8") for file in files}


def _homes(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the modules that define each public name."""
    homes = defaultdict(list)
    for path, source in sources.items():
        for name in _public_names(source):
            homes[name].append(path)
    return homes


def _twins(sources: dict[str, str]) -> dict[str, list[str]]:
    return {name: paths for name, paths in _homes(sources).items() if len(paths) > 1}


def test_no_public_name_means_two_things() -> None:
    assert len(_homes(_sources())) > 200
    assert _twins(_sources()) == {}


@pytest.mark.parametrize(
    "second", ["class Handout:\n    pass\n", "Handout = int | str\n", "Handout = dict[str, int]\n"]
)
def test_a_second_meaning_of_a_public_name_is_found(second: str) -> None:
    sources = _sources()
    sources["daemon/handing.py"] = second
    assert _twins(sources) == {"Handout": ["session/handouts.py", "daemon/handing.py"]}


def test_names_that_are_nobody_elses_business_may_be_used_again() -> None:
    sources = _sources()
    sources["daemon/handing.py"] = "class _Handout:\n    pass\n\n\nSOURCE = dict[str, int]\nhandout = 1 | 2\n"
    assert _twins(sources) == {}


RING_WORDS = re.compile(r"\b(ring|token|lane)s?\b", re.IGNORECASE)
OWN = ("order/", "wire/")  # engines, what they share, and their bytes
WHO_SPEAKS_OF_RINGS = {
    "the redundant ring protocol, whose styles wait for copies of tokens": (
        *("networks/__init__.py", "networks/assembly.py", "networks/config.py", "networks/gate.py"),
        *("networks/judgement.py", "networks/layer.py", "networks/monitors.py", "networks/probe.py"),
        *("networks/styles.py", "networks/watch.py"),
    ),
    "what the simulator has for the ring alone, and whoever puts it into a run": (
        *("sim/ring/__init__.py", "sim/ring/network_witness.py", "sim/ring/poison.py", "sim/ring/rest_witness.py"),
        *("sim/ring/recovery_plots.py", "sim/ring/ambushes.py", "sim/ring/bridge_plots.py", "sim/plots.py"),
        *("sim/run.py", "sim/swarm.py"),
        *(
            "sim/network_swarm.py",
            "sim/aimed_swarm.py",
            "sim/site_swarm.py",
            "sim/ring_topologies.py",
            "sim/trees/oracle.py",
        ),
    ),
    "what status, reports and campaigns show of the ring alone": (
        *("daemon/status/sections.py", "daemon/status/metrics.py", "cli/status_drawing.py"),
        *("pipeline/report/ring.py", "pipeline/report/token.py", "pipeline/report/engines.py"),
        *("pipeline/report/tables.py", "pipeline/report/page.py"),
        *("pipeline/campaign/model.py", "pipeline/campaign/gauge.py", "pipeline/campaign/comparison.py"),
    ),
    "what is seen of a network of rings, and drawn of one": (
        *(
            "cli/topology.py",
            "cli/commands/topology.py",
            "cli/topology_plan.py",
            "cli/topology_text.py",
            "daemon/status/out_of_view.py",
            "daemon/status/rings_section.py",
        ),
        *("cli/wide_area.py", "daemon/status/sites_section.py", "daemon/status/tree_section.py"),
        *("pipeline/campaign/graphs.py", "pipeline/campaign/graphs_page.py", "cli/graph_plan.py"),
        *("sim/run.py", "sim/swarm.py", "sim/network_swarm.py", "sim/digest.py"),
        *("sim/aimed_swarm.py", "sim/ring_topologies.py", "sim/ring_episodes.py"),
        *(f"sim/gateways/{name}.py" for name in ("__init__", "ledger", "watched", "witness")),
        "sim/sites/witness.py",
    ),
    "configuration, by the names of tables in users' files": (
        *("daemon/config/file.py", "daemon/config/keys.py", "daemon/config/networks.py", "daemon/config/node.py"),
        *("daemon/config/plan.py", "daemon/participant.py", "pipeline/campaign/settings.py"),
        *("daemon/assembling.py", "daemon/sockets/of_node.py"),
        *(
            "sim/options.py",
            "sim/run_options.py",
            "cli/commands/sim.py",
            "cli/sim.py",
            "sim/slot_swarm.py",
            "sim/adaptive_waits.py",
        ),
        *(
            "daemon/config/interfaces.py",
            "daemon/config/judging.py",
            "daemon/config/nodes.py",
            "daemon/status/slots_section.py",
        ),
    ),
    "several rings of one process: in the file, in its folder, on this machine": (
        *("daemon/config/rings.py", "daemon/config/sites.py", "daemon/management.py", "daemon/storage.py"),
        "daemon/status/places.py",
        *("cli/circle.py", "cli/cluster.py", "cli/up.py", "cli/commands/up.py"),
    ),
    "lanes: the sockets of any engine, one of which has its name from tokens": (
        *("model/inputs.py", "model/effects.py", "daemon/sockets/lanes.py", "daemon/sockets/network.py"),
        *("daemon/sockets/bursts.py", "daemon/sockets/streams.py", "daemon/sockets/wide.py"),
        *("daemon/driver.py", "daemon/run.py", "daemon/status/advice.py", "daemon/status/parts.py"),
        *("daemon/status/report.py", "demo/hosts.py", "demo/relay.py"),
        *("sim/host.py", "sim/network.py", "sim/processor.py", "sim/segment.py", "sim/world.py"),
        *("sim/faults.py", "sim/fault_text.py"),
    ),
    "lanes of sealed packets, and rings of keys": (
        *("cli/key.py", "daemon/key_file.py", "daemon/sealed.py"),
        *("sealing/layer.py", "sealing/lives.py", "sealing/opener.py"),
        *("sealing/own.py", "sealing/packet.py", "sealing/window.py"),
        *("sim/sealed/adversary.py", "sim/sealed/witness.py"),
    ),
    "tokens by which a client shows who it is": (
        *("api/target.py", "api/credentials.py", "cli/certs.py", "cli/commands/certs.py", "daemon/audit.py"),
        *("daemon/authority.py", "daemon/clients/certificates.py", "daemon/clients/door.py", "daemon/config/rights.py"),
        *("session/client_half.py", "session/daemon_half.py", "session/desk.py", "session/pem.py", "session/pieces.py"),
        *("session/requests.py", "session/rights.py", "cli/status.py", "daemon/status/bearer.py"),
        *("daemon/status/guard.py", "daemon/status/http.py", "cli/config.py"),
    ),
    "values in every trace: notes, reasons, promises, and how a ring fills a position": (
        *("model/configuration.py", "model/ids.py", "model/notes.py", "model/promises.py"),
        *("trace/columns.py", "trace/note_rows.py", "sim/digest.py", "checker/fifo.py"),
    ),
    "fencing tokens, which are numbers of grants": (
        *("replicated/machine.py", "replicated/structures/claims.py", "replicated/structures/leader.py"),
        *("replicated/structures/lock.py", "replicated/recorded.py", "sim/users.py", "sim/replica_witness.py"),
        *("checker/replicated/exclusive.py", "checker/replicated/sequential_owned.py"),
    ),
}


def test_who_speaks_of_rings_has_a_reason() -> None:
    """Whole words, in code, texts and comments. The list is to get shorter; a new engine puts its words where the ring
    has them."""
    speakers = {
        path
        for file in SOURCE.rglob("*.py")
        if not (path := str(file.relative_to(SOURCE))).startswith(OWN)
        and RING_WORDS.search(file.read_text(encoding="utf-8"))
    }
    assert speakers == {path for files in WHO_SPEAKS_OF_RINGS.values() for path in files}
