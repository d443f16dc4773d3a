"""What is not needed is not imported: so commands come at once, and the base runs on the standard library alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.cli.commands import NAMES
from ordercast.model.extras import EXTRAS
from tests.ports import free_ports

UNNEEDED = (
    "ordercast.sim",
    "ordercast.checker",
    *(f"ordercast.order.{e}.node" for e in ("gateways", "sites", "adaptive", "tree")),
)
SLOW = ("asyncio", "rich", "pyarrow", "numpy", "pandas", "pyspark", "typer", "click", "pydantic", "argparse", "logging")
ENGINES = ("ordercast.order.catalogue", "ordercast.sim", "ordercast.checker", "ordercast.daemon.run")
# A program in an environment that has Ordercast and nothing else.
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({(*EXTRAS, 'typer', 'click', 'pydantic')!r}))\n"


def ran(code: str, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done


def loaded(code: str, *arguments: str) -> set[str]:
    """Return the modules that are there when a program has ended."""
    text = ran(f"import sys\n{code}\nprint('\\n' + ' '.join(sys.modules))", *arguments).stdout
    return set(text.splitlines()[-1].split())


def command(words: str) -> str:
    return f"from ordercast.cli.main import run\nrun({words.split()!r})"


def test_a_daemon_starts_without_the_simulator_and_before_any_engine_is_chosen() -> None:
    assert loaded("import ordercast.cli.daemon") & set(UNNEEDED) == set()


def test_the_front_door_opens_without_anything_behind_it() -> None:
    there = loaded("import ordercast; ordercast.__version__, dir(ordercast)")
    assert {name for name in there if name.startswith("ordercast.")} == set()
    assert there & set(SLOW) == set()


def test_the_version_needs_nothing_but_the_name_of_the_kernel() -> None:
    there = loaded(command("--version"))
    found = {name.removeprefix("ordercast.") for name in there if name.startswith("ordercast.")}
    assert found == {"cli", "cli.main", "model", "model.errors", "model.kernel"}
    assert there & {*SLOW, "json", "re", "pathlib", "dataclasses"} <= {"re"}  # `re`: of the script that pip makes


@pytest.mark.parametrize("words", ["--help", *(f"{name} --help" for name in ("sim", "archive", "daemon", "check"))])
def test_help_needs_declarations_alone(words: str) -> None:
    assert loaded(command(words)) & {*SLOW, *ENGINES} == set()


def test_status_needs_no_engine() -> None:
    assert loaded("import ordercast.cli.status") & {*ENGINES, "asyncio", "pyarrow"} == set()


# Without any extra


def test_help_of_every_command_and_man_pages_need_no_extra(tmp_path: Path) -> None:
    code = (
        f"{WITHOUT}from ordercast.cli.main import run\nfor name in {NAMES!r}: assert run([name, '--help']) == 0\n"
        "assert run(['man', '--out', sys.argv[1]]) == 0"
    )
    ran(code, str(tmp_path / "man1"))
    assert len(list((tmp_path / "man1").iterdir())) == len(NAMES) + 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("check nowhere", "`ordercast check` needs rich: install it with `pip install 'ordercast[cli]'`."),
        ("groups", "`ordercast groups` needs rich: install it with `pip install 'ordercast[cli]'`."),
    ],
)
def test_a_command_whose_extra_is_missing_says_so(words: str, sentence: str) -> None:
    code = f"{WITHOUT}from ordercast.cli.main import run\nsys.exit(run({words.split()!r}))"
    assert ran(code, status=2).stderr == f"ordercast: {sentence}\n"


def test_a_trace_whose_extra_is_missing_says_so() -> None:
    code = WITHOUT.replace("'rich', ", "") + "from ordercast.cli.main import run\nsys.exit(run(['check', 'nowhere']))"
    said = ran(code, status=2).stderr
    assert said == "ordercast: `ordercast check` needs pyarrow: install it with `pip install 'ordercast[trace]'`.\n"


BASE = """
import asyncio
from pathlib import Path
import ordercast
import ordercast.daemon.run
from ordercast.cli.main import run
from ordercast.daemon.config.node import NetworkConfig, NodeConfig, TraceConfig, TraceLevel
from ordercast.replicated import Dictionary, Majority, Replica

async def main(port, folder):
    network = NetworkConfig(port=port)
    async with ordercast.Node(NodeConfig(network=network)) as node:
        async with Replica(node, "state", Dictionary(), quorum=Majority({node.name: 1})) as replica:
            await replica.ready()
            await replica.set("colour", "blue")
            print(replica.get("colour"))
    trace = TraceConfig(TraceLevel.CONTROL, folder)
    try:
        async with ordercast.Node(NodeConfig(network=network, trace=trace)):
            pass
    except ordercast.UsageError as error:
        print(error)

asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
sys.exit(run(["daemon", "--engine", "star"]))
"""


def test_nodes_and_replicas_run_without_any_extra(tmp_path: Path) -> None:
    done = ran(WITHOUT + BASE, str(free_ports()), str(tmp_path / "traces"), status=2)
    assert done.stdout.splitlines() == [
        "blue",
        "a trace needs numpy: install it with `pip install 'ordercast[trace]'`",
    ]
    assert "daemons can run: ring" in done.stderr
