"""Which keys a configuration file has, and what may be written for each. Pure.

A `Key` reads one value and says in a sentence why it cannot. The tables of engines follow from the catalogue and their
keys from the configuration classes that it names, so that a new setting is in the file at once: durations lose their
`_ns` and are written with a unit.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ordercast.daemon.config.node import AUTO_MTU, PORT_MAX, LinkProtocol, TraceLevel, Transport
from ordercast.model.errors import UsageError
from ordercast.model.ids import NODE_MAX
from ordercast.model.quantities import duration_from, size_from
from ordercast.model.roster import VERSION_MAX
from ordercast.networks.config import NetworksConfig, Replication
from ordercast.order.attached import DOMAIN_MAX
from ordercast.order.catalogue import ENGINES, LIVE, live_entry_of

INTEGER_MAX = (1 << 63) - 1
WEIGHT_MAX = 10_000
INBOX_SIZE_MIN = 1024
RINGS_EXAMPLE = '{ office = "10.0.1.11" }'


@dataclass(frozen=True, slots=True)
class Key:
    name: str  # in the file
    field: str  # of the dataclass that the table describes
    read: Callable[[Any], Any]  # raises UsageError


# Readers: from what TOML gives to what the dataclass holds


def read_text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{shown(value)} is not a text: write it in quotes")
    return value


def read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{shown(value)} is neither true nor false")
    return value


def read_integer(value: Any, low: int = 0, high: int = INTEGER_MAX) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{shown(value)} is not a whole number: write it without quotes and without a unit")
    if not low <= value <= high:
        bounds = f"within {low}..{high}" if high < INTEGER_MAX else f"at least {low}"
        raise UsageError(f"must be {bounds}, not {shown(value)}")
    return value


def read_mtu(value: Any) -> int:
    if isinstance(value, str) and value != "auto":
        raise UsageError(f'{shown(value)} is no MTU: write bytes without quotes, or "auto" for that of the interface')
    return AUTO_MTU if value == "auto" else read_integer(value, low=1, high=PORT_MAX)


def read_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{shown(value)} is not a number: write it without quotes and without a unit")
    return float(value)


def read_duration(value: Any) -> int:
    if not isinstance(value, str):
        hint = f'"{value}ms"' if isinstance(value, int | float) and not isinstance(value, bool) else '"800ms"'
        raise UsageError(f"{shown(value)} is not a duration: write a number and a unit in quotes, such as {hint}")
    return duration_from(value)


def read_size(value: Any) -> int:
    """Bytes as a number, or with a unit in quotes."""
    if isinstance(value, str):
        return size_from(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f'{shown(value)} is not a size: write bytes, or a unit in quotes, such as "32MiB"')
    return value


def read_inbox_size(value: Any) -> int:
    """Read how much may wait for an application: with less than this all would wait for each of its messages."""
    size = read_size(value)
    if size < INBOX_SIZE_MIN:
        raise UsageError(f"{shown(value)} does not hold a message: write at least {INBOX_SIZE_MIN}")
    return size


def read_address(value: Any) -> str:
    try:
        return str(ip_address(read_text(value)))
    except ValueError:
        raise UsageError(f"{shown(value)} is not an IP address: write it in digits, names are not looked up") from None


def read_host(value: Any) -> str:
    """Where one node can be reached."""
    address = ip_address(read_address(value))
    if address.is_multicast or address.is_unspecified:
        raise UsageError(f"{address} is not the address of one host: write the address at which others reach it")
    return str(address)


def read_hosts(value: Any) -> tuple[str, ...]:
    """On each of several networks."""
    if not isinstance(value, list) or not value:
        raise UsageError(f"{shown(value)} is not a list of addresses: write one for each of [[networks]], in order")
    return tuple(read_host(address) for address in value)


def read_rings(value: Any) -> dict[str, tuple[str, ...]]:
    """On which rings, and where on each."""
    if not isinstance(value, dict) or not value:
        raise UsageError(f"{shown(value)} says no ring: write {RINGS_EXAMPLE}, as in [rings.office]")
    addresses: dict[str, tuple[str, ...]] = {}
    for name, where in value.items():
        try:
            addresses[name] = read_hosts(where) if isinstance(where, list) else (read_host(where),)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None
    return addresses


def read_ends(value: Any) -> tuple[str, str]:
    """Return the two sites that a link joins."""
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(name, str) for name in value):
        raise UsageError(f'{shown(value)} does not name two sites: write them in brackets, such as ["east", "west"]')
    return value[0], value[1]


def read_host_names(value: Any) -> tuple[str, ...]:
    """Under which those who ask may call this host."""
    if not isinstance(value, list):
        raise UsageError(f'{shown(value)} is not a list of names: write them in brackets, such as ["alpha.example"]')
    for name in value:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?", name):
            raise UsageError(f"{shown(name)} is not the name of a host: write it without a port, such as alpha.example")
    return tuple(name.lower() for name in value)


def read_group(value: Any) -> str:
    address = read_address(value)
    if not ip_address(address).is_multicast:
        raise UsageError(f"{address} is not a multicast address: write one of 224.0.0.0/4, such as 239.192.79.67")
    return address


def read_folder(value: Any) -> Path:
    return Path(read_text(value)).expanduser()


def read_mode(value: Any) -> int:
    """Permissions as chmod takes them."""
    if not isinstance(value, str) or not re.fullmatch(r"0?[0-7]{3}", value):
        raise UsageError(f'{shown(value)} is not a set of permissions: write octal digits in quotes, such as "0660"')
    return int(value, 8)


def read_choice(value: Any, choices: type[Enum]) -> Enum:
    names = [str(choice.value) for choice in choices]
    if value not in names:
        raise UsageError(f"{shown(value)} is not one of {', '.join(names)}{suggestion(str(value), names)}")
    return choices(value)


def read_engine(value: Any) -> str:
    return live_entry_of(read_text(value)).name


def read_weights(value: Any) -> tuple[tuple[str, int], ...]:
    """How many slots each of some nodes has, by their names."""
    if not isinstance(value, dict):
        raise UsageError(f"{shown(value)} is not a table of nodes: write {{ alpha = 3, beta = 1 }}")
    try:
        return tuple((name, read_integer(weight, 1, WEIGHT_MAX)) for name, weight in value.items())
    except UsageError as error:
        raise UsageError(f"a node's weight {error}") from None


read_port = partial(read_integer, low=1, high=PORT_MAX)
read_port_or_none = partial(read_integer, low=0, high=PORT_MAX)


def shown(value: Any) -> str:
    """As it stands in the file, more or less; short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:60]}…"'
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


