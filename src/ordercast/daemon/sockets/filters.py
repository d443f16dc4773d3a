"""Programs that the kernel runs for every packet of a socket, before anybody is woken for it.

They drop our own multicast that comes back, and strangers: packets whose first bytes are not those of this node's
packets. One stranger in sixteen is let through, so that it is counted, and people are told what comes; sixteen times as
many cost no more than that.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence
from typing import Final

SO_ATTACH_FILTER: Final = 26  # Linux, <asm-generic/socket.h>
SHOWN_OF: Final = 16  # strangers, of which one is let through

_INSTRUCTION = struct.Struct("=HBBI")
_LOAD_HALF, _LOAD_WORD, _LOAD_LENGTH, _AND, _RETURN = 0x28, 0x20, 0x80, 0x54, 0x06
_JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST = 0x15, 0x35
_NETWORK_HEADER = -0x100000 & 0xFFFFFFFF
_RANDOM = -0x1000 + 56 & 0xFFFFFFFF
_SOURCE_ADDRESS_AT = 12  # in an IPv4 header
_UDP_HEADER = 8  # bytes in front of the packet
_REFUSE, _ACCEPT = 0, 0xFFFFFFFF

Instruction = tuple[int, int, int, int]


def attach_filter(receiver: socket.socket, heads: Sequence[bytes], echo: tuple[str, int] | None) -> bool:
    """Let through what begins with one of these heads, which are all of two bytes or all of four, and a few strangers;
    drop what comes from `echo`, address and port of our own sender. False when the kernel does not take it."""
    program = b"".join(_INSTRUCTION.pack(*each) for each in filter_program(heads, echo))
    memory = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // _INSTRUCTION.size, ctypes.addressof(memory))
    try:
        receiver.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, header)
    except OSError:
        return False
    return True


def filter_program(heads: Sequence[bytes], echo: tuple[str, int] | None) -> list[Instruction]:
    program: list[Instruction] = []
    if echo is not None:
        address, port = echo
        program += [
            (_LOAD_HALF, 0, 0, 0),
            (_JUMP_IF_EQUAL, 0, 3, port),
            (_LOAD_WORD, 0, 0, _NETWORK_HEADER + _SOURCE_ADDRESS_AT),
            (_JUMP_IF_EQUAL, 0, 1, int.from_bytes(socket.inet_aton(address), "big")),
            (_RETURN, 0, 0, _REFUSE),
        ]
    if heads:
        size = len(heads[0])
        accept = 4  # instructions between the last comparison and acceptance
        program += [
            (_LOAD_LENGTH, 0, 0, 0),
            (_JUMP_IF_AT_LEAST, 0, 1 + len(heads), _UDP_HEADER + size),
            (_LOAD_WORD if size == 4 else _LOAD_HALF, 0, 0, _UDP_HEADER),
            *(
                (_JUMP_IF_EQUAL, len(heads) - 1 - number + accept, 0, int.from_bytes(head, "big"))
                for number, head in enumerate(heads)
            ),
            (_LOAD_WORD, 0, 0, _RANDOM),
            (_AND, 0, 0, SHOWN_OF - 1),
            (_JUMP_IF_EQUAL, 1, 0, 0),
            (_RETURN, 0, 0, _REFUSE),
        ]
    return [*program, (_RETURN, 0, 0, _ACCEPT)]
