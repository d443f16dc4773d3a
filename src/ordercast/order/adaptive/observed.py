"""What can be seen of the adaptive engine from outside: whose places there are, and who holds up the order."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.model.ids import Instant, ProcessId
from ordercast.order.adaptive.merge import Merge
from ordercast.order.adaptive.repair import Repair
from ordercast.order.adaptive.slots import Place


class MemberSeen(NamedTuple):
    process: ProcessId
    weight: int  # slots of a period
    rank: int  # 0: nobody has to answer its messages
    packets: int  # of its stream that are here in order
    aru: Place  # as it said last
    frontier: Place  # the first place of which it is not known whether the member uses it
    waiting: int  # packets that it would send, as it said last
    is_behind: bool  # its application cannot take more
    blocks_since: Instant | None  # packets wait since then until it says whether it uses its places


class SlotsSeen(NamedTuple):
    number: int  # of the newest distribution
    base: Place
    block: int
    period: int
    book_keeper: ProcessId  # who announces the next distribution
    members: tuple[MemberSeen, ...]  # in ring order
    aru: Place
    delivered: Place
    safe: Place
    highest: Place  # of a packet


def slots_seen(merge: Merge, repair: Repair | None) -> SlotsSeen:
    newest, ring = merge.line.newest, merge.ring
    members = tuple(_member_seen(merge, repair, member) for member in range(len(ring.members)))
    places = merge.aru, merge.delivered, merge.safe, merge.highest
    keeper = ring.members[newest.keeper]
    return SlotsSeen(newest.number, newest.base, newest.block, newest.period, keeper, members, *places)


def _member_seen(merge: Merge, repair: Repair | None, member: int) -> MemberSeen:
    newest, stream = merge.line.newest, merge.streams[member]
    mark, want = stream.mark, repair.wants.get(member) if repair is not None else None
    return MemberSeen(
        merge.ring.members[member],
        newest.weights[member],
        newest.ranks[member],
        stream.last,
        merge.arus[member],
        merge.frontiers[member],
        mark.waiting if mark is not None else 0,
        mark is not None and mark.is_behind,
        want.since if want is not None else None,
    )
