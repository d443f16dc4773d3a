"""The clients of a daemon: one connection is one session."""