# Tables


# How fields are written, by their types; others are whole numbers.
_READERS: Mapping[object, Callable[[Any], Any]] = {
    "bool": read_flag,
    "str": read_text,
    "float": read_number,
    "tuple[tuple[int, int], ...]": read_weights,
}


IN_BYTES = (
    "channel_window",
    "entry_window",
    "source_window",
    "cargo_size",
)  # other windows are packets, or sums of messages


def _ring_key(name: str, kind: object) -> Key:
    if name.endswith("_ns"):
        return Key(name.removesuffix("_ns"), name, read_duration)
    if name.endswith("_size_max") or name in IN_BYTES:
        return Key(name, name, read_size)
    return Key(name, name, _READERS.get(kind, read_integer))


CLUSTER = Key("cluster", "cluster", read_text)  # stands before the first table
ENGINE = Key("engine", "engine", read_engine)  # likewise
NODES_VERSION = Key("nodes_version", "nodes_version", partial(read_integer, low=1, high=VERSION_MAX))  # likewise
NETWORK = (
    Key("transport", "transport", partial(read_choice, choices=Transport)),
    Key("group", "group", read_group),
    Key("port", "port", read_port),
    Key("ttl", "ttl", partial(read_integer, low=1, high=255)),
    Key("mtu", "mtu", read_mtu),
    Key("segmentation", "segmentation", read_flag),
    Key("buffer_size", "buffer_size", read_size),
)
NAMED_NETWORK = (Key("name", "name", read_text), *NETWORK)  # one of several: a table of [[networks]]
REPLICATION = Key("replication", "replication", partial(read_choice, choices=Replication))  # before the first table
COPIES = Key("copies", "copies", partial(read_integer, low=1))  # likewise
REDUNDANCY = (
    Key("strict", "is_strict", read_flag),
    *(
        _ring_key(field.name, field.type)
        for field in fields(NetworksConfig)
        if field.name not in ("count", "replication", "copies", "names", "is_strict")
    ),
)
# Of all engines that daemons can run: a file may have the tables of those that it does not choose.
ENGINE_TABLES = {
    table: tuple(_ring_key(one.name, one.type) for one in fields(config) if one.name not in (CLUSTER.name, "links"))
    for name in LIVE
    for table, config in ENGINES[name].tables.items()
}
RING = ENGINE_TABLES["ring"]  # sizes, windows and membership timers, which all engines have
TRACE = (
    Key("level", "level", partial(read_choice, choices=TraceLevel)),
    Key("folder", "folder", read_folder),
    Key("file_size_max", "file_size_max", read_size),
    Key("files_max", "files_max", read_integer),
)
STATUS = (
    Key("address", "address", read_address),
    Key("port", "port", read_port_or_none),
    Key("hosts", "hosts", read_host_names),
    Key("token", "token", read_folder),
    Key("insecure", "insecure", read_flag),
)
CLIENTS = (
    Key("folder", "folder", read_folder),
    Key("mode", "mode", read_mode),
    Key("address", "address", read_address),
    Key("port", "port", read_port_or_none),
    Key("sessions_max", "sessions_max", partial(read_integer, low=1, high=1_000_000)),
    Key("queue_size_max", "queue_size_max", read_size),
    Key("memory_max", "memory_max", read_size),
    Key("groups_max", "groups_max", partial(read_integer, low=1)),
    Key("memberships_max", "memberships_max", partial(read_integer, low=1)),
    Key("hold", "hold_ns", read_duration),
    Key("certificates", "certificates", read_folder),
    Key("insecure", "insecure", read_flag),
)
SECURITY = (Key("key", "key", read_folder), Key("insecure", "insecure", read_flag))
STATE = (Key("folder", "folder", read_folder),)
INBOX = (Key("size_max", "inbox_size_max", read_inbox_size), Key("stall", "stall_ns", read_duration))
NODE = (
    Key("id", "node", partial(read_integer, high=NODE_MAX)),
    Key("address", "address", read_host),
    Key("token_port", "token_port", read_port),
    Key("data_port", "data_port", read_port),
    Key("status_port", "status_port", read_port_or_none),
)
NODE_ON_SEVERAL = tuple(Key("addresses", "addresses", read_hosts) if key.name == "address" else key for key in NODE)
NODE_ON_RINGS = tuple(Key("rings", "rings", read_rings) if key.name == "address" else key for key in NODE)
NODE_ON_SITES = (
    NODE[0],
    Key("site", "site", read_text),
    *NODE[1:],
    Key("addresses", "addresses", read_hosts),
    Key("wide", "wide", read_host),
    Key("wide_port", "wide_port", read_port),
    Key("link_port", "link_port", read_port),
)
LINK = (
    Key("between", "between", read_ends),
    Key("protocol", "protocol", partial(read_choice, choices=LinkProtocol)),
    Key("cost", "cost_ns", read_duration),
    Key("cost_back", "cost_back_ns", read_duration),
)
LINK_LOSS = Key("link_loss", "link_loss_ns", read_duration)  # of all links, in the table of the engine
RING_ID = Key("id", "number", partial(read_integer, low=1, high=DOMAIN_MAX))
TABLES = {
    "network": NETWORK,
    "redundancy": REDUNDANCY,
    **ENGINE_TABLES,
    "trace": TRACE,
    "status": STATUS,
    "clients": CLIENTS,
    "security": SECURITY,
    "state": STATE,
    "inbox": INBOX,
}
NODES = "nodes"
NETWORKS = "networks"
RINGS = "rings"
SITES = "sites"
LINKS = "links"
if SITES in TABLES:
    TABLES[SITES] = (*TABLES[SITES], LINK_LOSS)


