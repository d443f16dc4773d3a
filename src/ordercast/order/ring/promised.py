"""What a ring promises and serves, and everything that can happen to it: its part of the catalogue of engines."""

from __future__ import annotations

from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import AlarmKind
from ordercast.model.notes import Occurrence
from ordercast.model.promises import Promise
from ordercast.model.service import Service

PROMISED = frozenset(
    {
        Promise.INTEGRITY,
        Promise.NO_DUPLICATES,
        Promise.SELF_DELIVERY,
        Promise.FIFO,
        Promise.CAUSAL,
        Promise.TOTAL_ORDER,
        Promise.AGREED_DELIVERY,
        Promise.SAFE_DELIVERY,
        Promise.VIRTUAL_SYNCHRONY,
        Promise.TRANSITIONAL_SETS,
        Promise.TRUTHFUL_SETS,
        Promise.VIEW_AGREEMENT,
        Promise.VIEW_MONOTONY,
        Promise.WHOLE_MESSAGES,
        Promise.FAIRNESS,
        Promise.LIVENESS,
    }
)
SERVICES = frozenset({Service.RELIABLE, Service.FIFO, Service.CAUSAL, Service.AGREED, Service.SAFE})

# Why a membership is given up, in the order of their numbers.
REASONS = (
    ChangeReason.TOKEN_LOST,
    ChangeReason.MERGE,
    ChangeReason.FAILED_TO_RECEIVE,
    ChangeReason.LEFT,
    ChangeReason.COMMIT_LOST,
    ChangeReason.RECOVERY_LOST,
    ChangeReason.NO_CONSENSUS,
    ChangeReason.SAME_PROPOSAL,
    ChangeReason.REMOVED,
    ChangeReason.FOREIGN_PACKET,
)
OCCURRENCES = (
    Occurrence.RECOVERY_INTERRUPTED,
    Occurrence.COMMIT_INTERRUPTED,
    Occurrence.MESSAGES_EXCHANGED,
    Occurrence.PROMISE_MADE,
    Occurrence.OBLIGATION_KEPT,
    Occurrence.PROMISE_DIFFERS,
    Occurrence.GAP_DROPPED,
    Occurrence.BEYOND_GAP_DELIVERED,
    Occurrence.GAP_AMONG_COMPANIONS,
    Occurrence.SAFE_IN_TRANSITIONAL,
    Occurrence.LARGE_CUT,
    Occurrence.LARGE_SENT_AGAIN,
    Occurrence.TOKEN_RETRANSMITTED,
    Occurrence.DUPLICATE_TOKEN,
    Occurrence.EXPELLED,
    Occurrence.SAME_PROPOSAL,
    Occurrence.MERGE_HELD,
    Occurrence.TOKEN_RESTED,
    Occurrence.RING_WOKEN,
    Occurrence.PAUSE_NOTICED,
    Occurrence.STRANGER_REFUSED,
    Occurrence.ROSTER_ADOPTED,
    Occurrence.ROSTER_LEARNT,
    Occurrence.NEWCOMER_HELD,
    Occurrence.MEMBER_DROPPED,
    Occurrence.IMPLAUSIBLE,
    Occurrence.FOREIGN_PACKET,
    Occurrence.IMPOSTOR,
    Occurrence.WITHOUT_STORAGE,
    Occurrence.STORAGE_AGAIN,
)
ALARMS = frozenset(
    {
        AlarmKind.PAUSED,
        AlarmKind.CONFIGURATION_MISMATCH,
        AlarmKind.FAILED_TO_RECEIVE,
        AlarmKind.UNLISTED_NODE,
        AlarmKind.NODE_LISTS_DIFFER,
        AlarmKind.REMOVED,
        AlarmKind.IMPLAUSIBLE,
        AlarmKind.FORGED,
        AlarmKind.WIRE_VERSION,
        AlarmKind.STALLED,
        AlarmKind.STALL_ENDED,
        AlarmKind.WITHOUT_STORAGE,
        AlarmKind.STORAGE_REPAIRED,
        AlarmKind.STORAGE_DAMAGED,
    }
)
