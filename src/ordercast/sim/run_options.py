"""Options of a run as JSON for traces and `--json`, and as the command line that replays it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from ordercast.model.quantities import duration_text
from ordercast.sim.calm_swarm import usual_options
from ordercast.sim.fault_text import fault_text
from ordercast.sim.faults import Fault
from ordercast.sim.options import SimOptions
from ordercast.sim.ring_topologies import RingTopology
from ordercast.sim.topology_text import attachment_texts, link_text, rate_text

SHOWN_MAX = 6  # of a list of drawn things; of more, their number
_WRITTEN = frozenset(
    (
        *("engine", "nodes", "messages", "clients", "services", "size_min", "size_max", "rates"),
        *("random_faults", "faults", "fault_time_ns", "loss", "duplication", "straggler"),
        *("delay_min_ns", "delay_max_ns", "attachments", "links", "ring", "settle_ns"),
    )
)


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


def drawn_text(options: SimOptions) -> str:
    """What differs from the usual options of the engine, name by name."""
    usual = usual_options(options.engine)
    return ", ".join(_differences(options, usual)) or "nothing unusual"


def _differences(one: Any, usual: Any, prefix: str = "") -> Iterator[str]:
    for field in fields(one):
        value, expected = getattr(one, field.name), getattr(usual, field.name)
        if value == expected:
            continue
        if is_dataclass(value) and type(value) is type(expected):
            yield from _differences(value, expected, f"{prefix}{field.name}.")
        elif field.name.endswith("_ns"):
            yield f"{prefix}{field.name.removesuffix('_ns')} {duration_text(value)}"
        elif isinstance(value, tuple) and len(value) > SHOWN_MAX:
            yield f"{len(value)} {prefix}{field.name}"
        else:
            plain = _plain(value)
            yield f"{prefix}{field.name} {' '.join(map(str, plain)) if isinstance(plain, list) else plain}"


def is_written_out(options: SimOptions) -> bool:
    """Whether the command line can say all of these options."""
    usual = usual_options(options.engine)
    names = [field.name for field in fields(SimOptions) if field.name not in _WRITTEN]
    return all(getattr(options, name) == getattr(usual, name) for name in names) and options.ring == replace(
        usual.ring, accelerated=options.ring.accelerated
    )


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
