"""The last line of a test run: what was skipped, and what brings it."""

from __future__ import annotations

from tests.conftest import skipped_sentence


def test_what_was_skipped_is_said_with_what_brings_it() -> None:
    assert skipped_sentence([]) == "nothing was skipped"
    found = ["Skipped: could not import 'pyspark': No module named 'pyspark'"] * 2 + ["Skipped: there is no Java"]
    assert skipped_sentence(found) == (
        "skipped: 2 (pyspark is missing: pip install 'ordercast[spark]'), 1 (there is no Java)"
    )
