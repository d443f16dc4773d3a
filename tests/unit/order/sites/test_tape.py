"""The tape: what an entry does, depending on where in the ring's life it lies; and routes anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import cast

import pytest

from ordercast.model.configuration import ChangeReason
from ordercast.model.ids import ConfigurationId, Instant, ProcessId
from ordercast.model.service import Service
from ordercast.order.layered import InnerRing
from ordercast.order.links.link import Link, Tags
from ordercast.order.outbox import Lot
from ordercast.order.ring.config import RingConfig
from ordercast.order.sites import spreading
from ordercast.order.sites.codec import decode, encode
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sites.frames import (
    DataEntry,
    Had,
    ProposeFrame,
    ReadyFrame,
    RoutesFrame,
    SpreadFrame,
    StateFrame,
    UnitFrame,
    UpdateFrame,
    VectorFrame,
)
from ordercast.order.sites.interest import Wishes
from ordercast.order.sites.neighbours import Neighbour, Neighbours
from ordercast.order.sites.order import WideOrder
from ordercast.order.sites.outbox import WideOutbox
from ordercast.order.sites.runs import EntriesInARow, EntryRun, build_entries
from ordercast.order.sites.sending import Sending
from ordercast.order.sites.speaker import Speaker
from ordercast.order.sites.spreading import Spreading
from ordercast.order.sites.states import REGULAR
from ordercast.order.sites.storage import WideStorage
from ordercast.order.sites.tape import Tape, Where
from ordercast.order.sites.units import SessionRun, UnitBody
from ordercast.order.sites.views import EVERYBODY, SiteEdge, WideProposal, WideView

from .test_order import FRAGMENTS, VIEW, A, B, C, passed, unit

T0 = Instant(0)
BODY = UnitBody((SessionRun(0, 1, 1, Service.AGREED),), (b"x",))
EDGE = (SiteEdge(0, 1, 1, 1, (1, 1)), SiteEdge(0, 2, 1, 1, (1, 1)), SiteEdge(1, 2, 1, 1, (1, 1)))


def alone() -> Tape:
    """Return the tape of A, in a view of its own."""
    storage = WideStorage(1)
    storage.start({})
    tape = Tape(A, 0, WideOutbox(1000), storage, Wishes(1))
    tape.begin(FRAGMENTS[0], 4)
    return tape


def proposal(seq: int) -> WideProposal:
    return WideProposal(ConfigurationId(seq, A), FRAGMENTS[:1], ())


def test_lines_move_in_the_transitional_configuration_up_to_its_first_gap() -> None:
    tape = alone()
    entry = encode(DataEntry(tape.view.digest, (), BODY))
    tape.take(entry, B, 1, 300, Where.TRANSITIONAL)
    assert tape.order.own.line == 301
    tape.take(entry, B, 3, 400, Where.BEYOND)
    assert tape.order.own.line == 301 and set(tape.order.own.units) == {300, 400}


def test_what_a_transitional_configuration_brought_is_not_sent_again() -> None:
    tape = alone()
    tape.outbox.add([Lot(0, 1, int(Service.AGREED), [b"x"])])
    (entry,) = tape.outbox.next(tape.view.digest)
    tape.take(entry, A, 1, 300, Where.TRANSITIONAL)
    assert set(tape.order.own.units) == {300}
    assert not tape.outbox


def large_entries(tape: Tape, count: int) -> list[bytes]:
    run = SessionRun(0, 1, count, int(Service.SAFE))
    return build_entries(EntryRun(tape.view.digest, (), run, 1, [bytes((number,)) * 2000 for number in range(count)]))


def stream_of(tape: Tape) -> list[tuple[int, int | None]]:
    """Return the stamps of the own units, each with that of the one before it."""
    singles = [single for held in tape.order.own.units.values() for single in held.singles()]
    return [(single.stamp, single.previous) for single in singles]


def test_entries_of_several_packets_have_the_stamps_of_their_last_ones() -> None:
    tape = alone()
    row = EntriesInARow(B, 3, large_entries(tape, 4), [303, 306, 309, 312], 3)
    assert tape.take_alike(row, Where.REGULAR) == 4
    assert stream_of(tape) == [(303, 0), (306, 303), (309, 306), (312, 309)] and len(tape.order.own.units) == 1
    assert tape.clock == 312 and tape.order.own.line == 313 and tape.order.own.through == 312


def test_void_entries_in_a_row_move_the_line_behind_the_last() -> None:
    tape = alone()
    entries = large_entries(tape, 2)
    tape.view = replace(tape.view, id=ConfigurationId(8, A))
    assert tape.take_alike(EntriesInARow(B, 3, entries, [303, 306], 3), Where.REGULAR) == 2
    assert tape.order.own.line == 307 and not tape.order.own.units


def test_the_last_entry_of_a_row_is_safe_with_its_last_packet() -> None:
    tape = alone()
    tape.take_alike(EntriesInARow(B, 3, large_entries(tape, 4), [303, 306, 309, 312], 3), Where.REGULAR)
    tape.order.safe_at(11)
    assert tape.order.stable == 0
    tape.order.safe_at(12)
    assert tape.order.stable == 313


def test_entries_whose_stamps_jump_are_taken_up_to_there() -> None:
    tape = alone()
    stamps = [303, 306, 319, 322]  # the clock of the ring has risen between two visits of its token
    row = EntriesInARow(B, 3, large_entries(tape, 4), stamps, 3)
    assert tape.take_alike(row, Where.REGULAR) == 2
    assert tape.take_alike(row.behind(2, 4), Where.REGULAR) == 2
    assert stream_of(tape) == [(303, 0), (306, 303), (319, 306), (322, 319)]
    assert tape.order.own.line == 323
    tape.order.safe_at(11)
    assert tape.order.stable == 307


def test_commits_end_with_an_installation() -> None:
    tape = alone()
    tape.order.commits |= {B}
    tape.take(encode(ProposeFrame(proposal(8))), A, 1, 300, Where.REGULAR)
    for seq in (2, 3):
        (said,), tape.entries = tape.entries, []
        tape.take(said, A, seq, 300 + seq, Where.REGULAR)
        tape.go_on(T0)
        tape.storage._confirmed = 8
        tape.go_on(T0)
    assert tape.state == REGULAR and tape.view.id.seq == 8
    assert tape.order.commits == {A}


def test_commits_are_kept_of_those_who_do_not_come_along() -> None:
    tape = alone()
    tape.order.commits |= {B}
    tape.take(encode(ProposeFrame(proposal(8))), A, 1, 300, Where.REGULAR)
    (said,) = tape.entries
    tape.take(said, A, 2, 301, Where.REGULAR)
    assert tape.attempt is not None and tape.attempt.plan is not None
    assert tape.attempt.plan.companions == (A,) and tape.attempt.plan.commits == {A, B}


def test_a_state_counts_for_its_own_attempt_alone() -> None:
    tape = alone()
    tape.take(encode(ProposeFrame(proposal(8))), A, 1, 300, Where.REGULAR)
    (said,) = tape.entries
    spread = decode(said)
    assert isinstance(spread, SpreadFrame)
    state = decode(spread.frame)
    assert isinstance(state, StateFrame) and tape.attempt is not None
    earlier = ConfigurationId(4, A)
    stale = SpreadFrame(earlier, 0, EVERYBODY, encode(state._replace(attempt=earlier)))
    tape.take(encode(stale), A, 2, 301, Where.REGULAR)
    tape.take(encode(spread._replace(frame=encode(ReadyFrame(earlier, A)))), A, 3, 302, Where.REGULAR)
    assert tape.attempt is not None and not tape.attempt.states and not tape.attempt.ready


class Roomy:
    """A ring that takes everything."""

    def room(self) -> int:
        return 1 << 20


def test_a_state_lies_above_its_clock_on_a_ring_that_begins_lower() -> None:
    sending = Sending(cast(InnerRing, Roomy()), RingConfig(), SitesConfig())
    tape = alone()
    tape.take(encode(DataEntry(tape.view.digest, (), BODY)), B, 1, 300, Where.BEYOND)
    tape.ring_changed(FRAGMENTS[0], ChangeReason.TOKEN_LOST)
    tape.take(encode(ProposeFrame(proposal(8))), A, 1, 200, Where.REGULAR)
    sending.collect(tape, (), Where.REGULAR, T0)
    stamp, batch = sending.feed.batch()
    spread = decode(batch.payloads[0])
    assert isinstance(spread, SpreadFrame)
    state = decode(spread.frame)
    assert isinstance(state, StateFrame)
    assert stamp == state.clock == 300


def test_of_two_updates_the_later_one_says_who_is_behind() -> None:
    tape = alone()
    tape.enter(VIEW)
    for line, is_behind in ((50, False), (40, True)):
        tape.take(encode(UpdateFrame(VIEW.digest, 1, 0, line, 0, is_behind)), A, line, line, Where.REGULAR)
    assert not tape.behind


def test_a_hollow_unit_that_is_needed_here_is_lacking() -> None:
    tape = alone()
    tape.enter(VIEW)
    for needs, line in ((0b101, 0), (0b100, 51)):
        hollow = UnitFrame(VIEW.digest, 1, 1, 50, 0, 0, needs, BODY.hollow())
        tape.take(encode(hollow), B, 1, 60, Where.REGULAR)
        assert tape.order.streams[1].line == line


def test_nothing_is_delivered_after_begin() -> None:
    order = WideOrder(VIEW, A)
    order.take(unit(1, 50, 0, 1))
    order.is_held = True
    order.promise(2, 0, 60, 0)
    order.tape_at(2, 60)
    assert passed(order) == []


def spreading_at(me: ProcessId, edges: tuple[SiteEdge, ...]) -> tuple[Spreading, dict[ProcessId, Link]]:
    """Return how frames spread from one of three representatives, and its links to the others."""
    view = WideView(VIEW.id, WideProposal(VIEW.proposal.id, FRAGMENTS, edges), 0)
    neighbours = Neighbours(me, 0, [], SitesConfig(), bytes(8))
    links = {}
    for peer in {A, B, C} - {me}:
        links[peer] = Link(SitesConfig().links, bytes(8), me, peer, Tags(1, 1), T0)
        neighbours._known[peer] = Neighbour(1, 1, link=links[peer], is_up=True)
    made = Spreading(neighbours, Counter())
    made.begin(WideOrder(view, me))
    return made, links


def test_everybody_has_the_same_trees() -> None:
    assert len({spreading_at(one, EDGE)[0].trees for one in (A, B, C)}) == 1
    square = tuple(SiteEdge(low, high, 1, 1, (1, 1)) for low, high in ((0, 1), (0, 2), (1, 3), (2, 3)))
    assert len({vars(spreading)["trees_of"](4, square) for _ in range(3)}) == 1


def frame(stamp: int, previous: int) -> UnitFrame:
    return UnitFrame(VIEW.digest, 0, 0, stamp, previous, 0, EVERYBODY, BODY)


def test_who_has_a_new_parent_tells_it_what_is_here_and_gets_the_rest() -> None:
    child, _ = spreading_at(C, EDGE)
    parent, links = spreading_at(B, EDGE)
    for stamp, previous in ((300, 0), (400, 300), (500, 400)):
        parent.spread(frame(stamp, previous), encode(frame(stamp, previous)))
    update = UpdateFrame(VIEW.digest, 0, 500, 600, 0, False)
    parent.spread(update, encode(update))
    child.spread(frame(400, 300), encode(frame(400, 300)))  # the link to A failed before the others came
    assert links[C].waiting == 0
    routes = RoutesFrame(VIEW.digest, 1, (EDGE[0], EDGE[2]))
    ((target, vector),) = child.take_routes(routes)
    assert target == B and [(had.rank, had.through, had.beyond) for had in vector.had] == [(0, 0, (400,))]
    parent.take_vector(C, vector)
    assert links[C].waiting == 0  # the epoch has not come here
    assert parent.take_routes(routes) == []
    wanted = [encode(one) for one in (frame(300, 0), frame(500, 400), update)]
    assert links[C].withdraw() == wanted
    assert child.take_routes(routes) == [], "it is no news any more"


def routes(epoch: int, *edges: SiteEdge) -> RoutesFrame:
    return RoutesFrame(VIEW.digest, epoch, edges)


def test_a_vector_of_an_epoch_that_is_over_counts_where_the_parent_is_still_the_same() -> None:
    child, _ = spreading_at(C, EDGE)
    parent, links = spreading_at(B, EDGE)
    parent.spread(frame(300, 0), encode(frame(300, 0)))
    ((_, vector),) = child.take_routes(routes(1, EDGE[0], EDGE[2]))
    for epoch in (1, 2):
        parent.take_routes(routes(epoch, EDGE[0], EDGE[2]))
    assert child.take_routes(routes(2, EDGE[0], EDGE[2])) == [], "its parent is the same, and was told"
    parent.take_vector(C, vector)
    assert links[C].withdraw() == [encode(frame(300, 0))]


def test_who_has_missed_an_epoch_tells_all_its_parents() -> None:
    child, _ = spreading_at(C, EDGE)
    child.take_routes(routes(1, EDGE[0], EDGE[2]))
    (told,) = child.take_routes(routes(3, EDGE[0], EDGE[2]))  # in the second one B may not have been the parent
    assert told[0] == B and [had.rank for had in told[1].had] == [0, 1]


def test_several_vectors_wait_for_their_epochs() -> None:
    parent, links = spreading_at(B, EDGE)
    parent.spread(frame(300, 0), encode(frame(300, 0)))
    own = frame(400, 0)._replace(rank=1)
    parent.spread(own, encode(own))
    links[C].withdraw()
    parent.take_vector(C, VectorFrame(VIEW.digest, 1, (Had(0, 0, ()),)))
    parent.take_vector(C, VectorFrame(VIEW.digest, 2, (Had(1, 0, ()),)))
    for epoch, sent in ((1, frame(300, 0)), (2, own)):
        parent.take_routes(routes(epoch, EDGE[0], EDGE[2]))
        assert links[C].withdraw() == [encode(sent)]


@pytest.mark.parametrize("stamp", [300, 500])
def test_what_came_before_is_a_copy(stamp: int) -> None:
    made, _ = spreading_at(C, EDGE)
    assert not made.is_copy(frame(stamp, 0), encode(frame(stamp, 0)))
    made.spread(frame(stamp, 0), encode(frame(stamp, 0)))
    assert made.is_copy(frame(stamp, 0), encode(frame(stamp, 0)))


def test_what_everybody_has_is_let_go_before_it_takes_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made, links = spreading_at(A, EDGE)
    monkeypatch.setattr(spreading, "KEPT_SIZE_MAX", 100_000)
    made.begin(made.order)
    body = BODY._replace(payloads=(bytes(9_000),))
    for stamp in range(300, 400):
        large = frame(stamp, stamp - 1)._replace(body=body)
        made.spread(large, encode(large))
        made.order.arus = [stamp - 3] * 3
        assert stamp < 303 or len(made.kept_of(0)) < 14
        links[B].withdraw(), links[C].withdraw()


def test_an_early_frame_that_cannot_be_true_is_dropped_when_its_time_has_come() -> None:
    tape = alone()
    neighbours = Neighbours(A, 0, [], SitesConfig(), bytes(8))
    neighbours.represent(A, T0)
    speaker = Speaker(A, neighbours, SitesConfig(), tape)
    speaker.after_entry(T0)
    forged = UnitFrame(VIEW.digest, 9, 0, 300, 0, 0, EVERYBODY, BODY)
    control = SpreadFrame(VIEW.proposal.id, 9, EVERYBODY, b"")
    leaping = frame(1 << 40, 400)._replace(rank=1), UpdateFrame(VIEW.digest, 1, 400, 1 << 40, 0, False)
    for early in (forged, frame(400, 300)._replace(rank=1), *leaping, control):
        speaker._take(B, encode(early), T0)
    speaker._take(B, encode(ProposeFrame(VIEW.proposal)), T0)
    tape.enter(VIEW)
    speaker.after_entry(T0)
    assert len(speaker.dropped) == 4 and list(speaker.spreading.kept_of(1)) == [400]
    assert max(stamp for stamp, _ in speaker.entries) == 400, "the clock of the ring goes no further"


def test_entries_of_one_stamp_are_not_taken_twice() -> None:
    tape = alone()
    for seq in (3, 4):  # the second was forged
        assert tape.take_alike(EntriesInARow(B, seq, large_entries(tape, 1), [303]), Where.REGULAR) == 1
    assert stream_of(tape) == [(303, 0)]
    tape.order.safe_at(4)
    tape.order.walk()
    assert not tape.order.own.units and not tape.order.own.passed
