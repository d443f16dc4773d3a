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
import traceback
from functools import cache
from importlib import import_module
from typing import Any

from rig.namespaces import FOLDER, enter
from rig.programs import ROOT

PR_SET_PDEATHSIG = 1
ORDER_MAX = 1 << 16
# What workers import when they need it, and all of them do.
ALSO = ("ordercast.daemon.recording", "ordercast.trace.recording")


class Forked(subprocess.Popen[bytes]):
    """A worker; used as any program that was started with pipes. Its exit status is not known: 0 stands for it."""

    def __init__(self, args: list[str], pid: int, pidfd: int, stdin: int, stdout: int) -> None:
        self.args, self.pid, self.returncode = args, pid, None  # type: ignore[assignment]
        self.stdin, self.stdout, self.stderr = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb"), None
        self._pidfd = pidfd

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        if self._ended(None if timeout is None else 1000 * timeout) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return 0

    def _ended(self, patience_ms: float | None) -> int | None:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if poll.poll(patience_ms):
                self.returncode = 0
                os.close(self._pidfd)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._pidfd, sig)


def forked(module: str, argument: str, namespace: str) -> Forked:
    """Start the `main` of a module in a process of its own, with one argument, and pipes to tell it and to hear it."""
    child_in, stdin = os.pipe()
    stdout, child_out = os.pipe()
    order = {"module": module, "argument": argument, "namespace": namespace}
    nursery = _nursery()
    socket.send_fds(nursery, [json.dumps(order).encode()], [child_in, child_out])
    os.close(child_in)
    os.close(child_out)
    said, (pidfd,), *_ = socket.recv_fds(nursery, ORDER_MAX, 1)
    return Forked([module, argument], int(said), pidfd, stdin, stdout)


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
    for name in ALSO:
        import_module(name)
    while True:
        text, fds, *_ = socket.recv_fds(asked, ORDER_MAX, 2)
        if not text:
            return
        _reap()
        order = json.loads(text)
        import_module(order["module"])
        gc.freeze()
        pid = os.fork()
        if not pid:
            asked.close()
            sys.exit(_live(order, *fds))
        pidfd = os.pidfd_open(pid)  # it cannot be another's: it is reaped later
        socket.send_fds(asked, [str(pid).encode()], [pidfd])
        for fd in (*fds, pidfd):
            os.close(fd)


def _live(order: dict[str, Any], stdin: int, stdout: int) -> int:
    """The life of a worker. Return its exit status."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    for fd, its in ((stdin, 0), (stdout, 1)):
        os.dup2(fd, its)
        os.close(fd)
    sys.argv = [order["module"], order["argument"]]
    try:
        enter(FOLDER / order["namespace"])
        status: int = import_module(order["module"]).main()
    except Exception:
        traceback.print_exc()
        status = 1
    return status


def _reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                return
        except ChildProcessError:
            return
