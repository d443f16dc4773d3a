"""What the documentation says of the code is so: moves, settings, paths, links, and the output of commands."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from importlib import import_module
from pathlib import Path

import pytest

from ordercast.cli.main import run
from ordercast.model.ids import MICROSECOND, MILLISECOND
from ordercast.order.adaptive.config import AdaptiveConfig
from ordercast.order.baselines.config import BaselineConfig
from ordercast.order.membership.states.base import State
from ordercast.order.membership.states.moves import MOVES, STATES
from ordercast.order.ring.config import RING_RELEVANT, RingConfig
from ordercast.sim.options import SIM_RING, SimOptions
from ordercast.wire.header import MessageKind

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "ordercast"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
MIB = 1 << 20
WORDY = ("services", "networks", "sites", "tree")  # defaults that the page gives in words


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _section(page: Path, heading: str) -> str:
    _, found, rest = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    assert found, f"{_name(page)} has no section {heading}"
    return rest.partition("\n## ")[0]


def _rows(text: str) -> list[list[str]]:
    """The cells of all table rows, heads and rules left out."""
    lines = text.splitlines()
    heads = [at - 1 for at, line in enumerate(lines) if re.fullmatch(r"\|(\s*:?-+:?\s*\|)+", line)]
    rows = [line for at, line in enumerate(lines) if line.startswith("|") and at not in heads and at - 1 not in heads]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]


def _outside_code(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


# States


def test_the_moves_on_the_page_are_the_legal_ones() -> None:
    rows = _rows(_section(DOCS / "internals" / "states.md", "Moves"))
    assert {(row[1], row[2]) for row in rows} == MOVES
    assert len(rows) == len(MOVES)


def test_the_diagram_shows_each_move_once_and_every_state() -> None:
    section = _section(DOCS / "internals" / "states.md", "Moves")
    diagram = section.split("```")[1]
    assert sorted(re.findall(r"\d+", diagram)) == sorted(row[0] for row in _rows(section))
    assert sorted(re.findall(r"[A-Z][a-z]+", diagram)) == sorted(STATES)


@pytest.mark.parametrize("state", STATES)
def test_every_pair_of_state_and_input_has_its_row_and_every_move_is_named_there(state: str) -> None:
    rows = _rows(_section(DOCS / "internals" / "states.md", state))
    handlers = {name for name in State.__abstractmethods__ if name.startswith("on_")}
    assert sorted(row[0].strip("`") for row in rows) == sorted(handlers)
    targets = {target for row in rows for target in re.findall(r"→ (\w+)", row[1])}
    assert targets == {target for origin, target in MOVES if origin == state}


# Settings


def _shown(name: str, value: object) -> str:
    """A default as the page writes it."""
    if isinstance(value, RingConfig):
        return "`SIM_RING`"
    if isinstance(value, AdaptiveConfig):
        return "`SIM_ADAPTIVE`"
    if isinstance(value, BaselineConfig):
        return "`SIM_BASELINE`"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool | tuple):
        return f"`{value!r}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, int) and value and name.endswith("_ns"):
        return f"{value // MILLISECOND} ms" if value % MILLISECOND == 0 else f"{value // MICROSECOND} µs"
    if isinstance(value, int) and value and value % MIB == 0:
        return f"{value // MIB} MiB"
    return str(value)


def test_every_setting_of_a_ring_is_on_the_page_with_its_defaults() -> None:
    usual = RingConfig()
    expected = []
    for field in fields(RingConfig):
        value, simulated = getattr(usual, field.name), getattr(SIM_RING, field.name)
        different = "" if value == simulated else _shown(field.name, simulated)
        agree = "✓" if field.name in RING_RELEVANT else ""
        expected.append([f"`{field.name}`", _shown(field.name, value), different, agree])
    rows = [row for row in _rows(_section(DOCS / "reference" / "configuration.md", "RingConfig")) if len(row) == 5]
    assert [row[:4] for row in rows] == expected
    assert all(row[4] for row in rows)


def test_every_option_of_a_simulation_is_on_the_page_with_its_default() -> None:
    defaults = SimOptions()
    shown = {
        row[0].strip("`"): row[1] for row in _rows(_section(DOCS / "reference" / "configuration.md", "SimOptions"))
    }
    assert list(shown) == [field.name for field in fields(SimOptions)]
    for field in fields(SimOptions):
        if field.name not in WORDY:
            assert shown[field.name] == _shown(field.name, getattr(defaults, field.name)), field.name


def test_the_sizes_in_the_guide_follow_from_the_defaults() -> None:
    usual = RingConfig()
    guide = (DOCS / "guides" / "size-a-ring.md").read_text(encoding="utf-8")
    assert f"{usual.whole_size_max:,} bytes" in guide
    assert f"{usual.backlog_max * usual.packet_size_max / 1e6:.1f} MB" in guide
    assert f"{(usual.window + usual.visit_max) * usual.packet_size_max / 1e3:.0f} kB" in guide


def test_every_kind_of_message_is_in_the_wire_format() -> None:
    text = (DOCS / "reference" / "wire-format.md").read_text(encoding="utf-8").lower()
    for kind in MessageKind:
        assert re.search(rf"^\| {kind.value} \| {kind.name.lower()}", text, flags=re.MULTILINE), kind.name


# Links


def _anchors(page: Path) -> set[str]:
    """The names that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.+)$", _outside_code(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    text = _outside_code(page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{_name(page)}: {link}"
        if anchor:
            assert anchor in _anchors(target), f"{_name(page)}: {link}"


