"""How a command is declared: once, as a function whose annotations say what it takes from the command line.

    @command(example="ordercast greet alice --loud")
    def greet(
        name: Annotated[str, Argument("NAME", "Whom.")],
        loud: Annotated[bool, Option("--loud", help="So that all hear it.")] = False,
    ) -> int:
        \"\"\"Say a friendly word.\"\"\"
        from ordercast.cli import greet as work

        return work.greet(name, loud)

The docstring is the help: its first sentence in lists, all of it on the command's page. Declarations need the standard
library alone, and import what does the work when it is done: so help, completion and man pages come at once, and also
where an extra is missing. `words` reads a command line after a declaration, `help_page`, `man_page` and `completion`
show it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

Work = Callable[..., int]
REQUIRED = inspect.Parameter.empty


class Given(frozenset[str]):
    """The names of parameters that were on the command line: handed to a parameter of this type."""


class Argument:
    """A word that has its meaning from its place."""

    def __init__(self, metavar: str, help: str = "", *, min: int | None = None) -> None:
        self.metavar, self.help, self.min = metavar, help, min


class Option:
    """A word that begins with dashes. `--on/--off` is a pair of flags; without names it is called as its parameter."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str = "",
        min: float | None = None,
        max: float | None = None,
        env: str = "",
        show_default: bool = True,
    ) -> None:
        self.names, self.help, self.metavar = names, help, metavar
        self.min, self.max, self.env, self.show_default = min, max, env, show_default


@dataclass(frozen=True)
class Parameter:
    """What a command takes: an argument or an option, as its declaration says."""

    name: str
    of: Argument | Option
    type: type  # of one word
    choices: tuple[str, ...]
    is_list: bool
    default: Any  # REQUIRED if there is none
    names: tuple[str, ...] = ()  # of an option
    off: str = ""  # the flag that takes a flag back

    @property
    def is_flag(self) -> bool:
        return self.type is bool

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @property
    def title(self) -> str:
        """What it is called in sentences."""
        return self.of.metavar if isinstance(self.of, Argument) else self.names[0]

    @property
    def metavar(self) -> str:
        """What stands for its word in help; empty for a flag."""
        if self.is_flag:
            return ""
        return self.of.metavar or "|".join(self.choices) or {int: "N", float: "N", Path: "PATH"}.get(self.type, "TEXT")


@dataclass
class Command:
    """One command: what it takes, what its help says, and what does it."""

    name: str
    work: Work
    description: str
    example: str
    parameters: tuple[Parameter, ...] = ()
    given: str = ""  # the parameter that is told what was given
    path: str = ""  # with the names of the commands above it

    @property
    def summary(self) -> str:
        return first_sentence(self.description)

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        return tuple(one for one in self.parameters if isinstance(one.of, Argument))

    @property
    def options(self) -> tuple[Parameter, ...]:
        return tuple(one for one in self.parameters if isinstance(one.of, Option))


@dataclass
class Group:
    """A command with commands below it. What names none of them is meant for `short`; with `bare` also nothing."""

    name: str
    description: str
    example: str
    short: str = ""
    bare: bool = False
    commands: dict[str, Command] = field(default_factory=dict)
    path: str = ""

    def __post_init__(self) -> None:
        self.description = inspect.cleandoc(self.description)
        self.path = f"ordercast {self.name}"

    @property
    def summary(self) -> str:
        return first_sentence(self.description)

    def command(self, name: str = "", *, example: str) -> Callable[[Work], Command]:
        """Declare a command below this one."""

        def declared(work: Work) -> Command:
            made = _command(work, name, example, above=self.path)
            self.commands[made.name] = made
            return made

        return declared


Declared = Command | Group


def command(name: str = "", *, example: str) -> Callable[[Work], Command]:
    """Declare a command; it is called as its function unless a name is given."""
    return lambda work: _command(work, name, example, above="ordercast")


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, on one line."""
    return re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()), maxsplit=1)[0]


def _command(work: Work, name: str, example: str, above: str) -> Command:
    name = name or work.__name__.replace("_", "-")
    made = Command(name, work, inspect.cleandoc(work.__doc__ or ""), example, path=f"{above} {name}")
    hints = get_type_hints(work, include_extras=True)
    parameters = []
    for parameter in inspect.signature(work).parameters.values():
        hint = hints[parameter.name]
        if hint is Given:
            made.given = parameter.name
        else:
            parameters.append(_parameter(parameter.name, hint, parameter.default))
    made.parameters = tuple(parameters)
    return made


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    assert get_origin(hint) is Annotated, f"{name} does not say what it is on the command line"
    annotated, of = get_args(hint)
    plain, is_list = _word_type(annotated)
    choices: tuple[str, ...] = ()
    if get_origin(plain) is Literal:
        choices, plain = get_args(plain), str
    elif isinstance(plain, type) and issubclass(plain, Enum):
        choices = tuple(one.value for one in plain)
    names: tuple[str, ...] = ()
    off = ""
    if isinstance(of, Option):
        names = of.names or (f"--{name.replace('_', '-')}",)
        first, _, off = names[0].partition("/")
        names = (first, *names[1:])
    return Parameter(name, of, plain, choices, is_list, default, names, off)


def _word_type(hint: Any) -> tuple[Any, bool]:
    """Return the type of one word, and whether there may be several."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (one for one in get_args(hint) if one is not NoneType)
    if get_origin(hint) is list:
        return get_args(hint)[0], True
    return hint, False
