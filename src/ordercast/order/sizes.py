"""Sizes: what layers above and below an engine ask of its configuration, whichever engine it is."""

from __future__ import annotations

from typing import Protocol


class Sizes(Protocol):
    @property
    def cluster(self) -> str:
        """The name that strangers on the same network do not have."""

    @property
    def packet_size_max(self) -> int:
        """Bytes of a datagram."""

    @property
    def message_size_max(self) -> int: ...

    @property
    def whole_size_max(self) -> int:
        """Bytes of the largest message that is not cut into parts."""

    @property
    def queue_size_max(self) -> int:
        """Bytes that `submit` accepts before they are sent."""

    @property
    def turn_size_max(self) -> int:
        """Bytes that a process may send at a time."""

    @property
    def members_max(self) -> int: ...

    def validate(self) -> None:
        """UsageError when the values do not fit together."""
