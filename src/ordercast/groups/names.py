"""Names of groups, clients and daemons. A client in a cluster is `alice@n1`: its own name, then its daemon's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping

from ordercast.model.errors import UsageError

GROUP_SIZE_MAX = 64
CLIENT_SIZE_MAX = 32
GROUPS_MAX = 100  # that one message may be sent to
MEMBERSHIPS_MAX = 10_000  # groups that one client may be in
AT = "@"

_PLAIN = re.compile(r"[$-?A-~]+")  # printable ASCII from $ on, but @


RESERVED = "$"  # names that begin with it are Ordercast's own: whoever joins one says that it is a part of Ordercast
REPLICAS = "$replica/"  # where the replicas of a state meet
ARCHIVERS = "$archive/"  # where the archivers of a group meet
SINK = "$sink/"  # a message that is sent there, too, carries rows of Spark's, or commits them
FORCES = "$force/"  # whoever sends there, too, may have a state go on with some of its replicas
_MEETINGS = (REPLICAS, ARCHIVERS)


def sink_of(groups: tuple[str, ...]) -> str | None:
    """The sink that a message to these groups comes from."""
    for group in groups:
        if group.startswith(SINK):
            return group.removeprefix(SINK)
    return None


def meeting_of(state: str) -> str:
    """The group in which the replicas of a state meet. UsageError says what is wrong with its name."""
    name = checked_group(state)
    if len(name) > GROUP_SIZE_MAX - len(REPLICAS):
        size_max = GROUP_SIZE_MAX - len(REPLICAS)
        raise UsageError(
            f"the name {name[:20]!r}… of a replicated state has {len(name)} characters: at most {size_max}"
        )
    return REPLICAS + name


def control_group(group: str) -> str:
    """Return where the archivers of a group talk. All of them are in both. `$` comes before every other character of a
    name, so this group is told of changes first."""
    name = ARCHIVERS + group
    if len(name) <= GROUP_SIZE_MAX:
        return name
    digest = hashlib.sha256(group.encode()).hexdigest()[:16]
    return f"{ARCHIVERS}{group[: GROUP_SIZE_MAX - len(ARCHIVERS) - 17]}~{digest}"


def is_meeting(name: str) -> bool:
    """Only its members send there."""
    return name.startswith(_MEETINGS)


def checked_joinable(name: str) -> str:
    """A group that anybody may join. UsageError says why not."""
    if not checked_group(name).startswith(RESERVED):
        return name
    if name.startswith(REPLICAS):
        state = name.removeprefix(REPLICAS)
        why = f"the replicas of {state} meet there: use a Replica of {state} to read it"
    elif name.startswith(ARCHIVERS):
        group = name.removeprefix(ARCHIVERS)
        why = f"the archivers of {group} meet there: join {group}, or run an archiver of it"
    else:
        why = f"names that begin with {RESERVED} are Ordercast's own: choose another"
    raise UsageError(f"the group {name} cannot be joined: {why}")


def check_may_send(groups: Iterable[str], joined: Collection[str]) -> None:
    """Where replicas and archivers meet only they speak. UsageError names the group."""
    for name in groups:
        if is_meeting(name) and name not in joined:
            raise UsageError(f"only its members send to the group {name}: replicas or archivers meet there")


def checked_group(name: str) -> str:
    """UsageError says what is wrong with it."""
    return _checked(name, "group name", GROUP_SIZE_MAX)


def checked_client(name: str) -> str:
    return _checked(name, "client name", CLIENT_SIZE_MAX)


def checked_daemon(name: str) -> str:
    """Its socket and its traces have this name too, so it has no slash."""
    if "/" in _checked(name, "daemon name", GROUP_SIZE_MAX):
        raise UsageError(f"the daemon name {name!r} has '/' in it: files are called after it, so use another character")
    return name


def checked_member(name: str) -> str:
    """A client in full: alice@n1."""
    client, at, daemon = name.partition(AT)
    if not at:
        raise UsageError(f"{name!r} is no full name of a client: write CLIENT@DAEMON, such as alice@n1")
    checked_client(client)
    checked_daemon(daemon)
    return name


def checked_destination(name: str) -> str:
    """A group, or one client: alice@n1."""
    return checked_member(name) if isinstance(name, str) and AT in name else checked_group(name)


def checked_destinations(names: str | Iterable[str]) -> tuple[str, ...]:
    """One or several, each once."""
    wanted = (names,) if isinstance(names, str) else _several(names)
    if not wanted:
        raise UsageError("a message needs a group to go to, or the name of a client")
    if len(wanted) > GROUPS_MAX:
        raise UsageError(f"a message goes to at most {GROUPS_MAX} groups, not to {len(wanted)}")
    for name in wanted:
        checked_destination(name)
    return wanted


def _several(names: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(names, Iterable) or isinstance(names, bytes | Mapping):
        raise UsageError(f"a message goes to a group, or to several in a list, not to {names!r:.80}")
    return tuple(dict.fromkeys(names))


def checked_groups(names: tuple[str, ...]) -> tuple[str, ...]:
    """To be joined or left together, each once."""
    if not names:
        raise UsageError("name at least one group")
    if len(names) > GROUPS_MAX:
        raise UsageError(f"at most {GROUPS_MAX} groups are joined or left at a time, not {len(names)}")
    for group in names:
        checked_group(group)
    return tuple(dict.fromkeys(names))


def clients_of(daemon: str) -> re.Pattern[str]:
    """What the full names of this daemon's clients match, and nothing else that `checked_member` accepts: for those who
    check many."""
    return re.compile(rf"{_PLAIN.pattern[:-1]}{{1,{CLIENT_SIZE_MAX}}}{AT}{re.escape(daemon)}")


def daemon_of(member: str) -> str:
    """The daemon of a client's full name."""
    return member.partition(AT)[2]


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
