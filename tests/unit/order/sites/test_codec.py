"""Frames and greetings of the sites engine: what was said is read again, and garbage is a WireError."""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.model.service import Service
from ordercast.order.sites.codec import STAMPS_MAX, decode, encode
from ordercast.order.sites.config import SitesConfig
from ordercast.order.sites.frames import (
    BehindFrame,
    DataEntry,
    Had,
    ProposeFrame,
    ReachRecord,
    ReadyFrame,
    RecordLink,
    RecoveredFrame,
    RoutesFrame,
    SpreadFrame,
    StateFrame,
    UnitFrame,
    UpdateFrame,
    VectorFrame,
    WideFrame,
)
from ordercast.order.sites.hello import Greeting, HelloKind, decode_greeting, encode_greeting
from ordercast.order.sites.interest import WantsTold, wants_body
from ordercast.order.sites.units import SessionRun, UnitBody, decode_body, encode_body
from ordercast.order.sites.views import Fragment, SiteEdge, WideProposal
from ordercast.wire.head import HEAD_SIZE
from tests.property_sizes import scaled

P, Q, R = ProcessId(1 << 48 | 1), ProcessId(2 << 48 | 1), ProcessId(3 << 48 | 4)
VIEW = b"12345678"
ATTEMPT = ConfigurationId(8, P)
BODY = UnitBody((SessionRun(7, 1, 2, Service.AGREED), SessionRun(9, 4, 1, Service.CAUSAL)), (b"a", b"", b"ccc"))
NEAR, FAR = Fragment(ConfigurationId(4, P), 0, (P, Q)), Fragment(ConfigurationId(12, R), 1, (R,))
PROPOSAL = WideProposal(ATTEMPT, (NEAR, FAR), (SiteEdge(0, 1, 20, 30, (5, 6)),), 17)
FRAMES: tuple[WideFrame, ...] = (
    DataEntry(VIEW, (), BODY),
    DataEntry(VIEW, (7, 9), wants_body(WantsTold((3, 5), (4,), True))),
    UnitFrame(VIEW, 1, 2, 300, 200, 100, 3, BODY),
    UnitFrame(VIEW, 1, 2, 300, 200, 100, 1, BODY.hollow()),
    UpdateFrame(VIEW, 1, 300, 400, 200, True),
    ReachRecord(5, NEAR, (RecordLink(R, 20, (5, 6)),), ATTEMPT, 12),
    ProposeFrame(PROPOSAL),
    SpreadFrame(ATTEMPT, 1, 3, b"more"),
    StateFrame(ATTEMPT, P, ATTEMPT, (10, 20), ((11, 15), ()), (9, 1), (P, R), 99, 4),
    StateFrame(ATTEMPT, P, ATTEMPT, (10, 20), ((11, 15), ()), (9, 1), (P, R), 99, 4, 1, (((12, 1),), ())),
    ReadyFrame(ATTEMPT, Q),
    RecoveredFrame(ATTEMPT, VIEW, 0, Q, 77, 3, BODY),
    BehindFrame(True),
    RoutesFrame(VIEW, 3, PROPOSAL.edges),
    VectorFrame(VIEW, 3, (Had(0, 44, (50, 51)), Had(1, 0, ()))),
)


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_what_was_said_is_read_again(frame: WideFrame) -> None:
    assert decode(encode(frame)) == frame


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_a_frame_that_is_cut_short_is_refused(frame: WideFrame) -> None:
    data = encode(frame)
    for end in range(len(data)):
        if isinstance(frame, SpreadFrame) and end >= len(data) - len(frame.frame):
            break  # what it carries is read by whoever takes it
        with pytest.raises(WireError):
            decode(data[:end])


@settings(max_examples=scaled(150), deadline=None)
@given(st.sampled_from(FRAMES), st.data())
def test_a_damaged_frame_is_read_or_refused(frame: WideFrame, data: st.DataObject) -> None:
    packet = bytearray(encode(frame))
    for _ in range(data.draw(st.integers(1, 4))):
        packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    with suppress(WireError):
        assert encode(decode(bytes(packet))) is not None


@settings(max_examples=scaled(150), deadline=None)
@given(st.integers(0, 255), st.binary(max_size=80))
def test_garbage_is_a_wire_error(kind: int, rest: bytes) -> None:
    with suppress(WireError):
        decode(bytes((kind,)) + rest)


STAMPS = st.lists(st.one_of(st.integers(1, 9), st.integers(1, 1 << 20)), max_size=40)  # how far they are apart


