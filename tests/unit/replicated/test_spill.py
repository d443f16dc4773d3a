"""A tail on disk: everything comes back in order, memory is bounded, and the file goes with whoever had it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.replicated.spill import HELD_OVERHEAD, Spill, decode_block, encode_block
from ordercast.replicated.track import Held

BLOCK_SIZE = 500
HELD = st.builds(Held, st.text(max_size=5), st.binary(max_size=300))
NAMES = ("alice@n1", "bob@n2", "zoë@n3")


def numbered(at: int, size: int = 100) -> Held:
    return Held(NAMES[at % 3], at.to_bytes(8, "big") + bytes(size))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@given(st.lists(HELD, max_size=20))
def test_a_block_comes_back(block: list[Held]) -> None:
    assert decode_block(encode_block(block)[8:]) == block


@settings(deadline=None)
@given(st.lists(st.one_of(HELD, st.integers(1, 12)), max_size=60), st.lists(HELD, max_size=3))
def test_it_is_a_queue_however_it_is_used(steps: list[Held | int], earlier: list[Held]) -> None:
    """Appended and taken by turns: a number takes so many."""
    spill, model = Spill(block_size=BLOCK_SIZE), deque[Held]()
    for step in steps:
        if isinstance(step, Held):
            spill.append(step)
            model.append(step)
        else:
            for _ in range(min(step, len(model))):
                assert spill.popleft() == model.popleft()
        assert len(spill) == len(model)
    assert list(spill) == list(model)
    spill.prepend(earlier)
    assert list(spill) == [*earlier, *model], "to look at it takes nothing"
    assert [spill.popleft() for _ in range(len(spill))] == [*earlier, *model]
    assert not spill
    with pytest.raises(IndexError):
        spill.popleft()
    spill.close()


def test_a_large_one_has_bounded_memory_and_its_disk_is_free_when_it_was_read() -> None:
    spill = Spill(block_size=1 << 16)
    most = 0
    for at in range(50_000):
        spill.append(numbered(at))
        most = max(most, spill.memory_size)
    assert spill.file_size > 5_000_000
    for at in range(50_000):
        assert spill.popleft() == numbered(at)
        most = max(most, spill.memory_size)
    assert most < 3 * (1 << 16)
    assert spill.file_size == spill.memory_size == 0
    spill.append(numbered(1))
    assert spill.popleft() == numbered(1)
    spill.close()


def test_a_short_one_has_no_file(tmp_path: Path) -> None:
    before = open_files()
    spill = Spill(tmp_path / "not there")
    spill.append(numbered(1))
    assert (spill.file_size, open_files()) == (0, before)


def test_a_command_that_is_larger_than_a_block() -> None:
    spill = Spill(block_size=BLOCK_SIZE)
    for at in range(4):
        spill.append(numbered(at, 10 * BLOCK_SIZE))
    assert [spill.popleft() for _ in range(4)] == [numbered(at, 10 * BLOCK_SIZE) for at in range(4)]
    spill.close()


def filled(folder: Path | None = None) -> Spill:
    spill = Spill(folder, BLOCK_SIZE)
    for at in range(50):
        spill.append(numbered(at))
    assert spill.file_size
    return spill


@pytest.mark.parametrize("taken", [0, 1, 17, 50])
def test_the_file_is_gone_when_it_is_closed_or_forgotten(tmp_path: Path, taken: int) -> None:
    before = open_files()
    closed, forgotten = filled(tmp_path), filled(tmp_path)
    assert open_files() == before + 2
    assert os.listdir(tmp_path) == [], "it has no name, so nothing is left whatever happens"
    for _ in range(taken):
        closed.popleft()
        forgotten.popleft()
    closed.close()
    closed.close()
    assert len(closed) == 0 and list(closed) == []
    del forgotten
    assert open_files() == before


def test_nothing_is_left_of_a_process_that_was_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.unit.replicated.test_spill import filled; "
        "spill = filled(Path(sys.argv[1])); print(spill.file_size, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) > 0
        process.kill()
        process.wait(timeout=30)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_is_told_when_it_is_needed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        filled(tmp_path / "not there")


def test_a_file_that_somebody_cut_is_told() -> None:
    spill = filled()
    assert spill._file is not None
    os.ftruncate(spill._file, spill.file_size // 2)
    with pytest.raises(OSError, match="shorter"):
        [spill.popleft() for _ in range(50)]
    spill.close()


def test_what_a_command_costs_is_not_far_off() -> None:
    assert sys.getsizeof(numbered(1)) + sys.getsizeof(b"") < HELD_OVERHEAD
