from __future__ import annotations

from ordercast.model.ids import Instant, ProcessId, node_of
from ordercast.model.notes import Evidence, NetworkState, NetworkTurned
from ordercast.networks.diagnosis import NetworkReport, episodes

from .stage import EVERYBODY, FOUR, ME, THREE, TWO

FAULTY, GOOD, TRIAL = NetworkState.FAULTY, NetworkState.GOOD, NetworkState.ON_TRIAL


def report(
    at: int, process: ProcessId, state: NetworkState, evidence: Evidence, about: ProcessId | None = None
) -> NetworkReport:
    return NetworkReport(Instant(at), process, NetworkTurned(1, state, evidence, about, "text"))


def name(process: ProcessId) -> str:
    return f"n{node_of(process)}"


def conclusion(unheard: dict[ProcessId, tuple[ProcessId, ...]], marked: tuple[ProcessId, ...] = EVERYBODY) -> str:
    told = [report(0, THREE, FAULTY, Evidence.TOKEN_TIMER)]
    told += [report(1, one, FAULTY, Evidence.REFUSAL, THREE) for one in marked if one != THREE]
    told += [report(2, one, FAULTY, Evidence.UNHEARD, other) for one, others in unheard.items() for other in others]
    (episode,) = episodes(told, lambda first: EVERYBODY)
    return episode.conclusion(name)


def others(one: ProcessId) -> tuple[ProcessId, ...]:
    return tuple(other for other in EVERYBODY if other != one)


def test_a_network_that_is_down() -> None:
    assert "as a whole is down" in conclusion({one: others(one) for one in EVERYBODY})


def test_one_that_cannot_send() -> None:
    assert conclusion(dict.fromkeys(others(TWO), (TWO,))).endswith("it cannot send")


def test_one_that_cannot_receive() -> None:
    assert conclusion({TWO: others(TWO)}).startswith("n2 hears nobody there")


def test_one_that_is_cut_off() -> None:
    told = conclusion({TWO: others(TWO), **dict.fromkeys(others(TWO), (TWO,))})
    assert told == "n2 and the others do not hear each other there: it is cut off from the network"


def test_some_that_do_not_reach_some() -> None:
    told = conclusion({ME: (THREE,), TWO: (THREE, FOUR)})
    assert told == "some do not reach some others there: n1 does not hear n3; n2 does not hear n3, n4"


def test_nobody_is_silent() -> None:
    told = [report(0, ME, FAULTY, Evidence.TOKENS, FOUR), report(1, ME, TRIAL, Evidence.PROVED)]
    told.append(report(2, ME, GOOD, Evidence.HEARD))
    (episode,) = episodes(told, lambda first: EVERYBODY)
    assert "loses packets, is slow, or was repaired" in episode.conclusion(name) and episode.repaired_at == 2


def test_before_anybody_told_whom_it_hears_the_first_report_is_all_there_is() -> None:
    (episode,) = episodes([report(0, ME, FAULTY, Evidence.TOKENS, FOUR)], lambda first: EVERYBODY)
    assert episode.conclusion(name).startswith("first seen by n1 (fewer tokens came than on another network of n4)")


def test_faults_one_after_the_other_are_told_apart_and_a_trial_alone_is_none() -> None:
    told = [
        report(0, ME, TRIAL, Evidence.NEW_RING),
        report(1, ME, FAULTY, Evidence.TOKENS, FOUR),
        report(2, ME, GOOD, Evidence.HEARD),
        report(3, TWO, FAULTY, Evidence.MESSAGES, ME),
    ]
    first, second = episodes(told, lambda report: EVERYBODY)
    assert (first.repaired_at, second.repaired_at) == (2, None) and second.began_at == 3