@settings(max_examples=scaled(100), deadline=None)
@given(STAMPS, STAMPS, st.data())
def test_what_a_daemon_holds_is_told_in_ranges(gaps: list[int], hollow_gaps: list[int], data: st.DataObject) -> None:
    held = tuple(accumulate(gaps))
    hollow = tuple((stamp, data.draw(st.integers(0, 3))) for stamp in accumulate(hollow_gaps))
    frame = StateFrame(
        ATTEMPT, P, ATTEMPT, (10, 20), (held, ()), (9, 1), (P,), 99, 4, 0, ((), hollow) if hollow else ()
    )
    assert decode(encode(frame)) == frame


@pytest.mark.parametrize("apart", [1, 8])
def test_a_full_window_is_told_in_a_frame_that_links_carry(apart: int) -> None:
    """Eight bytes a unit were more than a link carried, from some 8,000 on: the daemon ended."""
    stamps = tuple(range(1, 300_000 * apart, apart))
    held = StateFrame(ATTEMPT, P, ATTEMPT, (10,), (stamps,), (9, 1), (P,), 99, 4)
    assert len(encode(held)) < 1000 and decode(encode(held)) == held
    worst = tuple(sorted({*range(1, 400_000, 3), *range(1, 400_000, 7)}))
    told = encode(held._replace(held=(worst,), hollow=(tuple((stamp, 1) for stamp in worst[:100_000]),)))
    assert len(encode(SpreadFrame(ATTEMPT, 0, 1, told))) <= SitesConfig().links.payload_max


def test_more_stamps_than_any_window_has_are_refused_before_they_are_made() -> None:
    frame = StateFrame(ATTEMPT, P, ATTEMPT, (10,), (tuple(range(1, STAMPS_MAX + 2)),), (9, 1), (P,), 99, 4)
    assert "more stamps than any window has" in wrong(frame)


def wrong(frame: WideFrame) -> str:
    with pytest.raises(WireError) as caught:
        decode(encode(frame))
    return str(caught.value)


def test_what_contradicts_itself_is_refused_in_a_sentence() -> None:
    assert "follows a later one" in wrong(UnitFrame(VIEW, 1, 2, 300, 300, 100, 3, BODY))
    assert "below its last unit" in wrong(UpdateFrame(VIEW, 1, 400, 400, 200, True))
    assert "rank 64" in wrong(UpdateFrame(VIEW, 64, 300, 400, 200, True))
    assert "beyond all bounds" in wrong(UpdateFrame(VIEW, 1, 300, 1 << 63, 200, True))
    assert "do not rise" in wrong(StateFrame(ATTEMPT, P, ATTEMPT, (10,), ((15, 11),), (9, 1), (P,), 99, 4))
    twice = Fragment(ConfigurationId(12, Q), 1, (Q,))
    assert "share members" in wrong(ProposeFrame(WideProposal(ATTEMPT, (NEAR, twice), ())))
    assert "members are none" in wrong(ReachRecord(5, Fragment(ConfigurationId(4, P), 0, (Q, P)), (), ATTEMPT, 12))
    assert "reason 99" in wrong(ProposeFrame(WideProposal(ATTEMPT, (NEAR, FAR), (), 99)))
    assert "reason 99" in wrong(ReachRecord(5, NEAR._replace(reason=99), (), ATTEMPT, 12))  # type: ignore[arg-type]
    far = SiteEdge(0, 2, 20, 30, (5, 6))
    assert "not listed" in wrong(ProposeFrame(WideProposal(ATTEMPT, (NEAR, FAR), (far,))))


def test_a_body_has_one_class_and_counts_that_hold() -> None:
    assert decode_body(encode_body(BODY)) == BODY
    mixed = UnitBody((SessionRun(7, 1, 1, Service.AGREED), SessionRun(9, 4, 1, Service.SAFE)), (b"a", b"b"))
    with pytest.raises(WireError, match="two classes"):
        decode_body(encode_body(mixed))
    with pytest.raises(WireError, match="beyond the last"):
        decode_body(encode_body(BODY._replace(part=1, parts=1)))
    with pytest.raises(WireError, match="does not exist"):
        decode_body(encode_body(UnitBody((SessionRun(7, 1, 1, 9),), (b"a",))))


def test_greetings_are_read_again_and_garbage_is_refused() -> None:
    greeting = Greeting(HelloKind.HELLO, 3, 5, 6)
    packet = encode_greeting(VIEW, P, greeting)
    assert decode_greeting(packet) == greeting
    for end in range(HEAD_SIZE, len(packet)):
        with pytest.raises(WireError):
            decode_greeting(packet[:end])
    with pytest.raises(WireError, match="without a tag"):
        decode_greeting(encode_greeting(VIEW, P, greeting._replace(mine=0)))
