"""Log lines: a sentence for people, a document for machines, a prefix for the journal."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from ordercast.daemon.logs import ROOT, Rationed, describe, fields, start_logging

LOG = logging.getLogger("ordercast.somewhere")


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    root = logging.getLogger(ROOT)
    before = root.handlers[:], root.level, root.propagate
    yield io.StringIO()
    root.handlers[:], root.propagate = before[0], before[2]
    root.setLevel(before[1])


def test_text_is_a_time_a_level_and_a_sentence(stream: io.StringIO) -> None:
    start_logging("text", stream)
    LOG.warning("%s is gone", "beta", extra=fields(gone=["beta"]))
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}  warning  beta is gone\n", stream.getvalue())


def test_json_has_the_fields_too_one_document_per_line(stream: io.StringIO) -> None:
    start_logging("json", stream)
    describe(node="alpha")
    LOG.info("two\nlines", extra=fields(gone=["beta"]))
    (line,) = stream.getvalue().splitlines()
    document = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", document.pop("at"))
    assert document == {"level": "info", "text": "two\nlines", "node": "alpha", "gone": ["beta"]}


def test_the_journal_gets_the_level_and_adds_the_time_itself(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    start_logging("text", stream)
    LOG.error("broken")
    LOG.info("mended")
    assert stream.getvalue() == "<3>broken\n<6>mended\n"


@pytest.mark.parametrize("style", ["text", "json"])
def test_an_error_brings_its_traceback(stream: io.StringIO, style: str) -> None:
    start_logging(style, stream)
    try:
        raise ValueError("why")
    except ValueError:
        LOG.exception("failed")
    assert "ValueError: why" in stream.getvalue()


def test_warnings_that_come_in_crowds_are_rationed_by_matter(stream: io.StringIO) -> None:
    start_logging("text", stream)
    now = 100.0
    rationed = Rationed(LOG, 10.0, lambda: now)
    for now in (100.0, 101.0, 109.9, 110.0, 125.0):
        rationed.warn("slow", f"alice is slow at {now:.0f}")
    rationed.warn("wrong", "bob is wrong")
    said = [line.partition("warning  ")[2] for line in stream.getvalue().splitlines()]
    assert said == [
        "alice is slow at 100",
        "alice is slow at 110 (and 2 more like this since the last of these lines)",
        "alice is slow at 125",
        "bob is wrong",
    ]


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_log_line_stays_a_line_and_moves_no_cursor_whatever_is_in_it(stream: io.StringIO, style: str) -> None:
    start_logging(style, stream)
    LOG.warning("%s is gone", "\x1b[2J\x9b\N{RIGHT-TO-LEFT OVERRIDE}\nbeta")
    (line,) = stream.getvalue().split("\n")[:-1]
    assert line.isprintable() and "beta is gone" in line
