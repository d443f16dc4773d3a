"""What `--help` prints. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from enum import Enum

from ordercast.cli.declare import Command, Declared, Group, Option, Parameter
from ordercast.cli.words import bounds_text

NAMES_MAX = 28  # columns for names; what is longer stands on a line of its own
ABOUT = "Group communication in which everybody delivers the same messages in the same order."
SHOW_HELP = ("-h, --help", "Show this message and exit.")

Rows = list[tuple[str, str]]


def top_page(chapters: Mapping[str, Iterable[Declared]], width: int, *, bold: bool = False) -> str:
    """Return the page of `ordercast` itself: all commands, chapter by chapter."""
    page = _Page(width, bold)
    page.usage("ordercast COMMAND …")
    page.text(ABOUT)
    size = max(len(one.name) for commands in chapters.values() for one in commands)
    for title, commands in chapters.items():
        page.table(title, [(one.name, one.summary) for one in commands], size)
    page.table("Options", [("--version", "Show the version and exit."), SHOW_HELP])
    page.text("Each command has a page of its own: ordercast COMMAND --help, or ordercast man COMMAND.")
    page.example("ordercast up")
    return page.done()


def help_page(declared: Declared, width: int, *, bold: bool = False) -> str:
    """Return the page of a command."""
    page = _Page(width, bold)
    page.usage(usage_of(declared))
    page.text(declared.description)
    if isinstance(declared, Group):
        page.table("Commands", [(one.name, one.summary) for one in declared.commands.values()])
        page.table("Options", [SHOW_HELP])
    else:
        page.table("Arguments", [(argument.title, meaning_of(argument)) for argument in declared.arguments])
        page.table("Options", [*((names_of(option), meaning_of(option)) for option in declared.options), SHOW_HELP])
    page.example(declared.example)
    return page.done()


def usage_of(declared: Declared) -> str:
    """Return how the command is written."""
    if isinstance(declared, Group):
        return f"{declared.path} COMMAND …"
    return " ".join([declared.path, *_usage_words(declared)])


def _usage_words(command: Command) -> Iterable[str]:
    for option in command.options:
        if option.is_required:
            yield f"{option.title} {option.metavar}"
    if not all(option.is_required for option in command.options):
        yield "[OPTIONS]"
    for argument in command.arguments:
        word = argument.title.strip("[]…")
        word = f"{word}…" if argument.is_list else word
        yield word if argument.is_required else f"[{word}]"


def names_of(option: Parameter) -> str:
    """Return how an option is written, with its other names: `-n, --nodes N`."""
    names = [*sorted(option.names, key=len), *([option.off] if option.off else [])]
    return ", ".join(names) + (f" {option.metavar}" if option.metavar else "")


def meaning_of(parameter: Parameter) -> str:
    """Return the help of a parameter, with what may be given and what is taken otherwise."""
    notes = []
    if isinstance(parameter.of, Option) and (parameter.of.min is not None or parameter.of.max is not None):
        notes.append(f"a number {bounds_text(parameter.of.min, parameter.of.max)}")
    if default := default_text(parameter):
        notes.append(f"default: {default}")
    if isinstance(parameter.of, Option) and parameter.of.env:
        notes.append(f"or ${parameter.of.env}")
    if isinstance(parameter.of, Option) and parameter.is_required:
        notes.append("required")
    return " ".join([parameter.of.help, *([f"[{'; '.join(notes)}]"] if notes else [])]).strip()


def default_text(parameter: Parameter) -> str:
    """Return the default as it would be written; empty where there is none to tell."""
    default = parameter.default
    if parameter.is_required or default is None or default == "":
        return ""
    if isinstance(parameter.of, Option) and not parameter.of.show_default:
        return ""
    if isinstance(default, bool):
        return parameter.off if parameter.off and not default else ""
    return str(default.value if isinstance(default, Enum) else default)


class _Page:
    def __init__(self, width: int, bold: bool) -> None:
        self._width, self._bold = width, bold
        self._lines: list[str] = []

    def usage(self, text: str) -> None:
        self._lines += [f"{self._strong('Usage:')} {text}", ""]

    def text(self, text: str) -> None:
        for paragraph in text.split("\n\n"):
            self._lines += [*textwrap.wrap(" ".join(paragraph.split()), self._width), ""]

    def table(self, title: str, rows: Rows, size: int = 0) -> None:
        if not rows:
            return
        size = size or min(max(len(names) for names, _ in rows), NAMES_MAX)
        self._lines.append(self._strong(title))
        for names, meaning in rows:
            indent = " " * (size + 4)
            first = f"  {names:<{size}}  "
            if len(names) > size:
                self._lines.append(f"  {names}")
                first = indent
            self._lines += textwrap.wrap(
                meaning, self._width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
            ) or [first.rstrip()]
        self._lines.append("")

    def example(self, example: str) -> None:
        self._lines.append(f"Example: {example}")

    def done(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _strong(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._bold else text
