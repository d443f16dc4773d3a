"""Whose fault it is decides what is raised: WireError theirs, UsageError our caller's, AssertionError our own.

`Error` is the base of everything that an application meets. What is wrong with the way to a daemon is a ConnectionError
as well, so that whoever handles broken connections need not know whose they are.
"""

from __future__ import annotations


class Error(Exception):
    """Anything that Ordercast raises for an application to see. It says in a sentence what, why and what to do."""


class WireError(Error):
    """The bytes that came are not what the protocol says. Dropped and counted, never fatal."""


class UsageError(Error):
    """The layer above asked for something that cannot be done. Says what, why, and what to do."""


class Unreachable(Error, ConnectionError):
    """There is no daemon where one was looked for, or none that answers."""


class ConnectionLost(Error, ConnectionError):
    """There is no daemon at the other end any more. It says why."""
