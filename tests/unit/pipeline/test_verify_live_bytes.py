"""Messages recorded from their bytes, in runs: whatever happens to the bytes on the way is found, and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from ordercast.checker import Outcome
from ordercast.cli.check import judge as check
from ordercast.model.effects import Deliver
from ordercast.model.ids import Instant, ProcessId
from ordercast.model.promises import Promise
from ordercast.pipeline.verify.job import judge_large_folder
from ordercast.pipeline.verify.judging import judge
from ordercast.trace.arrow import TraceError
from ordercast.trace.cluster import append_cluster_event
from ordercast.trace.folder import read_live
from ordercast.trace.live import LiveTrace
from ordercast.trace.live_stamp import LIVE_STAMP_SIZE, live_stamped
from ordercast.trace.records import STAMPED
from tests.kernels import KERNELS, running
from tests.unit.checker.histories import Story
from tests.unit.pipeline.agreement import in_turn
from tests.unit.trace.live_traces import BEGIN, LATE, files_of, new_trace, set_clocks

COUNT, CLIENT, AGREED = 40, 9, 4
Damage = Callable[[list[bytes]], None]


def _changed(got: list[bytes]) -> None:
    at = LIVE_STAMP_SIZE + 3
    got[16] = got[16][:at] + bytes([got[16][at] ^ 1]) + got[16][at + 1 :]


def _parts_swapped(got: list[bytes]) -> None:
    """Two messages that have their stamps, and each other's bytes."""
    one, other = got[16], got[17]
    got[16], got[17] = one[:LIVE_STAMP_SIZE] + other[LIVE_STAMP_SIZE:], other[:LIVE_STAMP_SIZE] + one[LIVE_STAMP_SIZE:]


def _swapped(got: list[bytes]) -> None:
    got[16], got[17] = got[17], got[16]


def _doubled(got: list[bytes]) -> None:
    got[17] = got[16]


def _shortened(got: list[bytes]) -> None:
    got[16] = got[16][:-1]


def _record(folder: Path, patch: pytest.MonkeyPatch, damage: Damage) -> None:
    """Two nodes: the first submits messages and delivers them, the second delivers what is left of them."""
    set_clocks(patch)
    told = Story(2)
    told.change(0, 1)
    traces: dict[ProcessId, LiveTrace] = {told.id(node): new_trace(folder, told.id(node)) for node in (0, 1)}
    for event in told.events:
        traces[event.process].record(event)  # type: ignore[union-attr]
    view, sender = told.members[0].view, told.id(0)
    sent = live_stamped(sender, CLIENT, 1, [bytes([counter, 7]) * 10 for counter in range(COUNT)])
    for node, trace in enumerate(traces.values()):
        if node == 0:
            trace.submitted(Instant(100), CLIENT, 1, AGREED, sent)
        got = list(sent)
        if node == 1:
            damage(got)
        parcel = (1, sender, (CLIENT | STAMPED,) * COUNT, bytes([AGREED]) * COUNT, got, 4, 0)
        trace.delivered(Instant(200), Deliver(view.id, view.id, [parcel]), 0)
        trace.close()
        assert trace.error is None
    for kind, at in (("healed", LATE), ("ended", LATE + 1)):
        append_cluster_event(folder, kind, at=BEGIN + at)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("damage", "broken"),
    [
        (lambda got: None, None),
        (_changed, Promise.INTEGRITY),
        (_parts_swapped, Promise.INTEGRITY),
        (_shortened, Promise.INTEGRITY),
        (_swapped, Promise.TOTAL_ORDER),
        (_doubled, Promise.NO_DUPLICATES),
    ],
    ids=["nothing", "changed", "parts swapped", "shortened", "swapped", "doubled"],
)
def test_what_happened_to_the_bytes_is_found(
    kernel: str, damage: Damage, broken: Promise | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(kernel):
        _record(tmp_path, monkeypatch, damage)
    judged = [check(tmp_path).verdicts, judge(str(tmp_path)).verdicts]
    judged.append(judge_large_folder(str(tmp_path), in_turn, 10).verdicts)
    for verdicts in judged:
        wrong = {verdict.promise: verdict for verdict in verdicts if verdict.outcome is Outcome.INVALID}
        assert broken in wrong if broken is not None else not wrong
        if broken is not None:
            named = {witness.message.counter for witness in wrong[broken].witnesses if witness.message is not None}
            assert named and named <= {17, 18}


def test_traces_of_two_versions_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _record(tmp_path, monkeypatch, lambda got: None)
    path = files_of(tmp_path, Story(2).id(1))[0]
    path.write_bytes(path.read_bytes().replace(b'"digest": "multilinear"', b'"digest": "multilinexr"'))
    with pytest.raises(TraceError, match="recorded by different versions of Ordercast, whose digests") as caught:
        read_live(tmp_path)
    assert str(path) in str(caught.value)
