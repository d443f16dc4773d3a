"""Replicated state: the same commands, in the same order, on every replica of a group.

Two halves. The pure one decides (`machine`, `quorum`, `wire`, `sessions`, `decision`, `effects`, `core`): no clock, no
I/O, no randomness; the simulator drives it as it is. The other one carries out (`transfer`, `replica`, `structures`).
This file imports neither, so that who wants the first does not load the second.
"""
