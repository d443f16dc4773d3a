"""A ring as a layer: inside another engine, which consumes its ordered stream and passes on everything else.

An engine may have several, each on an attachment of its own and with stored keys of its own, as if it were alone. What
an input causes comes back in the order in which it has to be carried out, fit for the driver: packets, notes and alarms
bear the attachment, stored keys the name. Only the `Stream` is for the enclosing engine, which puts in its place what
it makes of it; and a `Room` or `LeaveDone` speaks of the inner ring alone.

An inner ring is never told that an application is behind: that would stop what the enclosing engine has to send. It
holds back what its own users send.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ordercast.model.effects import (
    Alarm,
    Broadcast,
    Deliver,
    Effect,
    Enlisted,
    Install,
    Persist,
    Record,
    SendTo,
    Unicast,
)
from ordercast.model.errors import UsageError
from ordercast.model.ids import Attachment, Incarnation, Instant
from ordercast.model.inputs import Lane, Packet, Stored, Submission, Submissions
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.order.engine import Engine
from ordercast.order.lowest import LowestPlace
from ordercast.order.ring.node import RingNode
from ordercast.order.ring.two_queues import Freight

Stream = Deliver | Install  # what an inner ring orders: messages and configurations

SEPARATOR = "."
_ATTACHED = Broadcast | SendTo | Unicast | Enlisted | Record | Alarm


@runtime_checkable
class Beneath(Protocol):
    """Several networks beneath an engine."""

    def outward(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """Return what the engine asked for, as it goes out."""


class InnerRing:
    """A `RingNode`, or `Networks` with one above them."""

    __slots__ = ("_beneath", "_engine", "_prefix", "_ring", "attachment")

    def __init__(self, engine: Engine, attachment: Attachment, name: str, ring: RingNode | None = None) -> None:
        """`ring` is the one above the networks, if its clock is to be raised."""
        if not name or SEPARATOR in name:
            raise UsageError(f"{name!r} cannot name an inner ring: it begins the keys in stable storage")
        self.attachment = attachment
        self._engine = engine
        self._ring = engine if isinstance(engine, RingNode) else ring
        self._beneath = engine if isinstance(engine, Beneath) else None
        self._prefix = name + SEPARATOR

    # What the enclosing engine asks

    @property
    def promises(self) -> Promises:
        return self._engine.promises

    def next_deadline(self) -> Instant | None:
        return self._engine.next_deadline()

    def room(self) -> int:
        return self._engine.room()

    def want_room(self, size: int) -> None:
        self._engine.want_room(size)

    def is_idle(self) -> bool:
        return self._engine.is_idle()

    def first_lane(self) -> Lane:
        return self._engine.first_lane(self.attachment)

    def check_invariants(self, *, thorough: bool = True) -> None:
        self._engine.check_invariants(thorough=thorough)

    # Inputs

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        """Begin a life, with what is stored under this ring's name."""
        prefix = self._prefix
        mine = {key.removeprefix(prefix): value for key, value in stored.items() if key.startswith(prefix)}
        return self._outward(self._engine.start(mine, incarnation, now))

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        return self._outward(self._engine.submit(submissions, now))

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        """Take those packets that came on this ring's attachment."""
        mine = [packet for packet in packets if packet.attachment == self.attachment]
        return self._outward(self._engine.receive(mine, now)) if mine else []

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        """Hear of a write, if the key is this ring's."""
        prefix = self._prefix
        return self._outward(self._engine.persisted(key.removeprefix(prefix), now)) if key.startswith(prefix) else []

    def hear(self, stamp: int, now: Instant) -> list[Effect]:
        """Raise the ring's clock: whatever it numbers here from now on lies above this stamp."""
        return self._past_networks(self._node.hear(stamp, now), now)

    # Inputs of a network of rings

    def carry(self, freight: Sequence[Freight], now: Instant, *, is_first: bool = False) -> list[Effect]:
        """Put packets of other rings and control on this one, before everything that users send."""
        return self._past_networks(self._node.carry(freight, now, is_first=is_first), now)

    def hold(self, is_held: bool, now: Instant) -> list[Effect]:
        """Users of this process stop sending on this ring, or go on."""
        return self._past_networks(self._node.hold(is_held, now), now)

    def clock_stored(self, now: Instant, *, is_again: bool = False) -> list[Effect]:
        """A higher bound of the process's clock is on stable storage; `is_again` is said to one ring, which tells a
        person that the process had gone on without it."""
        return self._past_networks(self._node.clock_stored(now, is_again=is_again), now)

    @property
    def lowest(self) -> LowestPlace:
        """How far all members of the ring are in the order of the network; the enclosing engine raises its own."""
        return self._node.lowest

    @property
    def freight_body_max(self) -> int:
        """Descriptors and payloads of control that fit in a packet."""
        return self._node.freight_body_max

    @property
    def freight_size(self) -> int:
        """Bytes of other rings and of control that wait to be sent."""
        return self._node.freight_size

    @property
    def _node(self) -> RingNode:
        assert self._ring is not None, "the ring is named, where networks lie between"
        return self._ring

    def _past_networks(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """What the ring was told past the networks, which have no word for it, still goes out on them."""
        return self._outward(effects if self._beneath is None else self._beneath.outward(effects, now))

    def enlist(self, roster: Roster, now: Instant) -> list[Effect]:
        return self._outward(self._engine.enlist(roster, now))

    def wake(self, now: Instant) -> list[Effect]:
        return self._outward(self._engine.wake(now))

    def leave(self, now: Instant) -> list[Effect]:
        return self._outward(self._engine.leave(now))

    def _outward(self, effects: list[Effect]) -> list[Effect]:
        for effect in effects:
            if isinstance(effect, _ATTACHED):
                effect.attachment = self.attachment
            elif isinstance(effect, Persist):
                effect.key = self._prefix + effect.key
        if self._ring is not None:
            effects += self._ring.clock_writes()
        return effects
