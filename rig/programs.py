"""Programs that tests and benchmarks start: the commands of Ordercast, workers that are told and heard line by line.

A line is a JSON document. Whoever starts a program ends it: asked first (`end`), or at once (`kill`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ordercast.cli.terminal import output

ROOT = Path(__file__).parents[1]
PATIENCE_S = 5.0  # for a program to end when asked

Program = subprocess.Popen[bytes]


def worker(argv: list[str], **options: Any) -> Program:
    """Start a program that is told and heard; `options` are those of Popen."""
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, **options)


def tell(program: Program, document: object) -> None:
    assert program.stdin is not None
    program.stdin.write(json.dumps(document).encode() + b"\n")
    program.stdin.flush()


def heard(program: Program) -> dict[str, Any]:
    """The next line that it says. SystemExit when there is none: its own complaint is above."""
    assert program.stdout is not None
    line = program.stdout.readline()
    if not line:
        raise SystemExit(f"{program.args!r} has ended before its time: {program.wait()}")
    document: dict[str, Any] = json.loads(line)
    return document


def say(text: str) -> None:
    """Tell a person one thing, in one line however long."""
    output().print(text, soft_wrap=True, highlight=False, markup=False)


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process so far, its own and the kernel's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def close_pipes(program: subprocess.Popen[Any], *, only_stdin: bool = False) -> None:
    pipes = (program.stdin,) if only_stdin else (program.stdin, program.stdout, program.stderr)
    for pipe in pipes:
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def kill(programs: Iterable[subprocess.Popen[Any]]) -> None:
    """End them at once. Pipes are closed."""
    for program in programs:
        if program.poll() is None:
            program.kill()
        program.wait()
        close_pipes(program)


def end(programs: Iterable[subprocess.Popen[Any]]) -> None:
    """Ask all to end, paused ones too, then insist. Pipes are closed."""
    programs = list(programs)
    alive = [program for program in programs if program.poll() is None]
    for program in alive:
        program.terminate()
        program.send_signal(signal.SIGCONT)
    for program in alive:
        try:
            program.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            # Not reaped, so the number is still its own, and so is the group if it leads one.
            if os.getpgid(program.pid) == program.pid:
                os.killpg(program.pid, signal.SIGKILL)
            program.kill()
            program.wait()
    for program in programs:
        close_pipes(program)
