"""What `ordercast completion` takes."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from ordercast.cli.declare import Argument, Group

completion = Group(
    "completion",
    """Have a shell complete commands, options and their choices.

    `ordercast completion bash` is short for `ordercast completion show bash`: it prints what the shell should read when
    it starts. zsh and fish are known, too.
    """,
    example="ordercast completion bash >> ~/.bashrc",
    short="show",
)


@completion.command(example="ordercast completion fish > ~/.config/fish/completions/ordercast.fish")
def show(shell: Annotated[Literal["bash", "zsh", "fish"], Argument("SHELL", "bash, zsh or fish.")]) -> int:
    """Print the lines with which a shell asks for what may stand next."""
    from ordercast.cli.completion import SCRIPTS

    sys.stdout.write(SCRIPTS[shell])
    return 0


@completion.command("next", example="ordercast completion next -- archive re")
def next_word(
    words: Annotated[list[str] | None, Argument("WORD", "The line so far, without ordercast.")] = None,
) -> int:
    """Print what the last word of a command line could become, a line each: what shells ask for."""
    from ordercast.cli.completion import next_words

    sys.stdout.writelines(f"{word}\n" for word in next_words(words or [""]))
    return 0
