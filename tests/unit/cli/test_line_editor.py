"""Keys in, lines out."""

from __future__ import annotations

import pytest

from ordercast.cli.line_editor import LENGTH_MAX, LineEditor, Window


def typed(*keys: str) -> LineEditor:
    editor = LineEditor()
    for key in keys:
        editor.feed(key)
    return editor


@pytest.mark.parametrize(
    ("keys", "text", "cursor"),
    [
        ("hello", "hello", 5),
        ("helo\x1b[Dl", "hello", 4),
        ("ab\x7f\x08c", "c", 1),
        ("abc\x01\x1b[3~", "bc", 0),
        ("abc\x01\x06\x0b", "a", 1),
        ("one two  \x17x", "one x", 5),
        ("one two\x02\x15", "o", 0),
        ("b\x1bOHa\x1bOFc", "abc", 3),
        ("ab\x1b[Dx\x04", "ax", 2),
        ("a\tb", "a b", 3),
        ("grüße 日本", "grüße 日本", 8),
        ("a\x1b[15~\x1b[1;5Cb\x00\x07", "ab", 2),
        ("a\x1b\x1b[Db", "ba", 1),
    ],
)
def test_a_line_is_edited_as_in_a_shell(keys: str, text: str, cursor: int) -> None:
    for editor in (typed(keys), typed(*keys)):  # at once, and key by key, or even within a key
        assert (editor.text, editor.cursor) == (text, cursor)


def test_enter_finishes_a_line_and_the_end_is_an_end_only_on_an_empty_line() -> None:
    editor = LineEditor()
    assert editor.feed("one\rtwo\nthr") == ["one", "two"]
    assert editor.feed("\x04") == []
    assert editor.feed("ee\n") == ["three"]
    assert editor.feed("\x04") == [None]
    assert editor.feed("\n") == [""]


def test_older_lines_come_back_and_the_one_that_was_begun_is_kept() -> None:
    editor = LineEditor()
    editor.feed("one\ntwo\ntwo\nbegun")
    seen = []
    for key in ("\x1b[A", "\x1b[A", "\x1b[A", "\x1b[B", "\x1b[B", "\x1b[B"):
        editor.feed(key)
        seen.append(editor.text)
    assert seen == ["two", "one", "one", "two", "begun", "begun"]


def test_a_long_line_is_seen_around_its_cursor() -> None:
    editor = typed("abcdefghij")
    assert editor.window(20) == Window("abcdefghij", 10)
    assert editor.window(5) == Window("ghij", 4)
    editor.feed("\x01")
    assert editor.window(5) == Window("abcd", 0)
    editor.feed("\x1b[C" * 5)
    text, column = editor.window(5)
    assert text[:column] + "|" + text[column:] == "bcde|"


def test_wide_characters_take_two_cells() -> None:
    assert typed("日本語").window(6) == Window("本語", 4)


def test_a_line_has_a_limit() -> None:
    assert len(typed("x" * (LENGTH_MAX + 10)).text) == LENGTH_MAX
