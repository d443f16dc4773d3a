"""`ordercast topology`: what a daemon says of its network, in a table and in sentences, and networks on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ordercast.cli.main import run
from ordercast.cli.sites import explained as explained_sites
from ordercast.cli.topology_text import explained
from ordercast.model.ids import SECOND

THREE_RINGS = Path(__file__).parents[3] / "docs" / "examples" / "three-rings.toml"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def _part(name: str, members: str, front: int, undelivered: int = 0, awaited: str = "") -> dict[str, Any]:
    gateways = [member for member in members.split() if member.startswith("g")]
    values = {"members": members.split(), "gateways": gateways, "front": front, "undelivered": undelivered}
    return {"name": name, "domain": 1, "id": f"1024.{name}", "is_own": False, "awaited": awaited.split(), **values}


def _section(**changes: Any) -> dict[str, Any]:
    token = {"visits": 9, "rotation_ns": 1, "last_visit_ns": 1, "window": 1, "visit_max": 1, "limited_visits": 0}
    own = {"ring": "office", "state": "Operational", "is_ready": True, "members": 3, "queue_size": 0, "token": token}
    return {
        "place": 90,
        "parts": [_part("office", "ann g1", 97, 4), _part("lab", "g1 bob", 93)],
        "attachments": [own],
        "attached": {"ann": ["office"], "g1": ["office", "lab"], "bob": ["lab"]},
        "silent": [],
        "merges": [],
        "holds": [],
        "waiting": None,
        "undelivered": 4,
        "filtered": 0,
        **changes,
    }


def _wait(seconds: float, rings: str = "", processes: str = "", what: str = "a message") -> dict[str, Any]:
    lasted = {"what": what, "ring": "office", "sender": "ann", "tick": 95, "for_ns": int(seconds * SECOND)}
    return {**lasted, "rings": rings.split(), "processes": processes.split()}


def _file(folder: Path, section: dict[str, Any]) -> str:
    status = {"at": "2026-01-01T00:00:00Z", "me": {"name": "ann"}, "engine": "gateways", "gateways": section}
    path = folder / "status.json"
    path.write_text(json.dumps(status | {"configuration": {"is_ready": True}}))
    return str(path)


def test_the_table_has_every_ring_and_who_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topology", _file(tmp_path, _section(waiting=_wait(3, rings="lab")))]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "2 rings, 3 members, 1 gateway, as ann sees them" in lines
    assert "office ann g1 g1* 97 +7 4 0 lab" in lines
    assert "lab g1 bob g1* 93 +3 0 (all wait for it)" in lines
    assert "4 packets wait here: a message of ann on office has waited 3.0 s for lab" in lines
    assert "* the only way to other rings: g1" in lines


def test_its_json_can_be_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, _section())
    assert run(["topology", file, "--json"]) == 0
    text = capsys.readouterr().out
    Path(file).write_text(text)
    assert run(["topology", "show", file, "--json"]) == 0 and capsys.readouterr().out == text
    assert run(["topology", "explain", file, "--json"]) == 0
    assert "Nothing waits" in json.loads(capsys.readouterr().out)["sentences"][0]


def test_a_node_of_another_engine_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "status.json"
    path.write_text(json.dumps({"engine": "ring", "configuration": {}}))
    assert run(["topology", str(path)]) == 2
    assert "which has no network of rings: see `ordercast status`" in " ".join(capsys.readouterr().err.split())
    path.write_text("[]")
    assert run(["topology", str(path)]) == 2


def test_explain_says_what_waits_and_where_to_look() -> None:
    first, second, *_ = explained(_section(waiting=_wait(3, rings="lab")))
    assert first == "A message of ann on office has waited 3.0 s for lab: it may still bring something before tick 95."
    assert second.startswith("How far lab is, tick 93, is told by g1: see that they run")
    (flows, *_) = explained(_section(waiting=_wait(0.02, rings="lab")))
    assert flows.startswith("Messages flow: a message of ann on office has waited 20 ms for lab")
    (safe, *_) = explained(_section(waiting=_wait(2, processes="bob", what="a safe message")))
    assert "bob: it is not known that they have the message" in safe
    (birth, *_) = explained(_section(waiting=_wait(2, processes="g1", what="the birth of a ring")))
    assert "they have not said whether they went along" in birth
    (disk, *_) = explained(_section(waiting=_wait(2) | {"for_disk": True}))
    assert "has waited 2.0 s for the disk of this node: the number at which its next life begins" in disk
    (turn, *_) = explained(_section(waiting=_wait(2)))
    assert "has waited 2.0 s for its turn." in turn
    (nowhere,) = explained(_section(parts=[]))
    assert "in no network yet" in nowhere


def test_explain_names_holders_changes_and_what_stands_alone() -> None:
    hold = {"process": "bob", "number": 1, "reason": "the application is behind", "for_ns": 2 * SECOND}
    merge = {"ring": "lab", "members": ["g1", "bob"], "unmarked": [], "unspoken": ["g1"]}
    parts = [_part("office", "ann g1", 97), _part("lab", "g1 bob", 93, awaited="g1")]
    text = " ".join(explained(_section(holds=[hold], merges=[merge], parts=parts, silent=["bob"])))
    assert "bob has asked everybody to stop sending for 2.0 s: the application is behind." in text
    assert "On lab rings of different pasts become one (g1 and bob); g1 has not said how its side looks." in text
    assert "lab has formed anew, and what its old ring 1024.lab last ordered waits for the word of g1." in text
    assert "bob cannot be heard any more" in text
    assert "g1 alone joins office and lab: without it the network is in two; start a second gateway there." in text
    both = {"ann": ["office"], "g1": ["office", "lab"], "g2": ["office", "lab"]}
    assert "alone" not in " ".join(explained(_section(attached=both)))


def test_who_is_missing_is_said_with_since_when_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = {"place": "lab", "nodes": ["bob", "g1"], "for_ns": 4 * SECOND, "why": "a ring was cut off from the network"}
    never = {"place": "", "nodes": ["eve"], "for_ns": None, "why": None}
    section = _section(missing=[cut, never])
    told = (
        "lab is not in the view, with bob and g1, for 4.0 s now (a ring was cut off from the network): "
        "see whether they run and can be reached.",
        "eve is not in the view, and has not been since this node started: see whether it runs and can be reached.",
    )
    assert tuple(explained(section)[1:3]) == told
    assert run(["topology", _file(tmp_path, section)]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert all(f"! {sentence}" in page for sentence in told)


def test_a_site_that_is_missing_is_named_at_any_node_of_the_others() -> None:
    missing = [{"place": "west", "nodes": ["n3"], "for_ns": 4 * SECOND, "why": "a site is out of reach"}]
    east = {"name": "east", "is_behind": False}
    section: dict[str, Any] = {
        "attempt": None,
        "waiting": None,
        "sites": [east],
        "failed": {},
        "links": [],
        "missing": missing,
    }
    lines = list(explained_sites({**section, "is_representative": False, "representative": "n1", "site": "east"}))
    assert lines[1].startswith("west is not in the view, with n3, for 4.0 s now (a site is out of reach): see")


def test_a_plan_judges_a_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topology", "plan", "office-lab", "lab-store", "--rotation", "2ms"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "3 rings, 2 gateways, in one piece" in out and "latency: 20 ms for an own message of office" in out
    assert "in pieces without gateway office-lab, gateway lab-store or ring lab" in out
    assert "! add a gateway between office and store" in out
    assert run(["topology", "plan", "--rings", "16", "--gateways", "4", "--seeds", "1..5", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert len(plan["gateways"]) == 32 and plan["mean_height"] == 3 and plan["vital_gateways"] == []
    assert plan["losses_until_parted"]["least"] >= 4 and plan["latency_ns"]["r0"] == 14_000_000


def test_a_plan_of_a_cluster_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topology", "plan", "--config", str(THREE_RINGS), "--seeds", "1..2", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert len(plan["rings"]) == 3 and plan["pieces"] == [plan["rings"]]
    one_ring = tmp_path / "one.toml"
    one_ring.write_text('cluster = "plant"\n[nodes.n1]\nid = 1\naddress = "10.0.0.1"\n')
    assert run(["topology", "plan", "--config", str(one_ring)]) == 2


def test_a_plan_of_sites_is_refused_with_what_to_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topology", "plan", "--config", str(THREE_RINGS.with_name("three-sites.toml"))]) == 2
    refused = " ".join(capsys.readouterr().err.split())
    assert (
        "which links join and not gateways: see `ordercast config check" in refused and "`ordercast sites`" in refused
    )


def test_a_plan_that_cannot_be_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["a-b", "--rings", "3"], ["a"], ["a-a"], ["--rings", "9", "--gateways", "1"]):
        assert run(["topology", "plan", *words]) == 2
    assert run(["topology", "plan", "a-b", "--seeds", "1..2"]) == 0
    one = " ".join(capsys.readouterr().out.split())
    assert "2 rings, 1 gateway, in one piece" in one and "ways: 1 hop to" in one and "of 1 gateway on" in one
    assert run(["topology", "plan", "a-b", "c-d", "--seeds", "1..2"]) == 0
    assert "join the pieces a+b and c+d" in capsys.readouterr().out
