"""The page in the docs shows the same layout as the vectors."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from ordercast.wire.header import MessageKind

from .vectors import HEADER_GROUPS, VECTORS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "wire-format.md").read_text(encoding="utf-8")


def _rows(heading: str) -> list[list[str]]:
    """The cells of all table rows under a heading, without the head of each table."""
    _, _, section = PAGE.partition(f"\n## {heading}\n")
    section, _, _ = section.partition("\n## ")
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0].isdigit()]


def test_the_header_is_shown_as_it_is() -> None:
    sizes = [size for size, _ in HEADER_GROUPS]
    offsets = [0, *accumulate(sizes)][:-1]
    assert [(int(row[0]), int(row[1])) for row in _rows("Header")] == list(zip(offsets, sizes, strict=True))


def test_every_kind_of_message_has_its_row() -> None:
    assert [int(row[0]) for row in _rows("All messages")] == sorted(MessageKind)


def test_the_fixed_fields_of_each_message_are_shown_where_they_are() -> None:
    for name, heading, fixed in (
        ("token", "Token (kind 2)", 7),
        ("commit", "Commit token (kind 3)", 4),
        ("join", "Join (kind 4)", 8),
        ("announcement", "Announcement (kind 5)", 2),
        ("probe", "Probe (kind 8)", 4),
    ):
        vector = next(vector for vector in VECTORS if vector.name == name)
        body = vector.groups[len(HEADER_GROUPS) :]
        offsets = list(accumulate((size for size, _ in body), initial=72))
        expected = [(offsets[at], *body[at]) for at in range(fixed)]
        shown = [(int(row[0]), int(row[1]), row[2]) for row in _rows(heading)[:fixed]]
        assert shown == expected
