"""The judges of `ordercast verify` on positions as other engines give them: sparse numbers up to 63 bits, base slots,
and origins that are no configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("numpy")

import numpy as np

from ordercast.checker import Outcome, combined
from ordercast.model.ids import POSITION_NUMBER_MAX, SLOT_MAX, ConfigurationId, Position, ProcessId
from ordercast.pipeline.verify.judging import judge
from ordercast.pipeline.verify.positions import keys_of
from ordercast.pipeline.verify.rows import Rows, Unsound
from ordercast.sim.run import simulate
from ordercast.sim.swarm import hostile_options
from ordercast.trace.columns import signed
from ordercast.trace.parquet import RunInfo, write_run
from ordercast.trace.records import DeliveredBatch, Event, Installed
from tests.unit.checker.histories import Story, without_delivery
from tests.unit.pipeline.agreement import assert_agreement, reference

Moved = Callable[[Position], Position]
TAG = ProcessId((1 << 64) - 1)  # as large as the digest of a name may be


def sparse(position: Position) -> Position:
    """As with sites: the number is far away, and the slot has a base."""
    return Position(position.origin, position.number << 40 | 1 << 39, 0xFE00 | min(position.slot, 0xFF))


def ticking(position: Position) -> Position:
    """As with gateways: an origin has a few packets only, and no configuration has its name."""
    tag = ProcessId(1 << 63 | position.origin.representative)
    origin = ConfigurationId(position.origin.seq << 32 | position.number >> 1, tag)
    return Position(origin, position.number, position.slot)


def moved(events: Iterable[Event], move: Moved) -> list[Event]:
    """The same history with other positions, in the same order."""
    found: list[Event] = []
    for event in events:
        if isinstance(event, Installed):
            view = event.configuration
            found.append(replace(event, configuration=replace(view, position=move(view.position))))
        elif isinstance(event, DeliveredBatch) and event.messages:
            for message in event.messages:
                origin, number, slot = move(Position(event.origin, message.number, message.slot))
                found.append(replace(event, origin=origin, messages=(message._replace(number=number, slot=slot),)))
        else:
            found.append(event)
    return found


def story() -> Story:
    told = Story(3)
    told.change(0, 1, 2)
    told.round(0, 1, 2, count=20)
    told.change(0, 1)
    told.round(0, 1, count=5)
    told.crash(2)
    return told


@pytest.mark.parametrize("move", [sparse, ticking])
def test_a_hostile_run_is_cleared_with_any_positions(move: Moved, tmp_path: Path) -> None:
    events = moved(simulate(hostile_options(2), 2, keep_events=True).events, move)
    judged = judge(str(write_run(tmp_path, RunInfo(2), events)))
    assert judged.how == "columns"
    assert judged.verdicts == reference(events)
    assert combined(judged.verdicts).outcome is Outcome.VALID
    assert_agreement(events)


@pytest.mark.parametrize("move", [sparse, ticking])
def test_a_fault_is_found_with_any_positions(move: Moved, tmp_path: Path) -> None:
    told = story()
    events = moved(told.finished(), move)
    assert_agreement(events)
    broken = without_delivery(events, 1, next(iter(told.submissions)))
    judged = judge(str(write_run(tmp_path, RunInfo(1), broken)))
    assert judged.verdicts == reference(broken)
    assert combined(judged.verdicts).outcome is Outcome.INVALID
    assert_agreement(broken)


def test_a_message_in_two_configurations_is_found(tmp_path: Path) -> None:
    told = Story(2)
    told.change(0, 1)
    message = told.send(0)
    told.deliver(message, at=(0,))
    told.change(0, 1)
    told.deliver(message, at=(1,))
    high = Position(ConfigurationId(1 << 40, TAG), 9, 9)
    events = moved(told.finished(), lambda position: high if position.number == 1 else position)
    assert_agreement(events)


POSITIONS = [
    Position(ConfigurationId(seq, ProcessId(rep)), number, slot)
    for seq, rep in ((0, 0), (1, 5), (1, TAG), (1 << 62, 1), ((1 << 64) - 1, 0))
    for number in (0, 1, 1 << 40, POSITION_NUMBER_MAX)
    for slot in (0, SLOT_MAX)
]


def rows_of(positions: list[Position]) -> Rows:
    flat = [(*map(signed, origin), number, slot) for origin, number, slot in positions]
    columns = np.array(flat, np.int64).reshape(-1, 4).T
    return Rows(dict(zip(("origin_seq", "origin_rep", "number", "slot"), columns, strict=True)))


@pytest.mark.parametrize("count", [0, 1, 20, len(POSITIONS)])
def test_keys_compare_as_positions_do(count: int) -> None:
    mixed = POSITIONS[::3] + POSITIONS[1::3] + POSITIONS[2::3]
    ours, others = keys_of(rows_of(mixed[:count]), mixed[count:])
    keys = [*ours.tolist(), *others.tolist()]
    assert [position for _, position in sorted(zip(keys, mixed, strict=True))] == POSITIONS
    assert len(set(keys)) == len(POSITIONS)


@pytest.mark.parametrize("wrong", [POSITIONS[0]._replace(number=-1), POSITIONS[0]._replace(slot=SLOT_MAX + 1)])
def test_what_is_no_position_is_left_to_the_checkers(wrong: Position) -> None:
    with pytest.raises(Unsound):
        keys_of(rows_of([wrong]))
