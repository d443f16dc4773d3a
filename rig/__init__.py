"""Hosts of a test network on one machine: network namespaces on a bridge or a switch, and what can go wrong there.

Used by the live tests and the benchmarks; no part of the package. Linux and root are needed: ask `why_not()`.
"""

from rig.hosts import Host, Hosts, why_not
from rig.namespaces import RigError
from rig.switch import Link

__all__ = ["Host", "Hosts", "Link", "RigError", "why_not"]
