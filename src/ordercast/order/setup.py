"""Setup: what an engine is made of, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ordercast.model.effects import Endpoint
from ordercast.model.ids import NodeId
from ordercast.order.engine import Engine
from ordercast.order.ring.config import ONE_NETWORK, RingConfig

if TYPE_CHECKING:
    from ordercast.order.ring.node import RingNode


@dataclass(frozen=True, slots=True)
class Domain:
    """A broadcast domain that a process is attached to."""

    number: int
    name: str
    beneath: str = ONE_NETWORK  # what carries the packets of its ring, in words
    over_networks: Callable[[RingNode], Engine] = lambda ring: ring  # puts several networks beneath the ring


ONE_DOMAIN = (Domain(0, "all"),)


class FarNode(NamedTuple):
    """A node of another site that a link may lead to."""

    node: NodeId
    address: Endpoint
    site: int  # that the configuration puts it in
    cost: int = 0  # milliseconds from here to there, as configured; 0: as measured
    name: str = ""

    @property
    def text(self) -> str:
        return self.name or f"node {self.node}"


@dataclass(frozen=True, slots=True)
class SitePlaces:
    """Where a process of several sites is, and whom a link may lead to."""

    domain: Domain  # of its own site
    beyond: tuple[FarNode, ...] = ()  # nodes of the sites that a link leads to


@dataclass(frozen=True, slots=True)
class Setup:
    node: NodeId
    tables: Mapping[str, Any]  # the configuration tables that the catalogue names for the engine, by name
    nodes: int = 0  # how many there are from the start, numbered from 0; for engines whose members never change
    verbose: bool = False  # note every step
    beneath: str = ONE_NETWORK  # what carries the packets, in words, which are compared with other members'
    overtaken_ns: int = 0  # how much later a packet may come than one sent after it, on another of several networks
    others: Mapping[bytes, str] = field(default_factory=dict)  # the other engines, by the id of this cluster on them
    domains: tuple[Domain, ...] = ()  # the broadcast domains of this process, by attachment; none: all share one
    domain_names: Mapping[int, str] = field(default_factory=dict)  # of all domains of the network, by number
    node_names: Mapping[NodeId, str] = field(default_factory=dict)  # as far as they are known
    beyond: tuple[FarNode, ...] = ()  # nodes of other sites that a link leads to

    @property
    def ring(self) -> RingConfig:
        """Sizes, windows and membership timers, which every engine has in common."""
        config = self.tables["ring"]
        assert isinstance(config, RingConfig)
        return config
