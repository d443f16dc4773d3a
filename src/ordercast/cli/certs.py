"""`ordercast certs new | server | client | token | renew | show | bearer`: certificates of daemons and clients.

No command takes a secret, or shows one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from ordercast.cli.tables import new_table
from ordercast.cli.terminal import output, write_json
from ordercast.daemon.authority import (
    TOKENS,
    CertificateKind,
    CertificateTold,
    issue,
    new_authority,
    new_token,
    read_certificate,
)
from ordercast.daemon.authority import renew as renewed
from ordercast.daemon.status.bearer import new_bearer_file


def new(folder: Path, name: str) -> int:
    told = new_authority(folder, name)
    _say(
        f"{folder} has the authority {told.authority}, until {told.ends.date()}: keep authority.pem here. Next, for "
        f"each daemon: ordercast certs server {folder} NAME --host HOST"
    )
    return 0


def server(folder: Path, name: str, host: list[str] | None, days: int) -> int:
    path, told = issue(folder, name, CertificateKind.DAEMON, host or (), days)
    _say(
        f"{path} is for the daemon {name} at {', '.join(told.hosts)}, until {told.ends.date()}: copy it to that host, "
        f'and write certificates = "FOLDER" in [clients]. For each client: ordercast certs client {folder} NAME'
    )
    return 0


def client(folder: Path, name: str, days: int) -> int:
    path, told = issue(folder, name, CertificateKind.CLIENT, (), days)
    _say(
        f"{path} is for the client {name}, until {told.ends.date()}: give it as credentials, or export "
        f"ORDERCAST_CREDENTIALS={path}"
    )
    return 0


def token(folder: Path, name: str) -> int:
    path = new_token(folder, name)
    _say(
        f"{path} is for the client {name}: give it as credentials. Copy {folder / TOKENS}, which has a hash of it, to "
        "the folders of certificates of all daemons, and run `ordercast reload` at each"
    )
    return 0


def renew(file: Path, authority: Path, host: list[str] | None, days: int) -> int:
    told = renewed(file, authority, days, host or ())
    _say(f"{file} is valid until {told.ends.date()}; whoever has it open takes it within a minute")
    return 0


def bearer(file: Path) -> int:
    new_bearer_file(file)
    _say(
        f'{file} has a token: name it in [status]: token = "{file}"; whoever reads shows it: '
        f"ORDERCAST_STATUS_TOKEN={file} ordercast status HOST, or credentials_file of Prometheus"
    )
    return 0


def show(files: list[Path], *, as_json: bool) -> int:
    found = [(file, read_certificate(file)) for file in files]
    if as_json:
        write_json({"certificates": [_document(file, told) for file, told in found]})
        return 0
    table = new_table("file", "name", "is a", "hosts", "until", "days left", "authority")
    for file, told in found:
        left = told.days_left(datetime.now(UTC))
        row = (str(file), told.name, told.kind.value, ", ".join(told.hosts), str(told.ends.date()), str(left))
        table.add_row(*row, told.authority)
    output().print(table)
    return 0


def _document(file: Path, told: CertificateTold) -> dict[str, object]:
    return {
        "file": str(file),
        "name": told.name,
        "kind": told.kind.value,
        "hosts": list(told.hosts),
        "begins": told.begins.isoformat(),
        "ends": told.ends.isoformat(),
        "days_left": told.days_left(datetime.now(UTC)),
        "authority": told.authority,
    }


def _say(text: str) -> None:
    output().print(Text(text))
