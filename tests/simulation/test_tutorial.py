"""The pages that show simulated runs show them as they are: the same seed is the same run, for a reader too."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from ordercast.cli.main import run

DOCS = Path(__file__).parents[2] / "docs"
TIMES = re.compile(r" in [\d.]+ s|[\d,]+/s|[\d,]+ inputs per second per core on \d+ cores?|·\s+[\d.]+ s$|─")


def masked(line: str) -> str:
    """Without what hangs on the machine, and as narrow as it goes."""
    return re.sub(r"\s+", " ", TIMES.sub("", line)).strip()


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [block for each, block in found if each == language]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def test_the_first_simulation_is_as_the_page_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = [block for block in blocks("tutorial/first-simulation.md", "console") if block.startswith("$ ordercast ")]
    assert len(shown) == 5
    for block in shown:
        command, *lines = block.splitlines()
        words = shlex.split(command)[2:]
        assert run([*words, "--processes", "1"] if words[0] == "swarm" else words) == 0
        printed = set(map(masked, capsys.readouterr().out.splitlines()))
        assert not [line for line in lines if line.strip() != "…" and masked(line) not in printed], command


def test_the_columns_of_a_trace_are_as_the_guide_tells_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = "guides/read-a-trace.md"
    (program,) = (block for block in blocks(page, "python") if block.startswith("# read.py"))
    command = next(line for block in blocks(page, "console") for line in block.splitlines() if "sim --seed" in line)
    assert run(shlex.split(command)[2:]) == 0
    (tmp_path / "read.py").write_text(program, encoding="utf-8")
    capsys.readouterr()
    runpy.run_path("read.py")
    printed = capsys.readouterr().out.splitlines()
    (told,) = (block for block in blocks(page, "") if " deliveries  mean " in block)
    assert printed[: len(told.splitlines()) - 1] == told.splitlines()[:-1]
