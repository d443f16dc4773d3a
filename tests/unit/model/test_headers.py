"""Headers of messages: what was said comes back, and bytes of anybody else are data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.errors import UsageError
from ordercast.model.events import Batch
from ordercast.model.headers import NO_HEADERS, SIZE_MAX, Headers, checked_headers, header_block, headers_and_data
from ordercast.model.ids import ConfigurationId, Places, ProcessId

NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True).filter(
    lambda name: not name.startswith("ordercast-")
)
VALUES = st.text(st.characters(codec="utf-8"), max_size=50)


@given(st.dictionaries(NAMES, VALUES, max_size=5), st.binary(max_size=50))
def test_headers_and_data_come_back(headers: dict[str, str], data: bytes) -> None:
    assert headers_and_data(header_block(checked_headers(headers)) + data) == (Headers(headers), data)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_and_none_are_lost(payload: bytes) -> None:
    headers, data = headers_and_data(payload)
    assert payload.endswith(data)
    assert headers or data in (payload, payload[2:])


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Content-Type": "a"}, "is no name of a header"),
        ({"": "a"}, "is no name of a header"),
        ({"ordercast-reply": "1"}, "Ordercast's own"),
        ({"a": "\ud800"}, "half a character"),
        ({"a": "b" * SIZE_MAX}, "too large, at most 16,384"),
    ],
)
def test_what_cannot_be_a_header_is_refused_in_a_sentence(headers: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        header_block(checked_headers(headers))


def test_a_batch_takes_headers_off_and_keeps_what_was_sent() -> None:
    raw = [header_block({"a": "1"}) + b"one", header_block({}) + b"two"]
    batch = Batch(("g",), "a@n1", raw, [4, 4], Places(ConfigurationId(1, ProcessId(1)), 1, 0, 2, 0), is_headed=True)
    assert list(batch.data) == [b"one", b"two"] and list(batch.raw) == raw
    first, second = batch
    assert first.headers == {"a": "1"} and second.headers is NO_HEADERS
    assert list(batch.after(1)) == [second] and batch.after(1).is_headed
    assert len({first, second}) == 2
