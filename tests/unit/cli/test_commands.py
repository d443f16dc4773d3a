"""The commands as a person runs them: output, exit status, one sentence when something is wrong."""

from __future__ import annotations

import io
import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ordercast import __version__
from ordercast.cli import recording, swarm
from ordercast.cli.check import draw_judged, judge
from ordercast.cli.main import run
from ordercast.model.ids import Instant
from ordercast.model.kernel import NAME
from ordercast.order.catalogue import ENGINES
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, simulate
from ordercast.sim.swarm import Outline, SwarmKind, expected_rows, options_of, outline
from ordercast.trace.parquet import read_run, write_run
from ordercast.trace.records import DeliveredBatch, Ended

SMALL = ["sim", "--nodes", "3", "--messages", "30", "--duration", "300ms", "--seed", "5"]
SCRIPT = ["--fault", "0.1s crash n1", "--fault", "0.15s restart n1", "--fault", "0.2s partition n0 | n1 n2"]

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def call(capsys: Capture) -> Callable[..., tuple[int, str, str]]:
    def _call(*arguments: str) -> tuple[int, str, str]:
        status = run(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return _call


Call = Callable[..., tuple[int, str, str]]


def document_of(output: str) -> dict[str, Any]:
    document = json.loads(output)
    assert isinstance(document, dict)
    return document


# General


def test_version_and_help(call: Call) -> None:
    assert call("--version") == (0, f"ordercast {__version__}, {NAME} kernel\n", "")
    assert "Usage: ordercast" in call()[1]
    for command in ("sim", "swarm", "check", "demo"):
        status, out, _ = call(command, "--help")
        assert status == 0
        assert "Example: ordercast" in out
        assert "--json" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sin"], "No such command 'sin'"),
        (["sim", "--nods", "3"], "--nods"),
        (["sim", "--nodes", "many"], "--nodes"),
        (["sim", "--nodes", "0"], "nodes must be within 1..64"),
        (["sim", "--messages", "-1"], "messages must be within"),
        (
            ["sim", "--engine", "star"],
            "there is no engine 'star'; there are: ring, adaptive, gateways, sites, tree, sequencer",
        ),
        (
            ["sim", "--engine", "gateways", "--topology", "tree"],
            "there is no topology 'tree': choose among line, cycle",
        ),
        (["sim", "--engine", "gateways", "--topology", "star", "--rings", "1"], "'star' has 2 to 255 rings, not 1"),
        (["sim", "--rings", "2"], "--rings goes with --topology"),
        (["sim", "--topology", "line", "--attach", "n0 seg0 seg1"], "leave out --attach"),
        (["swarm", "--seeds", "1", "--topology", "line"], "the engine 'ring' has no network of rings"),
        (["sim", "--engine", "sequencer", "--loss", "1%"], "never change and nothing is repaired: leave out loss"),
        (["swarm", "--seeds", "1", "--engine", "sequencer", "--groups"], "leave out the option"),
        (["up", "--engine", "sequencer"], "runs in the simulator alone; daemons can run: ring, adaptive, gateways"),
        (["daemon", "--engine", "star"], "daemons can run: ring, adaptive, gateways"),
        (["sim", "--service", "unreliable"], "there is no service 'unreliable'"),
        (["sim", "--sizes", "1..5"], "at least 20 bytes"),
        (["sim", "--sizes", "5..1"], "falls"),
        (["sim", "--loss", "2"], "'2' is not a chance"),
        (["sim", "--delay", "soon"], "'soon' is not a duration"),
        (["sim", "--seed", "-1"], "seed -1 cannot be used"),
        (["sim", "--fault", "0.3s crash n9"], "names node 9"),
        (["sim", "--fault", "0.3s crsh n1"], "there is no fault 'crsh'"),
        (["sim", "--faults", "-1"], "faults must be within"),
        (["sim", "--hostile", "--nodes", "4"], "leave out --nodes"),
        (["sim", "--trace", "/dev/null"], "/dev/null"),
        (["swarm"], "--seeds"),
        (["swarm", "--seeds", "9..1"], "falls"),
        (["swarm", "--seeds", "1..2", "--processes", "0"], "--processes 0 cannot be used"),
        (["check"], "DIR"),
        (["check", "/does/not/exist"], "/does/not/exist"),
        (["demo", "--keep", "/"], "/ is not an empty folder"),
        (["demo", "--keep", "/dev/null"], "/dev/null is not an empty folder"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_status_2(call: Call, arguments: list[str], words: str) -> None:
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert err.startswith("ordercast: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_an_interrupt_is_one_line_and_status_130(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> Result:
        raise KeyboardInterrupt

    monkeypatch.setattr(recording, "simulate", interrupted)
    assert call(*SMALL) == (130, "", "ordercast: interrupted.\n")


# sim


def test_sim_tells_a_timeline_and_a_verdict(call: Call) -> None:
    status, out, err = call(*SMALL, *SCRIPT)
    assert (status, err) == (0, "")
    for words in (
        "✗ crash n1",
        "✓ restart n1",
        "✗ partition n0 | n1 n2",
        "Operational → Gather: the token was lost",
        "the network heals for good",
        "transitional set",
        "delivered",
        "virtual synchrony",
        " VALID   15 promises kept, 1 not exercised",
        "replay   ordercast sim --nodes 3 --messages 30 --duration 300ms --fault '100ms crash n1'",
    ):
        assert words in out
    assert "\x1b[" not in out


def test_sim_runs_other_engines_and_says_what_they_do_not_promise(call: Call) -> None:
    status, out, err = call("sim", "--engine", "sequencer", "--nodes", "3", "--messages", "30", "--duration", "50ms")
    assert (status, err) == (0, "")
    assert " VALID   9 promises kept, 7 not promised" in out and "NOT PROMISED" in out
    assert "replay   ordercast sim --engine sequencer --nodes 3 --messages 30 --duration 50ms --seed 1" in out


def test_engines_are_listed_with_when_to_choose_which(call: Call) -> None:
    status, out, _ = call("engines")
    assert status == 0 and "choose it when" in out and all(name in out for name in ENGINES)
    status, out, _ = call("engines", "--json")
    document = json.loads(out)
    assert status == 0 and document["default"] == "ring"
    assert [(one["name"], one["live"]) for one in document["engines"]] == [
        ("ring", True),
        ("adaptive", True),
        ("gateways", True),
        ("sites", ENGINES["sites"].is_live),
        ("tree", True),
        *((name, False) for name in ("sequencer", "causal", "all-ack", "timestamps", "two-phase", "atop")),
    ]
    assert document["engines"][5]["services"] == ["reliable", "fifo", "causal", "agreed"]


def test_a_swarm_of_another_engine(call: Call) -> None:
    status, out, _ = call("swarm", "--seeds", "1..3", "--engine", "sequencer", "--processes", "1", "--json")
    document = json.loads(out)
    assert (status, document["engine"], document["valid"], document["never"]) == (0, "sequencer", 3, [])


def test_sim_json_has_the_documented_keys_and_replays(call: Call) -> None:
    status, out, _ = call(*SMALL, *SCRIPT, "--faults", "3", "--loss", "3%", "--accelerated", "--json")
    document = document_of(out)
    reference = (Path(__file__).parents[3] / "docs/reference/cli.md").read_text()
    assert all(f"`{key}`" in reference for key in document)
    assert status == (0 if document["valid"] else 1)
    assert len(document["verdicts"]) == 16
    assert document["options"]["faults"][0] == "100ms crash n1"
    assert {"at_ns", "kind", "processes", "text"} == set(document["timeline"][0])
    again = document_of(call(*shlex.split(document["replay"])[1:], "--json")[1])
    assert again["digest"] == document["digest"] != ""


def test_sim_replays_a_seed_of_a_swarm(call: Call) -> None:
    document = document_of(call("sim", "--hostile", "--seed", "4", "--json")[1])
    assert document["replay"] == "ordercast sim --hostile --seed 4"
    assert document["digest"] == outline(4).digest


def test_sim_writes_a_trace_that_check_judges_the_same(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "runs"
    written = document_of(call(*SMALL, "--trace", str(folder), "--json")[1])
    assert written["trace"] == str(folder / "run-5.parquet")
    status, out, _ = call("check", str(folder), "--json")
    checked = document_of(out)
    assert (status, checked["valid"]) == (0, True)
    assert checked["runs"][0]["verdicts"] == written["verdicts"]
    assert checked["runs"][0]["digest"] == written["digest"]
    status, out, err = call(*SMALL, "--loss", "1%", "--trace", str(folder))
    assert (status, out) == (2, "")
    assert "holds another run" in err


def test_a_run_that_does_not_settle_is_no_success(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsettled(options: SimOptions, seed: int, **rest: Any) -> Result:
        return simulate(replace(options, settle_ns=1), seed, **rest)

    monkeypatch.setattr(recording, "simulate", unsettled)
    status, out, _ = call(*SMALL, *SCRIPT)
    assert status == 1
    assert "not settled" in out


def test_an_engine_that_fails_is_shown_with_what_led_to_it(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing(options: SimOptions, seed: int, **rest: Any) -> Result:
        observer = rest.pop("observer")

        def observe(event: Any) -> None:
            observer(event)
            assert not isinstance(event, DeliveredBatch), "planted"

        return simulate(options, seed, observer=observe, **rest)

    monkeypatch.setattr(recording, "simulate", failing)
    status, out, _ = call(*SMALL, "--trace", str(tmp_path))
    assert status == 1
    assert "Starting → Operational" in out
    assert "AssertionError: planted" in out
    assert isinstance(read_run(tmp_path / "run-5.parquet").events[-1], DeliveredBatch)
    assert call("check", str(tmp_path))[0] == 1


# swarm


def test_swarm_counts_what_happened(call: Call) -> None:
    status, out, err = call("swarm", "--seeds", "1..2", "--processes", "1")
    assert (status, err) == (0, "")
    assert "2 runs: 2 valid, 0 failed" in out
    assert "move Operational → Gather" in out
    assert "inputs per second per core on 1 core" in out


def test_swarm_json_has_the_documented_keys(call: Call) -> None:
    status, out, _ = call("swarm", "--seeds", "2", "--processes", "1", "--json")
    document = document_of(out)
    reference = (Path(__file__).parents[3] / "docs/reference/cli.md").read_text()
    assert all(f"`{key}`" in reference for key in document)
    assert (status, document["runs"], document["failures"], document["seeds"]) == (0, 1, [], [2, 2])
    assert set(document["never"]) <= set(expected_rows())
    assert call("swarm", "--seeds", "2", "--processes", "1", "--strict-coverage")[0] == (1 if document["never"] else 0)


def test_a_swarm_that_is_interrupted_tells_what_was_run(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(seeds: range, processes: int | None = None, *rest: Any) -> Iterator[Outline]:
        for seed in seeds[:2]:
            yield Outline(seed, True, "", "", 10, 1, Counter())
        raise KeyboardInterrupt

    monkeypatch.setattr(swarm, "swarm", interrupted)
    status, out, _ = call("swarm", "--seeds", "2..9")
    assert status == 130 and "interrupted after  2 runs: 2 valid, 0 failed" in out
    assert document_of(call("swarm", "--seeds", "2..9", "--json")[1])["interrupted"] is True


@pytest.mark.parametrize("groups", [False, True], ids=["engine", "groups"])
def test_swarm_lists_failing_seeds_with_their_replay_and_trace(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, groups: bool
) -> None:
    def failing(seeds: range, processes: int | None = None, *rest: Any) -> Iterator[Outline]:
        for seed in seeds:
            yield Outline(seed, seed != 3, "" if seed != 3 else "total order: planted", "", 10, 1, Counter())

    monkeypatch.setattr(swarm, "swarm", failing)
    flag = ["--groups"] if groups else []
    status, out, _ = call("swarm", *flag, "--seeds", "2..4", "--trace", str(tmp_path))
    assert status == 1
    assert "seed 3 failed: total order: planted" in out
    assert shlex.join(["ordercast", "sim", "--hostile", *flag, "--seed", "3"]) in out
    assert "never happened, so they were not tested" in out
    assert {path.name for path in tmp_path.iterdir()} == {"run-3.parquet", *["clients-3.parquet"][:groups]}
    options = read_run(tmp_path / "run-3.parquet").info.options
    assert options["nodes"] == options_of(3, SwarmKind.GROUPS if groups else SwarmKind.PLAIN).nodes
    assert bool(options["clients"]) == groups


def test_a_run_with_clients_is_judged_by_the_checkers_of_groups_and_can_be_replayed(call: Call) -> None:
    status, out, _ = call(*SMALL, "--clients", "2")
    assert status == 0
    assert "groups: virtual synchrony" in out and "--clients 2" in out
    assert "groups: virtual synchrony" not in call(*SMALL)[1]
    hostile = call("sim", "--hostile", "--groups", "--seed", "3", "--json")[1]
    assert json.loads(hostile)["replay"] == "ordercast sim --hostile --groups --seed 3"
    assert "--groups goes with --hostile" in call("sim", "--groups")[2]


def test_a_topology_is_simulated_by_name_and_can_be_replayed(call: Call) -> None:
    named = json.loads(call(*SMALL, "--engine", "gateways", "--topology", "hub", "--rings", "2", "--json")[1])
    words = shlex.split(named["replay"])
    assert "'n0 seg0 seg1'" in named["replay"] and "--topology" not in words
    assert json.loads(call(*words[1:], "--json")[1])["digest"] == named["digest"]
    words = ["sim", "--hostile", "--engine", "gateways", "--topology", "line", "--seed", "3"]
    assert json.loads(call(*words, "--json")[1])["replay"] == shlex.join(["ordercast", *words])


# check


def test_runs_of_one_name_are_told_apart_by_their_paths(call: Call, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        call(*SMALL, "--trace", str(tmp_path / folder))
    out = io.StringIO()
    runs = [judge(tmp_path / folder / "run-5.parquet") for folder in ("one", "two")]
    draw_judged(Console(file=out, width=300), runs)
    assert str(tmp_path / "one" / "run-5.parquet") in out.getvalue()
    assert str(tmp_path / "two" / "run-5.parquet") in out.getvalue()


def test_check_shows_witnesses_of_what_is_broken(call: Call, tmp_path: Path) -> None:
    call(*SMALL, "--trace", str(tmp_path))
    sound = read_run(tmp_path / "run-5.parquet")
    place, batch = next((n, event) for n, event in enumerate(sound.events) if isinstance(event, DeliveredBatch))
    events = [*sound.events[: place + 1], batch, *sound.events[place + 1 :]]
    write_run(tmp_path, replace(sound.info, run=6), events)
    status, out, _ = call("check", str(tmp_path))
    assert status == 1
    assert "1 of 2 runs are valid" in out
    assert "no duplicates: INVALID" in out
    assert "run-6.parquet" in out
    document = document_of(call("check", str(tmp_path / "run-6.parquet"), "--json")[1])
    reference = (Path(__file__).parents[3] / "docs/reference/cli.md").read_text()
    assert all(f"`{key}`" in reference for key in (*document, *document["runs"][0]))
    assert document["valid"] is False
    assert document["verdict"]["witnesses"]


def test_check_of_a_record_without_end_is_unknown(call: Call, tmp_path: Path) -> None:
    call(*SMALL, "--trace", str(tmp_path))
    sound = read_run(tmp_path / "run-5.parquet")
    write_run(tmp_path, sound.info, [*sound.events[:-1], Ended(Instant(10**12), complete=False)])
    status, out, _ = call("check", str(tmp_path))
    assert status == 1
    assert "UNKNOWN" in out


def test_check_of_an_empty_folder_or_a_truncated_file_is_one_sentence(call: Call, tmp_path: Path) -> None:
    status, out, err = call("check", str(tmp_path))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "holds no traces" in err
    call(*SMALL, "--trace", str(tmp_path))
    path = tmp_path / "run-5.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    status, out, err = call("check", str(tmp_path))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert str(path) in err
    status, out, err = call(*SMALL, "--trace", str(tmp_path))
    assert (status, out) == (2, "")
    assert "remove it" in err


# Several networks


def test_a_network_fails_in_a_simulated_run_and_is_explained(call: Call, tmp_path: Path) -> None:
    words = ["--redundant", "2", "--replication", "active", "--fault", "0.2s down net1", "--fault", "0.5s mend net1"]
    status, out, _ = call(*SMALL, *words, "--duration", "900ms", "--trace", str(tmp_path))
    assert status == 0 and "network faulty" in out and "down on net1" in out and "network repaired" in out
    status, out, _ = call("networks", "explain", str(tmp_path))
    assert status == 0 and "nobody hears anybody there: the network as a whole is down" in " ".join(out.split())
    status, out, _ = call("networks", "explain", str(tmp_path), "--json")
    (fault,) = document_of(out)["runs"][0]["faults"]
    assert fault["network"] == 1 and fault["repaired_at"] is not None
    assert {report["node"] for report in fault["reports"]} == {0, 1, 2} and not fault["reports"][0]["is_echo"]


def test_a_run_without_faults_of_networks_has_nothing_to_explain(call: Call, tmp_path: Path) -> None:
    call(*SMALL, "--trace", str(tmp_path))
    assert "no network was found faulty" in call("networks", "explain", str(tmp_path))[1]


def test_what_several_networks_cannot_be(call: Call) -> None:
    for words, why in (
        (("--redundant", "9"), "1 to 8 networks, not 9"),
        (("--redundant", "2", "--replication", "pasive"), "there is no replication 'pasive'"),
        (("--redundant", "2", "--replication", "active-passive"), "copies = 2 with 2 networks"),
        (("--fault", "0.1s down net1"), "names network 1, there are 0..0"),
        (("--fault", "0.1s down"), "names no network"),
        (("--networks",), "--networks goes with --hostile"),
    ):
        status, _, error = call(*SMALL, *words)
        assert status == 2 and why in error, error
    assert "choose one of them" in call("swarm", "--seeds", "1..2", "--groups", "--networks")[2]


def test_a_hostile_run_with_several_networks_is_replayed_by_its_command(call: Call) -> None:
    status, out, _ = call("sim", "--hostile", "--networks", "--seed", "3", "--json")
    document = document_of(out)
    assert status == 0 and document["replay"] == "ordercast sim --hostile --networks --seed 3"
