"""Bytes between daemons. Pure. `docs/reference/wire-format.md` shows the layouts; `tests/vectors` pins the bytes."""
