"""The page in the docs shows the same frames, layout and limits as the vectors and the code."""

from __future__ import annotations

import re
from itertools import accumulate
from pathlib import Path

import pytest

from ordercast.daemon.clients.connection import QUIET_S, SILENCE_MAX_S
from ordercast.daemon.clients.server import CROWDED_GREETING_S, GREETING_S
from ordercast.groups.names import CLIENT_SIZE_MAX, GROUP_SIZE_MAX, GROUPS_MAX, MEMBERSHIPS_MAX
from ordercast.model.events import Reason
from ordercast.model.ids import SECOND
from ordercast.model.service import Service
from ordercast.session.batches import FRAME_SIZE_MAX, MESSAGES_MAX
from ordercast.session.client_half import RECEIVE_CREDIT, cost_of
from ordercast.session.daemon_half import CHANGES_MAX, SEND_CREDIT, URGENT_SIZE_MAX
from ordercast.session.frames import MAGIC, PAGE_MAX, VERSION, SlowPolicy
from ordercast.session.outbound import HOLD_MAX_NS, MIB, QUEUE_SIZE_MAX, STILL_MAX_NS
from ordercast.session.pieces import FrameKind
from ordercast.session.quota import ALL_MEMBERSHIPS_MAX

from .vectors import HEADER_GROUPS, VECTORS, Vector

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "client-protocol.md").read_text(encoding="utf-8")

# Of how many of its groups the vector of a frame has the same at the same place in every frame of this kind.
FIXED = {
    FrameKind.HELLO: 4,
    FrameKind.WELCOME: 3,
    FrameKind.SEND: 3,
    FrameKind.MESSAGES: 7,
    FrameKind.VIEW: 5,
    FrameKind.CHANGE: 5,
    FrameKind.TRANSITION: 5,
    FrameKind.CREDIT: 1,
    FrameKind.CONFIRM: 6,
    FrameKind.DROPPED: 2,
    FrameKind.LISTING: 1,
    FrameKind.MEMBERS: 1,
    FrameKind.WANT: 1,
    FrameKind.REFUSED: 1,
    FrameKind.TOKEN: 1,
    FrameKind.DENIED: 1,
}


def _section(heading: str) -> str:
    _, found, rest = PAGE.partition(f"\n## {heading}\n")
    assert found, heading
    return rest.partition("\n## ")[0]


def _rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|---")][1:]


def _heading_of(kind: FrameKind) -> str:
    (heading,) = re.findall(rf"^## (.*\b{kind.name} \(kind {kind.value}\).*)$", PAGE, flags=re.MULTILINE)
    return str(heading)


def test_the_header_is_shown_as_it_is() -> None:
    assert [row[:2] for row in _rows(_section("Header"))] == [["0", "4"], ["4", "1"]]
    assert [size for size, _ in HEADER_GROUPS] == [4, 1]


def test_every_kind_of_frame_has_its_row_and_its_section() -> None:
    rows = _rows(_section("All frames"))
    assert [(int(row[0]), row[1]) for row in rows] == [(kind.value, kind.name) for kind in FrameKind]
    assert all(row[4] for row in rows)
    for kind in FrameKind:
        _heading_of(kind)


def test_the_stream_costs_the_daemon_credit_as_shown() -> None:
    for row in _rows(_section("All frames")):
        if row[2] == "daemon":
            assert (row[3] == "the daemon's") == bool(cost_of(int(row[0]), b"")), row[1]
        else:
            assert row[3] == ("the client's" if row[1] == "SEND" else "no")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_the_fixed_fields_of_each_frame_are_shown_where_they_are(vector: Vector) -> None:
    rows = _rows(_section(_heading_of(vector.kind)))
    fixed = FIXED.get(vector.kind, 0)
    offsets = list(accumulate((size for size, _ in vector.groups), initial=5))
    shown = [(int(row[0]), int(row[1])) for row in rows[:fixed]]
    assert shown == [(offsets[at], vector.groups[at][0]) for at in range(fixed)]
    for row, (_, what) in zip(rows[:fixed], vector.groups, strict=False):
        assert what.startswith(row[2])
    if len(rows) > fixed:
        assert rows[fixed][0] == str(offsets[fixed])
        assert not rows[fixed][1].isdigit()
    else:
        assert len(vector.groups) == fixed


def test_numbers_on_the_page_mean_what_they_mean_in_the_code() -> None:
    assert f"`{MAGIC.hex(' ')}`" in _section(_heading_of(FrameKind.HELLO))
    assert f"protocol version {VERSION}," in PAGE
    policies = ", ".join(f"{policy.value} {policy.name.lower()}" for policy in SlowPolicy)
    assert policies in _section(_heading_of(FrameKind.HELLO))
    services = ", ".join(f"{service.value} {service.name.lower()}" for service in Service)
    assert services in _section(_heading_of(FrameKind.SEND)).replace("FIFO", "fifo")
    reasons = ", ".join(f"{number} {reason.value}" for number, reason in enumerate(Reason))
    assert reasons in _section(_heading_of(FrameKind.VIEW))


def test_bounds_and_limits_are_those_of_the_code() -> None:
    bounds = {row[0]: row[1] for row in _rows(_section("Policies"))}
    assert bounds == {policy.name.lower(): f"{size // MIB} MiB" for policy, size in QUEUE_SIZE_MAX.items()}
    assert [int(row[1]) for row in _rows(_section("Limits"))] == [
        FRAME_SIZE_MAX,
        MESSAGES_MAX,
        SEND_CREDIT,
        RECEIVE_CREDIT,
        URGENT_SIZE_MAX,
        CHANGES_MAX,
        MEMBERSHIPS_MAX,
        ALL_MEMBERSHIPS_MAX,
        PAGE_MAX,
        GROUPS_MAX,
        GROUP_SIZE_MAX,
        CLIENT_SIZE_MAX,
    ]
    heartbeat = [int(number) for number in re.findall(r"(\d+) s\b", _section("Heartbeat"))]
    assert heartbeat == [QUIET_S, SILENCE_MAX_S, GREETING_S, CROWDED_GREETING_S]
    hold = [int(number) * SECOND for number in re.findall(r"(\d+) s\b", _section("Policies"))]
    assert hold == [STILL_MAX_NS, HOLD_MAX_NS]
