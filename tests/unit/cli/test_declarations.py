"""How commands are declared, and what becomes of a declaration: values, sentences, help, completion, manual pages."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from ordercast.cli.commands import NAMES, declared
from ordercast.cli.commands.graph import BUILDER_NAMES
from ordercast.cli.commands.options import TOPOLOGIES
from ordercast.cli.completion import SCRIPTS, next_words
from ordercast.cli.declare import Argument, Command, Declared, Given, Group, Option, command
from ordercast.cli.help_page import help_page
from ordercast.cli.main import run
from ordercast.cli.man_page import man_page
from ordercast.cli.man_pages import write_pages
from ordercast.cli.words import HelpWanted, WordsError, values_from
from ordercast.order.tree.builders import BUILDERS
from ordercast.sim.ring_topologies import RingTopology


@command(example="ordercast greet alice")
def greet(
    name: Annotated[str, Argument("NAME", "Whom.")],
    others: Annotated[list[str] | None, Argument("OTHER", "And whom else.")] = None,
    count: Annotated[int, Option("--count", "-n", min=1, max=9, metavar="N", help="How often.")] = 1,
    loud: Annotated[bool, Option("--loud/--soft", help="So that all hear it.")] = False,
    tone: Annotated[Literal["warm", "cool"] | None, Option(help="How.")] = None,
    word: Annotated[list[str] | None, Option(metavar="WORD", help="Also these; repeat.")] = None,
    place: Annotated[Path | None, Option(env="GREET_PLACE", help="Where.")] = None,
    given: Given = Given(),  # noqa: B008 - it is empty, and nobody changes it
) -> int:
    """Say a friendly word. To one or to many.

    Nobody is left out.
    """
    return 0


USUAL = {"others": None, "count": 1, "loud": False, "tone": None, "word": None, "place": None}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("alice", {}),
        ("alice bob carol", {"others": ["bob", "carol"]}),
        ("alice --count 3 bob", {"count": 3, "others": ["bob"]}),
        ("-n3 alice", {"count": 3}),
        ("-n 3 alice", {"count": 3}),
        ("--count=3 alice", {"count": 3}),
        ("alice --count 2 --count 4", {"count": 4}),
        ("alice --loud", {"loud": True}),
        ("alice --loud --soft", {"loud": False}),
        ("alice --tone warm --word a --word -1", {"tone": "warm", "word": ["a", "-1"]}),
        ("alice -- --loud -5", {"others": ["--loud", "-5"]}),
        ("alice -5 -", {"others": ["-5", "-"]}),
        ("alice --place x/y", {"place": Path("x/y")}),
    ],
)
def test_words_become_values(words: str, values: dict[str, Any]) -> None:
    read = values_from(greet, words.split(), {})
    given = read.pop("given")
    assert read == {"name": "alice", **USUAL, **values}
    assert given == {"name", *values}


def test_a_variable_of_the_environment_counts_where_no_word_says_otherwise() -> None:
    there = {"GREET_PLACE": "there"}
    read = values_from(greet, ["alice"], there)
    assert read["place"] == Path("there") and "place" not in read["given"]
    assert values_from(greet, ["alice", "--place", "here"], there)["place"] == Path("here")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "`ordercast greet` needs NAME: Whom"),
        ("alice --cuont 3", "No such option: --cuont; perhaps --count was meant"),
        ("alice -x", "No such option: -x"),
        ("alice --count many", "--count 'many' cannot be used: write a whole number"),
        ("alice --count 0", "--count 0 cannot be used: write a number within 1..9"),
        ("alice --count", "--count needs a value: write --count N"),
        ("alice --count --loud", "--count needs a value: write --count N"),
        ("alice --loud=yes", "--loud is a flag, and takes no value: leave out '=yes'"),
        ("alice --tone hot", "--tone 'hot' cannot be used: choose warm, cool"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(words: str, sentence: str) -> None:
    with pytest.raises(WordsError) as caught:
        values_from(greet, words.split(), {})
    assert str(caught.value) == sentence


def test_a_word_too_many_is_said() -> None:
    with pytest.raises(WordsError, match=r"'x' is one word too many: `ordercast engines` takes options alone"):
        values_from(_commands()["ordercast engines"], ["x"], {})


def test_help_is_wanted_wherever_it_is_asked_for() -> None:
    for words in (["--help"], ["alice", "-h"], ["--loud", "--help"]):
        with pytest.raises(HelpWanted):
            values_from(greet, words, {})


def test_a_page_tells_all_that_is_declared() -> None:
    page = help_page(greet, 80)
    assert page.splitlines()[0] == "Usage: ordercast greet [OPTIONS] NAME [OTHER…]"
    for line in (
        "  -n, --count N    How often. [a number within 1..9; default: 1]",
        "  --loud, --soft   So that all hear it. [default: --soft]",
        "  --tone warm|cool  How.",
        "Nobody is left out.",
    ):
        assert line.split() in [shown.split() for shown in page.splitlines()], line
    assert greet.summary == "Say a friendly word."
    assert all(len(line) <= 60 for line in help_page(greet, 60).splitlines())
    assert "\x1b[1mOptions\x1b[0m" in help_page(greet, 80, bold=True)


# All commands


def _all() -> Iterator[Declared]:
    for name in NAMES:
        yield declared(name)
        found = declared(name)
        if isinstance(found, Group):
            yield from found.commands.values()


def _commands() -> dict[str, Command]:
    return {one.path: one for one in _all() if isinstance(one, Command)}


def test_every_command_has_a_summary_an_example_and_help_for_all_it_takes() -> None:
    for one in _all():
        assert one.summary.endswith(".") and one.description, one.path
        assert one.example.startswith("ordercast "), one.path
        if isinstance(one, Command):
            assert [option.name for option in one.options if not option.of.help] == [], one.path


def test_every_declaration_is_answered_by_what_does_the_work() -> None:
    """A parameter that is declared and not handed on, or the other way round, would be found only when it is used."""
    for path, one in _commands().items():
        source = inspect.getsource(one.work)
        handed = re.search(r"return work\.\w+\((.*?)\)\n", source, re.DOTALL)
        if handed is not None:
            names = [word.split("=")[-1].strip() for word in handed[1].split(",") if word.strip()]
            expected = [*([one.given] if one.given else []), *(parameter.name for parameter in one.parameters)]
            assert sorted(names) == sorted(expected), path


def test_what_declarations_list_is_what_there_is() -> None:
    assert tuple(one.value for one in RingTopology) == TOPOLOGIES
    assert tuple(BUILDERS) == BUILDER_NAMES


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", list(NAMES)),
        ("sta", ["status"]),
        ("archive re", ["read"]),
        ("archive read orders --fr", ["--from"]),
        ("archive orders --keep", ["--keep-size", "--keep-time"]),
        ("daemon --log ", ["text", "json"]),
        ("daemon --trace-level f", ["full"]),
        ("completion show z", ["zsh"]),
        ("sim --acc", ["--accelerated"]),
        ("nonsense --a", []),
    ],
)
def test_a_shell_is_told_what_may_stand_next(
    line: str, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = line.split(" ")
    assert run(["completion", "next", "--", *words]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[: len(expected)] == expected and (not expected or line == "" or len(shown) == len(expected))
    assert next_words(words) == shown


def test_a_shell_takes_the_lines_that_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "bash"]) == 0
    assert capsys.readouterr().out == SCRIPTS["bash"]
    if shutil.which("bash"):
        subprocess.run(["bash", "-n"], input=SCRIPTS["bash"], text=True, check=True)


def test_manual_pages_have_the_text_of_the_help(tmp_path: Path) -> None:
    assert write_pages(tmp_path) == len(NAMES) + 1 == len(list(tmp_path.glob("*.1")))
    page = man_page(greet, "1.0").replace("\\-", "-")
    for text in (".TH ORDERCAST-GREET 1", "Nobody is left out.", "-n, --count N", "How often. [a number within 1..9;"):
        assert text in page
    groff = shutil.which("groff")
    for file in tmp_path.glob("*.1"):
        if groff:
            done = subprocess.run(
                [groff, "-Kutf8", "-man", "-Tutf8", "-ww", "-z", str(file)], capture_output=True, text=True
            )
            assert done.stderr == "", file.name
