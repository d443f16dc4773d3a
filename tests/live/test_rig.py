"""The test network does what it is told: proved with plain UDP sockets and counted arrivals.

A burst is followed by an end mark, sent when the fault is over, so a receiver knows when to stop counting.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from rig import Host, Hosts, Link, RigError, why_not

GROUP = "239.192.79.1"
GROUP6 = "ff15::4f01"
PORT = 5405
END = 0xFFFFFFFF
PROBE = END - 1
PROBE_S = 0.1
SIZE = 1000
PATIENCE_S = 100.0
BUFFER_SIZE = 16 << 20
UDP_SEGMENT = 103

needs_hosts = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
needs_switch = pytest.mark.skipif(why_not(switch=True) is not None, reason=why_not(switch=True) or "")


@contextmanager
def closing(sockets: Sequence[socket.socket]) -> Iterator[None]:
    try:
        yield
    finally:
        for each in sockets:
            each.close()


def receiver(host: Host, network: int = 0, port: int = PORT, segment: int | None = None) -> socket.socket:
    with host.inside():
        listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), BUFFER_SIZE)
    listening.bind((GROUP, port))
    member = socket.inet_aton(GROUP) + socket.inet_aton(host.address(network, segment))
    listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    listening.settimeout(PATIENCE_S)
    return listening


def sender(host: Host, network: int = 0, port: int = PORT, segment: int | None = None) -> socket.socket:
    with host.inside():
        sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own = socket.inet_aton(host.address(network, segment))
    sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
    sending.connect((GROUP, port))
    return sending


def packet(number: int, size: int = SIZE) -> bytes:
    return struct.pack("!I", number).ljust(size, b"\0")


def burst(sending: socket.socket, count: int) -> None:
    for number in range(count):
        sending.send(packet(number))


def arrivals(listening: socket.socket) -> list[int]:
    """The numbers of what came before the end mark, in the order of arrival."""
    numbers: list[int] = []
    while True:
        number: int = struct.unpack_from("!I", listening.recv(1 << 16))[0]
        if number == END:
            return numbers
        if number != PROBE:  # a late one
            numbers.append(number)


def reach(sending: socket.socket, listening: socket.socket) -> None:
    """Until the first packet comes through: a port of a bridge, or a place in a group, may take a moment."""
    listening.settimeout(PROBE_S)
    for _ in range(int(PATIENCE_S / PROBE_S)):
        sending.send(packet(PROBE))
        try:
            listening.recv(1 << 16)
            break
        except TimeoutError:
            pass
    listening.settimeout(PATIENCE_S)


def counted(hosts: Hosts, count: int, end_fault: Callable[[], None], source: int = 0) -> list[list[int]]:
    """What each other host gets of a burst, the fault being over before the end mark is sent."""
    listening = [receiver(host) for at, host in enumerate(hosts) if at != source]
    sending = sender(hosts[source])
    with closing([sending, *listening]):
        burst(sending, count)
        end_fault()
        sending.send(packet(END))
        return [arrivals(each) for each in listening]


def nothing() -> None:
    pass


# Hosts


@needs_hosts
@pytest.mark.parametrize("switch", [False, pytest.param(True, marks=needs_switch)])
def test_everybody_hears_multicast(switch: bool) -> None:
    with Hosts(4, switch=switch) as hosts:
        for source in range(4):
            for host in hosts:
                if host is not hosts[source]:
                    with closing([sending := sender(hosts[source]), listening := receiver(host)]):
                        reach(sending, listening)
            assert counted(hosts, 200, nothing, source) == [list(range(200))] * 3


@needs_hosts
@pytest.mark.parametrize("switch", [False, pytest.param(True, marks=needs_switch)])
def test_everybody_hears_unicast_and_ipv6(switch: bool) -> None:
    with Hosts(2, switch=switch) as hosts:
        with hosts[1].inside():
            plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            modern = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            device = socket.if_nametoindex("eth0")
        with hosts[0].inside():
            sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sending6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            source_device = socket.if_nametoindex("eth0")
        with closing([plain, modern, sending, sending6]):
            plain.bind((hosts[1].address(), PORT))
            modern.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            modern.bind(("::", PORT))
            member = socket.inet_pton(socket.AF_INET6, GROUP6) + struct.pack("@I", device)
            modern.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
            plain.settimeout(PATIENCE_S)
            modern.settimeout(PATIENCE_S)

            sending.sendto(b"unicast", (hosts[1].address(), PORT))
            assert plain.recv(100) == b"unicast"
            sending6.sendto(b"unicast 6", (hosts[1].address6(), PORT))
            data, source = modern.recvfrom(100)
            assert (data, source[0]) == (b"unicast 6", hosts[0].address6())
            sending6.sendto(b"multicast 6", (GROUP6, PORT, 0, source_device))
            assert modern.recv(100) == b"multicast 6"


@needs_hosts
@pytest.mark.parametrize("switch", [False, pytest.param(True, marks=needs_switch)])
def test_networks_are_apart(switch: bool) -> None:
    with Hosts(2, networks=2, switch=switch) as hosts:
        listening = [receiver(hosts[1], network, PORT + network) for network in range(2)]
        sending = [sender(hosts[0], network, PORT + network) for network in range(2)]
        with closing([*listening, *sending]):
            hosts.cut(hosts[0], hosts[1], network=0)
            for each in sending:
                each.send(packet(7))
            sending[1].send(packet(END))
            assert arrivals(listening[1]) == [7]
            hosts.heal()
            sending[0].send(packet(END))
            assert arrivals(listening[0]) == []


# Hosts 1 2 on segment 0, 2 3 on segment 1: host 2 has a leg in both.
TWO_SEGMENTS = ([1, 2], [2, 3])


@needs_hosts
@pytest.mark.parametrize("switch", [[], pytest.param([1], marks=needs_switch), pytest.param(True, marks=needs_switch)])
def test_a_segment_is_heard_by_its_hosts_and_a_fault_of_one_leaves_the_other_alone(switch: bool | list[int]) -> None:
    with Hosts(3, segments=TWO_SEGMENTS, switch=switch) as hosts:
        # A port of its own for each segment: a socket hears a group on every leg of its host.
        first, second = receiver(hosts[0]), receiver(hosts[2], port=PORT + 1)
        sending = [sender(hosts[1], port=PORT + segment, segment=segment) for segment in range(2)]
        outsider = sender(hosts[0], port=PORT + 1)
        with closing([first, second, outsider, *sending]):
            outsider.send(packet(1))  # on segment 0, where host 3 has no leg
            hosts.cut(hosts[1], hosts, segment=0)
            for each in sending:
                each.send(packet(2))
            sending[1].send(packet(END))
            assert arrivals(second) == [2]
            hosts.heal(segment=0)
            sending[0].send(packet(END))
            assert arrivals(first) == []


@needs_hosts
def test_addresses_follow_the_legs_of_a_host() -> None:
    with Hosts(3, networks=2, segments=TWO_SEGMENTS) as hosts:
        assert hosts[1].devices() == [0, 1, 2, 3]
        assert (hosts[0].address(), hosts[2].address(), hosts[2].address(1)) == ("10.77.0.1", "10.77.2.3", "10.77.3.3")
        listening = receiver(hosts[1], network=1, segment=1)
        with closing([listening, sending := sender(hosts[2], network=1)]):
            sending.send(packet(END))
            assert listening.recvfrom(SIZE)[1][0] == "10.77.3.3"


@needs_hosts
def test_programs_run_on_their_host_and_end_with_it() -> None:
    with Hosts(2) as hosts:
        devices = "import socket; print([name for _, name in socket.if_nameindex()])"
        assert "eth0" in hosts[0].command(sys.executable, "-c", devices)
        waiting = "import signal; print('ready', flush=True); signal.pause()"
        running = hosts[0].run([sys.executable, "-c", waiting], stdout=-1)
        paused = hosts[1].run(["sleep", "1000"])
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        paused.send_signal(signal.SIGSTOP)
        names = [host.namespace for host in hosts]
        assert all(Path("/run/netns", name).exists() for name in names)
    assert running.returncode == -signal.SIGTERM
    assert paused.returncode == -signal.SIGTERM
    assert not any(Path("/run/netns", name).exists() for name in names)


@needs_hosts
def test_forked_workers_run_on_their_host_as_processes_of_their_own() -> None:
    with Hosts(2) as hosts:
        one, two = (host.fork("tests.live.echo_worker", f"n{host.number}") for host in hosts)
        for worker, name in ((one, b"n1"), (two, b"n2")):
            assert worker.stdin is not None and worker.stdout is not None
            said, pid, leader, *devices = worker.stdout.readline().split()
            assert said == name and int(pid) == int(leader) == worker.pid and b"eth0" in devices
            worker.stdin.write(b"hello\n")
            worker.stdin.flush()
            assert worker.stdout.readline() == b"hello\n"
        one.send_signal(signal.SIGKILL)
        assert one.wait(PATIENCE_S) == -signal.SIGKILL and one.stdout is not None and one.stdout.read() == b""
        two.send_signal(signal.SIGSTOP)
        with pytest.raises(subprocess.TimeoutExpired):
            two.wait(0)
    assert two.poll() is not None, "stopped ones are ended, too"


@needs_hosts
def test_everything_goes_when_a_test_fails() -> None:
    names: list[str] = []
    with suppress(ZeroDivisionError), Hosts(2, switch=why_not(switch=True) is None) as hosts:
        names += [host.namespace for host in hosts]
        running = hosts[0].run(["sleep", "1000"])
        _ = 1 / 0
    assert running.poll() is not None
    assert names
    assert not any(Path("/run/netns", name).exists() for name in names)


@needs_hosts
@pytest.mark.parametrize(
    "start",
    [
        "run(['sleep', '1000'])",
        "fork('tests.live.echo_worker', 'n1'); program.stdout.readline(); program.send_signal(signal.SIGSTOP)",
    ],
    ids=["run", "forked, and stopped"],
)
def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(start: str) -> None:
    code = (
        "import os, signal, sys; from rig import Hosts; hosts = Hosts(2); hosts.__enter__();"
        f"program = hosts[0].{start};"
        "print(hosts[0].namespace, program.pid, flush=True); sys.stdin.read() or os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = str(Path(__file__).parents[2])
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdin=-1, stdout=-1, text=True) as maker:
        assert maker.stdin is not None
        assert maker.stdout is not None
        name, pid = maker.stdout.readline().split()
        program = os.pidfd_open(int(pid))
        with Hosts(1):
            assert Path("/run/netns", name).exists()
        maker.stdin.close()
        assert maker.wait(PATIENCE_S) == -signal.SIGKILL
    # It dies with its maker.
    assert select.select([program], [], [], PATIENCE_S)[0]
    os.close(program)
    with Hosts(1):
        assert not Path("/run/netns", name).exists()


# Faults of both


@needs_hosts
@pytest.mark.parametrize("switch", [False, pytest.param(True, marks=needs_switch)])
def test_a_cut_parts_two_sides_and_heals(switch: bool) -> None:
    with Hosts(4, switch=switch) as hosts:
        hosts.cut(hosts[:2], hosts[2:])
        assert counted(hosts, 50, hosts.heal) == [list(range(50)), [], []]
        assert counted(hosts, 50, nothing) == [list(range(50))] * 3


@needs_hosts
@pytest.mark.parametrize("switch", [False, pytest.param(True, marks=needs_switch)])
def test_a_one_way_cut_lets_the_other_way_pass(switch: bool) -> None:
    with Hosts(2, switch=switch) as hosts:
        hosts.cut(hosts[0], hosts[1], one_way=True)
        assert counted(hosts, 50, nothing, source=1) == [list(range(50))]
        assert counted(hosts, 50, hosts.heal, source=0) == [[]]


@needs_hosts
@pytest.mark.parametrize("switch", [False, pytest.param(True, marks=needs_switch)])
def test_loss_strikes_each_receiver_by_itself(switch: bool) -> None:
    with Hosts(4, switch=switch) as hosts:
        hosts.loss(hosts[1:3], 0.2)
        first, second, spared = counted(hosts, 2000, lambda: hosts.loss(hosts, 0))
        assert 1400 < len(first) < 1800
        assert 1400 < len(second) < 1800
        assert first != second
        assert spared == list(range(2000))


@needs_hosts
@pytest.mark.parametrize("switch", [False, pytest.param(True, marks=needs_switch)])
def test_loss_may_be_of_one_port(switch: bool) -> None:
    with Hosts(2, switch=switch) as hosts:
        hosts.loss(hosts, 1.0, port=PORT + 1)
        listening, deaf = receiver(hosts[1]), receiver(hosts[1], port=PORT + 1)
        sending, unheard = sender(hosts[0]), sender(hosts[0], port=PORT + 1)
        with closing([listening, deaf, sending, unheard]):
            burst(unheard, 50)
            burst(sending, 50)
            hosts.loss(hosts, 0, port=PORT + 1)
            sending.send(packet(END))
            unheard.send(packet(END))
            assert arrivals(listening) == list(range(50))
            assert arrivals(deaf) == []


@needs_hosts
@pytest.mark.parametrize("switch", [False, pytest.param(True, marks=needs_switch)])
def test_a_narrow_link_drops_what_its_queue_cannot_hold(switch: bool) -> None:
    with Hosts(2, switch=switch) as hosts:
        hosts.bandwidth(hosts[0], "1mbit")
        (narrow,) = counted(hosts, 500, lambda: hosts.bandwidth(hosts[0], None))
        assert len(narrow) < 450
        assert counted(hosts, 500, nothing) == [list(range(500))]


# Segmentation

SEGMENTS = 40
SENDS = 100


def large_sends(hosts: Hosts) -> list[int]:
    """How many segments arrived of each send that lost some, half of the packets being lost."""
    hosts.loss(hosts[1], 0.5)
    listening, sending = receiver(hosts[1]), sender(hosts[0])
    with closing([listening, sending]):
        sending.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, SIZE)
        for number in range(SENDS):
            sending.send(packet(number) * SEGMENTS)
        hosts.loss(hosts, 0)
        sending.send(packet(END))
        numbers = arrivals(listening)
    return [numbers.count(number) for number in range(SENDS) if numbers.count(number) < SEGMENTS]


@needs_hosts
def test_without_segmentation_a_large_send_is_lost_in_parts() -> None:
    with Hosts(2) as hosts:
        hosts.segmentation(False)
        assert any(large_sends(hosts))
        hosts.segmentation(True)
        whole = large_sends(hosts)
        assert whole
        assert not any(whole)


# The switch alone


@needs_switch
def test_delayed_packets_stay_in_order() -> None:
    with Hosts(3, switch=True) as hosts:
        hosts.disturb(Link(delay_ms=2, jitter_ms=3), hosts[0], hosts[1])
        assert counted(hosts, 300, nothing) == [list(range(300))] * 2


@needs_switch
def test_a_delayed_packet_comes_after_one_of_another_link() -> None:
    with Hosts(3, switch=True) as hosts:
        hosts.disturb(Link(delay_ms=60_000), hosts[0], hosts[2])
        listening = [receiver(host) for host in hosts[1:]]
        sending = [sender(host) for host in hosts[:2]]
        with closing([*listening, *sending]):
            sending[0].send(packet(1))
            assert listening[0].recv(SIZE) == packet(1)
            sending[1].send(packet(2))
            assert listening[1].recv(SIZE) == packet(2)


@needs_switch
def test_reordering_loses_nothing() -> None:
    with Hosts(2, switch=True) as hosts:
        listening, sending = receiver(hosts[1]), sender(hosts[0])
        with closing([listening, sending]):
            hosts.disturb(Link(reorder=0.3, held_ms=20))
            burst(sending, 500)
            numbers = [struct.unpack_from("!I", listening.recv(SIZE))[0] for _ in range(500)]
        assert numbers != list(range(500))
        assert sorted(numbers) == list(range(500))
        assert hosts.counters()["late"] > 0


@needs_switch
def test_duplicates_arrive_beside_the_originals() -> None:
    with Hosts(2, switch=True) as hosts:
        hosts.disturb(Link(duplicate=1.0))
        (numbers,) = counted(hosts, 100, nothing)
        assert numbers == sorted([*range(100), *range(100)])


@needs_switch
def test_a_link_loses_on_its_own() -> None:
    with Hosts(3, switch=True) as hosts:
        hosts.disturb(Link(loss=0.3), hosts[0], hosts[1])
        struck, spared = counted(hosts, 1000, lambda: hosts.disturb(Link()))
        assert 550 < len(struck) < 850
        assert spared == list(range(1000))


@needs_switch
def test_a_pair_with_a_rate_loses_what_its_queue_cannot_hold_and_keeps_the_rest_in_order() -> None:
    """The queue holds 20 frames of 1,042 bytes, and a burst of 500 is faster than 8 Mbit/s by far."""
    with Hosts(3, switch=True) as hosts:
        hosts.disturb(Link(rate=8_000_000, queue=20 * 1042), hosts[0], hosts[1])
        narrow, spared = counted(hosts, 500, lambda: hosts.disturb(Link()))
        assert narrow[:20] == list(range(20)) and narrow == sorted(narrow)
        assert len(narrow) + hosts.counters()["overflowed"] == 500
        assert hosts.counters()["overflowed"] > 100
        assert spared == list(range(500))


@needs_switch
def test_a_pair_with_a_rate_and_no_bound_loses_nothing_and_comes_after_one_of_another_pair() -> None:
    """At 8 kbit/s the burst would take minutes; what another pair carries passes it."""
    with Hosts(3, switch=True) as hosts:
        hosts.disturb(Link(rate=8000), hosts[0], hosts[2])
        listening = receiver(hosts[2])
        with closing([listening, slow := sender(hosts[0]), quick := sender(hosts[1])]):
            burst(slow, 100)
            assert hosts.counters()["overflowed"] == 0  # all of it waits
            quick.send(packet(END))
            assert arrivals(listening) == []
    with Hosts(2, switch=True) as hosts:
        hosts.disturb(Link(rate=8_000_000, delay_ms=1), hosts[0], hosts[1])
        assert counted(hosts, 200, nothing) == [list(range(200))]


@needs_switch
def test_a_wide_area_between_bridges() -> None:
    with Hosts(4, segments=([1, 2], [3, 4], [1, 2, 3, 4]), switch=[2]) as hosts:
        hosts.disturb(Link(loss=1.0), hosts[:2], hosts[3], segment=2)
        with pytest.raises(RigError, match="segment 0 has the kernel's bridge"):
            hosts.disturb(Link(loss=1.0), segment=0)
        listening = [receiver(host, segment=2) for host in hosts[2:]]
        near = receiver(hosts[1], port=PORT + 1)
        sending, beside = sender(hosts[0], segment=2), sender(hosts[0], port=PORT + 1)
        with closing([*listening, near, sending, beside]):
            burst(sending, 20)
            burst(beside, 20)
            hosts.disturb(Link(), segment=2)
            for each in (sending, beside):
                each.send(packet(END))
            assert [arrivals(each) for each in (*listening, near)] == [list(range(20)), [], list(range(20))]


@needs_switch
def test_flipped_bits_are_noticed_by_checksums() -> None:
    with Hosts(2, switch=True) as hosts:
        hosts.disturb(Link(corrupt=1.0))
        (numbers,) = counted(hosts, 200, lambda: hosts.disturb(Link()))
        assert len(numbers) < 20  # a flipped bit in a field that nobody checks does no harm
        assert hosts.counters()["corrupted"] >= 200


@needs_switch
def test_swapped_words_are_not_noticed_by_checksums() -> None:
    with Hosts(2, switch=True) as hosts:
        listening, sending = receiver(hosts[1]), sender(hosts[0])
        with closing([listening, sending]):
            hosts.disturb(Link(swap=1.0))
            original = bytes(range(100))
            for _ in range(50):
                sending.send(original)
            received = [listening.recv(SIZE) for _ in range(50)]
        assert original not in received
        assert all(sorted(data) == sorted(original) for data in received)


@needs_switch
def test_the_bridge_says_that_it_cannot_disturb() -> None:
    with Hosts(1) as hosts, pytest.raises(RigError, match="switch=True"):
        hosts.disturb(Link(delay_ms=1))
