from __future__ import annotations

import pytest

from ordercast.checker import Outcome, Verdict, Witness, combined
from ordercast.model.ids import ConfigurationId
from ordercast.model.promises import Promise
from ordercast.trace.records import MessageId

from .histories import process


def _verdict(outcome: Outcome) -> Verdict:
    return Verdict(Promise.FIFO, outcome, f"said {outcome.value}", (Witness(outcome.value),))


@pytest.mark.parametrize(
    ("outcomes", "worst"),
    [
        ([Outcome.NOT_PROMISED, Outcome.VALID], Outcome.VALID),
        ([Outcome.VALID, Outcome.UNKNOWN, Outcome.NOT_PROMISED], Outcome.UNKNOWN),
        ([Outcome.UNKNOWN, Outcome.INVALID, Outcome.VALID], Outcome.INVALID),
        ([Outcome.NOT_PROMISED], Outcome.NOT_PROMISED),
        ([Outcome.NOT_EXERCISED, Outcome.NOT_PROMISED], Outcome.VALID),
        ([Outcome.NOT_EXERCISED, Outcome.UNKNOWN], Outcome.UNKNOWN),
        ([], Outcome.UNKNOWN),
    ],
)
def test_the_worst_wins(outcomes: list[Outcome], worst: Outcome) -> None:
    assert combined([_verdict(outcome) for outcome in outcomes]).outcome is worst


def test_what_is_kept_is_not_counted_with_what_was_not_exercised() -> None:
    outcomes = [*[Outcome.VALID] * 14, Outcome.NOT_EXERCISED]
    assert combined([_verdict(outcome) for outcome in outcomes]).sentence == "14 promises kept, 1 not exercised"
    outcomes += [Outcome.NOT_PROMISED] * 2
    expected = "14 promises kept, 1 not exercised, 2 not promised"
    assert combined([_verdict(outcome) for outcome in outcomes]).sentence == expected
    assert combined([_verdict(Outcome.VALID)]).sentence == "1 promise kept"


def test_a_combination_carries_sentences_and_witnesses_of_the_worst() -> None:
    verdict = combined([_verdict(Outcome.INVALID), _verdict(Outcome.UNKNOWN), _verdict(Outcome.INVALID)])
    assert verdict.sentence == "fifo order: said INVALID; fifo order: said INVALID"
    assert [witness.what for witness in verdict.witnesses] == ["INVALID", "INVALID"]
    assert str(verdict).startswith("all promises: INVALID")


def test_a_witness_names_process_message_and_view() -> None:
    witness = Witness("is odd", process(1, 2), MessageId(process(0), 3, 7), ConfigurationId(8, process(0)))
    assert str(witness) == "n1'2, message n0/3#7, view 8.n0: is odd"
    assert str(Witness("is odd")) == "is odd"
