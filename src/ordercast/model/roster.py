"""The roster, which users know as the node list: which nodes belong to the cluster and where each receives, as one
value with a version.

Every node has a roster of its own, from its file, from `ordercast cluster add | remove`, or from stable storage.
Rosters are compared by their `Claim`, which every Join and every announcement carries. A higher version is newer; two
rosters of one version with different nodes contradict each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

from ordercast.model.errors import UsageError
from ordercast.model.ids import NodeId

VERSION_MAX = (1 << 31) - 1


class Place(NamedTuple):
    """Where a node receives on one network."""

    address: str  # IPv4 or IPv6, in digits
    token_port: int
    data_port: int


class Entry(NamedTuple):
    """One node of a roster."""

    node: NodeId
    name: str
    places: tuple[Place, ...]  # one for each network

    def is_like(self, other: Entry) -> bool:
        """Both have as many addresses, of the same version of IP: who reaches one can reach the other."""
        mine, theirs = ([":" in place.address for place in entry.places] for entry in (self, other))
        return mine == theirs


class Claim(NamedTuple):
    """What a process says of its roster: enough to tell whether two rosters are equal."""

    version: int
    digest: int  # of the entries, 64 bits


NO_CLAIM = Claim(0, 0)  # of a process without a roster, which takes everybody


@dataclass(frozen=True, slots=True)
class Roster:
    version: int
    entries: tuple[Entry, ...]  # by node id
    is_ordered: bool = False  # made by an ordered change of the cluster: newer ones are taken over from other members
    claim: Claim = field(init=False, repr=False, compare=False)
    _nodes: Mapping[int, Entry] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nodes = [entry.node for entry in self.entries]
        if not 0 <= self.version <= VERSION_MAX:
            raise UsageError(f"the version of a node list is within 0..{VERSION_MAX}, not {self.version}")
        if nodes != sorted(set(nodes)):
            raise UsageError("a node list has every node once, by its id")
        object.__setattr__(self, "claim", Claim(self.version, _digest(self.entries)))
        object.__setattr__(self, "_nodes", {entry.node: entry for entry in self.entries})

    def __contains__(self, node: object) -> bool:
        return node in self._nodes

    def entry(self, node: NodeId) -> Entry | None:
        return self._nodes.get(node)

    def named(self, name: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.name == name), None)

    def is_like(self, *entries: Entry) -> bool:
        """All nodes have addresses as these have."""
        return all(one.is_like(other) for one in self.entries for other in entries)

    def with_entry(self, entry: Entry) -> Roster:
        """The next version, with one node more. UsageError when its id, name or place is taken."""
        for other in self.entries:
            if (other.node, other.name) == (entry.node, entry.name):
                raise UsageError(f"{entry.name} is on the list already, with the id {entry.node}")
            if other.node == entry.node:
                raise UsageError(f"{entry.node} is the id of {other.name}: choose another")
            if other.name == entry.name:
                raise UsageError(f"{entry.name} is on the node list already, with id {other.node}")
            shared = [place for place, its in zip(entry.places, other.places, strict=False) if _clash(place, its)]
            if shared:
                where = f"{shared[0].address} port {shared[0].token_port}"
                raise UsageError(f"{other.name} receives at {where} already: give the new node another address or port")
        entries = tuple(sorted((*self.entries, entry)))
        return replace(self, version=self.version + 1, entries=entries, is_ordered=True)

    def without(self, name: str) -> Roster:
        """The next version, with one node less. UsageError when it is not there, or the last."""
        if self.named(name) is None:
            there = ", ".join(entry.name for entry in self.entries)
            raise UsageError(f"{name} is not on the node list, which has {there}")
        if len(self.entries) == 1:
            raise UsageError(f"{name} is the last node of the list: stop it instead")
        entries = tuple(entry for entry in self.entries if entry.name != name)
        return replace(self, version=self.version + 1, entries=entries, is_ordered=True)


def _clash(one: Place, other: Place) -> bool:
    """Two nodes cannot have one port of one address; data ports matter to unicast alone, and are checked with it."""
    return (one.address, one.token_port) == (other.address, other.token_port)


def _digest(entries: tuple[Entry, ...]) -> int:
    plain = [(entry.node, entry.name, [tuple(place) for place in entry.places]) for entry in entries]
    return int.from_bytes(blake2b(repr(plain).encode(), digest_size=8).digest(), "big")
