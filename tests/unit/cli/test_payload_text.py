"""Whatever somebody sends, showing it is harmless."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.cli.payload_text import payload_document, place_document, shown
from ordercast.model.ids import ConfigurationId, Incarnation, NodeId, Position, Seq, process_id_from


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"buy 3", "buy 3"),
        (b"", ""),
        ("grüße 日本 ✓".encode(), "grüße 日本 ✓"),
        (b"two\nlines\r\n\tand a tab", "two\\nlines\\r\\n\\tand a tab"),
        (b"\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("left\N{RIGHT-TO-LEFT OVERRIDE}right".encode(), "left\\u202eright"),
        (b"\x00\xff text \\", "\\x00\\xff text \\x5c"),
    ],
)
def test_text_is_text_and_the_rest_is_escaped(data: bytes, line: str) -> None:
    assert shown(data) == line


def test_what_is_too_long_is_cut_and_said_to_be() -> None:
    assert shown(b"x" * 10, 10) == "x" * 10
    assert shown(b"x" * 11, 10) == "xxxxxxxxxx… (11 bytes in all)"
    assert shown("é".encode() * 4096, 3) == "ééé… (8 KiB in all)"
    assert shown(b"a" + "日".encode() * 100, 10).startswith("a日日日日")


@given(st.binary(max_size=40), st.integers(1, 10))
def test_nothing_that_is_shown_moves_the_cursor(data: bytes, length_max: int) -> None:
    assert shown(data).isprintable()
    cut = shown(data, length_max)
    assert cut.isprintable()
    assert len(cut) <= length_max + len("… (40 bytes in all)")


def test_machines_get_text_or_base64() -> None:
    assert payload_document("ü\n".encode()) == {"text": "ü\n"}
    assert payload_document(b"\xff\x00") == {"base64": "/wA="}


def test_a_place_is_exact_for_machines() -> None:
    process = process_id_from(NodeId(2), Incarnation(77))
    position = Position(ConfigurationId(12, process), Seq(7), 0)
    assert place_document(position) == [12, process, 7, 0]
