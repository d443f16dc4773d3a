"""Names of groups, clients and daemons. A client in a cluster is `alice@n1`: its own name, then its daemon's."""

from __future__ import annotations

import re

from ordercast.model.errors import UsageError

GROUP_SIZE_MAX = 64
CLIENT_SIZE_MAX = 32
GROUPS_MAX = 100  # that one message may be sent to
MEMBERSHIPS_MAX = 10_000  # groups that one client may be in
AT = "@"

_PLAIN = re.compile(r"[$-?A-~]+")  # printable ASCII from $ on, but @


def checked_group(name: str) -> str:
    """UsageError says what is wrong with it."""
    return _checked(name, "group name", GROUP_SIZE_MAX)


def checked_client(name: str) -> str:
    return _checked(name, "client name", CLIENT_SIZE_MAX)


def checked_daemon(name: str) -> str:
    return _checked(name, "daemon name", GROUP_SIZE_MAX)


def checked_destination(name: str) -> str:
    """A group, or one client: alice@n1."""
    client, at, daemon = name.partition(AT) if isinstance(name, str) else (name, "", "")
    if not at:
        return checked_group(name)
    checked_client(client)
    checked_daemon(daemon)
    return name


def checked_destinations(names: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """One or several, each once."""
    wanted = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    if not wanted:
        raise UsageError("a message needs a group to go to, or the name of a client")
    if len(wanted) > GROUPS_MAX:
        raise UsageError(f"a message goes to at most {GROUPS_MAX} groups, not to {len(wanted)}")
    for name in wanted:
        checked_destination(name)
    return wanted


def _checked(name: str, what: str, size_max: int) -> str:
    if not isinstance(name, str):
        raise UsageError(f"a {what} is a str, not {type(name).__name__}")
    if not name:
        raise UsageError(f"a {what} has at least one character")
    if len(name) > size_max:
        raise UsageError(f"the {what} {name[:20]!r}… has {len(name)} characters: at most {size_max}")
    if not _PLAIN.fullmatch(name):
        wrong = next(character for character in name if not _PLAIN.fullmatch(character))
        raise UsageError(
            f"the {what} {name!r} has {wrong!r} in it: use letters, digits and punctuation of ASCII, but no blanks, "
            'and none of ! " # @'
        )
    return name
