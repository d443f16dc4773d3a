"""The units that are shipped, played in their sandbox: a daemon that serves local clients, and an archiver beside it.

The units may write nothing but their own folders, see no home and no /tmp, have no privilege, and few system calls.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig.programs import ROOT, end
from rig.sandbox import INSIDE, program_of, unit_from, why_no_sandbox

from tests.ports import own_ports

UNITS = ROOT / "packaging"
SOURCE = ROOT / "src"
PROGRAM = [sys.executable, "-m", "ordercast"]
KEPT = [str(place) for place in (SOURCE, ROOT / "rig", UNITS, sys.prefix, sys.base_prefix)]
ALICE = 61_111  # a user of the machine who is in no group of the daemon
IN_GROUP = 61_999
PATIENCE_S = 60

pytestmark = pytest.mark.skipif(why_no_sandbox() is not None, reason=str(why_no_sandbox()))

CLUSTER = """
cluster = "units {number}"

[network]
port = {port}

[security]
insecure = true

[state]
folder = "/var/lib/ordercast"

[status]
port = {status}

[clients]
mode = "{mode}"

[[rights]]
who = ["user:{alice}"]
send = ["orders"]

[nodes.alpha]
id = 1
address = "127.0.0.1"
"""


@contextmanager
def played(unit: Path, program: list[str], *more: Path) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """A program in the unit's sandbox, and what it tells systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        name = f"ordercast-{os.getpid()}-{unit.stem}"
        notify.bind("\0" + name)
        notify.settimeout(PATIENCE_S)
        environment = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": "@" + name, "PYTHONPATH": str(SOURCE)}
        kept = [*KEPT, *map(str, more)]
        sandbox = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "rig.sandbox"]
        process = subprocess.Popen(
            [*sandbox, str(unit), *kept, "--", *program], cwd=ROOT, env=environment | {"PYTHONPATH": f"{ROOT}:{SOURCE}"}
        )
        try:
            yield process, notify
        finally:
            end([process])


@contextmanager
def daemon(folder: Path, unit: Path = UNITS / "ordercast.service", mode: str = "0666") -> Iterator[int]:
    """The process of a daemon that has said that it is ready."""
    file = folder / "cluster.toml"
    port = own_ports()
    file.write_text(CLUSTER.format(number=os.getpid(), port=port, status=port + 3, mode=mode, alice=ALICE), "utf-8")
    file.chmod(0o644)
    folder.chmod(0o755)
    words = program_of(
        unit_from(unit), program=PROGRAM, replaced={"/etc/ordercast/cluster.toml": str(file)}, environment={}
    )
    with played(unit, words, folder) as (process, notify):
        while select.select([notify], [], [], 0.2)[0] == []:
            assert process.poll() is None, "the daemon has ended"
        assert notify.recv(1000).startswith(b"READY=1")
        yield process.pid


def as_user(user: int, inside: int, *words: str, group: int | None = None) -> subprocess.CompletedProcess[str]:
    """A command of another user of the machine, who sees the /run that the daemon has."""
    identity = [f"--reuid={user}", f"--regid={group or user}", "--clear-groups"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        ["nsenter", f"--target={inside}", "--mount", "setpriv", *identity, *PROGRAM, *words],
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE_S,
    )


def test_the_daemon_serves_users_of_the_machine_who_name_no_address(tmp_path: Path) -> None:
    with daemon(tmp_path) as inside:
        sent = as_user(ALICE, inside, "send", "orders", "one", "--confirm")
        assert sent.returncode == 0, sent
        asked = as_user(ALICE, inside, "clients", "--json")
        assert asked.returncode == 0, asked


def test_the_daemon_knows_which_user_is_there(tmp_path: Path) -> None:
    with daemon(tmp_path) as inside:
        refused = as_user(ALICE, inside, "send", "payroll", "one", "--confirm")
        assert refused.returncode != 0 and f"user:{ALICE}" in refused.stderr, refused


def test_without_a_right_to_the_socket_nobody_connects_and_its_group_does(tmp_path: Path) -> None:
    with daemon(tmp_path, mode="0660") as inside:
        refused = as_user(ALICE, inside, "send", "orders", "one", "--confirm")
        assert refused.returncode != 0 and "Permission denied" in refused.stderr, refused
        sent = as_user(ALICE, inside, "send", "orders", "one", "--confirm", group=IN_GROUP)
        assert sent.returncode == 0, sent


def test_the_archiver_keeps_what_is_sent(tmp_path: Path) -> None:
    with daemon(tmp_path, mode="0600") as inside:
        path = UNITS / "ordercast-archive.service"
        variables = {"ARCHIVED_GROUPS": "orders prices", "ARCHIVE_OPTIONS": "--json"}
        words = program_of(unit_from(path), program=PROGRAM, replaced={}, environment=variables)
        sandbox = ["nsenter", f"--target={inside}", "--mount", sys.executable, "-m", "rig.sandbox", INSIDE, str(path)]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{SOURCE}"}
        archiver = subprocess.Popen([*sandbox, "--", *words], stdout=subprocess.PIPE, env=environment)
        assert archiver.stdout is not None
        try:
            assert b"/var/lib/ordercast-archive" in archiver.stdout.readline()
            told = ""
            while "orders" not in told:
                assert as_user(0, inside, "send", "orders", "one", "--confirm").returncode == 0
                assert archiver.poll() is None
                told = as_user(0, inside, "archive", "list", "--json", "--dir", "/var/lib/ordercast-archive").stdout
        finally:
            end([archiver])
            archiver.stdout.close()


@pytest.mark.parametrize("missing", ["RuntimeDirectory=ordercast", "RuntimeDirectoryMode=0755"])
def test_the_sandbox_is_one(tmp_path: Path, missing: str) -> None:
    """A unit without the line does not serve these users: what is tested above is the unit."""
    text = (UNITS / "ordercast.service").read_text(encoding="utf-8")
    assert missing in text
    other = tmp_path / "other.service"
    without = "RuntimeDirectoryMode=0700" if "Mode" in missing else ""
    other.write_text(text.replace(missing + "\n", without + "\n"), encoding="utf-8")
    with daemon(tmp_path, other) as inside:
        assert as_user(ALICE, inside, "send", "orders", "one", "--confirm").returncode != 0


@pytest.mark.parametrize("unit", sorted(UNITS.glob("*.service")), ids=lambda path: path.stem)
def test_systemd_understands_the_unit(unit: Path, tmp_path: Path) -> None:
    """Every key is known, with a value that it takes. The program itself need not be installed here."""
    (program, *_) = unit_from(unit)["ExecStart"][0].split()
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace(program, "/bin/true"), encoding="utf-8")
    told = subprocess.run(("systemd-analyze", "verify", "--man=no", str(copy)), capture_output=True, text=True)
    about = [line for line in told.stderr.splitlines() if unit.name in line]
    assert (told.returncode, about) == (0, []), told.stderr
