"""How much memory there is: of the machine, or of the container if that is less."""

from __future__ import annotations

from pathlib import Path

from ordercast.daemon.clients.memory import memory_size


def test_the_memory_of_a_container_counts_when_it_is_less(tmp_path: Path) -> None:
    machine = memory_size(tmp_path / "none")
    assert machine > 64 << 20
    limit = tmp_path / "memory.max"
    for text, expected in (("max\n", machine), ("1000000\n", 1_000_000), (f"{1 << 60}\n", machine)):
        limit.write_text(text)
        assert memory_size(limit) == expected
