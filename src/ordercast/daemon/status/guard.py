"""Who may read the status where other hosts reach it: whoever shows a token, which is in a file of one line.

The file is read at every request, so that another token counts without a restart. On loopback nothing is asked for.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.status.bearer import read_bearer_file
from ordercast.model.errors import UsageError

SCHEME: Final = "bearer "


class StatusGuard:
    def __init__(self, path: Path) -> None:
        """UsageError when the file cannot be used."""
        self._path = path
        read_bearer_file(path)

    def is_known(self, authorization: str) -> bool:
        """Whether this header of a request shows the token."""
        if not authorization.lower().startswith(SCHEME):
            return False
        try:
            token = read_bearer_file(self._path)
        except UsageError:  # nobody is let in by a file that is gone
            return False
        return hmac.compare_digest(authorization[len(SCHEME) :].strip().encode("latin-1"), token.encode())


def guard_of(config: NodeConfig) -> StatusGuard | None:
    """Return who guards the status; None where everybody may read it. UsageError says what is wrong with the token, or
    that other hosts reach the port and nobody said who may read."""
    status = config.status
    if status.port is None:
        return None
    if status.token is not None:
        return StatusGuard(status.token)
    if not (status.insecure or config.security.insecure or ip_address(status.address).is_loopback):
        raise UsageError(
            f"other hosts reach the status at {status.address}, and no token is asked for: run `ordercast certs bearer "
            'FILE`, and write token = "FILE" in [status]; or write insecure = true there, if everybody there may read'
        )
    return None
