"""The bytes of marks, asks, direct packets and distributions are pinned in `tests/vectors/adaptive`, and nothing but
WireError comes out of bytes that are not theirs.

`ORDERCAST_REWRITE=1 pytest tests/unit/order/adaptive/test_codec.py` renews the files.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ordercast.model.errors import WireError
from ordercast.model.ids import Seq
from ordercast.model.service import Service
from ordercast.order.adaptive.codec import (
    BELOW_MAX,
    RESTS,
    decode_ask,
    decode_mark,
    distribution_fields,
    known_in,
    packed_known,
    parse_direct,
)
from ordercast.wire.header import retransmitted
from ordercast.wire.run import build_runs
from tests.simulation.adaptive.fuzz import DECODERS, fuzz
from tests.unit.wire.vectors import bytes_in, page_of

from ..rings import ONE, THREE, TWO
from .test_merge import make_merge, packet
from .vectors import DIRECTS, DISTRIBUTION, MARK, RING, VECTORS, WISHES, Vector

FOLDER = Path(__file__).parents[3] / "vectors" / "adaptive"
REWRITE = os.environ.get("ORDERCAST_REWRITE") == "1"
BYTES = {vector.name: vector.data for vector in VECTORS}


def _rendered(vector: Vector) -> str:
    return page_of(vector.title, "tests/unit/order/adaptive/test_codec.py", vector.data, vector.groups)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_packets_and_the_pinned_bytes_are_one(vector: Vector) -> None:
    path = FOLDER / f"{vector.name}.txt"
    if REWRITE:
        path.write_text(_rendered(vector), encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    assert _rendered(vector) == text and bytes_in(text) == vector.data
    assert sum(size for size, _ in vector.groups) == len(vector.data)


def test_what_is_written_is_read() -> None:
    assert decode_mark(BYTES["mark"], RING) == MARK
    ask = decode_ask(BYTES["ask"], RING)
    assert (ask.transmitter, ask.aru, ask.wishes) == (TWO, 288, WISHES)
    number, base, *_, weights, _ = distribution_fields(BYTES["distribution"])
    assert (number, base, weights) == (1, DISTRIBUTION.base, DISTRIBUTION.weights)
    run, number, *_ = parse_direct(BYTES["direct"], 0, len(BYTES["direct"]), DIRECTS)
    assert (run.seq, number, run.originator, bool(run.flags & RESTS)) == (5, 3, THREE, True)


def test_packets_in_a_row_are_one_run_and_one_sent_again_is_the_same() -> None:
    merge = make_merge(ONE)
    train = packet(1, 1, ONE).data + packet(2, 2, ONE).data
    run, number, *_ = parse_direct(train, 0, len(train) // 2, merge.heading)
    assert (run.seq, run.count, number, known_in(run)[0]) == (1, 2, 1, 0)
    again = retransmitted(packet(1, 1, ONE).data, TWO)
    run, number, *_ = parse_direct(again, 0, len(again), merge.heading)
    assert (run.originator, number) == (ONE, 1)
    broken = packet(1, 1, ONE).data + packet(2, 5, ONE).data
    with pytest.raises(WireError, match="whose numbers are not"):
        parse_direct(broken, 0, len(broken) // 2, merge.heading)


@pytest.mark.parametrize("name", DECODERS)
def test_damaged_packets_are_refused_and_nothing_else_happens(name: str) -> None:
    read, refused = fuzz(name, 100_000)
    assert read and refused


def test_packets_that_were_sent_one_by_one_may_be_read_in_a_row() -> None:
    """The second acknowledges the first, and both are taken; the third acknowledges itself."""
    load = 0, (0,), (3,), (int(Service.AGREED),), [b"one"], b"", b""
    numbers = (1, 0, 1), (2, 1, 2), (3, 3, 3)
    first, second, third = (
        build_runs(DIRECTS, [load], ONE, Seq(place), packed_known(aru, 0), number)[0].burst()[0]
        for place, aru, number in numbers
    )
    run, number, *_ = parse_direct(first + second, 0, len(first), DIRECTS)
    assert (run.seq, run.count, number, known_in(run)[0]) == (1, 2, 1, 1)
    assert known_in(parse_direct(third, 0, len(third), DIRECTS)[0])[0] == 3


FAR = 1 << 61  # places are sparse: in weeks they need more bits than a packet has for what its sender knows


@pytest.mark.parametrize(
    ("aru", "safe"), [(0, 0), (5, 5), (5, 3), (5, 0), (1 << 30, (1 << 30) - BELOW_MAX + 1), (FAR, FAR - 3)]
)
@pytest.mark.parametrize("ahead", [-1, 2, 1 << 40])
def test_packets_say_what_their_sender_knows(aru: int, safe: int, ahead: int) -> None:
    load = 0, (0,), (3,), (int(Service.AGREED),), [b"one"], b"", b""
    (run,) = build_runs(DIRECTS, [load], ONE, Seq(max(1, aru + ahead)), packed_known(aru, safe), 3)
    assert known_in(run) == (aru, safe) == parse_direct(run.data, 0, run.size, DIRECTS)[2]


def test_of_what_is_safe_far_below_nothing_is_said() -> None:
    load = 0, (0,), (3,), (int(Service.AGREED),), [b"one"], b"", b""
    (run,) = build_runs(DIRECTS, [load], ONE, Seq(7), packed_known(1 << 30, 17), 3)
    assert known_in(run) == (1 << 30, 0)
