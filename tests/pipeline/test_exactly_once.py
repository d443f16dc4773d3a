"""Exactly once, end to end: a query copies one group to another while query, archiver and daemon are killed with -9,
at random.

    ORDERCAST_KILLS=50 pytest -m long -s tests/pipeline/test_exactly_once.py

`ORDERCAST_SEED` draws other victims and moments.
"""

from __future__ import annotations

import json
import os
import sys
import time
from random import Random

import pytest

from tests.pipeline.stage import Stage, until

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(3600)]
KILLS = int(os.environ.get("ORDERCAST_KILLS", "6"))
SEED = int(os.environ.get("ORDERCAST_SEED", "1"))
VICTIMS = ("query", "archiver", "daemon")  # of every three kills each has one
ROWS = 100  # of a batch
FED = 8 * ROWS  # before each kill
AHEAD = 12  # entries of the archive that are awaited before a kill, at most: a batch adds three, so there are enough


def say(text: str, began: float) -> None:
    """Progress, for `pytest -s`."""
    sys.stdout.write(f"{time.monotonic() - began:6.0f} s  {text}\n")
    sys.stdout.flush()


def test_no_row_is_lost_or_doubled(stage: Stage) -> None:
    draw = Random(SEED)
    began = time.monotonic()
    goes_on, to_the_end = json.dumps({"rows": ROWS, "goes_on": True}), json.dumps({"rows": 10 * ROWS})
    victims = [victim for _ in range(0, KILLS, len(VICTIMS)) for victim in draw.sample(VICTIMS, len(VICTIMS))]
    stage.start_query(goes_on)
    for turn, victim in enumerate(victims[:KILLS], 1):
        stage.feed(FED)
        goal = stage.last("out") + draw.randint(1, AHEAD)
        until(lambda goal=goal: stage.last("out") >= goal, "nothing is copied")  # type: ignore[misc]
        stage.kill(victim)
        say(f"{turn} of {KILLS}: {victim} killed, {stage.fed:,} rows fed", began)
        if victim == "query":
            stage.start_query(goes_on)
        else:
            stage.revive(victim)
    stage.kill("query")
    assert stage.start_query(to_the_end).wait() == 0, stage.log("query")
    assert stage.rows("out") == stage.truth
    say(f"{KILLS + 1} kills, {stage.fed:,} rows: none lost, none doubled, all in order", began)
