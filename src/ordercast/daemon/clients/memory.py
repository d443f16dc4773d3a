"""How much memory there is for this process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container, as it sees itself


def memory_size(cgroup_limit: Path = CGROUP_LIMIT) -> int:
    """Bytes of the machine, or of the container."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or "max"
        size = min(size, int(cgroup_limit.read_text(encoding="ascii")))
    return size
