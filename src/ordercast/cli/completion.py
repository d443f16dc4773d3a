"""What may stand next on a command line: asked by the shell, answered from the declarations."""

from __future__ import annotations

from ordercast.cli.commands import NAMES, declared
from ordercast.cli.declare import Command, Declared, Parameter
from ordercast.cli.words import HELP

SCRIPTS = {
    "bash": """\
_ordercast() {
    local IFS=$'\\n'
    COMPREPLY=($(ordercast completion next -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _ordercast ordercast
""",
    "zsh": """\
#compdef ordercast
_ordercast() {
    local -a found
    found=("${(@f)$(ordercast completion next -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _ordercast ordercast
""",
    "fish": """\
function __ordercast
    ordercast completion next -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c ordercast -a '(__ordercast)'
""",
}


def next_words(words: list[str]) -> list[str]:
    """Return what the last of these words, which may be empty, could become."""
    *before, last = words or [""]
    found: Declared | None = None
    if before and before[0] in NAMES:
        found, before = declared(before[0]), before[1:]
        if not isinstance(found, Command) and before and before[0] in found.commands:
            found, before = found.commands[before[0]], before[1:]
        elif not isinstance(found, Command) and before and found.short:
            found = found.commands[found.short]
    return [word for word in _candidates(found, before, last) if word.startswith(last)]


def _candidates(found: Declared | None, before: list[str], last: str) -> list[str]:
    if found is None:
        return [*NAMES, *HELP, "--version"] if not before else []
    if not isinstance(found, Command):
        return [*found.commands, *HELP]
    known = {name: option for option in found.options for name in _names(option)}
    if before and (option := known.get(before[-1])) is not None and not option.is_flag:
        return list(option.choices)
    if last.startswith("-"):
        return [*(name for name in known if name.startswith("--")), "--help"]
    return [choice for argument in found.arguments for choice in argument.choices]


def _names(option: Parameter) -> list[str]:
    return [*option.names, *([option.off] if option.off else [])]
