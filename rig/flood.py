"""Somebody on the network of a cluster who sends as much as it takes: to the multicast group, and to every token port.

    python -m rig.flood --from 10.77.0.5 --to 10.77.0.1 --to 10.77.0.2 --rate 70000 --seconds 10 --head wrong

With a wrong head the kernel drops it. With a right one it has the key's number, and the life and a coming counter of a
packet that was heard, so that everything but the tag is right. It says how many packets it sent.
"""

from __future__ import annotations

import argparse
import os
import socket
import struct
import sys
import time

from ordercast.daemon.config.node import GROUP, PORT
from ordercast.model.errors import UsageError
from ordercast.sealing.cipher import TAG_SIZE
from ordercast.sealing.packet import LIFE, SEALED_AT

UDP_SEGMENT = 103  # Linux, <linux/udp.h>
TOGETHER = 32  # packets in one system call
AHEAD = 1 << 20  # of the counter that was heard, so that no window has seen it
COUNTER = slice(10, 16)


def wrong_head() -> bytes:
    return os.urandom(30)


def right_head(ear: socket.socket) -> bytes:
    """Return what only the cipher can refuse."""
    while True:
        heard = ear.recv(65536)
        if len(heard) > SEALED_AT + TAG_SIZE and heard[3] and not heard[COUNTER.start] & 0x80:
            break
    size = min(int.from_bytes(heard[4:6], "big"), len(heard))
    counter = (int.from_bytes(heard[COUNTER], "big") + AHEAD).to_bytes(6, "big")
    head = heard[:4] + size.to_bytes(2, "big") + heard[LIFE] + counter + heard[COUNTER.stop : SEALED_AT]
    return head + os.urandom(size - SEALED_AT)


def listener(address: str) -> socket.socket:
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ear.bind((GROUP, PORT))
    ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton(address))
    return ear


def flood(address: str, targets: list[str], rate: int, seconds: float, packet: bytes) -> int:
    """Send it, spread over all targets and the group; return how many were sent."""
    mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    mouth.bind((address, 0))
    mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    ancillary = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", len(packet)))]
    many = packet * min(TOGETHER, 60_000 // len(packet))
    each = len(many) // len(packet)
    places = [(GROUP, PORT), *((target, PORT + 1) for target in targets)]
    began, sent, turn = time.monotonic(), 0, 0
    while (passed := time.monotonic() - began) < seconds:
        if sent > passed * rate:
            time.sleep(0.0005)
            continue
        mouth.sendmsg([many], ancillary, 0, places[turn % len(places)])
        sent, turn = sent + each, turn + 1
    return sent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--from", dest="address", required=True)
    parser.add_argument("--to", action="append", default=[])
    parser.add_argument("--rate", type=int, default=70_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--head", choices=("wrong", "right"), default="wrong")
    options = parser.parse_args()
    if not options.to:
        raise UsageError("whom? Give --to ADDRESS")
    packet = wrong_head() if options.head == "wrong" else right_head(listener(options.address))
    sys.stdout.write(f"{flood(options.address, options.to, options.rate, options.seconds, packet)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
