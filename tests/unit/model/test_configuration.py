from __future__ import annotations

import pytest

from ordercast.model.configuration import ChangeReason


@pytest.mark.parametrize("reason", ChangeReason)
def test_every_reason_has_a_sentence_of_its_own(reason: ChangeReason) -> None:
    others = {other.text for other in ChangeReason if other is not reason}
    assert reason.text and reason.text not in others


def test_the_numbers_of_reasons_travel_and_never_change() -> None:
    assert {reason.name: int(reason) for reason in ChangeReason} == {
        "STARTED": 0,
        "TOKEN_LOST": 1,
        "MERGE": 2,
        "FAILED_TO_RECEIVE": 3,
        "LEFT": 4,
        "COMMIT_LOST": 5,
        "RECOVERY_LOST": 6,
        "NO_CONSENSUS": 7,
        "SAME_PROPOSAL": 8,
        "REMOVED": 9,
        "FOREIGN_PACKET": 10,
        "RING_REFORMED": 11,
        "RING_SPLIT": 12,
        "RING_CUT_OFF": 13,
        "RINGS_MERGED": 14,
        "GIVEN_UP": 15,
        "SILENT": 16,
        "SITE_HEARD": 17,
        "SITE_LOST": 18,
        "SITE_RING_CHANGED": 19,
        "SITE_STUCK": 20,
        "ATTEMPT_LOST": 21,
    }
