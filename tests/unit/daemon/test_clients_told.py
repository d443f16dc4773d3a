"""What an operator is told of clients: rates between two looks, and a table of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ordercast.cli.clients import all_clients, clients_page
from ordercast.cli.terminal import SafeConsole
from ordercast.daemon import management
from ordercast.daemon.clients.told import ClientTold, client_documents
from ordercast.session.frames import decode_document, encode_document
from ordercast.session.pieces import HEADER, FrameKind


def client(name: str, *, sent: int = 0, given: int = 0, waiting: int = 0, is_holding: bool = False) -> ClientTold:
    groups = ("audit", "orders", "prices", "stock", "tills")
    return ClientTold(name, "user 0", 75.2, groups, "wait", waiting, 1 << 26, sent, given, 0, is_holding)


def _drawn(document: dict[str, Any]) -> str:
    console = SafeConsole()
    console.width = 140
    with console.capture() as shown:
        for part in clients_page(document):
            console.print(part)
    return shown.get()


def test_rates_are_those_between_two_looks() -> None:
    before = [client("bob@n1", sent=10, given=400), client("eve@n1", sent=90)]
    now = [client("eve@n1", sent=4), client("bob@n1", sent=30, given=400), client("al@n1", sent=6)]
    told = client_documents(before, now, 2.0)
    rates = [(row["name"], row["sent_per_second"], row["given_per_second"]) for row in told]
    assert rates == [("al@n1", 3.0, 0.0), ("bob@n1", 10.0, 0.0), ("eve@n1", 2.0, 0.0)], "eve is another one by now"


def test_who_is_behind_comes_first() -> None:
    now = [client("al@n1"), client("bob@n1", waiting=1 << 25, is_holding=True)]
    text = _drawn({"daemon": "n1", "clients": client_documents((), now, 1.0)})
    assert text.index("bob@n1") < text.index("al@n1")
    for words in ("32 MiB of 64 MiB", "audit orders prices stock and 1 more", "2 clients of n1", "waits for bob@n1"):
        assert words in text, text


@dataclass
class Daemon:
    """A daemon that has these clients; its answers go through the wire format."""

    told: list[ClientTold]
    questions: list[dict[str, Any]] = field(default_factory=list)

    def manage(self, question: dict[str, Any]) -> dict[str, Any]:
        self.questions.append(question)
        host = SimpleNamespace(
            config=SimpleNamespace(name="n1"), serving=SimpleNamespace(clients=lambda: list(self.told))
        )
        answer = asyncio.run(management.manage(cast(Any, host), question))
        return decode_document(encode_document(FrameKind.MANAGED, answer)[HEADER.size :])


@pytest.fixture(autouse=True)
def rates_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(management, "RATE_S", 1e-6)


def test_five_thousand_clients_are_told_page_by_page() -> None:
    daemon = Daemon([client(f"a-client-of-a-long-name-{number}@n1") for number in range(5000)])
    document = all_clients(daemon.manage)
    assert document.keys() == {"daemon", "clients"}
    assert [row["name"] for row in document["clients"]] == sorted(one.name for one in daemon.told)
    assert len(daemon.questions) > 1


def test_whoever_asks_for_no_page_gets_the_first_and_how_many_are_left_out() -> None:
    daemon = Daemon([client(f"a-client-of-a-long-name-{number}@n1") for number in range(5000)])
    document = daemon.manage({"do": "clients"})
    assert 1000 < len(document["clients"]) == 5000 - document["left_out"]


def test_clients_in_very_many_groups_fit_into_pages_too() -> None:
    groups = tuple(f"{number:064}" for number in range(20_000))
    daemon = Daemon([client(name)._replace(groups=groups) for name in ("al@n1", "bob@n1")])
    al, bob = all_clients(daemon.manage)["clients"]
    assert al["groups"] == bob["groups"] == list(groups[:10_000]) and al["more_groups"] == 10_000
    assert "and 19996 more" in _drawn({"daemon": "n1", "clients": [al]})


def test_a_daemon_of_an_older_version_tells_of_all_clients_at_once() -> None:
    rows = client_documents((), [client("al@n1"), client("bob@n1")], 1.0)
    answers = [{"daemon": "n1", "clients": rows}]
    assert all_clients(lambda question: answers.pop()) == {"daemon": "n1", "clients": rows}
