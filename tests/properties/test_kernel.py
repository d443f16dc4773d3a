"""Both kernels do the same, whatever the bytes: they return the same, leave the same behind, and refuse the same."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.ids import ConfigurationId, ProcessId, Seq
from ordercast.model.kernel import COMPILED, INTERFACE
from ordercast.model.service import SERVICE_MAX
from ordercast.trace import digests
from ordercast.trace import kernel as trace_kernel
from ordercast.wire import head, header, kernel, pure
from ordercast.wire.header import EXTENDED, FLAGS_AT, HEADER_SIZE, PART_SHIFT, RECOVERED, SAFE, Part
from ordercast.wire.packet_run import PacketRun
from tests.kernels import FAST, KERNELS, compiled_kernel, running
from tests.property_sizes import scaled

from .strategies import MEMBERS, heading_of, u32, u64

HEADING = heading_of(ConfigurationId(8, MEMBERS[0]))
SEQS = st.one_of(st.integers(1, 9), st.integers((1 << 64) - 4, (1 << 64) - 1))

# Packets that are nearly right


def _run_of(
    seq: int,
    count: int,
    place: int,
    flags: int,
    block: bytes,
    rows: Sequence[tuple[int, int, int]],
    parts: Sequence[int],
) -> bytearray:
    """Packets in a row; of each message sender, length and service."""
    senders, lengths, services = zip(*rows, strict=True)
    its = block + header.DESCRIPTORS[len(rows)].pack(*senders, *lengths) + bytes(services)
    size = HEADER_SIZE + len(its) + sum(lengths)
    data = bytearray()
    for index in range(count):
        told = flags | (parts[index] << PART_SHIFT if parts else 0)
        fixed = head.OPENING, size, HEADING.cluster, MEMBERS[0], HEADING.ring, told, len(rows), place
        data += header.FIXED.pack(*fixed) + header.NUMBERS.pack(
            (seq + index) & (1 << 64) - 1, 3, 4 if block else 4 + index
        )
        if len(block) > header.SHORT_BLOCK:
            its = its[: len(block) - 8] + index.to_bytes(8, "big") + its[len(block) :]
        data += its + bytes(index & 0xFF for _ in range(sum(lengths)))
    return data


@st.composite
def reads(draw: st.DrawFn) -> tuple[bytes, int, int, int]:
    """A read, where to begin, the size of its packets, and the seq that is expected."""
    length, block = draw(st.sampled_from((0, 1, 5, 40))), b""
    flags = draw(st.sampled_from((0, 0, SAFE, RECOVERED, EXTENDED, EXTENDED | SAFE)))
    if flags & EXTENDED:
        size = draw(st.sampled_from((1, 2, 9, 10, 20)))
        block = bytes((draw(st.sampled_from((size, 0x85 if size == 1 else size, 0))),)) + bytes(size - 1)
    is_cut = draw(st.booleans())
    each = 1 if is_cut else draw(st.integers(0, 4)) or 12
    row = st.tuples(u32, st.one_of(st.just(length), st.just(length), st.integers(0, 3)), st.integers(0, SERVICE_MAX))
    rows = [draw(row)] * each if draw(st.booleans()) else [draw(row) for _ in range(each)]
    count, seq, place = draw(st.integers(1, 8)), draw(SEQS), draw(st.integers(0, len(MEMBERS) - 1))
    parts = draw(st.lists(st.sampled_from((1, 2, 2, 3)), min_size=count, max_size=count)) if is_cut else ()
    data = _run_of(seq, count, place, flags, block, rows, parts)
    size = len(data) // count
    wrong = draw(st.sampled_from(("", "", "", "byte", "byte", "last", "last", "cut", "start", "size", "seq")))
    start, stated, expected = 0, size, seq
    if wrong == "byte":  # rather in a header
        at = draw(st.one_of(st.integers(0, len(data) - 1), st.integers(0, min(len(data), 90) - 1)))
        data[at + draw(st.sampled_from((0, size))) if at + size < len(data) else at] = draw(st.integers(0, 255))
    elif wrong == "last" and is_cut:  # a last part that is shorter than its room, or longer
        at = draw(st.integers(0, count - 1)) * size
        data[at + FLAGS_AT] |= Part.LAST << PART_SHIFT
        data[at + HEADER_SIZE + len(block) + 5] = draw(st.integers(0, 41))
    elif wrong == "cut":
        del data[draw(st.integers(0, len(data))) :]
    elif wrong == "start":
        start = draw(st.sampled_from((1, size, len(data), len(data) + 1)))
        expected += start == size
    elif wrong == "size":
        stated = draw(st.sampled_from((size + 1, size - 1, 0, 1, 70_000)))
    elif wrong == "seq":
        expected = draw(st.sampled_from((seq + 1, 0)))
    return bytes(data), start, stated, expected


def _told(run: PacketRun | None) -> object:
    if run is None:
        return None
    return [(type(value), value) for name in PacketRun.__slots__ if (value := getattr(run, name)) is not None]


def _outcome(function: Callable[..., Any], *arguments: Any) -> object:
    """Return what came of a call: the value, or that there is none."""
    try:
        return function(*arguments)
    except (ValueError, TypeError, OverflowError, struct.error):
        return "refused"


def _both(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return kernel.functions(None)[name], kernel.functions(compiled_kernel())[name]


@settings(max_examples=scaled(300))
@given(reads())
def test_both_read_the_same_runs(read: tuple[bytes, int, int, int]) -> None:
    one, other = _both("read_run")
    data, start, size, expected = read
    arguments = data, start, size, HEADING, Seq(expected)
    assert _told(one(*arguments)) == _told(other(*arguments))


@given(st.binary(max_size=300), st.integers(0, 400), st.integers(0, 400), u64)
def test_both_refuse_noise(data: bytes, start: int, size: int, expected: int) -> None:
    one, other = _both("read_run")
    for noise in (data, head.OPENING + data):
        arguments = noise, start, size, HEADING, Seq(expected)
        assert _told(one(*arguments)) is None is _told(other(*arguments))


@pytest.mark.parametrize("block", [b"", b"\x85", bytes((9,)) + bytes(8), bytes((20,)) + bytes(19)])
@pytest.mark.parametrize("parts", [(), (1, 2, 2, 3), (2, 3, 1, 2)])
def test_any_other_byte_of_a_later_packet_ends_both_runs_alike(block: bytes, parts: tuple[int, ...]) -> None:
    one, other = _both("read_run")
    rows = [(7, 6, 1)] * (1 if parts else 2)
    right = _run_of(5, 4, 1, EXTENDED if block else 0, block, rows, parts)
    size, counts = len(right) // 4, set()
    for at in range(2 * size, 3 * size):
        for change in (1, 0x10, 0x20, 0x80):
            data = bytearray(right)
            data[at] ^= change
            arguments = bytes(data), 0, size, HEADING, Seq(5)
            found = one(*arguments)
            assert _told(found) == _told(other(*arguments)), (at - 2 * size, change)
            counts.add(found.count)
    assert counts == {2, 4}


def test_the_strategy_reaches_runs_of_every_kind() -> None:
    """A comparison of nothing with nothing proves nothing."""
    seen: dict[str, int] = dict.fromkeys(("none", "one", "many", "parts", "bare", "recovered", "mixed"), 0)

    @settings(max_examples=scaled(400))
    @given(reads())
    def look(read: tuple[bytes, int, int, int]) -> None:
        data, start, size, expected = read
        run = pure.read_run(data, start, size, HEADING, Seq(expected))
        seen["none"] += run is None
        if run is not None:
            seen["one"] += run.count == 1
            seen["many"] += run.count > 1
            seen["parts"] += run.count > 1 and bool(run.parts)
            seen["bare"] += run.count > 1 and bool(run.flags & EXTENDED) and not run.parts
            seen["recovered"] += bool(run.flags & RECOVERED)
            seen["mixed"] += run.parcel is not None and len(set(map(len, run.parcel[4]))) > 1

    look()
    assert min(seen.values()) > 0, seen


kinds_and_payloads = st.lists(st.tuples(st.sampled_from((1, 2, 2, 3, 0, 7)), st.binary(max_size=4)), max_size=12)


@given(kinds_and_payloads, st.one_of(st.none(), st.lists(st.binary(max_size=3), max_size=3)), st.integers(0, 2))
def test_both_gather_the_same_messages(rows: list[tuple[int, bytes]], begun: list[bytes] | None, less: int) -> None:
    one, other = _both("gather")
    kinds, payloads = bytes(kind for kind, _ in rows), [payload for _, payload in rows][: max(0, len(rows) - less)]
    mine, its = (None, None) if begun is None else ([*begun], [*begun])
    found, again = one(kinds, payloads, mine), other(kinds, tuple(payloads), its)
    assert found == again
    assert mine == its, "what had begun is added to alike"
    assert (found[2] is mine) == (again[2] is its)


def test_both_refuse_parts_that_are_no_bytes() -> None:
    for wrong in ([5], ["text"], [None]):
        assert {_outcome(gather, b"\1", [*wrong], None) != "refused" for gather in _both("gather")} == {True}
        assert {_outcome(gather, b"\1\3", [b"", *wrong], None) for gather in _both("gather")} == {"refused"}


@given(
    st.integers(1, 6), st.integers(1, 4), st.booleans(), st.sampled_from((0, 1, 7, 300)), st.data(), st.integers(0, 1)
)
def test_both_lay_the_same_packets(
    count: int, each: int, is_cut: bool, length: int, data: st.DataObject, step: int
) -> None:
    one, other = _both("lay")
    each = 1 if is_cut else each
    fixed = data.draw(st.binary(min_size=header.FIXED_SIZE, max_size=header.FIXED_SIZE))
    block = data.draw(st.sampled_from((b"", b"\x85", b"\3ab")))
    descriptors = block + header.DESCRIPTORS[each].pack(*range(each), *[length] * each) + bytes(each)
    kinds = data.draw(st.lists(st.sampled_from(Part), min_size=count, max_size=count)) if is_cut else ()
    sizes = st.one_of(st.just(length), st.just(length), st.integers(0, length + 1))
    payloads = [bytes(data.draw(sizes)) for _ in range(count * each)]
    numbers = data.draw(SEQS), data.draw(u64), data.draw(SEQS), step
    arguments = fixed, descriptors, payloads, each, kinds, numbers
    assert _outcome(one, *arguments) == _outcome(other, *arguments)
    views = [memoryview(payload) for payload in payloads]
    if not is_cut:
        assert _outcome(other, fixed, descriptors, views, each, kinds, numbers) == _outcome(other, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        (bytes(35), bytes(7), [b"", b"", b""], 2, (), (1, 1, 1, 1)),
        (bytes(35), bytes(7), [b""], 0, (), (1, 1, 1, 1)),
        (bytes(34), bytes(7), [b""], 1, (), (1, 1, 1, 1)),
        (bytes(35), bytes(7), ["text"], 1, (), (1, 1, 1, 1)),
        (bytes(35), bytes(7), [b""], 1, (16,), (1, 1, 1, 1)),
        (bytes(35), bytes(7), [b""], 1, (-1,), (1, 1, 1, 1)),
        (bytes(35), bytes(7), [b""], 1, (1, 2), (1, 1, 1, 1)),
        (bytes(35), bytes(2), [b""], 1, (1,), (1, 1, 1, 1)),
        (bytes(35), bytes(7), [b""], 1, (), (1, 1, 1)),
        (bytes(35), bytes(7), [b""], 1, (), (-1, 1, 1, 1)),
        (bytes(35), bytes(7), 5, 1, (), (1, 1, 1, 1)),
    ],
)
def test_the_compiled_one_refuses_what_no_caller_may_ask_for(arguments: tuple[Any, ...]) -> None:
    assert _outcome(compiled_kernel().lay, *arguments) == "refused"


@pytest.mark.parametrize("function", ["read_run", "gather", "lay"])
def test_the_compiled_one_refuses_arguments_of_other_types(function: str) -> None:
    call = getattr(compiled_kernel(), function)
    for count in range(10):
        values: tuple[Any, ...] = (None, 5, b"", "text", [], (), -1, 1 << 70)
        for value in values:
            assert _outcome(call, *[value] * count) in ("refused", ([], [], [])), (count, value)


def test_the_layout_and_the_interface_are_those_of_the_package() -> None:
    compiled = compiled_kernel()
    assert compiled.INTERFACE == INTERFACE
    assert (
        head.OPENING,
        head.KIND_AT,
        header.RING_SIZE,
        header.FLAGS_AT,
        header.FIXED_SIZE,
        header.HEADER_SIZE,
        header.ORIGIN_SIZE,
        header.DESCRIPTOR_SIZE,
        SERVICE_MAX,
        header.SHORT_BLOCK,
        header.LONE_BYTE,
        (header.SAFE, header.RECOVERED, header.EXTENDED, header.PART_SHIFT),
        (int(Part.FIRST), int(Part.MIDDLE), int(Part.LAST)),
    ) == compiled.LAYOUT


def test_a_kernel_can_be_made_to_run() -> None:
    chosen = kernel.lay
    with running(COMPILED):
        assert kernel.lay is compiled_kernel().lay
    assert kernel.lay is chosen


def test_the_distribution_has_the_version_of_the_package() -> None:
    import ordercast

    assert f'version = "{ordercast.__version__}"' in (FAST / "pyproject.toml").read_text(encoding="utf-8")


def test_originators_are_those_of_the_ring() -> None:
    data = _run_of(5, 3, 2, 0, b"", [(1, 4, 0)], ())
    for read in _both("read_run"):
        run = read(bytes(data), 0, len(data) // 3, HEADING, Seq(5))
        assert run.originator == ProcessId(MEMBERS[2]) and run.count == 3


# Messages that are recorded

MESSAGES = st.lists(st.one_of(st.binary(max_size=60), st.binary(min_size=1390, max_size=1400)), max_size=12)


@settings(deadline=None)
@given(owner=st.binary(max_size=12), first=st.integers(-1, 1 << 64), payloads=MESSAGES, begin=st.integers(0, 70))
def test_both_stamp_and_cut_alike(owner: bytes, first: int, payloads: list[bytes], begin: int) -> None:
    def stamped() -> list[bytes]:
        return trace_kernel.stamp(owner, first, payloads)

    def cut() -> list[bytes]:
        return trace_kernel.cut(payloads, begin)

    for call in (stamped, cut):
        told = []
        for name in KERNELS:
            with running(name):
                try:
                    told.append(repr(call()))
                except OverflowError:
                    told.append("a counter that has no room")
        if payloads:  # without any, nobody looks at the counter
            assert told[0] == told[1]


@settings(deadline=None)
@given(payloads=MESSAGES, head=st.integers(0, 20))
def test_both_see_the_same_in_messages(payloads: list[bytes], head: int) -> None:
    told = []
    for name in KERNELS:
        with running(name):
            sizes, found, heads = digests.looked_at(payloads, head)
            seen = [row.tobytes() for row, data in zip(heads, payloads, strict=True) if len(data) >= head]
            told.append((sizes.tolist(), found.tolist(), seen, [digests.digest(data) for data in payloads]))
    assert told[0] == told[1]


def test_a_message_with_more_words_than_weights_is_refused() -> None:
    look = trace_kernel.functions(compiled_kernel())["look"]
    for payload, weights in ((bytes(8), bytes(15)), (bytes(5), bytes(8)), (bytes(1), b"")):
        with pytest.raises(ValueError, match="more words than there are weights"):
            look([payload], 4, weights)
    with pytest.raises(TypeError, match="a payload is not bytes"):
        look([3], 4, bytes(8))
