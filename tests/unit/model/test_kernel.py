"""Which kernel runs, and what is said when it cannot be the one that was asked for."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.kernel import COMPILED, INTERFACE, MODULE, PURE, chosen


def _install(monkeypatch: pytest.MonkeyPatch, interface: int | None) -> ModuleType | None:
    """Pretend that the compiled kernel is there, with this interface, or is not."""
    module = None if interface is None else ModuleType(MODULE)
    if module is not None:
        module.__dict__["INTERFACE"] = interface
    monkeypatch.setitem(sys.modules, MODULE, module)
    return module


def test_the_compiled_one_runs_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = _install(monkeypatch, INTERFACE)
    assert chosen("") is chosen(COMPILED) is module
    assert chosen(PURE) is None


def test_the_pure_one_runs_where_the_other_is_missing_or_has_another_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    for interface in (None, INTERFACE + 1):
        _install(monkeypatch, interface)
        assert chosen("") is None is chosen(PURE)


@pytest.mark.parametrize(
    ("interface", "wanted", "told"),
    [
        (None, COMPILED, "install ordercast[fast]"),
        (INTERFACE + 1, COMPILED, f"has interface {INTERFACE + 1} instead of {INTERFACE}"),
        (INTERFACE, "fastest", "set it to pure or compiled"),
    ],
)
def test_what_was_asked_for_and_cannot_be_is_told(
    interface: int | None, wanted: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(monkeypatch, interface)
    with pytest.raises(UsageError) as raised:
        chosen(wanted)
    assert told in str(raised.value)
