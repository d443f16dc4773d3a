"""`ordercast archive read` of what cannot be read."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from ordercast.cli.archive import _show
from ordercast.model.errors import WireError


def test_a_damaged_archive_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    damaged = MagicMock()
    damaged.__iter__.side_effect = WireError("the checksum of the frame that begins with number 4 is wrong")
    assert _show(damaged, None, False) == 1
    told = capsys.readouterr().err
    assert "the archive is damaged from here on: the checksum" in told and "`ordercast archive verify`" in told
