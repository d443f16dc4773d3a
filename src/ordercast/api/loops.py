"""Event loops in threads of their own: how they come to an end."""

from __future__ import annotations

import asyncio

PATIENCE_S = 2.0


async def finish_tasks() -> None:
    """To be called on a loop that is about to be stopped, when whatever its tasks wait for has failed or come: they may
    end, so that nobody in another thread waits for them for ever. Who does not end is cancelled."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        _, late = await asyncio.wait(others, timeout=PATIENCE_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    await asyncio.sleep(0)  # who waits in another thread is told by a callback of its own
