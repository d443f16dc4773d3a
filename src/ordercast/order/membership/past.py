"""What a change of membership needs from the engine: of the configuration that ends, and for the one that begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Effect
from ordercast.model.ids import Instant, ProcessId, Seq
from ordercast.order.attached import Attached
from ordercast.order.membership.recovery_plan import RecoveryPlan
from ordercast.order.membership.ring import Ring
from ordercast.order.outbox import Outbox
from ordercast.order.ring.config import RingConfig
from ordercast.wire.messages import Token
from ordercast.wire.run import PacketRun

if TYPE_CHECKING:
    from ordercast.order.membership.states.base import State
    from ordercast.order.membership.step import Facts, Step

# Gives up to `limit` packets: called with (first seq, round, Lamport clock, limit), each packet numbered in turn.
Source = Callable[[Seq, int, int, int], list[PacketRun]]


class Past(Protocol):
    """The messages of the configuration that this process last installed."""

    @property
    def aru(self) -> Seq:
        """Everything up to here was received."""

    @property
    def delivered(self) -> Seq:
        """Everything up to here was delivered, or was not for the layer above."""

    @property
    def tick(self) -> int:
        """The timestamp of the highest packet held; none is higher."""

    def held_after(self, seq: Seq) -> Iterable[tuple[Seq, PacketRun]]:
        """Packets above `seq` that companions may lack, ascending."""

    def keep(self, seq: Seq, packet: bytes) -> bool:
        """Take a packet that the exchange brought, wrapped as it came. False when it is here already, or cannot be of
        use; WireError when it is unsound."""

    def advance(self, effects: list[Effect]) -> None:
        """Deliver what has become deliverable."""

    def finish(self, plan: RecoveryPlan, ring: Ring, reason: ChangeReason, effects: list[Effect]) -> None:
        """Deliver the rest, and install both configurations. One atomic action."""


class Exchange(Protocol):
    """The token of a ring that is being formed, which carries packets of the old one."""

    def accepts(self, ring: Ring, token: Token, step: Step) -> bool:
        """The token is this ring's, and no copy of one that was here already."""

    def has_intruder(self, ring: Ring, token: Token, step: Step) -> bool:
        """Somebody who did not hold the token has numbered packets."""

    def deaf_member(self, ring: Ring, token: Token, step: Step) -> ProcessId | None:
        """Who has failed to receive for too long, if anybody but me."""

    def visit(
        self, ring: Ring, token: Token, wanted: int, source: Source, step: Step, amend: Callable[[Token], Token]
    ) -> Token:
        """Do a whole visit and pass the token on, amended; the token as it went."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine adds to its membership."""

    past_of: Callable[[Ring, Seq], Past]  # of a ring that is installed, whose packets up to the seq are recovered ones
    begin: Callable[[State, Step], State]  # enters the working state in the first configuration of a life
    work: Callable[[State, Step, str], State]  # enters the working state after recovery, for a reason in words
    exchange: Exchange
    why_stalled: Callable[[Facts, Instant], str]  # says in words why nothing may be sent although something waits
    settles: bool = False  # for an enclosing engine: the token rests only when everything is known to be safe
    is_stamped: bool = False  # likewise: deliveries carry stamps, and clocks are raised from outside
    outbox_of: Callable[[RingConfig], Outbox] = lambda config: Outbox(config.body_size_max)
    attached: Attached | None = None  # the ring's place in a network of rings, if it is in one
    has_full_visits: bool = False  # a member that has much to carry asks for a whole window
    settings: Mapping[str, int] = field(default_factory=dict)  # keys on which members must agree: a digest of each
    sends_at_once: bool = False  # what a member sends may come before it is known that all have what it had delivered
    freezes_at_entry: bool = False  # what is written on a Commit token stands: nothing old is taken or delivered then

    @property
    def is_enclosed(self) -> bool:
        """Tell whether the ring is a layer of another engine, which waits for what its token says."""
        return self.settles or self.is_stamped or self.attached is not None

    @property
    def setting_digests(self) -> tuple[int, ...]:
        return tuple(self.settings.values())

    @property
    def domain(self) -> int | None:
        return None if self.attached is None else self.attached.domain
