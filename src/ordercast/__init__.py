"""Ordercast: group communication in which everybody delivers the same messages in the same order."""

__version__ = "0.1.0"
