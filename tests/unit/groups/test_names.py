from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ordercast import Node, NodeConfig
from ordercast.groups.names import (
    CLIENT_SIZE_MAX,
    GROUP_SIZE_MAX,
    GROUPS_MAX,
    check_may_send,
    checked_client,
    checked_daemon,
    checked_destination,
    checked_destinations,
    checked_group,
    checked_groups,
    checked_joinable,
    checked_member,
    is_meeting,
    meeting_of,
    sink_of,
)
from ordercast.model.errors import UsageError
from ordercast.session.addresses import socket_path

CHECKS = ((checked_group, "group name"), (checked_client, "client name"), (checked_daemon, "daemon name"))
PLAIN = "".join(chr(code) for code in range(ord("$"), 127) if chr(code) != "@")


@pytest.mark.parametrize("check", [check for check, _ in CHECKS])
@pytest.mark.parametrize("name", ["a", "chat", "orders/eu-1", "$", "~", PLAIN[:32], PLAIN[-32:]])
def test_a_name_of_plain_ascii_passes_unchanged(check: Callable[[str], str], name: str) -> None:
    plain = name.replace("/", "") if check is checked_daemon else name
    assert check(plain) == plain


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/b", "/"])
def test_a_daemon_has_no_slash_in_its_name_as_files_are_called_after_it(name: str) -> None:
    with pytest.raises(UsageError, match="has '/' in it: files are called after it"):
        checked_daemon(name)
    with pytest.raises(UsageError, match="has '/' in it"):
        checked_member(f"alice@{name}")
    with pytest.raises(UsageError, match="has '/' in it"):
        socket_path(name)
    with pytest.raises(UsageError, match="has '/' in it"):
        Node(NodeConfig(name=name))


def test_names_have_their_longest_sizes() -> None:
    assert checked_group("g" * GROUP_SIZE_MAX)
    assert checked_daemon("d" * GROUP_SIZE_MAX)
    assert checked_client("c" * CLIENT_SIZE_MAX)


