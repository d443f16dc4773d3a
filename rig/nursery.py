"""A process that has imported what workers need, and forks one whenever it is asked: a worker is there in a moment,
where a Python that begins anew spends most of a second on imports. What is forked is a process like any other: it leads
a session of its own, in the namespace of its host, and can be stopped and killed.

`forked` is for whoever wants a worker; there is one nursery in each process that asks. The nursery ends when that
process does, and its workers with it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from rig.namespaces import FOLDER, enter
from rig.programs import ROOT

PR_SET_PDEATHSIG = 1
ORDER_MAX = 1 << 17
# What workers import when they need it, and most of them do.
ALSO = ("ordercast.daemon.recording", "ordercast.trace.recording")
_asking = threading.Lock()


class Forked(subprocess.Popen[bytes]):
    """A worker; used as any program that was started with pipes."""

    def __init__(self, args: list[str], pid: int, pidfd: int, stdin: int | None, stdout: int | None) -> None:
        self.args, self.pid, self.returncode = args, pid, None
        self.stdin = None if stdin is None else os.fdopen(stdin, "wb")
        self.stdout = None if stdout is None else os.fdopen(stdout, "rb")
        self.stderr = None
        self._pidfd = pidfd

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended(None if timeout is None else 1000 * timeout)
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return status

    def _ended(self, patience_ms: float | None) -> int | None:
        status: int | None = self.returncode
        if status is None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if poll.poll(patience_ms):
                status = self.returncode = int(_answer({"ended": self.pid})[0])
                os.close(self._pidfd)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._pidfd, sig)


def forked(
    module: str,
    *arguments: str,
    namespace: str | None = None,
    imports: Sequence[str] = (),
    stdout: int | None = None,
    stderr: int = 2,
) -> Forked:
    """Start the `main` of a module in a process of its own, with these arguments, and pipes to tell it and to hear it
    if its output goes nowhere else. `imports`: what `main` will import."""
    child_in, told = os.pipe() if stdout is None else (os.open(os.devnull, os.O_RDONLY), None)
    heard, child_out = os.pipe() if stdout is None else (None, stdout)
    order = {"module": module, "arguments": arguments, "namespace": namespace, "imports": imports}
    said, pidfds = _answer({**order, "environment": dict(os.environ)}, [child_in, child_out, stderr])
    os.close(child_in)
    if heard is not None:
        os.close(child_out)
    return Forked([module, *arguments], int(said), pidfds[0], told, heard)


def _answer(order: dict[str, Any], fds: Sequence[int] = ()) -> tuple[bytes, list[int]]:
    with _asking:
        nursery = _nursery()
        socket.send_fds(nursery, [json.dumps(order).encode()], fds)
        said, pidfds, *_ = socket.recv_fds(nursery, ORDER_MAX, 1)
    return said, pidfds


@cache
def _nursery() -> socket.socket:
    """Return the socket to the nursery of this process, which is started when it is first asked for."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        argv = [sys.executable, "-c", "from rig.nursery import main; main()", str(its.fileno())]
        null = subprocess.DEVNULL
        program = subprocess.Popen(
            argv, pass_fds=[its.fileno()], cwd=ROOT, stdin=null, stdout=null, start_new_session=True
        )
    program.returncode = 0  # nobody waits for it: it ends when this process does
    return mine


def main() -> None:
    asked = socket.socket(fileno=int(sys.argv[1]))
    while True:
        text, fds, *_ = socket.recv_fds(asked, ORDER_MAX, 3)
        if not text:
            return
        order = json.loads(text)
        if "ended" in order:
            _, status = os.waitpid(order["ended"], 0)
            socket.send_fds(asked, [str(os.waitstatus_to_exitcode(status)).encode()], [])
            continue
        for name in (*ALSO, *order["imports"], order["module"]):
            import_module(name)
        gc.freeze()
        pid = os.fork()
        if not pid:
            asked.close()
            sys.exit(_live(order, fds))
        pidfd = os.pidfd_open(pid)  # it cannot be another's: it is not reaped yet
        socket.send_fds(asked, [str(pid).encode()], [pidfd])
        for fd in (*fds, pidfd):
            os.close(fd)


def _live(order: dict[str, Any], fds: Sequence[int]) -> int:
    """The life of a worker. Return its exit status."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    for its, fd in enumerate(fds):
        os.dup2(fd, its)
        os.close(fd)
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = [order["module"], *order["arguments"]]
    try:
        if order["namespace"] is not None:
            enter(FOLDER / order["namespace"])
        status: int = import_module(order["module"]).main()
    except Exception:
        traceback.print_exc()
        status = 1
    return status
