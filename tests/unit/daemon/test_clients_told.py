"""What an operator is told of clients: rates between two looks, and a table of them."""

from __future__ import annotations

from ordercast.cli.clients import clients_page
from ordercast.cli.terminal import SafeConsole
from ordercast.daemon.clients.told import ClientTold, client_documents


def client(name: str, *, sent: int = 0, given: int = 0, waiting: int = 0, is_holding: bool = False) -> ClientTold:
    groups = ("audit", "orders", "prices", "stock", "tills")
    return ClientTold(name, "user 0", 75.2, groups, "wait", waiting, 1 << 26, sent, given, 0, is_holding)


def test_rates_are_those_between_two_looks() -> None:
    before = [client("bob@n1", sent=10, given=400), client("eve@n1", sent=90)]
    now = [client("eve@n1", sent=4), client("bob@n1", sent=30, given=400), client("al@n1", sent=6)]
    told = client_documents(before, now, 2.0)
    rates = [(row["name"], row["sent_per_second"], row["given_per_second"]) for row in told]
    assert rates == [("al@n1", 3.0, 0.0), ("bob@n1", 10.0, 0.0), ("eve@n1", 2.0, 0.0)], "eve is another one by now"


def test_who_is_behind_comes_first() -> None:
    now = [client("al@n1"), client("bob@n1", waiting=1 << 25, is_holding=True)]
    console = SafeConsole()
    console.width = 140
    with console.capture() as shown:
        for part in clients_page({"daemon": "n1", "clients": client_documents((), now, 1.0)}):
            console.print(part)
    text = shown.get()
    assert text.index("bob@n1") < text.index("al@n1")
    for words in ("32 MiB of 64 MiB", "audit orders prices stock and 1 more", "2 clients of n1", "waits for bob@n1"):
        assert words in text, text
