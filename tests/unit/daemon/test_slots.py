"""A value that was written in place survives whatever happens to the next one."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.daemon.slots import HEAD, Slots, found_in, sealed
from tests.property_sizes import scaled

SIZE = 512
KEY = "configuration_seq"
VALUES = st.binary(max_size=SIZE - HEAD.size)


def closed(slots: Slots) -> Slots:
    slots.close()
    return slots


def found(folder: Path, key: str = KEY, size: int = SIZE) -> Slots:
    """What the next life finds."""
    return closed(Slots(folder, key, size))


def written(folder: Path, *values: bytes) -> Path:
    slots = Slots(folder, KEY, SIZE)
    for value in values:
        slots.write(value)
    slots.close()
    return slots.path


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_the_last_value_is_found(values: list[bytes]) -> None:
    with TemporaryDirectory() as name:
        written(Path(name), *values)
        assert found(Path(name)).value == values[-1]


def test_a_new_file_holds_nothing_and_is_no_damage(tmp_path: Path) -> None:
    slots = found(tmp_path)
    assert slots.value is None and not slots.is_damaged
    assert not found(tmp_path).is_damaged


def test_the_room_is_taken_at_once_and_no_more_later(tmp_path: Path) -> None:
    slots = Slots(tmp_path, KEY, 4096)
    before = slots.path.stat()
    assert (before.st_size, before.st_blocks * 512 >= 8192) == (8192, True)
    slots.write(bytes(4000))
    slots.write(bytes(4000))
    after = closed(slots).path.stat()
    assert (after.st_size, after.st_blocks) == (before.st_size, before.st_blocks)


def test_a_file_with_holes_gets_its_room(tmp_path: Path) -> None:
    path = written(tmp_path, b"one")
    data = path.read_bytes().ljust(2 * SIZE, b"\0")
    with path.open("wb") as file:
        file.write(data[: SIZE // 2])
        file.truncate(2 * SIZE)
    assert found(tmp_path).value == b"one" and path.stat().st_blocks * 512 >= 2 * SIZE


@settings(max_examples=scaled(30))
@given(VALUES, VALUES, st.data())
def test_a_write_that_is_torn_anywhere_leaves_the_old_value_or_the_new(
    old: bytes, new: bytes, data: st.DataObject
) -> None:
    """Sectors reach the disk in any order: any bytes of the new slot may be old, new, or a zero."""
    with TemporaryDirectory() as name:
        path = written(Path(name), b"older", old)
        before = path.read_bytes()
        written(Path(name), new)
        after = path.read_bytes()
        changed = [at for at in range(len(after)) if before[at] != after[at]]
        assert all(changed[0] // SIZE == at // SIZE for at in changed), "one slot alone is written"
        for _ in range(10):
            kept = data.draw(st.sets(st.sampled_from(changed)))
            torn = bytes(before[at] if at in kept else after[at] for at in range(len(after)))
            path.write_bytes(torn)
            slots = found(Path(name))
            assert slots.value == new if torn == after else slots.value in (old, new)
            assert not slots.is_damaged


def test_a_file_that_is_cut_off_at_any_byte_holds_a_value_or_says_that_it_is_damaged(tmp_path: Path) -> None:
    path = written(tmp_path, b"first", b"second")  # in slots 0 and 1
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        slots = found(tmp_path)
        second = SIZE + HEAD.size + len(b"second")
        expected = b"second" if length >= second else b"first" if length >= HEAD.size + len(b"first") else None
        assert (slots.value, slots.is_damaged) == (expected, expected is None and length > 0)
        assert path.stat().st_size == 2 * SIZE, "and it has its size again"


def test_any_bit_that_flips_costs_no_more_than_its_slot(tmp_path: Path) -> None:
    path = written(tmp_path, b"first", b"second")
    whole = path.read_bytes()
    ends = (HEAD.size + len(b"first"), SIZE + HEAD.size + len(b"second"))
    for at in [*range(ends[0]), *range(SIZE, ends[1])]:
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << bit
            path.write_bytes(flipped)
            assert found(tmp_path).value == (b"second" if at < SIZE else b"first")


def test_two_damaged_slots_are_told_and_can_be_written_again(tmp_path: Path) -> None:
    path = written(tmp_path, b"first", b"second")
    path.write_bytes(os.urandom(2 * SIZE))
    slots = Slots(tmp_path, KEY, SIZE)
    assert slots.is_damaged and slots.value is None
    slots.write(b"third")
    assert not closed(slots).is_damaged and found(tmp_path).value == b"third"


@given(st.binary(max_size=200))
def test_no_bytes_are_taken_for_a_value(data: bytes) -> None:
    assert found_in(KEY, data) is None


def test_the_value_of_another_key_is_not_believed() -> None:
    assert found_in(KEY, sealed("incarnation", 1, b"7")) is None
    assert found_in(KEY, sealed(KEY, 1, b"7")) == (1, b"7")


def test_a_value_that_is_too_large_changes_nothing(tmp_path: Path) -> None:
    slots = Slots(tmp_path, KEY, SIZE)
    slots.write(bytes(slots.value_size_max))
    with pytest.raises(ValueError, match="do not fit"):
        slots.write(bytes(slots.value_size_max + 1))
    closed(slots)
    assert found(tmp_path).value == bytes(SIZE - HEAD.size)


def test_a_write_that_fails_leaves_the_value_from_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slots = Slots(tmp_path, KEY, SIZE)
    slots.write(b"one")
    slots.write(b"two")

    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output"):
            slots.write(b"three")
    monkeypatch.undo()
    assert slots.value == b"two"
    path = slots.path.read_bytes()
    assert found_in(KEY, path[SIZE:]) == (2, b"two"), "the newest slot is never written to"
    slots.write(b"four")
    closed(slots)
    assert found(tmp_path).value == b"four"


def test_a_file_that_was_removed_or_replaced_is_not_in_place(tmp_path: Path) -> None:
    slots = Slots(tmp_path, KEY, SIZE)
    assert slots.is_in_place()
    slots.path.unlink()
    assert not slots.is_in_place()
    slots.path.write_bytes(b"")
    assert not closed_check(slots)


def closed_check(slots: Slots) -> bool:
    try:
        return slots.is_in_place()
    finally:
        slots.close()
