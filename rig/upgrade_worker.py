"""The users of one host while its daemon is replaced by one of another version. Its parent says which version of
Ordercast it imports: it uses what all have. It ends when it is told anything, and says what it sent and what it read.

`user` sends to the group `orders`, at whichever daemon is there, and reads it. `kv` adds to a counter that all hosts
have a replica of, at its own daemon.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import ordercast
from ordercast.replicated import Counter, Majority, Replica

if TYPE_CHECKING:
    from ordercast.replicated import CounterFront  # an older version has it elsewhere

SENDERS = 8  # that wait for their messages at the same time
QUIET_S = 3.0  # after the last message, until all that was sent has come


class Users:
    def __init__(self, number: int, addresses: list[str], names: list[str]) -> None:
        self._number, self._addresses, self._names = number, addresses, names
        self._sent = 0
        self.sure: list[str] = []  # confirmed
        self.unsure: list[str] = []  # the connection was lost first
        self.read: list[list[object] | None] = []  # position and text of each message; None: there may be a gap here
        self.added = 0
        self._stop = asyncio.Event()

    async def run(self) -> None:
        mine, rest = self._addresses[0], self._addresses[1:]
        weights = {f"kv@{name}": 1 for name in self._names}
        async with (
            ordercast.connect(" ".join((mine, *rest)), name=f"user{self._number}", reconnect=True, wait=60) as user,
            ordercast.connect(mine, name="kv", reconnect=True, wait=60) as kv,
        ):
            await user.join("orders")
            reader = asyncio.create_task(self._read(user))
            async with Replica(kv, "stock", Counter(), quorum=Majority(weights)) as counter:
                await counter.ready()
                say({"event": "ready"})
                adder = asyncio.create_task(self._add(counter))
                senders = [asyncio.create_task(self._send(user)) for _ in range(SENDERS)]
                await asyncio.to_thread(sys.stdin.readline)
                self._stop.set()
                await asyncio.gather(adder, *senders)
                say({"event": "stopped", "added": self.added})
                await asyncio.to_thread(sys.stdin.readline)  # all have stopped
                await counter.synced()
                await asyncio.sleep(QUIET_S)
                value = counter.value
            reader.cancel()
        say({"event": "told", "sure": self.sure, "unsure": self.unsure, "read": self.read, "value": value})

    async def _send(self, user: ordercast.Client) -> None:
        while not self._stop.is_set():
            self._sent += 1
            text = f"{self._number}:{self._sent}"
            try:
                await user.send("orders", text.encode(), confirm=True)
            except ordercast.ConnectionLost:
                self.unsure.append(text)
                await asyncio.sleep(0.01)  # clients of older versions do not let the event loop have its turn
            else:
                self.sure.append(text)

    async def _read(self, user: ordercast.Client) -> None:
        async for event in user:
            if isinstance(event, ordercast.Message):
                self.read.append([repr(event.position), event.data.decode()])
            elif isinstance(event, ordercast.Reconnected | ordercast.Dropped):
                self.read.append(None)

    async def _add(self, counter: CounterFront) -> None:
        while not self._stop.is_set():
            await counter.add(1)
            self.added += 1


def say(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    number, addresses, names = json.loads(sys.argv[1])
    asyncio.run(Users(number, addresses, names).run())
