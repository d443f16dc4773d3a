"""What every ordering engine looks like from outside.

An engine is a machine without clock, socket or thread. Its inputs are the layer above (`submit`, `interest`, `leave`),
the network (`receive`), stable storage (`start`, `persisted`) and time (`wake`). Each returns the effects to carry out,
in order. The driver calls `wake` at `next_deadline()` or as soon after it as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ordercast.model.effects import Effect, Subscribed
from ordercast.model.ids import MAIN, Attachment, ConfigurationId, Incarnation, Instant, ProcessId, Seq
from ordercast.model.inputs import Interest, Lane, Packet, Stored, Submission, Submissions
from ordercast.model.promises import Promises
from ordercast.model.roster import Roster
from ordercast.order.clock import CLOCK_KEY
from ordercast.order.traffic import Traffic

# The number of the newest configuration in stable storage: one for all engines, so that ids go on rising when a cluster
# is restarted with another engine. It had the other name when the ring was the only one, and is still read there.
CONFIGURATION_SEQ_KEY = "configuration_seq"
OLD_CONFIGURATION_SEQ_KEY = "ring_seq"


def stored_configuration_seq(stored: Stored) -> bytes:
    """The stored number, or nothing. A life in a network of rings leaves its clock, which is first in positions."""
    values = (stored.get(key, b"") for key in (CONFIGURATION_SEQ_KEY, OLD_CONFIGURATION_SEQ_KEY, CLOCK_KEY))
    return max(values, key=lambda value: int.from_bytes(value, "big"))


class Membership(NamedTuple):
    """A regular configuration as status displays show it."""

    id: ConfigurationId
    members: tuple[ProcessId, ...]  # the representative first

    @property
    def representative(self) -> ProcessId:
        return self.members[0]


@dataclass(slots=True)
class EngineStats:
    """What every engine counts of its own work, over all configurations."""

    packets_sent: int = 0  # new ones of this process
    packets_retransmitted: int = 0  # sent again by this process on request
    packets_requested: int = 0  # asked for, by anybody, as far as this process saw
    visits: int | None = None  # of a token: between two of them every member has done something; None: there is none


def granted(changes: Sequence[Interest]) -> list[Effect]:
    """Return the answer to a change of interest of an engine that prunes nothing: whatever is wanted comes already."""
    gained = tuple(change.group for change in changes if change.is_wanted)
    return [Subscribed(gained)] if gained else []


class Engine(Protocol):
    """What a driver drives."""

    @property
    def promises(self) -> Promises:
        """What it guarantees and which services it serves; written to every trace."""

    @property
    def traffic(self) -> Traffic:
        """What its packets are, for layers beneath it."""

    def start(self, stored: Stored, incarnation: Incarnation, now: Instant) -> list[Effect]:
        """Begin a life. Called once, before anything else."""

    def submit(self, submissions: Sequence[Submission | Submissions], now: Instant) -> list[Effect]:
        """Send messages. All or none are taken: UsageError when they exceed `room()` or cannot be served."""

    def receive(self, packets: Sequence[Packet], now: Instant) -> list[Effect]:
        """Everything that one look at the network brought."""

    def persisted(self, key: str, now: Instant) -> list[Effect]:
        """The oldest unconfirmed `Persist` of this key is on stable storage."""

    def interest(self, changes: Sequence[Interest], now: Instant) -> list[Effect]:
        """A group gains its first or loses its last member at this process. Kept over configurations; each group that
        is gained is answered by `Subscribed`, at once by an engine that prunes nothing."""

    def enlist(self, roster: Roster, now: Instant, attachment: Attachment = MAIN) -> list[Effect]:
        """Take this roster in place of the older one, on this attachment. UsageError, and nothing changed, when it is
        not newer."""

    def wake(self, now: Instant) -> list[Effect]:
        """Time has passed."""

    def behind(self, is_behind: bool, now: Instant) -> list[Effect]:
        """The layer above has more deliveries than it can take, or no longer: while it has, nobody sends anything
        new."""

    def leave(self, now: Instant) -> list[Effect]:
        """Finish what was submitted, say farewell; `LeaveDone` is the last effect ever."""

    def next_deadline(self) -> Instant | None:
        """When `wake` is due."""

    def room(self) -> int:
        """How many bytes `submit` takes now; a `Room` effect tells when there is more."""

    def want_room(self, size: int) -> None:
        """Somebody waits until `submit` takes this many bytes: tell it with a `Room`."""

    def is_idle(self) -> bool:
        """Nothing to send, nothing to deliver, no membership change under way."""

    def first_lane(self, attachment: Attachment = MAIN) -> Lane:
        """Return the lane of this attachment that the driver should drain first."""

    def holds(self, ring: ConfigurationId, seq: Seq) -> bool:
        """Whether every packet through this seq of this ring is here; True also for a ring whose packets are not taken.
        The one question of the layer that knows several networks."""

    def deniable(self, configuration: ConfigurationId) -> tuple[Seq, Seq] | None:
        """Return the lowest number that this process would believe to be the last of a configuration, and the highest
        that it holds; None for one that is not installed, or has no such numbers. For the simulator's forgers."""

    def check_invariants(self, *, thorough: bool = True) -> None:
        """Raise AssertionError when the engine's own state is impossible; cheap enough for every input when not
        thorough. For simulators and tests."""


class ObservedEngine(Engine, Protocol):
    """An engine with what status displays ask of it. A layer between engine and driver need not have that."""

    @property
    def configuration(self) -> Membership:
        """The regular configuration that is installed."""

    @property
    def state_name(self) -> str:
        """The state of the engine, a word of its own."""

    @property
    def is_ready(self) -> bool:
        """Messages flow: no change of membership is under way."""

    @property
    def is_gone(self) -> bool:
        """The orderly leave is complete."""

    @property
    def stats(self) -> EngineStats:
        """What was done so far."""

    @property
    def roster(self) -> Roster | None:
        """The node list; None where everybody may be a member."""

    def roster_differences(self, now: Instant) -> list[str]:
        """How the node lists of those who are heard differ from the one here, a sentence each."""

    def stalled(self, now: Instant) -> str | None:
        """Why nothing may be sent although something waits, once that has lasted; None as long as all is well."""

    @property
    def is_without_storage(self) -> bool:
        """A configuration is in use whose number is not stored."""
