"""What people are told of refused packets reads well of one and of many."""

from __future__ import annotations

import pytest

from ordercast.sealing.opener import SealRefusal
from ordercast.sealing.words import refusal_text
from tests.unit.sealing.stage import KEY, ring_of


@pytest.mark.parametrize(("count", "beginning"), [(1, "a packet was refused"), (1200, "1,200 packets were refused")])
@pytest.mark.parametrize("why", SealRefusal)
def test_one_and_many_are_told_of_in_one_grammar(why: SealRefusal, count: int, beginning: str) -> None:
    text = refusal_text(why, count, 7, ring_of(KEY))
    assert text.startswith(beginning)
    assert not {"they", "them", "their"} & set(text.removeprefix(beginning).replace(":", " ").split())
