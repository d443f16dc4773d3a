"""Docstrings by the rule: a first sentence has a subject or an imperative verb, no sentence begins in its middle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ordercast"
# Words that begin no first sentence, for they hang on a noun that is not there; and no sentence at all.
DANGLING = {"Of", "That", "Those", "Or", "Without", "With", "Not", "And", "But", "Nor"}
NEVER = {"Of", "That", "Those", "Or"}


def _docstrings(file: Path) -> Iterator[tuple[str, str]]:
    for node in _statements(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield f"{file.relative_to(SOURCE)} {getattr(node, 'name', '')}", " ".join(text.split())


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all statements below it; no expression has a docstring, and most nodes are expressions."""
    yield node
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(node, part, ()):
            yield from _statements(child)


def _first_words(text: str) -> list[str]:
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z])", text)
    return [sentence.split()[0].strip("`,;") for sentence in sentences]


def test_docstrings_begin_with_a_subject_or_a_verb() -> None:
    found = [(where, text) for file in SOURCE.rglob("*.py") for where, text in _docstrings(file)]
    assert len(found) > 2000
    words = [(where, _first_words(text)) for where, text in found]
    assert [where for where, (first, *_) in words if first in DANGLING] == []
    assert [where for where, (_, *others) in words if NEVER & set(others)] == []
