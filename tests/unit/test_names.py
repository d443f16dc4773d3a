"""One noun, one meaning: public classes of the packages that meet have names of their own."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ordercast"
PACKAGES = ("model", "wire", "order", "networks", "groups", "session", "api", "daemon")


def _public_names(file: Path) -> list[str]:
    """Return the names of public classes and of public unions that a module defines."""
    names = []
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Subscript):
            names += [name.id for name in node.targets if isinstance(name, ast.Name)]
    return [name for name in names if name[0].isupper() and not name.isupper()]


def test_no_public_name_means_two_things() -> None:
    homes = defaultdict(list)
    for package in PACKAGES:
        for file in sorted((SOURCE / package).rglob("*.py")):
            for name in _public_names(file):
                homes[name].append(str(file.relative_to(SOURCE)))
    assert len(homes) > 200
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
