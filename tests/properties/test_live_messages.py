"""Whatever is submitted and delivered at level full is read back message by message, under both kernels."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.effects import Deliver, Parcel
from ordercast.model.ids import ConfigurationId, Incarnation, Instant, NodeId, ProcessId, process_id_from
from ordercast.model.promises import Promise, Promises
from ordercast.model.service import Service
from ordercast.trace.digests import digest
from ordercast.trace.folder import read_live
from ordercast.trace.live import LiveTrace
from ordercast.trace.live_stamp import LIVE_STAMP_ENDS, LIVE_STAMP_SIZE, live_stamped
from ordercast.trace.records import (
    STAMPED,
    UNSTAMPED,
    DeliveredBatch,
    DeliveredMessage,
    MessageId,
    Started,
    Submitted,
    SubmittedMessage,
)
from tests.kernels import KERNELS, running

ME, OTHER = (process_id_from(NodeId(node), Incarnation(5)) for node in (1, 0x7FFF))
RINGS = (ConfigurationId(4, ME), ConfigurationId(8, OTHER))
PROMISES = Promises("story", frozenset(Promise), frozenset(Service), 1 << 24)
SIZES = st.one_of(st.just(5), st.integers(0, 30))


@st.composite
def payloads(draw: st.DrawFn) -> tuple[int, bytes]:
    """A message and the engine's sender of it: stamped, not stamped, or with a stamp that is none."""
    sender, data = draw(st.sampled_from((0, 3))), bytes(draw(SIZES))
    if draw(st.booleans()):
        return sender | STAMPED, live_stamped(draw(st.sampled_from((ME, OTHER))), 3, draw(st.integers(0, 4)), [data])[0]
    return draw(st.sampled_from((sender, sender | STAMPED))), data


@st.composite
def parcels(draw: st.DrawFn) -> Parcel:
    if draw(st.booleans()):  # as they mostly are: counters that follow each other
        count, first = draw(st.integers(1, 20)), draw(st.integers(1, 1 << 40))
        messages = live_stamped(OTHER, 7, first, [bytes(draw(SIZES)) for _ in range(count)])
        rows = [(7 | STAMPED, data) for data in messages]
    else:
        rows = draw(st.lists(payloads(), max_size=8))
    services = draw(st.sampled_from((bytes([4]) * len(rows), [5 - index % 2 for index in range(len(rows))])))
    each, base = draw(st.integers(1, 5)), draw(st.sampled_from((0, 512)))
    number = draw(st.one_of(st.integers(1, 9), st.just((1 << 63) - 100)))
    originator = draw(st.sampled_from((ME, OTHER)))
    return number, originator, [sender for sender, _ in rows], services, [data for _, data in rows], each, base


def _identity(originator: ProcessId, sender: int, data: bytes) -> MessageId | None:
    """Return who the message is, read byte by byte."""
    if not sender & STAMPED:
        return MessageId(originator, sender, UNSTAMPED)
    middle, late, end = LIVE_STAMP_ENDS
    if len(data) < LIVE_STAMP_SIZE or not any(data[late:end]):
        return None
    said = (int.from_bytes(data[begin:last], "big") for begin, last in ((0, middle), (middle, late), (late, end)))
    process, client, counter = said
    return MessageId(ProcessId(process), client, counter)


@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None)
@given(
    delivered=st.lists(st.tuples(st.lists(parcels(), max_size=4), st.booleans()), max_size=6),
    submitted=st.lists(st.tuples(st.lists(SIZES, max_size=12), st.booleans()), max_size=6),
)
def test_messages_come_back_one_by_one(
    name: str, delivered: list[tuple[list[Parcel], bool]], submitted: list[tuple[list[int], bool]]
) -> None:
    expected: list[Submitted | DeliveredBatch] = []
    with TemporaryDirectory() as folder, running(name):
        trace = LiveTrace(Path(folder), "n1", ME, full=True, file_size_max=1 << 30, files_max=0)
        trace.record(Started(Instant(0), ME, PROMISES))
        counter = 1
        for sizes, is_flushed in submitted:
            messages = live_stamped(ME, 9, counter, [bytes(size) for size in sizes])
            trace.submitted(Instant(0), 9, counter, 4, messages, ("g",) if is_flushed else ())
            told = [
                SubmittedMessage(MessageId(ME, 9, number), digest(data), 4, len(data))
                for number, data in enumerate(messages, counter)
            ]
            expected.append(Submitted(Instant(0), ME, tuple(told), ("g",) if is_flushed else ()))
            counter += len(sizes)
            if is_flushed:
                trace.flush()
        for ring, (found, is_flushed) in enumerate(delivered):
            deliver = Deliver(RINGS[ring % 2], RINGS[0], found)
            trace.delivered(Instant(0), deliver, 0)
            got = [
                DeliveredMessage(_identity(who, sender, data), digest(data), service, len(data), number, slot)
                for number, slot, who, sender, service, data in deliver.messages()
            ]
            expected.append(DeliveredBatch(Instant(0), ME, deliver.configuration, deliver.origin, tuple(got)))
            if is_flushed:
                trace.flush()
        trace.close()
        assert trace.error is None
        events = [event for event in read_live(Path(folder)).events() if isinstance(event, Submitted | DeliveredBatch)]
    for event in events:
        object.__setattr__(event, "at", Instant(0))
    assert events == expected
