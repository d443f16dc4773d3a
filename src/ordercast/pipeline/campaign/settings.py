"""From what a campaign's file says to the options of a run. Pure.

A setting is named as in `SimOptions`, or `ring.NAME` as in `RingConfig` (the same for the tables of other engines in
the catalogue), or `networks.NAME` as in `NetworksConfig`. A time is written with its unit and without `_ns`:
`fault_time = "3s"`. Links and rates may be written as on the command line: `rates = ["n0 20/s poisson"]`. Four names
stand for several options at once:

    size      bytes of every message
    service   the only service asked for
    load      messages per second offered, as a Poisson process, over `fault_time`
    packing   false: packets are just large enough for one message
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from ordercast.model.errors import UsageError
from ordercast.model.ids import SECOND
from ordercast.model.quantities import duration_from, size_from
from ordercast.model.service import Service
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.catalogue import ENGINES
from ordercast.order.links.config import LinkConfig
from ordercast.order.ring.config import BESIDE_BODY
from ordercast.sim.options import Delays, SimOptions
from ordercast.sim.topology import Line, Link, Rate
from ordercast.sim.topology_text import links_from_text, rate_from_text
from ordercast.wire.header import DESCRIPTOR_SIZE

Settings = Mapping[str, Any]
DERIVED = ("size", "service", "load", "packing")
LATE_SHARE = 0.1  # of the messages, which the simulator submits after the network has healed
SMALLEST_BODY = 64 + DESCRIPTOR_SIZE  # that a packet may have
_FIELDS = frozenset(field.name for field in fields(SimOptions))
_PARTS: Mapping[str, type[Any]] = {  # that have settings of their own
    **{table: each for entry in ENGINES.values() for table, each in entry.tables.items() if table in _FIELDS},
    "networks": NetworksConfig,
}
_OPTIONS = _FIELDS - {*_PARTS, "faults"}
_OF_PART = {part: frozenset(field.name for field in fields(config)) for part, config in _PARTS.items()}


def flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """`{ring: {window: 70}}` as `{ring.window: 70}`."""
    result = {key: value for key, value in table.items() if key not in _PARTS}
    for part in _PARTS:
        settings = table.get(part, {})
        if not isinstance(settings, Mapping):
            raise UsageError(f"{part} is a table of settings: write [options.{part}], or {part}.NAME = VALUE")
        result |= {f"{part}.{key}": value for key, value in settings.items()}
    return result


def is_setting(name: str) -> bool:
    return name in DERIVED or _field_of(name) is not None


def _field_of(name: str) -> str | None:
    """The field that a setting names, times with their unit's suffix."""
    part, plain = _parted(name)
    known = _OF_PART[part] if part else _OPTIONS
    return next((field for field in (plain, f"{plain}_ns") if field in known), None)


def _parted(name: str) -> tuple[str, str]:
    """`ring.window` as ring and window; a setting of the run itself has no part."""
    part, dot, plain = name.partition(".")
    return (part, plain) if dot and part in _PARTS else ("", name)


def options_from(settings: Settings, base: SimOptions) -> SimOptions:
    """The base with these settings. UsageError names the setting that cannot be, and why."""
    for name in settings:
        if not is_setting(name):
            raise UsageError(
                f"there is no setting {name!r}: see SimOptions, RingConfig and NetworksConfig in configuration.md"
            )
    parts = {part: replace(usual, **_values(settings, part, usual)) for part, usual in _parts_of(base)}
    options = replace(base, **parts, **_values(settings, "", base))
    for name in DERIVED:  # in this order: what comes later looks at what came before
        if name in settings:
            options = _DERIVE[name](options, settings[name])
    return options


def _parts_of(base: SimOptions) -> list[tuple[str, Any]]:
    return [(part, getattr(base, part)) for part in _PARTS]


