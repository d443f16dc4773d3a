"""One TCP flow that takes what it can get, beside what is measured: a function for each end, in a thread of its own."""

from __future__ import annotations

import socket


def fill(flow: socket.socket) -> None:
    """Send until the connection is closed."""
    try:
        while True:
            flow.sendall(bytes(1 << 16))
    except OSError:
        pass  # the row is over


def drain(listener: socket.socket, got: list[int]) -> None:
    """Take one connection, and count its bytes."""
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(1 << 16):
            got[0] += len(data)
