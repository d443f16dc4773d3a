"""A command that is interrupted says so once, however often it is interrupted."""

from __future__ import annotations

import signal

import pytest

from ordercast.cli import INTERRUPTED, main


@pytest.mark.parametrize("is_told", [True, False])
def test_a_second_signal_ends_the_command_without_a_traceback(monkeypatch: pytest.MonkeyPatch, is_told: bool) -> None:
    """It comes behind the sentence, or amid it."""

    def run(arguments: object) -> int:
        if not is_told:
            raise KeyboardInterrupt
        return INTERRUPTED

    handlers: dict[int, object] = {}
    monkeypatch.setattr(main, "run", run)
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == INTERRUPTED
    assert handlers == {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: signal.SIG_IGN}
