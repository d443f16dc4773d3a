"""Manual pages, made of the same declarations as the help. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.cli.declare import Command, Declared, Group, Parameter
from ordercast.cli.help_page import ABOUT, meaning_of, names_of, usage_of

EXIT = (
    ("0", "All is well."),
    ("1", "Something is not VALID, or is not as it should be."),
    ("2", "The command cannot do what was asked; a sentence on stderr says what, why and what to do."),
    ("130", "Interrupted."),
)


def man_page(declared: Declared, version: str) -> str:
    """Return the page of a command, in the language of man(7)."""
    name = declared.path.replace(" ", "-")
    lines = [
        f'.TH {_escaped(name).upper()} 1 "" "Ordercast {version}" "Ordercast"',
        *_section("NAME", [f"{_escaped(name)} \\- {_escaped(_phrase(declared.summary))}"]),
        *_section("SYNOPSIS", [f".B {_escaped(usage_of(declared))}"]),
        *_section("DESCRIPTION", _paragraphs(declared.description)),
    ]
    if isinstance(declared, Group):
        for below in declared.commands.values():
            lines += [".SS", f".B {_escaped(usage_of(below))}", *_paragraphs(below.description), *_parameters(below)]
            lines += [".PP", f"Example: {_escaped(below.example)}"]
    else:
        lines += _section("OPTIONS", _parameters(declared)) if declared.parameters else []
    lines += [*_section("EXIT STATUS", _items(EXIT)), *_section("EXAMPLE", [_escaped(declared.example)])]
    return "\n".join([*lines, *_section("SEE ALSO", [".BR ordercast (1)"])]) + "\n"


def man_of_all(chapters: Mapping[str, Iterable[Declared]], version: str) -> str:
    """Return the page of `ordercast` itself."""
    lines = [
        f'.TH ORDERCAST 1 "" "Ordercast {version}" "Ordercast"',
        *_section("NAME", [f"ordercast \\- {_escaped(_phrase(ABOUT))}"]),
        *_section("SYNOPSIS", [".B ordercast COMMAND …"]),
    ]
    for title, commands in chapters.items():
        rows = [(f"ordercast-{one.name}(1)", one.summary) for one in commands]
        lines += _section(title.upper(), _items(rows))
    return "\n".join([*lines, *_section("EXIT STATUS", _items(EXIT))]) + "\n"


def _parameters(command: Command) -> list[str]:
    return _items((_shown(parameter), meaning_of(parameter)) for parameter in command.parameters)


def _shown(parameter: Parameter) -> str:
    return names_of(parameter) if parameter.names else parameter.title


def _section(title: str, lines: list[str]) -> list[str]:
    return [f".SH {title}", *lines]


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [".PP", _escaped(" ".join(paragraph.split()))]
    return lines


def _items(rows: Iterable[tuple[str, str]]) -> list[str]:
    lines: list[str] = []
    for term, meaning in rows:
        lines += [".TP", f".B {_escaped(term)}", _escaped(meaning) or "\\&"]
    return lines


def _phrase(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _escaped(text: str) -> str:
    """Return the text with what man(7) would take for itself made harmless."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{text}" if text[:1] in (".", "'") else text
