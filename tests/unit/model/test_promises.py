from __future__ import annotations

from ordercast.model.promises import Promise


def test_every_promise_is_called_by_its_checkers_name() -> None:
    names = [promise.value for promise in Promise]
    assert len(set(names)) == len(names) == 17
    assert all(name == name.lower() for name in names)
