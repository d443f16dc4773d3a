"""Options of a run as JSON for traces and `--json`, and as the command line that replays it. Pure."""

from __future__ import annotations

import shlex
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from ordercast.model.quantities import duration_text
from ordercast.sim.calm_swarm import usual_options
from ordercast.sim.fault_text import fault_text
from ordercast.sim.faults import Fault
from ordercast.sim.options import SimOptions
from ordercast.sim.ring_topologies import RingTopology
from ordercast.sim.topology_text import attachment_texts, link_text, rate_text


def options_json(options: SimOptions) -> dict[str, Any]:
    plain = _plain(options)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> Any:
    if isinstance(value, Fault):
        return fault_text(value)
    if isinstance(value, Enum):
        return value.name.lower()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def replay_command(options: SimOptions, seed: int, *, is_hostile: bool, topology: RingTopology | None = None) -> str:
    """What differs from the defaults, written out. Hostile options were drawn for this topology, or for any."""
    words = ["ordercast", "sim"]
    if is_hostile:
        swarms = {
            "--groups": options.clients,
            "--replicated": options.replicas,
            "--networks": options.networks.count > 1 and options.sealed is None,
            "--sealed": options.sealed is not None,
        }
        words += ["--hostile", *(word for word, is_meant in swarms.items() if is_meant)]
        words += ["--engine", options.engine] if options.engine != SimOptions().engine else []
        words += ["--topology", topology.value] if topology is not None else []
    else:
        words += _words_of(options)
    return shlex.join([*words, "--seed", str(seed)])


def _words_of(options: SimOptions) -> list[str]:
    usual = SimOptions()
    words: list[str] = []
    for name, flag in (
        ("engine", "--engine"),
        ("nodes", "--nodes"),
        ("messages", "--messages"),
        ("clients", "--clients"),
        ("random_faults", "--faults"),
    ):
        if getattr(options, name) != getattr(usual, name):
            words += [flag, str(getattr(options, name))]
    for name in ("loss", "duplication", "straggler"):
        if getattr(options, name) != getattr(usual, name):
            words += [f"--{name}", str(getattr(options, name))]
    if (options.size_min, options.size_max) != (usual.size_min, usual.size_max):
        words += ["--sizes", f"{options.size_min}..{options.size_max}"]
    if (options.delay_min_ns, options.delay_max_ns) != (usual.delay_min_ns, usual.delay_max_ns):
        words += ["--delay", f"{duration_text(options.delay_min_ns)}..{duration_text(options.delay_max_ns)}"]
    if options.fault_time_ns != usual.fault_time_ns:
        words += ["--duration", duration_text(options.fault_time_ns)]
    if options.services != usual_options(options.engine).services:
        words += [word for service in options.services for word in ("--service", service.name.lower())]
    if options.networks.count > 1:
        words += ["--redundant", str(options.networks.count), "--replication", options.networks.replication.value]
    words += [word for text in attachment_texts(options.attachments) for word in ("--attach", text)]
    words += [word for link in options.links for word in ("--link", link_text(link))]
    words += [word for rate in options.rates for word in ("--rate", rate_text(rate))]
    if options.ring.accelerated != usual.ring.accelerated:
        words.append("--accelerated" if options.ring.accelerated else "--plain")
    return words + [word for fault in options.faults for word in ("--fault", fault_text(fault))]