# Code that is named


def _defined(file: Path) -> set[str]:
    """Qualified names of everything defined in a module: functions, classes, methods, fields and constants."""

    def walk(body: list[ast.stmt], prefix: str) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name
            elif isinstance(node, ast.ClassDef):
                yield prefix + node.name
                yield from walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))

    return set(walk(ast.parse(file.read_text(encoding="utf-8")).body, ""))


def _named_twice(text: str) -> list[tuple[str, str]]:
    """Every `file.py` that is followed directly by a `qualified.name`, in a row of a table or on a line."""
    return re.findall(r"`([\w/]+\.py)`[\s|]*`([A-Za-z_][\w.]*)(?:\(\))?`", _outside_code(text))


def _problems(text: str) -> Iterator[str]:
    """Such pairs that the code does not have."""
    for path, name in _named_twice(text):
        file = SOURCE / path.removeprefix("src/ordercast/")
        if not file.exists():
            yield f"there is no {path}"
        elif not name.endswith(".py") and name not in _defined(file):
            yield f"{path} does not define {name}"


def test_every_stop_in_the_life_of_a_message_exists() -> None:
    text = (DOCS / "internals" / "life-of-a-message.md").read_text(encoding="utf-8")
    assert len(_named_twice(text)) >= 10
    assert list(_problems(text)) == []


def test_no_name_in_the_life_of_a_message_means_two_things() -> None:
    text = (DOCS / "internals" / "life-of-a-message.md").read_text(encoding="utf-8")
    homes: dict[str, list[Path]] = {name.partition(".")[0]: [] for _, name in _named_twice(text)}
    for file in SOURCE.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in homes:
                homes[node.name].append(file)
    assert {name: files for name, files in homes.items() if len(files) != 1} == {}


def _is_there(name: str) -> bool:
    """Whether a name below `order/gateways/`, or one with its path, is in the code: module, class, attribute."""
    path, *names = name.split(".")
    module = import_module("ordercast." + (path if "/" in path else f"order/gateways/{path}").replace("/", "."))
    found = getattr(module, names[0], None)
    if found is None or len(names) == 1:
        return found is not None
    sources = (
        inspect.getsource(each) for each in inspect.getmro(found)[:-1] if each.__module__.startswith("ordercast")
    )
    return any(re.search(rf"\bself\.{names[1]}\b|^    (?:def )?{names[1]}\b", text, re.MULTILINE) for text in sources)


def test_every_structure_of_the_paper_is_where_the_page_of_gateways_says() -> None:
    rows = _rows(_section(DOCS / "internals" / "gateways.md", "The paper's structures"))
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row[1])]
    assert len(names) > 30
    assert [name for name in names if not _is_there(name)] == []
    assert not _is_there("streams.RingStream.back") and not _is_there("streams.Back")


def test_a_stop_that_does_not_exist_is_found() -> None:
    right = "- `order/ring/node.py` `RingNode.receive`\n| down | `model/effects.py` | `Deliver.parcels` |\n"
    assert list(_problems(right)) == []
    assert list(_problems("1. `order/ring/node.py` `RingNode.swallow`")) == [
        "order/ring/node.py does not define RingNode.swallow"
    ]
    assert "there is no order/nowhere.py" in list(_problems("- `order/nowhere.py` `anything`"))


FILES = tuple(
    f"/{path.relative_to(ROOT)}"
    for part in ("src", "tests", "bench", "rig", "docs", "examples")
    for path in (ROOT / part).rglob("*.py")
)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_module_that_a_page_names_exists(page: Path) -> None:
    """By the end of its path: `states/moves.py` is enough where the page has said which folder it speaks of."""
    text = _outside_code(page.read_text(encoding="utf-8"))
    for path in re.findall(r"`([\w./]*\w+\.py)`", text):
        assert any(file.endswith(f"/{path}") for file in FILES), f"{_name(page)}: {path}"


# Commands that are shown


def _examples() -> Iterator[tuple[str, str, list[str]]]:
    """Page, command and the lines shown below it, of every `sim` and `check` in a console block with output."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        for block in re.findall(r"^ *```console\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE):
            for example in re.split(r"^ *\$ ", block, flags=re.MULTILINE)[1:]:
                command, *lines = example.splitlines()
                shown = [line for line in lines if line.strip() and line.strip() != "…"]
                if shown and re.match(r"ordercast (sim|check) ", command):
                    yield _name(page), command, shown


EXAMPLES = list(_examples())


def _masked(line: str) -> str:
    """Without numbers and layout: those change with every change of the protocol, what happens should not."""
    line = re.sub(r"^(digest +)[0-9a-f]+$", r"\1#", line.strip())
    return re.sub(r"\s+", " ", re.sub(r"[\d.,]*\d", "#", line))


@pytest.mark.parametrize(
    ("page", "command", "shown"), EXAMPLES, ids=[f"{page}: {command}"[:100] for page, command, _ in EXAMPLES]
)
def test_what_a_page_shows_of_a_command_is_what_it_prints(
    page: str,
    command: str,
    shown: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this order, perhaps with other lines between. Paste the real output when this fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    words = shlex.split(command)[1:]
    if words[0] == "check":
        assert run(["sim", "--fault", "0.3s crash n1", "--trace", words[1]]) == 0
        capsys.readouterr()
    assert run(words) == 0
    printed = iter([_masked(line) for line in capsys.readouterr().out.splitlines()])
    for line in shown:
        assert _masked(line) in printed, f"{page}: {command}\ndoes not print, after the lines above it:\n{line}"
