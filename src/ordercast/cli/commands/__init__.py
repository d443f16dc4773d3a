"""What commands there are, and where each is declared: a module each, below this one.

Only the module of the command that is asked for is imported. A declaration imports what does the work when it is done.
"""

from __future__ import annotations

from importlib import import_module

from ordercast.cli.declare import Declared

HERE = "ordercast.cli.commands"
CHAPTERS = {
    "A cluster": (
        *(
            "demo",
            "up",
            "daemon",
            "status",
            "cluster",
            "reload",
            "key",
            "certs",
            "config",
            "networks",
            "topology",
            "sites",
        ),
        *("graph", "engines"),
    ),
    "Its clients": ("chat", "send", "listen", "groups", "clients", "archive", "journal"),
    "Simulations and verdicts": ("sim", "swarm", "check", "verify", "trace", "report", "campaign"),
    "This command": ("completion", "man"),
}
ELSEWHERE = {"demo": "ordercast.demo.declared"}
NAMES = tuple(name for names in CHAPTERS.values() for name in names)


def declared(name: str) -> Declared:
    """Return the declaration of a command."""
    found: Declared = getattr(import_module(ELSEWHERE.get(name, f"{HERE}.{name}")), name)
    return found
