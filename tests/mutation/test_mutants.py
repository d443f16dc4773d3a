"""The mutants of a small module: each rule is taken out once in every way."""

from __future__ import annotations

import ast

from . import __main__ as mutation
from .mutants import mutants_of, rules_in

SOURCE = """
def allowed(names, wanted, limit):
    if not names:
        return False
    found = [name for name in names if name != "stranger"]
    room = min(limit, 10)
    return wanted in found and len(found) < room
"""
CASES: tuple[tuple[list[str], str, int], ...] = (
    ([], "a", 3),
    (["a", "stranger"], "stranger", 3),
    (["a", "b"], "a", 2),
    (["a"], "a", 3),
    (["a"] * 11, "a", 20),
)


def _answers(tree: ast.Module) -> list[bool]:
    scope: dict[str, object] = {}
    exec(compile(tree, "small", "exec"), scope)
    allowed = scope["allowed"]
    assert callable(allowed)
    return [bool(allowed(*case)) for case in CASES]


def test_every_rule_is_taken_out_in_every_way() -> None:
    assert [(mutant.line, mutant.what.partition(": ")[0]) for mutant in mutants_of(SOURCE)] == [
        (3, "never"),
        (3, "always"),
        (7, "always true"),
        (7, "always false"),
        (6, "without 'limit'"),
        (6, "without '10'"),
        (7, "without 'wanted in found'"),
        (7, "without 'len(found) < room'"),
        (5, "without the filter"),
    ]


def test_a_mutant_does_without_the_rule() -> None:
    right = _answers(ast.parse(SOURCE))
    assert right == [False, False, False, True, False]
    differing = [mutant.what for mutant in mutants_of(SOURCE) if _answers(mutant.tree) != right]
    assert len(differing) == 8, "an empty list is refused by what follows, too"


def test_what_is_known_to_be_equivalent_is_still_there() -> None:
    for module, what in mutation.equivalents():
        source = (mutation.SOURCE / module).read_text(encoding="utf-8")
        assert what in rules_in(source), f"{module}: {what}"