def _values(settings: Settings, part: str, usual: object) -> dict[str, Any]:
    """Return the settings of this part, by field."""
    result = {}
    for name, value in settings.items():
        field = _field_of(name)
        if field is not None and _parted(name)[0] == part and name not in DERIVED:
            result[field] = _value(name, field, value, getattr(usual, field))
    return result


def _value(name: str, field: str, value: Any, usual: Any) -> Any:
    """As the type of the usual value asks for."""
    if isinstance(value, str) and (field.endswith("_ns") or type(usual) is int):
        try:
            return duration_from(value) if field.endswith("_ns") else size_from(value)
        except UsageError:
            kind = "duration, such as 80ms or 0.3s" if field.endswith("_ns") else "number, such as 5, or 4K of bytes"
            raise UsageError(f"{name} = {value!r} is no {kind}") from None
    if field == "services":
        return tuple(_service(word) for word in value)
    if field == "delays":
        return _choice(name, value, {kind.value: kind for kind in Delays})
    if field == "replication":
        return _choice(name, value, {style.value: style for style in Replication})
    if isinstance(usual, LinkConfig):
        return _link_config(name, value, usual)
    if field == "links":
        return tuple(link for item in value for link in _links(item))
    if field == "rates":
        return tuple(rate_from_text(item) if isinstance(item, str) else Rate(**item) for item in value)
    if field == "lines":
        return tuple(Line(**line) for line in value)
    if field in ("slow_hosts", "replica_weights", "names", "attachments", "site_links"):
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    if isinstance(usual, float) and type(value) is int:
        return float(value)
    if type(value) is not type(usual):
        raise UsageError(f"{name} = {value!r} cannot be used: write a value like {usual!r}")
    return value


def _link_config(name: str, value: Any, usual: LinkConfig) -> LinkConfig:
    """The links between sites, from a table with the fields of `LinkConfig`."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{name} is a table of settings: write [options.{name}]")
    known = {field.name for field in fields(LinkConfig)}
    changes = {}
    for key, item in value.items():
        field = next((one for one in (key, f"{key}_ns") if one in known), None)
        if field is None:
            raise UsageError(f"there is no setting {f'{name}.{key}'!r}: see LinkConfig in order/links/config.py")
        changes[field] = _value(f"{name}.{key}", field, item, getattr(usual, field))
    return replace(usual, **changes)


def _links(item: Any) -> tuple[Link, ...]:
    """From a table with the fields of `Link`, or a text that may stand for one each way."""
    return links_from_text(item) if isinstance(item, str) else (Link(**item),)


def _choice(name: str, value: Any, known: Mapping[str, Any]) -> Any:
    if value not in known:
        raise UsageError(f"{name} = {value!r} cannot be used: choose among {', '.join(known)}")
    return known[value]


def _service(word: Any) -> Service:
    known = {service.name.lower(): service for service in SimOptions().services}
    chosen = _choice("service", word, known)
    assert isinstance(chosen, Service)
    return chosen


# Names that stand for several options


def _sized(options: SimOptions, size: Any) -> SimOptions:
    size = size_from(size) if isinstance(size, str) else size
    return replace(options, size_min=size, size_max=size, saturation_size=size if options.saturation else 0)


def _served(options: SimOptions, service: Any) -> SimOptions:
    return replace(options, services=(_service(service),))


def _loaded(options: SimOptions, load: Any) -> SimOptions:
    """Submissions at random times are a Poisson process whose number is known. Some of them come late."""
    seconds = options.fault_time_ns / SECOND
    return replace(options, messages=round(load * seconds / (1 - LATE_SHARE)))


def _packed(options: SimOptions, packing: Any) -> SimOptions:
    if packing:
        return options
    body = max(SMALLEST_BODY, options.size_max + DESCRIPTOR_SIZE)
    return replace(options, ring=replace(options.ring, packet_size_max=BESIDE_BODY + body))


_DERIVE: Mapping[str, Callable[[SimOptions, Any], SimOptions]] = {
    "size": _sized,
    "service": _served,
    "load": _loaded,
    "packing": _packed,
}
