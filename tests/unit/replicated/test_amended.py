"""What an application does to a dictionary in `on_merge`, and what strangers say to it: it stays whole."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.replicated.machine import Origin, SideState
from ordercast.replicated.quorum import Side
from ordercast.replicated.structures.base import YES, Applied
from ordercast.replicated.structures.dictionary import GRANT, REVOKE, SET, SET_LEASED, Dictionary, _changed
from ordercast.replicated.structures.fields import U64, value_bytes
from ordercast.replicated.told import Told

from .test_desk import Audience

LEASE = 1  # the position of the command that grants it


def by(position: int) -> Origin:
    return Origin("x@n1", 1, position, position)


def leased() -> Dictionary:
    """Return one with two keys, one of them under a lease."""
    dictionary = Dictionary()
    dictionary.apply(bytes([GRANT]) + U64.pack(40), by(LEASE))
    dictionary.apply(bytes([SET]) + value_bytes("a") + value_bytes("1"), by(2))
    dictionary.apply(bytes([SET_LEASED]) + U64.pack(LEASE) + value_bytes("b") + value_bytes("2"), by(3))
    return dictionary


def changed(sides: Sequence[Side[Dictionary]]) -> Dictionary:
    """Change the side that is here, and give it."""
    (mine,) = [side for side in sides if side.is_here]
    del mine.state.entries["b"]
    mine.state.entries["c"] = "3"
    return mine.state


def test_a_side_that_was_changed_in_place_is_whole() -> None:
    dictionary = leased()
    assert dictionary.order.beginning(dictionary.entries, "") == ["a", "b"]
    Told(dictionary, Audience(), changed).unite([SideState(1, ("x@n1",), None)])
    assert dictionary.order.beginning(dictionary.entries, "") == ["a", "c"]
    assert dictionary.apply(bytes([REVOKE]) + U64.pack(LEASE), by(4)) == YES  # nothing was left under the lease
    assert dictionary.entries == {"a": "1", "c": "3"}


def test_a_command_without_a_kind_ends_no_watch() -> None:
    assert _changed(Applied(b"", by(4), leased().apply(b"", by(4)))) == []
