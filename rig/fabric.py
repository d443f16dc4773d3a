"""What joins the hosts of one network: the kernel's bridge, or a switch in a program of its own.

Both are told all faults of their network at once, so that neither can keep a fault that is over.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Protocol

from rig import namespaces, switch
from rig.namespaces import RigError, command, ip
from rig.switch import ANSWER_SIZE_MAX, Link

TBF = ["tbf", "burst", "16k", "latency", "50ms", "rate"]
RANDOM_STEPS = 1_000_000  # nft draws whole numbers
TUNSETIFF = 0x400454CA
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000
TAP_QUEUE = switch.READS_MAX_BEFORE_REQUEST  # packets: a burst waits for the switch, it is not lost unasked
PATIENCE_S = 10.0


@dataclass(frozen=True)
class Loss:
    target: int
    port: int | None  # UDP packets to this port; None: all but neighbour discovery
    probability: float


@dataclass
class Faults:
    """Of one network, hosts by number."""

    cuts: set[tuple[int, int]] = field(default_factory=set)  # nothing passes from the first to the second
    losses: dict[tuple[int, int | None], Loss] = field(default_factory=dict)


class Fabric(Protocol):
    def apply(self, faults: Faults) -> None: ...
    def bandwidth(self, namespace: str, number: int, rate: str | None) -> None: ...
    def close(self) -> None: ...


class Bridge:
    """A bridge in a namespace of its own, a veth pair to each host, and nftables rules for what does not pass."""

    def __init__(self, network: int, hosts: Mapping[int, str], middle: str) -> None:
        """`hosts`: namespaces by the numbers of the hosts."""
        self._network = network
        self._middle = middle
        bridge = f"br{network}"
        # Snooping would hold multicast back until it has heard who listens.
        lines = [f"link add {bridge} type bridge mcast_snooping 0 stp_state 0 forward_delay 0", f"link set {bridge} up"]
        for number, host in hosts.items():
            lines.append(f"link add {self._port(number)} type veth peer name eth{network} netns {host}")
            lines.append(f"link set {self._port(number)} master {bridge} up")
        ip(middle, *lines)

    def apply(self, faults: Faults) -> None:
        rules = "\n".join(self._rules(faults))
        table = f"bridge faults{self._network}"
        chain = f"chain between {{ type filter hook forward priority 0;\n{rules}\n}}"
        # One transaction: there is no moment without the old or the new rules.
        text = f"table {table} {{}}\ndelete table {table}\ntable {table} {{\n{chain}\n}}\n"
        command("nsenter", f"--net={namespaces.FOLDER / self._middle}", "nft", "-f", "-", stdin=text)

    def _rules(self, faults: Faults) -> Iterator[str]:
        for source in sorted({a for a, _ in faults.cuts}):
            targets = ", ".join(f'"{self._port(b)}"' for a, b in sorted(faults.cuts) if a == source)
            yield f'iifname "{self._port(source)}" oifname {{ {targets} }} drop'
        for loss in faults.losses.values():
            which = f"udp dport {loss.port}" if loss.port else "meta protocol { ip, ip6 } meta l4proto != ipv6-icmp"
            steps = round(loss.probability * RANDOM_STEPS)
            chance = f"numgen random mod {RANDOM_STEPS} < {steps}" if steps < RANDOM_STEPS else ""
            yield f'oifname "{self._port(loss.target)}" {which} {chance} drop'

    def bandwidth(self, namespace: str, number: int, rate: str | None) -> None:
        _shape(namespace, f"eth{self._network}", rate)
        _shape(self._middle, self._port(number), rate)

    def mtu(self, namespace: str, number: int, size: int) -> None:
        ip(namespace, f"link set eth{self._network} mtu {size}")
        ip(self._middle, f"link set {self._port(number)} mtu {size}")

    def close(self) -> None:
        """It goes with its namespace."""

    def _port(self, number: int) -> str:
        return f"n{self._network}v{number}"


class SwitchClient:
    """The switch program: a TAP device in each host, all held by one process, which is told what to do by messages."""

    def __init__(self, network: int, hosts: Mapping[int, str], seed: int) -> None:
        """`hosts`: namespaces by the numbers of the hosts."""
        self._network = network
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        taps: dict[int, int] = {}
        try:
            for number, host in hosts.items():
                with namespaces.inside(host):
                    taps[number] = _tap(f"eth{network}")
                ip(host, f"link set eth{network} txqueuelen {TAP_QUEUE}")
            argv = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, switch.__file__]
            argv += [str(seed), str(theirs.fileno()), *(f"{number}:{tap}" for number, tap in taps.items())]
            self._program = subprocess.Popen(argv, pass_fds=(theirs.fileno(), *taps.values()), start_new_session=True)
        finally:
            theirs.close()
            for tap in taps.values():
                os.close(tap)
        mine.settimeout(PATIENCE_S)
        self._control = mine
        self.counters()

    def apply(self, faults: Faults) -> None:
        losses = [asdict(loss) for loss in faults.losses.values()]
        self._ask({"cuts": sorted(faults.cuts), "losses": losses})

    def disturb(self, link: Link, sources: list[int], targets: list[int]) -> None:
        self._ask({"link": asdict(link), "sources": sources, "targets": targets})

    def counters(self) -> dict[str, int]:
        return self._ask({})

    def bandwidth(self, namespace: str, number: int, rate: str | None) -> None:
        """Upwards alone: there is no device on the switch's side."""
        _shape(namespace, f"eth{self._network}", rate)

    def close(self) -> None:
        """The switch ends when nobody can speak to it."""
        self._control.close()
        try:
            self._program.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._program.kill()
            self._program.wait()

    def _ask(self, request: dict[str, object]) -> dict[str, int]:
        """Answered when it is in force."""
        answer = b""
        with suppress(OSError):
            self._control.send(json.dumps(request).encode())
            answer = self._control.recv(ANSWER_SIZE_MAX)
        if not answer:
            raise RigError("the switch does not answer")
        counters: dict[str, int] = json.loads(answer)
        return counters


def _tap(device: str) -> int:
    """Makes a TAP device in the namespace where this thread is. It lives as long as somebody holds the descriptor."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
    except OSError:
        os.close(tap)
        raise
    return tap


def _shape(namespace: str, device: str, rate: str | None) -> None:
    if rate is not None:
        command("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *TBF, rate)
    elif " tbf " in command("tc", "-n", namespace, "qdisc", "show", "dev", device):
        command("tc", "-n", namespace, "qdisc", "delete", "dev", device, "root")
