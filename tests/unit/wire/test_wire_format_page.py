"""The page in the docs shows the same layout as the vectors."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from ordercast.wire.head import LAYER_KIND
from ordercast.wire.header import MessageKind

from .vectors import CONTROL_GROUPS, HEAD_GROUPS, HEADER_GROUPS, VECTORS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "wire-format.md").read_text(encoding="utf-8")


def _rows(heading: str) -> list[list[str]]:
    """The cells of all table rows under a heading, without the head of each table."""
    _, _, section = PAGE.partition(f"\n## {heading}\n")
    section, _, _ = section.partition("\n## ")
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0].isdigit()]


def test_head_and_headers_are_shown_as_they_are() -> None:
    for heading, groups, begin in (
        ("The clear head", HEAD_GROUPS, 0),
        ("Control messages", CONTROL_GROUPS, len(HEAD_GROUPS)),
        ("Data packet (kind 1)", HEADER_GROUPS, len(HEAD_GROUPS)),
    ):
        sizes = [size for size, _ in groups]
        offsets = [0, *accumulate(sizes)][:-1]
        expected = list(zip(offsets, sizes, strict=True))[begin:]
        shown = [(int(row[0]), int(row[1])) for row in _rows(heading) if row[1].isdigit()]
        assert shown[: len(expected)] == expected


def test_every_kind_of_message_has_its_row() -> None:
    assert [int(row[0]) for row in _rows("All messages")] == [*sorted(MessageKind), LAYER_KIND]


def test_the_fixed_fields_of_each_message_are_shown_where_they_are() -> None:
    for name, heading, fixed in (
        ("token", "Token (kind 2)", 10),
        ("commit", "Commit token (kind 3)", 5),
        ("join", "Join (kind 4)", 8),
        ("announcement", "Announcement (kind 5)", 2),
        ("probe", "Probe (kind 255)", 4),
    ):
        vector = next(vector for vector in VECTORS if vector.name == name)
        body = vector.groups[len(CONTROL_GROUPS) :]
        offsets = list(accumulate((size for size, _ in body), initial=39))
        expected = [(offsets[at], *body[at]) for at in range(fixed)]
        shown = [(int(row[0]), int(row[1]), row[2]) for row in _rows(heading)[:fixed]]
        assert shown == expected
