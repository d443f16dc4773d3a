"""Names in order, however they come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.groups import sorted_names
from ordercast.groups.sorted_names import SortedNames

names = st.text("abc", max_size=3)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_names, "BLOCK", 2)


@given(st.sets(names), st.lists(names), names)
def test_they_are_as_if_sorted_anew(begin: set[str], changes: list[str], after: str) -> None:
    kept, known = SortedNames(begin), set(begin)
    for name in changes:
        (kept.remove if name in known else kept.add)(name)
        known ^= {name}
        assert list(kept) == sorted(known)
    assert list(kept.after(after)) == sorted(name for name in known if name > after)
