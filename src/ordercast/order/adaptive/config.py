"""Slots, marks and adaptation of the adaptive engine, validated once. Windows, sizes and membership timers are the
ring's keys."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from ordercast.model.errors import UsageError
from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.order.adaptive.slots import RANK_MAX

AHEAD_BLOCKS = 8  # blocks that are given up ahead for each rank
SLOTS_PER_MEMBER = 4  # the period has at least so many slots for each member
POLICIES = ("demand", "window", "fixed", "steady")
FORMAT = 2  # of packets; 1 did not say what is safe
AGREED = ("block", "period", "reach")  # keys whose values say to whom a place belongs
SIZE_MAX = 0xFFFF  # of what a distribution carries as two bytes


@dataclass(frozen=True, slots=True)
class AdaptiveConfig:
    policy: str = "demand"  # who decides how often each member has a slot
    shares: tuple[tuple[int, int], ...] = ()  # policy "fixed": nodes and their weights; others have 1
    block: int = 32  # places in a slot: as many as a good burst has packets
    period: int = 64  # slots in a period, unless members are so many that each would have fewer than four
    reach: int = 16_384  # places above what is known that may be used

    mark_ns: int = 50 * MICROSECOND  # urgent marks keep this distance, times the members
    close_ns: int = 2 * MILLISECOND  # after its last packet a sender says which one it was
    ack_ns: int = 150 * MILLISECOND  # what was received is acknowledged by then
    ask_ns: int = 1 * MILLISECOND  # what is missing is asked for, first after this
    gather_acks: int = 5  # members from which on safe messages are acknowledged to one, who tells all

    adapt_ns: int = 50 * MILLISECOND  # the policy looks at the senders
    gap_ns: int = 100 * MILLISECOND  # between two distributions; grows in a row, is a tenth while two wait
    threshold: float = 0.1  # part of the order that must change hands for a new distribution

    @property
    def ahead(self) -> int:
        return AHEAD_BLOCKS * self.block

    def period_of(self, members: int) -> int:
        return max(self.period, SLOTS_PER_MEMBER * members)

    @property
    def settings(self) -> Mapping[str, int]:
        """Return a digest of each key of the file on which members must agree: else they have no order in common; and
        the format of packets."""
        keys = {f"adaptive.{key}": zlib.crc32(repr(getattr(self, key)).encode()) for key in AGREED}
        return {**keys, "the format of packets": FORMAT}

    @property
    def members_suited(self) -> int:
        """The most members that the reach suits; none when it suits no configuration."""
        slots = (self.reach // 2 - RANK_MAX * self.ahead) // max(1, self.block)
        return slots // SLOTS_PER_MEMBER if slots >= self.period else 0

    def validate(self, members_max: int) -> None:
        """Every key and every relation; all that is wrong is said at once."""
        numbers = ("block", "period", "reach", "mark_ns", "close_ns", "ack_ns", "ask_ns", "gather_acks")
        problems = [
            f"{name} must be at least 1" for name in (*numbers, "adapt_ns", "gap_ns") if getattr(self, name) < 1
        ]
        least = least_reach(self, members_max)
        rules = [
            (self.policy in POLICIES, f"policy must be one of {', '.join(POLICIES)}"),
            (self.ahead <= SIZE_MAX, f"block must be at most {SIZE_MAX // AHEAD_BLOCKS}"),
            (self.period_of(members_max) <= SIZE_MAX, f"period must be at most {SIZE_MAX}"),
            (
                self.reach >= least,
                f"reach must be at least {least} for {members_max} members: they could wait for each other for ever",
            ),
            (0 < self.threshold < 1, "threshold must be above 0 and below 1"),
            (all(weight >= 1 for _, weight in self.shares), "shares must be at least 1"),
        ]
        problems += [text for holds, text in rules if not holds]
        if problems:
            raise UsageError("; ".join(problems))


def least_reach(config: AdaptiveConfig, members: int) -> int:
    """Return the shortest reach that is of use: a member whose next slot lies beyond it could never send, and nobody
    would have a reason to move."""
    return 2 * (config.period_of(members) * config.block + RANK_MAX * config.ahead)
