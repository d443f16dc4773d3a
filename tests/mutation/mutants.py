"""The mutants of a module: each is its syntax tree with one rule taken out.

A rule is a condition: an `if` never or always holds, an operand of `and` or `or` is gone, a choice between two values
is always the same one, a filter lets everything through, a question is always answered alike, a bound of `min` or
`max` is gone. Loops, assertions and `match` are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

TEXT_MAX = 100

# Changes one node of a copy of the tree in place.
_Change = Callable[[ast.AST], None]


@dataclass(frozen=True)
class Mutant:
    line: int
    what: str  # in words, with the source of the rule
    tree: ast.Module


def mutants_of(source: str) -> Iterator[Mutant]:
    """Yield every mutant, in the order of the source."""
    tree = ast.parse(source)
    for index, node in enumerate(ast.walk(tree)):
        for what, change in _changes(node):
            copy = deepcopy(tree)
            change(next(each for at, each in enumerate(ast.walk(copy)) if at == index))
            yield Mutant(_rule_of(node).lineno, f"{what}: {_text_of(node)}", ast.fix_missing_locations(copy))


def rules_in(source: str) -> set[str]:
    """Return what the mutants of a module take out, in words."""
    return {f"{what}: {_text_of(node)}" for node in ast.walk(ast.parse(source)) for what, _ in _changes(node)}


def _text_of(node: ast.AST) -> str:
    return " ".join(ast.unparse(_rule_of(node)).split())[:TEXT_MAX]


def _changes(node: ast.AST) -> Iterator[tuple[str, _Change]]:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.If() | ast.IfExp():
            yield "never", _setting("test", ast.Constant(False))
            yield "always", _setting("test", ast.Constant(True))
        case ast.BoolOp(op=op, values=values):
            for at in range(len(values)):
                yield f"without {ast.unparse(values[at])!r}", _operand_set(at, isinstance(op, ast.And))
        case ast.comprehension(ifs=[_, *_]):
            yield "without the filter", _setting("ifs", [])
        case ast.Return(value=ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not())):
            yield "always true", _setting("value", ast.Constant(True))
            yield "always false", _setting("value", ast.Constant(False))
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as arguments):
            for at in range(len(arguments)):
                yield f"without {ast.unparse(arguments[at])!r}", _bound_dropping(at)


def _setting(name: str, value: ast.AST | list[ast.AST]) -> _Change:
    return lambda node: setattr(node, name, deepcopy(value))


def _operand_set(at: int, neutral: bool) -> _Change:
    def change(node: ast.AST) -> None:
        assert isinstance(node, ast.BoolOp)
        node.values[at] = ast.Constant(neutral)

    return change


def _bound_dropping(at: int) -> _Change:
    """The arguments that are left, in a list: one of them alone is no iterable."""

    def change(node: ast.AST) -> None:
        assert isinstance(node, ast.Call)
        left = [argument for number, argument in enumerate(node.args) if number != at]
        node.args = [ast.List(left, ast.Load())]

    return change


def _rule_of(node: ast.AST) -> ast.expr | ast.stmt:
    match node:
        case ast.If() | ast.IfExp():
            return node.test
        case ast.comprehension():
            return node.ifs[0]
        case ast.expr() | ast.stmt():
            return node
    raise AssertionError("only expressions and statements are changed")
