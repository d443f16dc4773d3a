"""N hosts on one or several segments and networks: a namespace each, with addresses, programs and faults.

    with Hosts(4) as hosts:
        node = hosts[0].run(["ordercast", "node", …])
        hosts.cut(hosts[:2], hosts[2:])
        hosts.heal()

Host 1 is `hosts[0]`; on network 0 it is 10.77.0.1 and fd77::1, on its device eth0. On leaving the block programs are
ended, then namespaces are removed; nothing is touched that was not made here.

With `switch=True` the hosts are joined by a program instead of the kernel's bridge (`switch.py`). It is slower, and it
can delay, reorder, duplicate and corrupt, which few kernels can do without modules, and has rates and queues for each
pair of hosts.

Segments are broadcast domains, each with a bridge or a switch of its own; a host has a leg in each of its segments.
Three sites of two hosts on bridges, and a wide area between all of them on a switch:

    Hosts(6, segments=([1, 2], [3, 4], [5, 6], range(1, 7)), switch=[3])

With N networks per segment, network K of segment S is device eth(S * N + K), with addresses 10.77.(S * N + K).HOST.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self, overload

from rig import namespaces
from rig.fabric import Bridge, Fabric, Faults, Loss, SwitchClient
from rig.namespaces import RigError, command, ip
from rig.nursery import forked
from rig.programs import Program, end
from rig.switch import EVERYBODY, Link

HOSTS_MAX = 250  # a byte of the address
NETWORKS_MAX = 250  # another one


@cache
def why_not(switch: bool = False) -> str | None:
    """Why this machine cannot make the hosts (with a switch), in words; None if it can."""
    if not Path("/proc/self/ns/net").exists():
        return "network namespaces are a thing of Linux"
    if os.geteuid():
        return "network namespaces need root"
    for tool in ("ip", "nft", "tc", "ethtool", "nsenter", "setpriv"):
        if shutil.which(tool) is None:
            return f"the command {tool} is not installed"
    if switch and not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    try:
        with Hosts(1, switch=switch) as hosts:
            hosts.loss(hosts, 0.5)
    except (RigError, OSError) as error:
        return f"the kernel refuses: {error}"
    return None


@dataclass(eq=False)
class Host:
    """One host. What runs on it is started here, and ended with the rig."""

    number: int  # from 1, the last part of its addresses
    namespace: str
    segments: tuple[int, ...] = (0,)  # in which it has a leg
    networks: int = 1  # of each segment
    programs: list[subprocess.Popen[Any]] = field(default_factory=list)

    def address(self, network: int = 0, segment: int | None = None) -> str:
        """On the first of its segments, unless another is named."""
        return f"10.77.{self._device(network, segment)}.{self.number}"

    def address6(self, network: int = 0, segment: int | None = None) -> str:
        text = f"fd77:{self._device(network, segment):x}::{self.number:x}"
        return str(socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, text)))

    def devices(self) -> list[int]:
        """The numbers of all its legs: `eth0` and so on."""
        return [self._device(network, segment) for segment in self.segments for network in range(self.networks)]

    def _device(self, network: int, segment: int | None) -> int:
        segment = self.segments[0] if segment is None else segment
        assert segment in self.segments and network < self.networks
        return segment * self.networks + network

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Starts a program on this host; `options` are those of Popen. It leads a session of its own."""
        options.setdefault("start_new_session", True)
        program: subprocess.Popen[Any] = subprocess.Popen(namespaces.argv_inside(self.namespace, argv), **options)
        self.programs.append(program)
        return program

    def fork(self, module: str, argument: str) -> Program:
        """Starts the `main` of a module on this host, to be told and heard: see `nursery.py`."""
        program = forked(module, argument, namespace=self.namespace)
        self.programs.append(program)
        return program

    def inside(self) -> AbstractContextManager[None]:
        """This thread is on the host meanwhile: sockets made there stay there."""
        return namespaces.inside(self.namespace)

    def command(self, *argv: str) -> str:
        """Runs to the end and returns what it printed."""
        return command(*namespaces.argv_inside(self.namespace, argv))

    def end_programs(self) -> None:
        end(self.programs)
        self.programs.clear()


