"""Rights in random conversations: whatever a client asks for, before and after reloads of the rules, it gets what the
rules in force say. And somebody would notice if a reload did not count."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from ordercast.groups.layer import data_head
from ordercast.model.service import Service
from ordercast.session.batches import Send, encode_send
from ordercast.session.daemon_half import DaemonHalf
from ordercast.session.frames import Hello, SlowPolicy, encode_names
from ordercast.session.pieces import FrameKind
from ordercast.session.requests import JoinGroups
from ordercast.session.rights import AccessRule, ClientIdentity, Granted, Rights
from tests.unit.session.vectors import kind_and_body

GROUPS = ("a", "b", "c")
WHO = ClientIdentity("cert", "alice")
NAME = "alice@n1"
RUNS, STEPS = 500, 30


def _rules(rng: Random) -> tuple[AccessRule, set[str], set[str]]:
    """Return a rule, and what may be joined and sent to by it."""
    join, send = ({group for group in GROUPS if rng.random() < 0.5} for _ in range(2))
    rule = AccessRule(("cert:alice",), names=("*",), join=tuple(sorted(join)), send=tuple(sorted(send)))
    return rule, join, send


def mistake(seed: int) -> str | None:
    """Play a conversation; return what went against the rules."""
    rng = Random(seed)
    rule, join, send = _rules(rng)
    half = DaemonHalf(1000)
    half.granted = Rights((rule,)).of(WHO)
    half.welcome(NAME, Hello("alice", SlowPolicy.DROP, 1 << 20))
    for _ in range(STEPS):
        group = rng.choice(GROUPS)
        match rng.randrange(3):
            case 0:
                request = half.receive(*kind_and_body(encode_send(Service.AGREED, data_head(NAME, (group,)), [b"x"])))
                if isinstance(request, Send) != (group in send):
                    return f"a message to {group}"
            case 1 if group not in half.joined:
                request = half.receive(*kind_and_body(encode_names(FrameKind.JOIN, (group,))))
                if isinstance(request, JoinGroups) != (group in join):
                    return f"a join of {group}"
            case 2:
                rule, join, send = _rules(rng)
                half.regrant(Rights((rule,)).of(WHO))
                if not half.joined <= join:
                    return f"it is still in {sorted(half.joined - join)}"
        half.take()
    return None


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_the_rules_in_force_decide(first: int) -> None:
    assert [mistake(seed) for seed in range(first, first + 25)] == [None] * 25


def _checked_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DaemonHalf, "_forget_heads", lambda self: None)


def _reload_unheard(patch: pytest.MonkeyPatch) -> None:
    def regrant(self: DaemonHalf, granted: Granted) -> None:
        self.granted = granted

    patch.setattr(DaemonHalf, "regrant", regrant)


@pytest.mark.parametrize("plant", [_checked_once, _reload_unheard])
def test_rights_that_are_not_looked_at_after_a_reload_are_noticed(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(mistake(seed) is not None for seed in range(RUNS))
