"""What the page on the client API says of events, errors and limits is so; pictures are as they are drawn."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import ordercast
from ordercast.api.target import RETRY_MAX_S, RETRY_MIN_S
from ordercast.api.thread import CROSSING_SIZE_MAX
from ordercast.daemon.clients.connection import SILENCE_MAX_S
from ordercast.daemon.config.keys import CLIENTS
from ordercast.daemon.config.node import ClientsConfig, NodeConfig
from ordercast.groups.names import CLIENT_SIZE_MAX, GROUP_SIZE_MAX, GROUPS_MAX
from ordercast.model.ids import SECOND
from ordercast.order.ring.config import RingConfig
from ordercast.session.addresses import PATH_SIZE_MAX
from ordercast.session.client_half import RECEIVE_CREDIT
from ordercast.session.daemon_half import SEND_CREDIT
from ordercast.session.frames import PAGE_MAX, SlowPolicy
from ordercast.session.outbound import QUEUE_SIZE_MAX

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CLIENT = (DOCS / "reference" / "client.md").read_text(encoding="utf-8")
MIB = 1 << 20


def section(text: str, heading: str) -> str:
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, heading
    return rest.partition("\n## ")[0]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of table rows; a bar within `code` is no border. Heads and rules are among them."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in re.split(r"\|(?=(?:[^`]*`[^`]*`)*[^`]*$)", line.strip()[1:-1])]


def test_every_event_has_its_fields_in_their_order() -> None:
    shown: dict[str, list[str]] = {}
    for row in rows(section(CLIENT, "Events")):
        if names := re.findall(r"`(\w+)`", row[0]):
            shown[names[0]] = []
        if shown:
            shown[list(shown)[-1]] += re.findall(r"`(\w+)`", row[1])
    assert list(shown) == ["Message", "View", "Transition", "Left", "Dropped", "Reconnected"]
    for name, listed in shown.items():
        event = getattr(ordercast, name)
        real = [field.name for field in fields(event)] if is_dataclass(event) else list(event._fields)
        assert listed == real, name


def test_every_field_of_a_view_is_explained() -> None:
    page = (DOCS / "concepts" / "groups.md").read_text(encoding="utf-8")
    shown = [row[0].strip("`") for row in rows(section(page, "What a view says").partition("\nWhat ")[0])][2:]
    assert sorted(shown) == sorted(field.name for field in fields(ordercast.View))


def sentences() -> Iterator[str]:
    """Every text in the code, with … for what is filled in, quotes of code left out."""
    for file in sorted((ROOT / "src" / "ordercast").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values]
                yield "".join(parts).replace("`", "")
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value.replace("`", "")


def test_every_error_on_the_page_is_raised_somewhere_in_these_words() -> None:
    said = set(sentences())
    shown = [row[2].strip("`") for row in rows(section(CLIENT, "Errors"))][2:]
    assert len(shown) > 15
    assert [sentence for sentence in shown if sentence not in said] == []


def test_the_bounds_of_the_page_are_those_of_the_code() -> None:
    slow = section(CLIENT, "A reader that is too slow")
    policies = {row[0].strip('`"'): row[1] for row in rows(slow)}
    for policy in SlowPolicy:
        assert policies[policy.name.lower()] == f"{QUEUE_SIZE_MAX[policy] // MIB} MiB"
    assert f"{RECEIVE_CREDIT // MIB} MiB on its own side" in slow
    assert f"has {SEND_CREDIT / MIB} MiB of messages under way" in slow
    assert f"at {NodeConfig().inbox_size_max // MIB} MiB" in slow
    limits = {row[0]: row[1] for row in rows(section(CLIENT, "Names and limits"))}
    assert limits["name of a group or daemon"] == f"1 to {GROUP_SIZE_MAX} characters"
    assert limits["name of a client"].startswith(f"1 to {CLIENT_SIZE_MAX} characters")
    assert limits["destinations of a message"] == f"1 to {GROUPS_MAX}"
    assert limits["groups that one call joins or leaves"] == f"1 to {GROUPS_MAX}"
    assert limits["groups of a client"].startswith(f"{ClientsConfig().groups_max:,} ")
    assert limits["groups of all clients of a daemon"].startswith(f"{ClientsConfig().memberships_max:,} ")
    assert f"within {ClientsConfig().hold_ns // SECOND} s" in slow
    assert f"of {PAGE_MAX:,}" in CLIENT
    assert limits["message"].startswith(f"{RingConfig().message_size_max // MIB} MiB")
    assert limits["clients of a daemon"].startswith(f"{ClientsConfig().sessions_max:,}")
    broken = section(CLIENT, "When the connection breaks")
    assert f"nothing for {SILENCE_MAX_S:.0f} s" in broken
    assert f"after {RETRY_MIN_S} s, later every {RETRY_MAX_S:.0f} s" in broken
    node = (DOCS / "reference" / "node.md").read_text(encoding="utf-8")
    assert f"{CROSSING_SIZE_MAX // MIB} MiB may be on its way" in node


def test_the_guide_explains_every_key_of_clients() -> None:
    guide = (DOCS / "guides" / "run-a-cluster.md").read_text(encoding="utf-8")
    shown = [row[0].strip("`") for row in rows(section(guide, "Clients"))][2:]
    assert sorted(shown) == sorted(key.name for key in CLIENTS)
    assert f"more than {PATH_SIZE_MAX} bytes" in guide


PICTURES = runpy.run_path(str(DOCS / "pictures" / "draw.py"))["PICTURES"]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_as_it_is_drawn(name: str) -> None:
    """Run docs/pictures/draw.py when this fails, and look at it."""
    assert (DOCS / "pictures" / name).read_text(encoding="utf-8") == PICTURES[name]()
