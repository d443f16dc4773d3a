"""[[rights]] of a file: who may do what. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from ordercast.daemon.config.keys import Key, read_flag, read_integer, read_size, read_table, shown
from ordercast.model.errors import UsageError
from ordercast.session.rights import AccessRule

RIGHTS_TABLE = "rights"
WHO = re.compile(r"(user|group|cert|token):[!-~]+|anybody")
_NAME = re.compile(r"[!-~]+")


def read_patterns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and _NAME.fullmatch(each) for each in value):
        raise UsageError(
            f'{shown(value)} is not a list of names: write them in brackets, such as ["orders", "prices/*"]'
        )
    return tuple(value)


def read_who(value: Any) -> tuple[str, ...]:
    who = read_patterns(value)
    for each in who:
        if not WHO.fullmatch(each):
            raise UsageError(
                f"{shown(each)} names nobody: write user:NAME, group:NAME, cert:NAME, token:NAME or anybody"
            )
    if not who:
        raise UsageError('it names nobody: write who = ["user:alice"]')
    return who


RULE = (
    Key("who", "who", read_who),
    *(Key(name, name, read_patterns) for name in ("names", "join", "send", "replicate", "archive")),
    Key("hold", "hold", read_flag),
    Key("force", "force", read_flag),
    Key("sessions", "sessions", partial(read_integer, low=1)),
    Key("memberships", "memberships", read_integer),
    Key("memory", "memory", read_size),
)


def access_rules(document: Mapping[str, Any], problems: list[str]) -> tuple[AccessRule, ...]:
    """The rules of a file; everything that is wrong with them is added to `problems`."""
    tables = document.get(RIGHTS_TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        problems.append(f"{RIGHTS_TABLE}: write [[rights]], in two brackets, above the keys of each rule")
        return ()
    rules = []
    for number, table in enumerate(tables):
        found: list[str] = []
        values = read_table(table, RULE, f"rights.{number}.", found)
        if "who" not in table:
            found.append(f'rights.{number}.who is missing: write who = ["user:alice"]')
        problems += found
        if not found:
            rules.append(AccessRule(**values))
    return tuple(rules)