class Hosts(Sequence[Host]):
    """The hosts, and the faults of the networks between them. Where `network` or `segment` is None, all are meant."""

    def __init__(
        self,
        count: int,
        networks: int = 1,
        switch: bool | Collection[int] = False,
        seed: int = 0,
        segments: Sequence[Collection[int]] = (),
    ) -> None:
        """`segments`: numbers of their hosts, from 1; none: one of all. `switch`: all of them have one, or these."""
        assert 1 <= count <= HOSTS_MAX
        segments = segments or [range(1, count + 1)]
        assert networks >= 1 and networks * len(segments) <= NETWORKS_MAX
        self._prefix = namespaces.unique_prefix()
        self._hosts = []
        for number in range(1, count + 1):
            own = tuple(segment for segment, hosts in enumerate(segments) if number in hosts)
            assert own, f"host {number} is on no segment"
            self._hosts.append(Host(number, f"{self._prefix}h{number}", own, networks))
        self.networks = networks  # of each segment
        self.segments = len(segments)
        self._switched = range(len(segments) if switch else 0) if isinstance(switch, bool) else switch
        self._fabrics: list[Fabric] = []
        self._faults = [Faults() for _ in range(networks * len(segments))]
        self._seed = seed

    @property
    def has_switch(self) -> bool:
        """Whether some segment has one."""
        return bool(self._switched)

    @overload
    def __getitem__(self, at: int) -> Host: ...
    @overload
    def __getitem__(self, at: slice) -> list[Host]: ...
    def __getitem__(self, at: int | slice) -> Host | list[Host]:
        return self._hosts[at]

    def __len__(self) -> int:
        return len(self._hosts)

    # Making and removing

    def __enter__(self) -> Self:
        namespaces.remove_leftovers()
        with ExitStack() as undo:
            undo.callback(self._remove)
            self._make()
            undo.pop_all()
        return self

    def __exit__(self, *how: object) -> None:
        self._remove()

    def _make(self) -> None:
        middle = f"{self._prefix}b"
        names = [host.namespace for host in self._hosts]
        namespaces.create(names if len(self._switched) == self.segments else [middle, *names])
        for name in names:
            with namespaces.inside(name):
                _skip_address_checks()
        for at in range(len(self._faults)):
            hosts = {host.number: host.namespace for host in self._hosts if at in host.devices()}
            if at // self.networks in self._switched:
                self._fabrics.append(SwitchClient(at, hosts, self._seed + at))
            else:
                self._fabrics.append(Bridge(at, hosts, middle))
        for host in self._hosts:
            ip(host.namespace, "link set lo up", *self._addresses(host))

    def _addresses(self, host: Host) -> Iterator[str]:
        for at in host.devices():
            segment, network = divmod(at, self.networks)
            device = f"eth{at}"
            yield f"address add {host.address(network, segment)}/24 brd + dev {device}"
            if _has_ipv6():
                yield f"address add {host.address6(network, segment)}/64 dev {device} nodad"
            yield f"link set {device} up multicast on"
            yield f"route add 224.0.0.0/4 dev {device} metric {at + 1}"

    def _remove(self) -> None:
        with ExitStack() as undo:
            undo.callback(namespaces.remove, [f"{self._prefix}b", *(host.namespace for host in self._hosts)])
            for fabric in self._fabrics:
                undo.callback(fabric.close)
            undo.callback(end, [program for host in self._hosts for program in host.programs])
        self._fabrics.clear()
        for host in self._hosts:
            host.programs.clear()

    # Faults

    def cut(
        self,
        side_a: Host | Iterable[Host],
        side_b: Host | Iterable[Host],
        *,
        one_way: bool = False,
        network: int | None = None,
        segment: int | None = None,
    ) -> None:
        """Nothing gets from one side to the other; one way: nothing from `side_a` to `side_b`. Earlier cuts stay."""
        pairs = {(a.number, b.number) for a in _several(side_a) for b in _several(side_b) if a is not b}
        if not one_way:
            pairs |= {(b, a) for a, b in pairs}
        for at in self._chosen(network, segment):
            self._faults[at].cuts |= pairs
            self._apply(at)

    def heal(self, network: int | None = None, segment: int | None = None) -> None:
        """Mends all cuts. Losses stay as they are."""
        for at in self._chosen(network, segment):
            self._faults[at].cuts.clear()
            self._apply(at)

    def loss(
        self,
        hosts: Host | Iterable[Host],
        probability: float,
        *,
        port: int | None = None,
        network: int | None = None,
        segment: int | None = None,
    ) -> None:
        """Each packet towards these hosts is lost with this probability, for each host by itself; 0 ends it.

        With a port: UDP packets to that port alone. ARP and neighbour discovery are spared: losing them costs seconds
        and says nothing about who is tested. Large sends that are cut up late are lost whole: see `segmentation`.
        """
        assert 0.0 <= probability <= 1.0
        for at in self._chosen(network, segment):
            losses = self._faults[at].losses
            for host in _several(hosts):
                losses.pop((host.number, port), None)
                if probability:
                    losses[host.number, port] = Loss(host.number, port, probability)
            self._apply(at)

    def bandwidth(
        self,
        hosts: Host | Iterable[Host],
        rate: str | None,
        *,
        network: int | None = None,
        segment: int | None = None,
    ) -> None:
        """A host's own link carries so much each way ("100mbit"), with a queue of 50 ms; None: as much as it can."""
        for at in self._chosen(network, segment):
            for host in _several(hosts):
                if at in host.devices():
                    self._fabrics[at].bandwidth(host.namespace, host.number, rate)

    def segmentation(self, on: bool) -> None:
        """Whether a large UDP send crosses the network in one piece, as it does between namespaces at first.

        Off: it is cut into packets on leaving the host, as on a real wire. Loss tests need that, or whole sends are
        lost. With a switch it is always off.
        """
        for host in self._hosts:
            for at in host.devices():
                if at // self.networks not in self._switched:
                    host.command("ethtool", "-K", f"eth{at}", "tx-udp-segmentation", "on" if on else "off")

    def mtu(self, size: int) -> None:
        """How large packets on the links of all hosts may be. The kernel's bridge alone can do that."""
        for host in self._hosts:
            for at in host.devices():
                fabric = self._fabrics[at]
                if not isinstance(fabric, Bridge):
                    raise RigError(f"segment {at // self.networks} has a switch, whose MTU stays as it is")
                fabric.mtu(host.namespace, host.number, size)

    def disturb(
        self,
        link: Link,
        sources: Host | Iterable[Host] | None = None,
        targets: Host | Iterable[Host] | None = None,
        *,
        network: int | None = None,
        segment: int | None = None,
    ) -> None:
        """What links do to packets on the way from sources to targets (None: all), on the segments with a switch."""
        chosen = list(self._chosen(network, segment))
        for at in [at for at in chosen if at // self.networks in self._switched] or chosen:
            self._switch(at).disturb(link, _numbers(sources), _numbers(targets))

    def counters(self, network: int = 0, segment: int = 0) -> dict[str, int]:
        """What the switch did so far: forwarded, lost, duplicated, late, corrupted, swapped, overflowed."""
        return self._switch(segment * self.networks + network).counters()

    def _switch(self, at: int) -> SwitchClient:
        fabric = self._fabrics[at]
        if not isinstance(fabric, SwitchClient):
            raise RigError(
                f"segment {at // self.networks} has the kernel's bridge, which cannot do that: Hosts(…, switch=True)"
            )
        return fabric

    def _chosen(self, network: int | None, segment: int | None) -> Iterator[int]:
        for at in range(len(self._fabrics)):
            if segment in (None, at // self.networks) and network in (None, at % self.networks):
                yield at

    def _apply(self, at: int) -> None:
        self._fabrics[at].apply(self._faults[at])


def _several(hosts: Host | Iterable[Host]) -> list[Host]:
    return [hosts] if isinstance(hosts, Host) else list(hosts)


def _numbers(hosts: Host | Iterable[Host] | None) -> list[int]:
    return EVERYBODY if hosts is None else [host.number for host in _several(hosts)]


def _has_ipv6() -> bool:
    return Path("/proc/sys/net/ipv6").exists()


def _skip_address_checks() -> None:
    """An IPv6 address is not usable until a second of asking who else has it; here nobody has."""
    if _has_ipv6():
        Path("/proc/sys/net/ipv6/conf/default/accept_dad").write_text("0")
