"""A daemon keeps descriptors for itself, whatever connects."""

from __future__ import annotations

import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.config.plan import plan_of
from ordercast.daemon.descriptors import RESERVE, DescriptorRoom, raise_limit, room_from, room_remark, room_text

USUAL = NodeConfig().clients.sessions_max


@given(st.integers(0, 1 << 31), st.integers(1, 1_000_000), st.integers(1, 1_000_000))
def test_connections_never_take_the_reserve(limit: int, sessions: int, strangers: int) -> None:
    room = room_from(limit, sessions, strangers)
    assert 1 <= room.sessions_max <= sessions and 1 <= room.strangers_max <= strangers
    assert limit < 2 * RESERVE or room.sessions_max + room.strangers_max + RESERVE <= limit


def test_a_limit_that_suffices_changes_nothing() -> None:
    room = room_from(16384, USUAL)
    assert room.sessions_max == USUAL and room_remark(room, USUAL) is None
    assert room_text(room) == (
        "room for 10,000 clients, and for 1,000 connections that have not said who they are, in a limit of 16,384 open "
        "files"
    )


def test_the_usual_limit_does_not_suffice_and_that_is_said() -> None:
    room = room_from(1024, USUAL)
    assert room == DescriptorRoom(1024, 696, 232)
    remark = room_remark(room, USUAL)
    assert remark is not None and remark.startswith("a limit of 1,024 open files leaves room for 696 clients")
    assert remark in plan_of(NodeConfig(), open_files=1024).remarks
    assert not any("open files" in text for text in plan_of(NodeConfig(), open_files=16384).remarks)


def test_the_limit_is_raised_as_far_as_it_may_be() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        assert raise_limit() == (hard if hard != resource.RLIM_INFINITY else (1 << 31) - 1)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_sandbox_that_forbids_it_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", forbidden)
    assert raise_limit() == 1024
