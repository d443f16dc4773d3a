"""Faults as people write them."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND
from ordercast.sim.fault_text import KINDS, example_of, fault_from, fault_text
from ordercast.sim.faults import Fault, FaultKind, random_faults
from ordercast.sim.topology import Attachments


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("0.3s crash n1", Fault(300 * MILLISECOND, FaultKind.CRASH, node=1)),
        ("400ms restart 1", Fault(400 * MILLISECOND, FaultKind.RESTART, node=1)),
        ("0.5s partition n0 n1 | n2,n3 n4", Fault(500 * MILLISECOND, FaultKind.PARTITION, groups=((0, 1), (2, 3, 4)))),
        ("0.6s cut n0>n1", Fault(600 * MILLISECOND, FaultKind.CUT, links=((0, 1),))),
        ("0.6s block n0<>n1", Fault(600 * MILLISECOND, FaultKind.BLOCK, links=((0, 1), (1, 0)))),
        ("0.6s cut n0→n1, n2<>n3", Fault(600 * MILLISECOND, FaultKind.CUT, links=((0, 1), (2, 3), (3, 2)))),
        ("0.9s heal", Fault(900 * MILLISECOND, FaultKind.HEAL)),
        ("0.2s pause n2 80ms", Fault(200 * MILLISECOND, FaultKind.PAUSE, node=2, duration_ns=80 * MILLISECOND)),
        ("0.2s PAUSE n2 for 80ms", Fault(200 * MILLISECOND, FaultKind.PAUSE, node=2, duration_ns=80 * MILLISECOND)),
        ("1s lose-token 30ms", Fault(1000 * MILLISECOND, FaultKind.LOSE_TOKEN, duration_ns=30 * MILLISECOND)),
        ("0s crash-before-write n0", Fault(0, FaultKind.CRASH_BEFORE_WRITE, node=0)),
        ("1s down seg1", Fault(1000 * MILLISECOND, FaultKind.DOWN, segment=1)),
        ("1s detach n2 seg1", Fault(1000 * MILLISECOND, FaultKind.DETACH, node=2, segment=1)),
        ("1s heal seg0 net1", Fault(1000 * MILLISECOND, FaultKind.HEAL, network=1, segment=0)),
        ("1s mend n0>n1", Fault(1000 * MILLISECOND, FaultKind.MEND, links=((0, 1),))),
        ("1s lossy 20% n0<>n1", Fault(1000 * MILLISECOND, FaultKind.LOSSY, links=((0, 1), (1, 0)), chance=0.2)),
        (
            "1s slow n0>n1 30ms seg2",
            Fault(1000 * MILLISECOND, FaultKind.SLOW, links=((0, 1),), duration_ns=30 * MILLISECOND, segment=2),
        ),
    ],
)
def test_what_is_written_is_what_strikes(text: str, fault: Fault) -> None:
    assert fault_from(text) == fault
    assert fault_from(fault_text(fault)) == fault


def test_every_kind_has_an_example_that_can_be_read() -> None:
    for name, kind in KINDS.items():
        fault = fault_from(example_of(kind).split(" (")[0])
        assert fault.kind is kind
        assert name in fault_text(fault)


@pytest.mark.parametrize("attachments", [(), ((0,), (0,), (0, 1), (1, 2), (2,))], ids=["one segment", "three"])
@pytest.mark.parametrize("seed", range(20))
def test_random_faults_can_be_written_as_a_script(seed: int, attachments: Attachments) -> None:
    for fault in random_faults(20, 5, 10**9, Random(seed), attachments):
        assert fault.problem(5, attachments=attachments) is None
        assert fault.kind not in (FaultKind.DETACH, FaultKind.ATTACH) or fault.segment is not None
        if fault.kind is FaultKind.CUT and not fault.links:
            continue  # drawn, but strikes nobody
        again = fault_from(fault_text(fault))
        assert str(again) == str(fault)
        assert again.at == fault.at


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "says too little"),
        ("crash n1", "does not say when: write '0.3s crash n1'"),
        ("0.3s crsh n1", "there is no fault 'crsh'; there are partition, cut, heal"),
        ("3 crash n1", "'3' is not a duration"),
        ("0.3s crash", "needs one node; write it as in: 0.3s crash n1"),
        ("0.3s crash n1 n2", "needs one node"),
        ("0.3s crash x1", "'x1' is not a node"),
        ("0.3s pause n1", "needs one node and one duration"),
        ("0.3s pause n1 0ms", "lasts no time"),
        ("0.3s pause n1 soon", "'soon' is not a duration"),
        ("0.3s partition n0 |", "a side of the partition is empty"),
        ("0.3s partition n0 | n0 n1", "named twice"),
        ("0.3s cut n0-n1", "'n0-n1' is not a link"),
        ("0.3s cut n0>n0", "to itself"),
        ("0.3s cut", "names no link"),
        ("0.3s heal n1", "takes nothing more"),
        ("0.3s down", "names no network, segment or link"),
        ("0.3s lossy 20%", "names no network, segment or link"),
        ("0.3s lossy 20% 30% net1", "needs one chance"),
        ("0.3s heal seg0 seg1", "names more than one segment"),
    ],
)
def test_what_cannot_be_read_is_explained(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        fault_from(text)
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)
