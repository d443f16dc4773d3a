"""The `ordercast` command: the console entry point.

Only what a command needs is imported: whoever asks for the version should not wait for the help, nor whoever sends a
line for the simulator.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ordercast import __version__
from ordercast.cli import INTERRUPTED


def run(arguments: Sequence[str]) -> int:
    """One command; returns the exit status."""
    if list(arguments) == ["--version"]:
        return _tell_version()
    from ordercast.cli.dispatch import dispatched

    return dispatched(list(arguments) or ["--help"])


def _tell_version() -> int:
    from ordercast.model.errors import UsageError

    try:
        from ordercast.model.kernel import NAME
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"ordercast {__version__}, {NAME} kernel\n")
    return 0


def main() -> None:
    """The console entry point."""
    try:
        status = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except KeyboardInterrupt:  # once more, while the first one was told
        status = INTERRUPTED
    if status == INTERRUPTED:
        _ignore_signals()
    sys.exit(status)


def _ignore_signals() -> None:
    """Let the interpreter end in peace, however often it is interrupted."""
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
