"""A client that does not read is bounded, however often it is connected again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ordercast import Client, connect
from ordercast.session.client_half import RECEIVE_CREDIT
from tests.live.local_daemons import Cable, daemons, live

SIZE = 100_000


@live
async def test_who_does_not_read_what_came_gets_no_other_session(tmp_path: Path) -> None:
    """Each session may bring some megabytes: with one after the other they would have no bound."""
    async with (
        daemons(tmp_path, "n1") as at,
        Cable(at["n1"], tmp_path / "cable.sock") as cable,
        connect(at["n1"]) as witness,
        connect(cable.address, name="idle", reconnect=True) as idle,
    ):
        await idle.join("work")
        while not idle.inbox.is_behind:
            await until_member(witness, is_there=True)
            enough = idle.inbox.size + RECEIVE_CREDIT - 2 * SIZE
            await witness.send_many("work", [bytes(SIZE)] * (2 * RECEIVE_CREDIT // SIZE), confirm=True)
            while idle.inbox.size < enough:  # noqa: ASYNC110 (an inbox has no event for it)
                await asyncio.sleep(0.01)
            cable.cut()
        await until_member(witness, is_there=False)
        for _ in range(20):
            await witness.send("work", b"nobody is there", confirm=True)
            assert "idle@n1" not in await witness.members("work")
            await asyncio.sleep(0.02)
        while idle.inbox.size:
            await anext(idle.batches())
        await until_member(witness, is_there=True)


async def until_member(witness: Client, *, is_there: bool) -> None:
    while ("idle@n1" in await witness.members("work")) is not is_there:  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(0.01)
