"""Rules, added up for one client; names of Ordercast's own; bounds by identity."""

from __future__ import annotations

import pytest

from ordercast.groups.names import control_group
from ordercast.session.rights import (
    ANYBODY,
    AccessRule,
    ClientIdentity,
    Denied,
    Granted,
    Rights,
    Shares,
)

ALICE = ClientIdentity("user", "alice", ("staff",))
ROOT = ClientIdentity("user", "root", is_owner=True)


def _joins(granted: Granted, group: str) -> bool:
    try:
        granted.check_join(group)
    except Denied as error:
        assert str(granted.identity) in str(error) and group.rpartition("/")[2] in str(error)
        return False
    return True


def test_all_rules_that_match_are_added_up_and_others_are_not() -> None:
    rights = Rights(
        (
            AccessRule(("user:alice",), join=("a",), sessions=1),
            AccessRule(("group:st*",), join=("b/*",), sessions=5),
            AccessRule(("cert:alice",), join=("c",)),
        )
    )
    granted = rights.of(ALICE)
    assert [_joins(granted, group) for group in ("a", "b/x", "c", "ab", "b")] == [True, True, False, False, False]
    assert (granted.sessions, granted.memory) == (5, None)
    with pytest.raises(Denied, match="token:alice has no rights here"):
        rights.of(ClientIdentity("token", "alice"))
    with pytest.raises(Denied, match="a client that is not known has no rights here"):
        rights.of(ANYBODY)
    assert rights.of(ROOT).is_everything


def test_without_rules_the_socket_decides_and_known_clients_may_not_meet_where_replicas_do() -> None:
    rights = Rights()
    assert rights.of(ALICE).is_everything and rights.of(ANYBODY).is_everything
    known = rights.of(ClientIdentity("cert", "bob"))
    assert [_joins(known, group) for group in ("orders", "$replica/x", "$archive/x", "$other")] == [True] + [False] * 3
    known.check_send(("orders", "alice@n1"))
    for check in (known.check_hold, lambda: known.check_force("x"), lambda: known.check_send(("$force/x",))):
        with pytest.raises(Denied):
            check()


def test_who_may_not_hold_is_told_what_an_archiver_needs_and_what_another_client_does() -> None:
    needs = r'write archive = \["GROUP"\], for an archiver of GROUP, or hold = true in \[\[rights\]\]'
    with pytest.raises(Denied, match=rf"^user:alice may not have everybody wait for it.*{needs}.*another policy$"):
        Rights((AccessRule(("user:*",), join=("*",)),)).of(ALICE).check_hold()
    Rights((AccessRule(("user:*",), archive=("orders",)),)).of(ALICE).check_hold()


def test_whoever_archives_answers_whoever_writes() -> None:
    rights = Rights((AccessRule(("cert:keeper",), join=("orders",), archive=("orders",)),))
    granted = rights.of(ClientIdentity("cert", "keeper"))
    granted.check_send(("$archive/orders",))
    granted.check_send(("c5@n1",))
    long = "o" * 60
    named = Rights((AccessRule(("cert:keeper",), archive=(long,)),)).of(ClientIdentity("cert", "keeper"))
    assert _joins(named, control_group(long)) and not _joins(named, control_group("p" * 60))
    with pytest.raises(Denied, match="may not send to orders"):
        granted.check_send(("orders",))


def test_no_star_means_a_name_of_ordercasts_own() -> None:
    granted = Rights((AccessRule(("user:*",), join=("*", "$o*"), replicate=("acc*",), archive=("orders",)),)).of(ALICE)
    wanted = {"$other": True, "$x": False, "$replica/accounts": True, "$replica/x": False, "$archive/orders": True}
    assert {group: _joins(granted, group) for group in wanted} == wanted
    granted.check_hold()  # who archives may


def test_a_star_alone_stands_for_anything() -> None:
    """Other characters that patterns of file names know are parts of names."""
    rule = AccessRule(("cert:orders[1]",), join=("q?", "x[12]", "a.b", "*/all"))
    granted = Rights((rule,)).of(ClientIdentity("cert", "orders[1]"))
    assert all(_joins(granted, group) for group in ("q?", "x[12]", "a.b", "sales/all", "two\nlines/all"))
    assert not any(_joins(granted, group) for group in ("q1", "x1", "axb", "sales/al"))
    with pytest.raises(Denied, match="cert:orders1 has no rights here"):
        Rights((rule,)).of(ClientIdentity("cert", "orders1"))


def test_sessions_and_memberships_are_counted_by_identity() -> None:
    shares, granted = Shares(), Rights((AccessRule(("user:*",), sessions=1, memberships=2),)).of(ALICE)
    shares.begin(granted)
    with pytest.raises(Denied, match="user:alice has 1 sessions"):
        shares.begin(granted)
    shares.check_join(granted, 2)
    shares.join(granted, 2)
    with pytest.raises(Denied, match="the clients of user:alice are in 2 groups, and may be in 2"):
        shares.check_join(granted, 1)
    shares.end(granted, 2)
    assert (shares.sessions, shares.memberships) == ({}, {})
