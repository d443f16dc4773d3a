"""Interest: gateways do not carry what nobody on the far side wants.

Groups fall into 64 buckets; a packet's mask has the buckets of its groups, a process's mask those of the groups it
wants. A process that wants more says so with a safe native packet, and joins only when it has delivered that packet
itself: by then every ring has stated that it holds the packet, with a front, and whatever a gateway dropped before lies
below. Whoever has said nothing yet wants everything. A process that wants less says so only when something came that
nobody here wants: groups that come and go in silence cost nothing.

A merge brings processes that gateways on the way do not know of until they have passed it. So a member of a ring that
is to merge wants everything before it marks, and until everybody is past the merge: nothing above the merge is then
left out on its way to the ring, and beyond the ring its other side knows what is wanted there.

In the place of packets that nobody wants go hollow ones, without a body, which tell how far the ring has come: one for
each safe packet, and one for all others that wait.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from functools import lru_cache, reduce
from operator import or_
from zlib import crc32

from ordercast.model.ids import ProcessId
from ordercast.model.inputs import Interest
from ordercast.model.notes import Occurrence
from ordercast.order.gateways.items import EVERYTHING, InterestItem, Processes, Stretch
from ordercast.order.gateways.known import Known
from ordercast.order.gateways.packets import block_of
from ordercast.order.stamped.lanes import NO_STAMP, Stamp

BUCKETS = 64


def bucket_mask(group: str) -> int:
    """Return the mask with the one bucket of a group, or of a daemon that is named as a destination."""
    return 1 << crc32(group.encode()) % BUCKETS


@lru_cache(maxsize=4096)
def mask_of(destinations: tuple[str, ...]) -> int:
    """Return the mask of messages to these destinations; without any they go everywhere."""
    if not destinations:
        return EVERYTHING
    mask = 0
    for destination in destinations:
        mask |= bucket_mask(destination)
    return mask


def native_block(destinations: tuple[str, ...]) -> bytes:
    """Return what stands before messages to these destinations on their own ring; nothing, if they go everywhere."""
    mask = mask_of(destinations)
    return b"" if mask == EVERYTHING else block_of(None, mask)


class Subscriptions:
    """The groups that users of this process want, and those of them that wait until their interest is in force."""

    __slots__ = ("_buckets", "_waiting", "mask")

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()  # groups that are wanted, by the mask of their bucket
        self._waiting: dict[str, int] = {}  # groups whose wish was not answered, with their masks
        self.mask = 0  # of all groups that are wanted

    @property
    def is_waiting(self) -> bool:
        """Whether a wish was not answered."""
        return bool(self._waiting)

    def change(self, changes: Iterable[Interest]) -> None:
        """Hear which groups are wanted from now on, and which no longer: these need no answer any more."""
        for group, is_wanted in ((change.group, change.is_wanted) for change in changes):
            bucket = bucket_mask(group)
            self._buckets[bucket] += 1 if is_wanted else -1
            self.mask = self.mask | bucket if self._buckets[bucket] else self.mask & ~bucket
            if is_wanted:
                self._waiting[group] = bucket
            else:
                self._waiting.pop(group, None)

    def granted(self, in_force: int) -> tuple[str, ...]:
        """Return the groups whose messages surely come from now on, each once."""
        granted = tuple(group for group, bucket in self._waiting.items() if bucket & in_force)
        for group in granted:
            del self._waiting[group]
        return granted


class Masks:
    """Who wants what, as heard; and what this process wants itself."""

    __slots__ = (
        "_is_returning",
        "_is_unwanted",
        "_known",
        "_masks",
        "_owed",
        "_said",
        "_until",
        "_version",
        "_wanted",
        "_wish",
        "is_filtering",
    )

    def __init__(self, known: Known, is_filtering: bool) -> None:
        self._known = known
        self._masks: dict[ProcessId, int] = {}
        self._wanted: dict[int, int] = {}  # by domain: what is wanted beyond the attachment
        self._version = -1
        self._wish = EVERYTHING
        self._until: Stamp = NO_STAMP
        self._said = deque((EVERYTHING,))  # the one that was delivered last, and those on their way
        self._owed = EVERYTHING  # what one of those names
        self._is_unwanted = False  # something came that nobody here wants
        self._is_returning = False  # it has said that it takes over the view of the others, and not delivered that
        self.is_filtering = is_filtering

    # Gateways

    def is_wanted(self, domain: int, stretch: Stretch) -> bool:
        """Whether somebody reachable over an attachment wants one of these packets."""
        if not self.is_filtering or stretch.mask == EVERYTHING or self._brings_strangers(domain):
            return True
        if self._version != self._known.version:
            self._version = self._known.version
            self._wanted.clear()
        wanted = self._wanted.get(domain)
        if wanted is None:
            wanted = self._wanted[domain] = self._union(self._known.beyond(domain))
        return bool(wanted & stretch.mask)

    def _brings_strangers(self, domain: int) -> bool:
        """Whether a merge on an attachment is under way or not passed yet: nobody here knows whom it brings."""
        known = self._known
        return domain in known.merging or known.own[domain] not in known.born

    def _union(self, processes: Processes) -> int:
        mask = 0
        for process in processes:
            mask |= self._masks.get(process, EVERYTHING)
        return mask

    def take(self, interest: InterestItem) -> None:
        """Hear what a process wants: from its packet as soon as it comes, or from a topology."""
        self._masks[interest.process] = interest.mask
        self._wanted.clear()

    def add(self, process: ProcessId, mask: int) -> None:
        """Hear from a topology what a process wants; both may be true, so both count."""
        known = self._masks.get(process)
        self._masks[process] = mask if known is None else known | mask
        self._wanted.clear()

    def said(self) -> tuple[tuple[ProcessId, int], ...]:
        """Return all masks, for a topology."""
        members = self._known.members
        return tuple((process, mask) for process, mask in sorted(self._masks.items()) if process in members)

    def forget(self, members: Processes) -> None:
        self._masks = {process: mask for process, mask in self._masks.items() if process in members}

    # The process itself

    def want(self, mask: int) -> None:
        """Hear what the users of this process want."""
        self._wish = mask

    def is_for_users(self, stretch: Stretch) -> bool:
        """Whether users here may be owed packets that are passed in the order: what was said last before them names a
        bucket of theirs, or what has been said since."""
        return stretch.mask == EVERYTHING or not self.is_filtering or bool(stretch.mask & self._owed)

    def came(self, mask: int) -> None:
        """Hear that others have sent packets here."""
        if mask & self._said[-1] and not mask & self._wish:
            self._is_unwanted = True  # it may have come for what was said last

    def want_everything_until(self, stamp: Stamp) -> None:
        """Want everything until all are past a merge: whoever has not had it does not know whom it brings."""
        self._until = max(self._until, stamp)

    def due(self, is_merging: bool, is_alone: bool = False) -> InterestItem | None:
        """Return what to say now, in a safe packet of its own; None if all is said."""
        is_return = is_alone and not self._is_returning
        if not self.is_filtering and not is_return:
            return None
        mask = EVERYTHING if is_merging or self._until > self._known.stable else self._wish
        is_more = mask & ~self._said[-1] != 0
        if not is_more and (mask == self._said[-1] or not self._is_unwanted):
            if not is_return:
                return None
            mask = self._said[-1]
        self._known.occurred[Occurrence.NETWORK_INTEREST_RAISED] += is_more
        self._is_unwanted = False
        self._is_returning |= is_return
        self._said.append(mask)
        self._owed |= mask
        return InterestItem(self._known.me, mask, is_return)

    def delivered(self, interest: InterestItem) -> None:
        """Hear that an interest was passed in the order: this process's own are then in force."""
        if interest.process == self._known.me:
            self._said.popleft()
            self._owed = reduce(or_, self._said)
            self._is_returning &= not interest.is_return

    @property
    def in_force(self) -> int:
        """What surely comes here: what was wanted without a break since the interest that was delivered last."""
        mask = EVERYTHING
        for said in self._said:
            mask &= said
        return mask
