"""Whose fault it is decides what is raised: WireError theirs, UsageError our caller's, AssertionError our own."""

from __future__ import annotations


class WireError(Exception):
    """The bytes that came are not what the protocol says. Dropped and counted, never fatal."""


class UsageError(Exception):
    """The layer above asked for something that cannot be done. Says what, why, and what to do."""