def read_table(table: Mapping[str, Any], keys: Iterable[Key], path: str, problems: list[str]) -> dict[str, Any]:
    """The fields that a table sets; everything that is wrong with it is added to `problems`."""
    known = {key.name: key for key in keys}
    values: dict[str, Any] = {}
    for name, value in table.items():
        key = known.get(name)
        if key is None:
            problems.append(f"{path}{name} is not a key{elsewhere(name, path) or suggestion(name, known, path)}")
            continue
        try:
            values[key.field] = key.read(value)
        except UsageError as error:
            problems.append(f"{path}{name}: {error}")
    return values


def elsewhere(name: str, path: str) -> str:
    """Whether another table has this key."""
    homes = [
        f"[{table}]" for table, keys in TABLES.items() if path != f"{table}." and any(k.name == name for k in keys)
    ]
    if name == "cluster" and path:
        homes.append("the top of the file, before the first table")
    return f": {name} belongs to {' or '.join(homes)}" if homes else ""


TYPING = 0.8  # two names that are so much alike differ by a slip


def suggestion(name: str, known: Iterable[str], path: str = "") -> str:
    names = list(known)
    parts = [known_name for known_name in names if name.endswith(f"_{known_name}")]  # a name with something in front
    typed, alike = (difflib.get_close_matches(name, names, n=1, cutoff=cutoff) for cutoff in (TYPING, 0.6))
    close = typed or parts or alike
    if close:
        return f": perhaps {path}{close[0]} is meant"
    return f": there are {', '.join(names)}" if path and len(names) <= 12 else ""
