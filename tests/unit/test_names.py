"""One noun, one meaning: public classes of the packages that meet have names of their own, and words of one engine stay
with it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ordercast"
PACKAGES = ("model", "wire", "order", "networks", "groups", "session", "api", "daemon")


def _public_names(file: Path) -> list[str]:
    """Return the names of public classes and of public unions that a module defines."""
    names = []
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript):
            names += [name.id for name in node.targets if isinstance(name, ast.Name)]
    return [name for name in names if name[0].isupper() and not name.isupper()]


def test_no_public_name_means_two_things() -> None:
    homes = defaultdict(list)
    for package in PACKAGES:
        for file in sorted((SOURCE / package).rglob("*.py")):
            for name in _public_names(file):
                homes[name].append(str(file.relative_to(SOURCE)))
    assert len(homes) > 200
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


RING_WORDS = re.compile(r"\b(ring|token|lane)s?\b", re.IGNORECASE)
# Engines and what they share, the layer right below them, the bytes, the records of all engines and who judges them.
OWN = ("order/", "wire/", "networks/", "trace/", "checker/", "pipeline/verify/")
WHO_SPEAKS_OF_RINGS = {
    "what a layer has for the ring alone, under its name": (
        *("sim/ring/__init__.py", "sim/ring/network_witness.py", "sim/ring/poison.py", "sim/ring/rest_witness.py"),
        *("sim/ring/recovery_plots.py", "sim/ring/ambushes.py", "sim/plots.py"),
        *("daemon/status/sections.py", "daemon/status/metrics.py", "cli/status_drawing.py"),
        *("pipeline/report/ring.py", "pipeline/report/token.py", "pipeline/report/engines.py"),
        *("pipeline/report/tables.py", "pipeline/report/page.py", "pipeline/report/__init__.py"),
        *("pipeline/campaign/model.py", "pipeline/campaign/gauge.py", "pipeline/campaign/comparison.py"),
        *("sim/run.py", "sim/swarm.py", "sim/network_swarm.py", "sim/digest.py"),
        *("sim/aimed_swarm.py", "sim/ring_topologies.py"),
    ),
    "configuration, by the names of tables in users' files": (
        *("daemon/config/file.py", "daemon/config/keys.py", "daemon/config/networks.py", "daemon/config/node.py"),
        *("daemon/config/plan.py", "daemon/participant.py", "pipeline/campaign/settings.py"),
        *("sim/options.py", "sim/run_options.py", "sim/aimed_swarm.py", "cli/sim.py"),
    ),
    "lanes: the sockets of any engine, one of which has its name from tokens": (
        *("model/inputs.py", "model/effects.py", "daemon/sockets/lanes.py", "daemon/sockets/network.py"),
        *("daemon/driver.py", "daemon/run.py", "daemon/status/advice.py", "daemon/status/parts.py"),
        *("daemon/status/report.py", "demo/hosts.py", "demo/relay.py"),
        *("sim/host.py", "sim/network.py", "sim/processor.py", "sim/segment.py", "sim/world.py"),
        *("sim/faults.py", "sim/fault_text.py"),
    ),
    "values in every trace: notes, reasons, promises, and how a ring fills a position": (
        *("model/configuration.py", "model/ids.py", "model/notes.py", "model/promises.py"),
    ),
    "fencing tokens, which are numbers of grants": (
        *("replicated/machine.py", "replicated/structures/claims.py", "replicated/structures/leader.py"),
        *("replicated/structures/lock.py", "replicated/recorded.py", "sim/users.py", "sim/replica_witness.py"),
    ),
}


def test_who_speaks_of_rings_has_a_reason() -> None:
    """The list is to get shorter; a new engine puts its words where the ring has them."""
    speakers = {
        path
        for file in SOURCE.rglob("*.py")
        if not (path := str(file.relative_to(SOURCE))).startswith(OWN)
        and RING_WORDS.search(file.read_text(encoding="utf-8"))
    }
    assert speakers == {path for files in WHO_SPEAKS_OF_RINGS.values() for path in files}
