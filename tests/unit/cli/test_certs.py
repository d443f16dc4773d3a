"""`ordercast certs`, from an authority to a daemon that other hosts reach; and what each mistake is answered by."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ordercast.cli.main import run
from ordercast.daemon.authority import read_certificate
from ordercast.daemon.clients.certificates import certificates_of
from ordercast.daemon.config.file import load_config
from ordercast.daemon.config.node import SecurityConfig
from ordercast.model.errors import UsageError

FILE = """cluster = "x"
[clients]
address = "0.0.0.0"
port = 4700
{more}
[nodes.alpha]
id = 1
address = "127.0.0.1"
"""


def test_five_commands_make_everything_that_daemon_and_clients_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "certs"
    for words in (
        ("new", folder),
        ("server", folder, "alpha", "--host", "10.0.0.1", "--host", "alpha.example"),
        ("client", folder, "alice", "--days", "30"),
        ("token", folder, "billing"),
        ("renew", folder / "alice.pem", "--authority", folder),
    ):
        assert run(["certs", *map(str, words)]) == 0
    shown = capsys.readouterr().out
    assert "PRIVATE" not in shown and "Next, for each daemon" in " ".join(shown.split())
    assert all(os.stat(file).st_mode & 0o777 == 0o600 for file in folder.iterdir())
    assert run(["certs", "show", "--json", str(folder / "alpha.pem"), str(folder / "alice.pem")]) == 0
    alpha, alice = json.loads(capsys.readouterr().out)["certificates"]
    assert (alpha["hosts"], alpha["kind"], alice["kind"]) == (["10.0.0.1", "alpha.example"], "daemon", "client")
    assert alice["days_left"] in (364, 365) and alice["authority"] == alpha["authority"]
    (tmp_path / "cluster.toml").write_text(FILE.format(more='certificates = "certs"'))
    found = certificates_of(load_config(tmp_path / "cluster.toml", "alpha"))
    assert found is not None and found.told.name == "alpha" and found.warning() is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("client", "{0}/none", "alice"), "there is no authority in {0}/none: make one with `ordercast certs new"),
        (("new", "{0}/a"), "{0}/a/authority.pem is there already, and is not written over"),
        (("client", "{0}/a", "bob"), "{0}/a/bob.pem is there already"),
        (("client", "{0}/a", "../x"), "cannot be the name of a file here"),
        (("server", "{0}/a", "n1"), "under which names and addresses do clients reach n1?"),
        (
            ("server", "{0}/a", "n1", "--host", "h:47"),
            "'h:47' is no name or address of a host: write it without a port",
        ),
        (("show", "{0}/a/open.pem"), "can be read by others: run `chmod 600 {0}/a/open.pem`"),
        (("show", "{0}/a/tokens.toml"), "has no certificate"),
        (("renew", "{0}/a/authority.pem", "--authority", "{0}/a"), "is an authority: make another in a folder"),
        (("renew", "{0}/a/bob.pem", "--authority", "{0}/a"), "has a token, which has no end: make another with"),
    ],
)
def test_each_mistake_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert run(["certs", "new", str(tmp_path / "a")]) == run(["certs", "token", str(tmp_path / "a"), "bob"]) == 0
    (tmp_path / "a" / "open.pem").write_text("x")
    (tmp_path / "a" / "open.pem").chmod(0o644)
    assert run(["certs", *(word.format(tmp_path) for word in words)]) == 2
    assert sentence.format(tmp_path) in " ".join(capsys.readouterr().err.split())


def test_a_token_is_shown_as_one_with_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "certs"
    assert run(["certs", "new", str(folder)]) == run(["certs", "token", str(folder), "billing"]) == 0
    moved = (folder / "billing.pem").rename(tmp_path / "elsewhere.pem")
    capsys.readouterr()
    assert run(["certs", "show", "--json", str(moved), str(folder / "authority.pem")]) == 0
    token, authority = json.loads(capsys.readouterr().out)["certificates"]
    assert (token["name"], token["kind"], authority["kind"]) == ("billing", "token", "authority")
    assert token["authority"] == authority["authority"]


@pytest.mark.parametrize(("words", "maker"), [(("client",), "client"), (("server", "--host", "h"), "server")])
def test_another_authority_does_not_renew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], maker: str
) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder in (mine, other):
        assert run(["certs", "new", str(folder)]) == 0
    assert run(["certs", words[0], str(mine), "alice", *words[1:]]) == 0
    file = mine / "alice.pem"
    before, ids = file.read_bytes(), [read_certificate(one).authority for one in (file, other / "authority.pem")]
    capsys.readouterr()
    assert run(["certs", "renew", str(file), "--authority", str(other)]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"is of the authority {ids[0]}, and {other} has {ids[1]}: " in told
    assert f"`ordercast certs {maker} {other} alice`" in told
    assert file.read_bytes() == before


def test_a_port_that_other_hosts_reach_does_not_open_without_certificates(tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_text(FILE.format(more=""))
    config = load_config(tmp_path / "cluster.toml", "alpha")
    with pytest.raises(UsageError, match=r"other hosts reach the port of clients .* `ordercast certs new FOLDER`"):
        certificates_of(config)
    assert certificates_of(replace(config, clients=replace(config.clients, insecure=True))) is None
    assert certificates_of(replace(config, security=SecurityConfig(insecure=True))) is None
    assert certificates_of(replace(config, clients=replace(config.clients, address="127.0.0.1"))) is None
    absent = replace(config.clients, certificates=tmp_path / "none")
    with pytest.raises(UsageError, match=r"there is no file of certificates .*alpha.pem"):
        certificates_of(replace(config, clients=absent))
