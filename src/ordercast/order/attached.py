"""A ring in a network of rings: what the network tells the ring, and what the ring hands up to it.

The ring asks nobody what the network is. It has a place in it (`Attached`), sends everything as safe messages, gives
all packets of a visit one tick of the process's clock, and hands up packets, not messages: in order, with their
headers, and at its end, in one step, what its last members exchanged and the configuration that follows. (Paper,
chapter 5)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ordercast.model.effects import Deliver, Install
from ordercast.model.errors import UsageError
from ordercast.order.clock import Clock
from ordercast.order.lowest import LowestPlace
from ordercast.wire.run import PacketRun

DOMAIN_MAX = 255
SEQ_STEP = 1024  # seqs of rings rise in such steps, so that each domain has numbers of its own
SEQS_PER_DOMAIN = 4  # the ring itself; + 1 the merged logical ring; - 2 the transitional configuration
ALONE_STEP = 4  # of rings that stand alone
TRANSITIONAL = 2  # so much below a ring is the transitional configuration that leads to it


def no_block(destinations: tuple[str, ...]) -> bytes:
    """Return what stands before messages that everybody wants, wherever they go: nothing."""
    return b""


@dataclass(frozen=True, slots=True)
class Attached:
    """A ring's place in a network of rings."""

    domain: int  # the number of its broadcast domain: 0 to DOMAIN_MAX
    name: str  # of the domain: processes of different domains never form a ring
    clock: Clock  # of this process, for all its rings
    share: float = 1.0  # a gateway sends so many times as much in a visit as others: it sends for a whole network
    engine: str = "gateways"  # the enclosing one
    others: tuple[str, ...] = ()  # the other domains of the network: whoever hears one of them is told to a person
    lowest: LowestPlace = field(default_factory=LowestPlace)  # how far all members of the ring are
    # What stands before messages to these destinations, so that others can tell who wants them; nothing: everybody.
    block_of: Callable[[tuple[str, ...]], bytes] = no_block

    def __post_init__(self) -> None:
        if not 0 <= self.domain <= DOMAIN_MAX:
            raise UsageError(f"domain {self.domain} is outside 0..{DOMAIN_MAX}")
        if self.share < 1:
            raise UsageError("a gateway's share must be at least 1")


@dataclass(slots=True)
class RingPackets(Deliver):
    """Packets of a ring that all its members have, in order, instead of messages."""

    runs: list[PacketRun] = field(default_factory=list)


@dataclass(slots=True)
class RingChange(Install):
    """A regular configuration begins, and with it in one step: the packets that those who come along from the old one
    have beyond what was handed up there (they are in `configuration.transitional`, and so are the packets' last
    owners), and the tick of its birth, which is above all of them."""

    residual: list[PacketRun] = field(default_factory=list)
    birth: int = 0


def next_ring_seq(highest: int, domain: int | None) -> int:
    """Return the seq of a ring above all that its members have committed to; in a network it names the domain, so that
    a process that represents rings in two of them never makes one id twice."""
    if domain is None:
        return highest + ALONE_STEP
    return ((highest + TRANSITIONAL) // SEQ_STEP + 1) * SEQ_STEP + SEQS_PER_DOMAIN * domain
