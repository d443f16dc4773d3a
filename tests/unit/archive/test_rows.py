"""Rows of sinks: whatever is sent twice, too late, or not at all, each batch stands once, where its first marker is."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.archive.entries import Outcome
from ordercast.archive.places import Place
from ordercast.archive.rows import (
    Marker,
    Part,
    Receiver,
    Sinks,
    marker_bytes,
    marker_from,
    part_bytes,
    part_from,
    united,
)
from ordercast.model.errors import WireError
from tests.property_sizes import scaled

BRANCH = "0" * 16


def rows_of(batch: int, partition: int) -> list[bytes]:
    """What the source has: the same whenever the batch is run."""
    return [b"%d.%d.%d" % (batch, partition, row) for row in range(3)]


@dataclass
class Query:
    """What Spark does: run the tasks of a batch, commit, note that it is done; and begin the batch again after a crash,
    as long as that is not noted. A step that is left out is a crash."""

    partitions: int
    done: int = -1  # the last batch of which it is noted
    attempts: int = 0
    ordered: list[bytes] = field(default_factory=list)

    def run(self, died_after: int | None, double: bool) -> None:
        """Parts of all partitions, two each; `double` runs every task twice. Dies after so many messages, perhaps."""
        batch = self.done + 1
        sent: list[bytes] = []
        winners = []
        for partition in range(self.partitions):
            for _ in range(1 + double):
                self.attempts += 1
                rows, attempt = rows_of(batch, partition), f"a{self.attempts}"
                sent.append(part_bytes(Part("q", batch, partition, attempt, 0, rows[:2])))
                sent.append(part_bytes(Part("q", batch, partition, attempt, 1, rows[2:])))
            winners.append((partition, attempt, 2))
        sent.append(marker_bytes(Marker("q", batch, tuple(winners))))
        self.ordered += sent[:died_after]
        if died_after is None:
            self.done = batch


RUNS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 14)), st.booleans()), max_size=12)


def committed(ordered: list[bytes], restarts: set[int]) -> list[bytes]:
    """As an archiver does it, whose state goes through JSON at restarts."""
    sinks = Sinks()
    rows: list[bytes] = []
    messages = {Place(BRANCH, number): data for number, data in enumerate(ordered, 1)}
    for place, data in messages.items():
        if place.number in restarts:
            sinks = Sinks(sinks.document())
        commit = sinks.take("etl", place, data)
        for part in commit.parts if commit is not None else ():
            rows += part_from(messages[part]).rows
    return rows


@settings(max_examples=scaled(120))
@given(RUNS, st.integers(1, 3), st.sets(st.integers(1, 100)))
def test_every_batch_stands_once(runs: list[tuple[int | None, bool]], partitions: int, restarts: set[int]) -> None:
    query = Query(partitions)
    for died_after, double in runs:
        query.run(died_after, double)
    query.run(None, double=False)
    expected = [
        row for batch in range(query.done + 1) for partition in range(partitions) for row in rows_of(batch, partition)
    ]
    assert committed(query.ordered, restarts) == expected
    receiver = Receiver()
    assert [row for data in query.ordered for row in receiver.take("etl", data)] == expected


@given(st.binary(max_size=60))
def test_what_makes_no_sense_does_nothing(data: bytes) -> None:
    sinks = Sinks()
    commit = sinks.take("etl", Place(BRANCH, 1), data)
    assert commit is None or commit.outcome in (Outcome.COMMITTED, Outcome.INCOMPLETE)


@given(st.lists(st.binary(max_size=9), max_size=5), st.integers(0, 2**40), st.integers(0, 99))
def test_parts_and_markers_come_back(rows: list[bytes], batch: int, number: int) -> None:
    part = Part("q", batch, 3, "attempt", number, rows)
    assert part_from(part_bytes(part)) == part
    marker = Marker("q", batch, ((0, "a", 1), (3, "b", number)))
    assert marker_from(marker_bytes(marker)) == marker


def take(sinks: Sinks, number: int, data: bytes) -> Outcome | None:
    commit = sinks.take("etl", Place(BRANCH, number), data)
    return None if commit is None else commit.outcome


def test_a_part_whose_rows_cannot_be_told_apart_is_none() -> None:
    """Whoever may send there could have it committed otherwise, and no reader would come past it."""
    part = part_bytes(Part("q", 0, 0, "a1", 0, [b"one", b"two"]))
    for wrong in (part[:-1], part + b"more"):
        sinks = Sinks()
        assert sinks.take("sink", Place(BRANCH, 1), wrong) is None
        with pytest.raises(WireError, match="lengths of rows"):
            part_from(wrong, with_rows=False)
        found = sinks.take("sink", Place(BRANCH, 2), marker_bytes(Marker("q", 0, ((0, "a1", 1),))))
        assert found is not None and found.outcome is not Outcome.COMMITTED


def test_a_batch_with_a_missing_part_is_refused_and_can_be_sent_again() -> None:
    sinks = Sinks()
    assert take(sinks, 1, part_bytes(Part("q", 0, 0, "a", 1, [b"x"]))) is None
    assert take(sinks, 2, marker_bytes(Marker("q", 0, ((0, "a", 2),)))) is Outcome.INCOMPLETE
    assert take(sinks, 3, part_bytes(Part("q", 0, 0, "b", 0, [b"x"]))) is None
    assert take(sinks, 4, marker_bytes(Marker("q", 0, ((0, "b", 1),)))) is Outcome.COMMITTED
    assert take(sinks, 5, marker_bytes(Marker("q", 0, ((0, "b", 1),)))) is Outcome.REPEATED
    assert sinks.last("etl") == 0


def test_a_marker_that_speaks_of_more_parts_than_there_can_be_is_refused_at_once() -> None:
    assert take(Sinks(), 1, marker_bytes(Marker("q", 0, ((0, "a", 1 << 60),)))) is Outcome.INCOMPLETE


def test_a_marker_with_numbers_that_no_part_can_have_is_none() -> None:
    """Otherwise two of them could make up for each other, and every archiver would build the keys of one."""
    for batch, winners in (
        (0, ((0, "a", 1 << 20), (1, "b", -1 << 20))),
        (0, ((0, "a", -1),)),
        (0, ((-1, "a", 1),)),
        (0, ((1 << 32, "a", 1),)),
        (-1, ()),
        (1 << 64, ()),
    ):
        data = marker_bytes(Marker("q", batch, winners))
        with pytest.raises(WireError, match="this is no marker: there "):
            marker_from(data)
        sinks = Sinks()
        assert take(sinks, 1, data) is None and sinks.document() == {}


def test_another_query_may_not_use_the_name() -> None:
    sinks = Sinks()
    assert take(sinks, 1, marker_bytes(Marker("q", 0, ()))) is Outcome.COMMITTED
    assert take(sinks, 2, part_bytes(Part("other", 1, 0, "a", 0, [b"x"]))) is None
    assert take(sinks, 3, marker_bytes(Marker("other", 1, ((0, "a", 1),)))) is Outcome.FOREIGN


def test_sides_that_come_together_know_what_either_has_seen() -> None:
    one, other = Sinks(), Sinks()
    for sinks in (one, other):
        take(sinks, 1, part_bytes(Part("q", 5, 0, "a", 0, [b"x"])))
    take(one, 2, marker_bytes(Marker("q", 5, ((0, "a", 1),))))
    take(other, 2, part_bytes(Part("q", 6, 0, "b", 0, [b"y"])))
    for documents in ((one.document(), other.document()), (other.document(), one.document())):
        both = Sinks(united(documents))
        assert take(both, 9, marker_bytes(Marker("q", 5, ((0, "a", 1),)))) is Outcome.REPEATED
        assert take(both, 10, marker_bytes(Marker("q", 6, ((0, "b", 1),)))) is Outcome.COMMITTED