@pytest.mark.parametrize(("check", "what"), CHECKS)
@pytest.mark.parametrize(("name", "kind"), [(None, "NoneType"), (7, "int"), (b"g", "bytes")])
def test_a_name_is_a_str(check: Callable[[Any], str], what: str, name: object, kind: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(name)
    assert str(caught.value) == f"a {what} is a str, not {kind}"


@pytest.mark.parametrize(("check", "what"), CHECKS)
def test_a_name_is_not_empty(check: Callable[[str], str], what: str) -> None:
    with pytest.raises(UsageError) as caught:
        check("")
    assert str(caught.value) == f"a {what} has at least one character"


@pytest.mark.parametrize(
    ("check", "what", "size_max"),
    [
        (checked_group, "group name", GROUP_SIZE_MAX),
        (checked_client, "client name", CLIENT_SIZE_MAX),
        (checked_daemon, "daemon name", GROUP_SIZE_MAX),
    ],
)
def test_a_name_that_is_too_long_is_shown_by_its_beginning(
    check: Callable[[str], str], what: str, size_max: int
) -> None:
    with pytest.raises(UsageError) as caught:
        check("x" * (size_max + 1))
    assert str(caught.value) == (
        f"the {what} 'xxxxxxxxxxxxxxxxxxxx'… has {size_max + 1} characters: at most {size_max}"
    )


@pytest.mark.parametrize(("check", "what"), CHECKS)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("two words", " "),
        ("#private", "#"),
        ("now!", "!"),
        ('a"b', '"'),
        ("alice@n1", "@"),
        ("café", "é"),
        ("tab\t", "\t"),
        ("line\n", "\n"),
        ("\x7f", "\x7f"),
        ("\0", "\0"),
    ],
)
def test_the_first_character_that_a_name_cannot_have_is_named(
    check: Callable[[str], str], what: str, name: str, wrong: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check(name)
    assert str(caught.value) == (
        f"the {what} {name!r} has {wrong!r} in it: use letters, digits and punctuation of ASCII, but no blanks, "
        'and none of ! " # @'
    )


def test_a_destination_is_a_group_or_a_client_in_full() -> None:
    assert checked_destination("chat") == "chat"
    assert checked_destination("alice@n1") == "alice@n1"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (7, "a group name is a str, not int"),
        ("", "a group name has at least one character"),
        ("@n1", "a client name has at least one character"),
        ("alice@", "a daemon name has at least one character"),
        ("alice@n1@n2", "the daemon name 'n1@n2' has '@' in it"),
        ("al ice@n1", "the client name 'al ice' has ' ' in it"),
        ("c" * 33 + "@n1", "the client name 'cccccccccccccccccccc'… has 33 characters: at most 32"),
        ("a@" + "d" * 65, "the daemon name 'dddddddddddddddddddd'… has 65 characters: at most 64"),
    ],
)
def test_a_bad_destination_is_told_by_its_bad_part(name: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_destination(name)
    assert str(caught.value).startswith(sentence)


def test_destinations_are_one_or_several_and_each_counts_once() -> None:
    assert checked_destinations("chat") == ("chat",)
    assert checked_destinations(["b", "a", "b"]) == ("b", "a")
    assert checked_destinations(("a", "alice@n1")) == ("a", "alice@n1")
    assert len(checked_destinations([f"g{number}" for number in range(GROUPS_MAX)])) == GROUPS_MAX


def test_a_message_to_nobody_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a message needs a group to go to, or the name of a client$"):
        checked_destinations([])


def test_a_message_to_too_many_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a message goes to at most 100 groups, not to 101$"):
        checked_destinations([f"g{number}" for number in range(GROUPS_MAX + 1)])


def test_one_bad_name_among_several_is_found() -> None:
    with pytest.raises(UsageError, match="the group name 'b c' has ' ' in it"):
        checked_destinations(["a", "b c"])


# Where parts of Ordercast meet


def test_replicas_meet_in_a_name_of_their_own() -> None:
    assert meeting_of("accounts") == "$replica/accounts" and is_meeting("$replica/accounts")
    assert is_meeting("$archive/orders") and not is_meeting("orders") and not is_meeting("$sink/orders")
    assert len(meeting_of("x" * 55)) == GROUP_SIZE_MAX
    with pytest.raises(UsageError, match="of a replicated state has 56 characters: at most 55"):
        meeting_of("x" * 56)


@pytest.mark.parametrize("name", ["$replica/a", "$archive/a", "$sink/a", "$"])
def test_names_of_ordercast_itself_are_not_joined(name: str) -> None:
    assert checked_joinable("a$b") == "a$b"
    with pytest.raises(UsageError, match=f"^the group {re.escape(name)} cannot be joined: "):
        checked_joinable(name)


def test_who_may_not_join_is_told_what_to_do() -> None:
    for name, advice in {
        "$replica/a": "the replicas of a meet there: use a Replica of a to read it",
        "$archive/a": "the archivers of a meet there: join a, or run an archiver of it",
        "$sink/a": "names that begin with $ are Ordercast's own: choose another",
    }.items():
        with pytest.raises(UsageError, match=f"{re.escape(advice)}$"):
            checked_joinable(name)


def test_groups_are_joined_or_left_so_many_at_a_time() -> None:
    names = tuple(f"g{number}" for number in range(GROUPS_MAX))
    assert checked_groups(names) == names
    with pytest.raises(UsageError, match=r"^at most 100 groups are joined or left at a time, not 101$"):
        checked_groups((*names, "one"))


def test_only_members_send_to_a_meeting_and_anybody_to_a_sink() -> None:
    check_may_send(("a", "$sink/a", "$replica/a"), {"$replica/a"})
    with pytest.raises(UsageError, match=r"^only its members send to the group \$archive/a: "):
        check_may_send(("a", "$archive/a"), {"a"})


def test_a_message_of_a_sink_is_known_by_one_of_its_groups() -> None:
    assert sink_of(("totals", "$sink/etl")) == "etl"
    assert sink_of(("totals", "sink")) is None


@pytest.mark.parametrize("to", [5, b"orders", {"orders": 1}])
def test_destinations_are_names(to: Any) -> None:
    with pytest.raises(UsageError, match="a message goes to a group, or to several in a list"):
        checked_destinations(to)
