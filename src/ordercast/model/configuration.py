"""Views: who is in the configuration in which messages are delivered, and why it changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from ordercast.model.ids import ConfigurationId, Position, ProcessId


class ConfigurationKind(Enum):
    REGULAR = "regular"  # a ring's whole membership: new messages are sent in it
    TRANSITIONAL = "transitional"  # those who come along from the old ring to the new: what was left is delivered in it


class ChangeReason(IntEnum):
    """Why a membership was given up. Numbers travel on the wire: append only."""

    STARTED = 0
    TOKEN_LOST = 1
    MERGE = 2
    FAILED_TO_RECEIVE = 3
    LEFT = 4
    COMMIT_LOST = 5
    RECOVERY_LOST = 6
    NO_CONSENSUS = 7
    SAME_PROPOSAL = 8
    REMOVED = 9
    FOREIGN_PACKET = 10
    RING_REFORMED = 11
    RING_SPLIT = 12
    RING_CUT_OFF = 13
    RINGS_MERGED = 14
    GIVEN_UP = 15
    SILENT = 16
    SITE_HEARD = 17
    SITE_LOST = 18
    SITE_RING_CHANGED = 19
    SITE_STUCK = 20
    ATTEMPT_LOST = 21

    @property
    def text(self) -> str:
        return _TEXTS[self]


_TEXTS = {
    ChangeReason.STARTED: "a process started",
    ChangeReason.TOKEN_LOST: "the token was lost: a member crashed, or the network was cut",
    ChangeReason.MERGE: "another ring was heard",
    ChangeReason.FAILED_TO_RECEIVE: "a member kept failing to receive",
    ChangeReason.LEFT: "a member left",
    ChangeReason.COMMIT_LOST: "the Commit token of a proposed ring was lost",
    ChangeReason.RECOVERY_LOST: "the token was lost during recovery",
    ChangeReason.NO_CONSENSUS: "some did not agree in time",
    ChangeReason.SAME_PROPOSAL: "a proposed ring failed to form, so one member was given up",
    ChangeReason.REMOVED: "a node was removed from the node list",
    ChangeReason.FOREIGN_PACKET: "packets came that no member can have sent",
    ChangeReason.RING_REFORMED: "a ring of the network formed anew",
    ChangeReason.RING_SPLIT: "a ring of the network split, and some of its members can no longer be heard",
    ChangeReason.RING_CUT_OFF: "a ring was cut off from the network",
    ChangeReason.RINGS_MERGED: "rings of the network merged",
    ChangeReason.GIVEN_UP: "a member was given up for a safe message that it is not known to have",
    ChangeReason.SILENT: "a member was not heard any more: it crashed, or the network was cut",
    ChangeReason.SITE_HEARD: "another site was heard",
    ChangeReason.SITE_LOST: "a site is out of reach",
    ChangeReason.SITE_RING_CHANGED: "the ring of a site changed",
    ChangeReason.SITE_STUCK: "a site was left out, since it answers and all others waited for it in vain",
    ChangeReason.ATTEMPT_LOST: "an attempt at a view was not carried out in time",
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """One configuration change. It ends the configuration before it and begins this one; it has its place in the same
    ordered stream as the messages."""

    kind: ConfigurationKind
    id: ConfigurationId
    members: tuple[ProcessId, ...]  # in ring order, representative first
    previous: ConfigurationId  # the configuration that this one ends
    transitional: tuple[ProcessId, ...]  # those who come here directly from the same old ring as this process
    reason: ChangeReason
    position: Position
