"""What others wrote does nothing to the terminal of those who read it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.printable import json_text, safe, safe_lines

HOSTILE = "\x1b]0;PWNED\x07 \x9b31m \x85 \N{RIGHT-TO-LEFT OVERRIDE} \N{POP DIRECTIONAL ISOLATE} \x7f \r"


def test_plain_text_stays_as_it_is() -> None:
    text = "Grüße, 訊息 🙂 [bold]"
    assert safe(text) is text
    assert safe_lines(text) is text
    assert json_text({"text": text}) == f'{{"text": "{text}"}}'


@pytest.mark.parametrize("shown", [safe(HOSTILE), safe_lines(HOSTILE), json_text({"text": HOSTILE, HOSTILE: 1})])
def test_what_a_terminal_would_obey_is_escaped(shown: str) -> None:
    assert shown.isprintable()
    assert "x1b" in shown or "u001b" in shown
    assert "202e" in shown


def test_line_feeds_are_kept_where_lines_are_wanted() -> None:
    assert safe("a\nb") == "a\\nb"
    assert safe_lines("a\n\x1bb\n") == "a\n\\x1bb\n"


@given(st.dictionaries(st.text(), st.text()), st.sampled_from([None, 2]))
def test_json_that_is_safe_to_show_is_the_same_document(document: dict[str, str], indent: int | None) -> None:
    text = json_text(document, indent)
    assert json.loads(text) == document
    assert text.replace("\n", "").isprintable()
