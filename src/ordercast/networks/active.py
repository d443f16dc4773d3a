"""Active replication: every packet on every good network. (Section 5, Figure 2)

Messages go up at their first copy. The token goes up when every good network has brought it: by then, on networks that
keep the order of packets, every copy of every earlier message has come or is lost, so what the engine misses is lost
everywhere; and the networks keep in step.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.model.notes import Release
from ordercast.networks.styles import Lacking, Spreadable, Style


class Active(Style):
    counts_tokens = False  # whoever did not bring the token is known when its timer runs out
    blames_expiry = True

    def spread(self, effect: Spreadable) -> Sequence[Spreadable]:
        effect.networks = self._marks.used
        return (effect,)

    def token_networks(self) -> tuple[int, ...]:
        return self._marks.used

    def release(self, brought: int, lacking: Lacking, *, is_first: bool) -> Release | None:
        missing = self._marks.good_bits & ~brought
        return None if missing else Release.ALL
