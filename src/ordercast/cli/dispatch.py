"""Finds the command that is meant, and turns errors into one sentence and an exit status.

0 all is well; 1 something is not VALID; 2 the command cannot do what was asked; 130 interrupted.
"""

from __future__ import annotations

import os
import sys

from ordercast.cli import INTERRUPTED
from ordercast.cli.commands import CHAPTERS, NAMES, declared
from ordercast.cli.declare import Command, Declared, Group
from ordercast.cli.help_page import help_page, top_page
from ordercast.cli.plain import complain, has_colours, help_width
from ordercast.cli.words import HELP, HelpWanted, WordsError, is_option, meant, values_from
from ordercast.model.errors import ConnectionLost, Unreachable, UsageError
from ordercast.model.extras import missing_extra


def dispatched(words: list[str]) -> int:
    """Run the command that these words name; return its exit status."""
    path = "ordercast"
    try:
        if words[0] in HELP:
            return _show_all()
        found, rest = found_in(words)
        path = found.path
        status = _run(found, rest)
    except (UsageError, Unreachable, ConnectionLost) as error:
        complain(str(error))
        return 2
    except WordsError as error:
        complain(f"{error} (see '{path} --help')")
        return 2
    except ModuleNotFoundError as error:
        complain(missing_extra(f"`{path}`", error))
        return 2
    except KeyboardInterrupt:
        status = INTERRUPTED
    if status == INTERRUPTED:
        complain("interrupted")
    return status


def found_in(words: list[str]) -> tuple[Declared, list[str]]:
    """Return the command that the first words name, and the words that are left."""
    name, *rest = words
    if name not in NAMES:
        what = "option:" if is_option(name) else "command"
        raise WordsError(f"No such {what} {name!r}{meant(name, (*NAMES, '--version', '--help'))}")
    found = declared(name)
    if isinstance(found, Command):
        return found, rest
    if rest and rest[0] in found.commands:
        return found.commands[rest[0]], rest[1:]
    if found.short and (found.bare if not rest else rest[0] not in HELP):
        return found.commands[found.short], rest
    return found, rest


def _run(found: Declared, words: list[str]) -> int:
    try:
        if isinstance(found, Command):
            return found.work(**values_from(found, words, os.environ))
        _refuse_unknown(found, words)
    except HelpWanted:
        pass
    sys.stdout.write(help_page(found, help_width(), bold=has_colours(sys.stdout)))
    return 0


def _refuse_unknown(group: Group, words: list[str]) -> None:
    if not words:
        raise WordsError(f"Missing command: `{group.path}` has {', '.join(group.commands)}")
    if words[0] not in HELP:
        what = "option:" if is_option(words[0]) else "command"
        raise WordsError(f"No such {what} {words[0]!r} of `{group.path}`{meant(words[0], group.commands)}")


def _show_all() -> int:
    chapters = {title: [declared(name) for name in names] for title, names in CHAPTERS.items()}
    sys.stdout.write(top_page(chapters, help_width(), bold=has_colours(sys.stdout)))
    return 0
