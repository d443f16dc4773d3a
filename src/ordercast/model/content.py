"""Content: data that says what it is. Codecs make it (`api/codecs.py`), and whoever sends takes it."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.model.headers import NO_HEADERS, Headers


class Content(NamedTuple):
    data: bytes
    headers: Headers = NO_HEADERS
