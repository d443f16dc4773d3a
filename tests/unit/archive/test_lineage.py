"""Which bid holds when two cross each other, conversation by conversation."""

from __future__ import annotations

from ordercast.archive.lineage import Begin, Fetch, Lineage, Say, StopFetching, Write
from ordercast.archive.places import Place
from ordercast.archive.statements import Kind, Statement
from ordercast.model.events import Reason, View, ViewId
from ordercast.model.ids import Position
from tests.unit.archive.stories import RING, batch

CONTROL = "$archive/orders"


def joined(seq: int, who: str, *members: str) -> View:
    return View(CONTROL, members, (who,), Reason.JOIN, (who,), ViewId(RING, Position(RING, seq, 0)))


def gone(seq: int, who: str, *members: str) -> View:
    return View(CONTROL, members, members, Reason.DISCONNECT, (who,), ViewId(RING, Position(RING, seq, 0)))


def said(lineage: Lineage) -> list[Statement]:
    found = [action.statement for action in lineage.actions if isinstance(action, Say)]
    lineage.actions.clear()
    return found


def at(seq: int) -> ViewId:
    return ViewId(RING, Position(RING, seq, 0))


PLACE = Place("f" * 16, 40)


def filling(me: str, *elders: str) -> Lineage:
    """Joined at view 1, adopted the place of the first of its elders, fetching."""
    lineage = Lineage("orders", me)
    lineage.on_control(joined(1, me, *elders, me))
    lineage.on_statement(elders[0], Statement(Kind.SETTLED, at(1), PLACE, 1))
    assert [type(action) for action in lineage.actions] == [Fetch]
    lineage.actions.clear()
    return lineage


def test_the_first_one_claims_and_writes_when_its_claim_is_ordered() -> None:
    lineage = Lineage("orders", "b")
    lineage.on_control(joined(1, "b", "b"))
    lineage.on_item(batch(b"early"))
    (claim,) = said(lineage)
    assert claim.kind is Kind.CLAIM and not lineage.is_settled
    lineage.on_statement("b", claim)
    begin, settled, write = lineage.actions
    assert isinstance(begin, Begin) and isinstance(settled, Say) and isinstance(write, Write)
    assert lineage.place == Place(begin.branch.name, 1)


def test_who_has_fetched_everything_goes_on_when_that_is_ordered() -> None:
    lineage = filling("b", "a")
    lineage.on_item(batch(b"one", b"two"))
    lineage.filled(PLACE)
    (complete,) = said(lineage)
    assert complete.kind is Kind.COMPLETE and not lineage.is_settled
    lineage.on_statement("b", complete)
    assert lineage.place == Place(PLACE.branch, 42)


def test_an_elders_claim_that_comes_first_beats_who_has_fetched_everything() -> None:
    lineage = filling("c", "a", "b")
    lineage.filled(PLACE)
    (complete,) = said(lineage)
    lineage.on_control(gone(2, "a", "b", "c"))
    lineage.on_statement("b", Statement(Kind.CLAIM, at(2), Place("e" * 16, 0), 1))
    assert [type(action) for action in lineage.actions] == [StopFetching]
    lineage.actions.clear()
    lineage.on_statement("c", complete)
    assert not lineage.is_settled, "its bid came too late"
    lineage.on_statement("b", Statement(Kind.SETTLED, at(2), Place("e" * 16, 3), 2))
    assert lineage.actions == [Fetch(Place("e" * 16, 3), "b")]


def test_a_claim_that_comes_second_gives_way_to_who_has_fetched_everything() -> None:
    lineage = filling("b", "a")
    lineage.on_control(joined(2, "c", "a", "b", "c"))
    lineage.on_control(gone(3, "a", "b", "c"))
    (claim,) = said(lineage)
    assert claim.kind is Kind.CLAIM
    lineage.on_statement("c", Statement(Kind.COMPLETE, at(3), PLACE, 1))
    lineage.on_statement("b", claim)
    assert not lineage.is_settled, "its claim came too late"
    lineage.actions.clear()
    lineage.on_statement("c", Statement(Kind.SETTLED, at(3), PLACE, 2))
    assert lineage.actions == [Fetch(PLACE, "c")]


def test_a_claim_of_another_side_is_no_elders() -> None:
    lineage = filling("b", "a")
    lineage.on_statement("z", Statement(Kind.CLAIM, at(9), Place("e" * 16, 0), 1))
    assert lineage.actions == []
    lineage.filled(PLACE)
    (complete,) = said(lineage)
    lineage.on_statement("b", complete)
    assert lineage.place == PLACE


def test_what_waited_before_a_failed_fetch_is_written_behind_the_gap() -> None:
    lineage = filling("b", "a")
    lineage.stopped = Place("d" * 16, 7)
    lineage.on_item(batch(b"kept"))
    lineage.on_control(gone(2, "a", "b"))
    (claim,) = said(lineage)
    lineage.on_statement("b", claim)
    written = [action.item for action in lineage.actions if isinstance(action, Write)]
    assert len(written) == 2, "the gap, and what waited"
    assert lineage.place is not None and lineage.place.number == 7 + 2
