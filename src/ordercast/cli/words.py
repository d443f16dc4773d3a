"""The words of a command line, read after a command's declaration. Pure, but for variables of the environment.

Whatever cannot be read is a `WordsError`: one sentence that says what was written and what to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ordercast.cli.declare import Argument, Command, Given, Option, Parameter

HELP = ("-h", "--help")


class WordsError(Exception):
    """A command line that a declaration does not allow."""


class HelpWanted(Exception):
    """A command line that asks for help."""


@dataclass
class _Found:
    """What was found in the words: texts by the name of their parameter, and what belongs to no option."""

    options: dict[str, list[str | bool]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    def add(self, option: Parameter, value: str | bool) -> None:
        values = self.options.setdefault(option.name, [])
        if not option.is_list:
            values.clear()  # the last one counts
        values.append(value)


def values_from(command: Command, words: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what the command is called with. Raises HelpWanted, or WordsError."""
    found = _found(command, words)
    texts: dict[str, list[Any]] = {**found.options, **_placed(command, found.others)}
    values: dict[str, Any] = {}
    for parameter in command.parameters:
        own = texts.get(parameter.name) or _from_environment(parameter, environment)
        if own:
            read = [one if isinstance(one, bool) else value_from(parameter, one) for one in own]
            values[parameter.name] = read if parameter.is_list else read[-1]
        elif parameter.is_required:
            raise WordsError(f"`{command.path}` needs {_wanted(parameter)}")
        else:
            values[parameter.name] = parameter.default
    if command.given:
        values[command.given] = Given(texts)
    return values


def _found(command: Command, words: Sequence[str]) -> _Found:
    known = {name: option for option in command.options for name in option.names}
    off = {option.off: option for option in command.options if option.off}
    found, rest = _Found(), iter(words)
    for word in rest:
        if word == "--":
            found.others.extend(rest)
        elif not is_option(word):
            found.others.append(word)
        elif word in HELP:
            raise HelpWanted
        elif word in off:
            found.add(off[word], False)
        else:
            name, text = _split(word, known)
            option = known[name]
            if option.is_flag and text is not None:
                raise WordsError(f"{name} is a flag, and takes no value: leave out {word[len(name) :]!r}")
            found.add(option, True if option.is_flag else _value(option, name, text, rest, {*known, *off, *HELP}))
    return found


def is_option(word: str) -> bool:
    """Tell whether a word begins as options do; a lone dash and negative numbers do not."""
    return word.startswith("-") and word != "-" and not word[1:2].isdigit()


def _split(word: str, known: Mapping[str, Parameter]) -> tuple[str, str | None]:
    """Return the option's name, and the value if it is in the same word: --nodes=3, -n3."""
    name, equals, text = word.partition("=")
    if name in known:
        return name, text if equals else None
    if word[:2] in known and not word.startswith("--"):
        return word[:2], word[2:].removeprefix("=")
    raise WordsError(f"No such option: {name}{meant(name, known)}")


def _value(option: Parameter, name: str, text: str | None, rest: Iterator[str], names: set[str]) -> str:
    if text is None:
        text = next(rest, None)
    if text is None or text in names:
        raise WordsError(f"{name} needs a value: write {name} {option.metavar}")
    return text


def _placed(command: Command, words: list[str]) -> dict[str, list[str]]:
    """Give words to arguments by their places; one that takes several takes all that are left."""
    placed: dict[str, list[str]] = {}
    left = list(words)
    for argument in command.arguments:
        count = len(left) if argument.is_list else 1
        placed[argument.name], left = left[:count], left[count:]
    if left:
        wanted = " ".join(argument.title for argument in command.arguments) or "options alone"
        raise WordsError(f"{left[0]!r} is one word too many: `{command.path}` takes {wanted}")
    return {name: words for name, words in placed.items() if words}


def _from_environment(parameter: Parameter, environment: Mapping[str, str]) -> list[str]:
    text = environment.get(parameter.of.env, "") if isinstance(parameter.of, Option) and parameter.of.env else ""
    return [text] if text else []


def value_from(parameter: Parameter, text: str) -> Any:
    """Return the value that a word stands for."""
    if parameter.choices:
        if text not in parameter.choices:
            raise WordsError(f"{parameter.title} {text!r} cannot be used: choose {', '.join(parameter.choices)}")
        return parameter.type(text) if issubclass(parameter.type, Enum) else text
    try:
        value = parameter.type(text)
    except ValueError:
        kind = "a whole number" if parameter.type is int else "a number"
        raise WordsError(f"{parameter.title} {text!r} cannot be used: write {kind}") from None
    low, high = parameter.of.min, getattr(parameter.of, "max", None)
    if (low is not None and value < low) or (high is not None and value > high):
        raise WordsError(f"{parameter.title} {text} cannot be used: write a number {bounds_text(low, high)}")
    return value


def bounds_text(low: float | None, high: float | None) -> str:
    """Return the words for a range of numbers."""
    if high is None:
        return f"of at least {low:g}" if low is not None else ""
    return f"of at most {high:g}" if low is None else f"within {int(low)}..{int(high)}"


def _wanted(parameter: Parameter) -> str:
    title = parameter.title if isinstance(parameter.of, Argument) else f"{parameter.title} {parameter.metavar}"
    return f"{title}: {parameter.of.help.rstrip('.')}" if parameter.of.help else title


def meant(word: str, known: Iterable[str]) -> str:
    """Return a guess at what was meant, as the end of a sentence; empty if nothing is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1)
    return f"; perhaps {near[0]} was meant" if near else ""
