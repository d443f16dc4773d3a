"""Traces tell who spoke to whom: they are for their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ordercast.model.ids import Incarnation, Instant, NodeId, process_id_from
from ordercast.model.promises import Promise, Promises
from ordercast.model.service import Service
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.folder import compact, read_live
from ordercast.trace.private_files import make_private_folder, open_private, remark_on_folder
from ordercast.trace.records import Started

from .live_traces import new_trace


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_missing_folders_are_made_for_their_owner_and_others_left_as_they_are(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path / "a" / "b")
    make_private_folder(tmp_path)
    assert [mode_of(path) for path in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")] == [0o755, 0o700, 0o700]
    assert remark_on_folder(tmp_path / "a") is remark_on_folder(tmp_path / "nowhere") is None
    assert f"chmod 700 {tmp_path}" in str(remark_on_folder(tmp_path))


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_files_are_made_for_their_owner_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        os.close(open_private(tmp_path / "one", os.O_WRONLY | os.O_CREAT))
        with open(tmp_path / "two", "xb", opener=open_private) as file:
            file.write(b"secret")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "one") == mode_of(tmp_path / "two") == 0o600


def test_every_file_of_a_trace_is_for_its_owner(tmp_path: Path) -> None:
    me = process_id_from(NodeId(1), Incarnation(5))
    trace = new_trace(tmp_path / "traces", me)
    trace.record(Started(Instant(1), me, Promises("story", frozenset(Promise), frozenset(Service), 1 << 24)))
    trace.close()
    append_cluster_event(tmp_path / "traces", "healed", alive=["n1"])
    compact(read_live(tmp_path / "traces"), tmp_path / "merged")
    paths = list(tmp_path.rglob("*"))
    assert len(paths) >= 5
    assert {str(path): oct(mode_of(path)) for path in paths if mode_of(path) not in (0o600, 0o700)} == {}
