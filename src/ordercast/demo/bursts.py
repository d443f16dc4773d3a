"""Traffic of the demo: how long one command takes when there is little, and how many go when all send at once."""

from __future__ import annotations

import asyncio
import time

from ordercast.demo.crew import GROUPS, Crew
from ordercast.demo.log import Kind
from ordercast.demo.rates import Reached, median_ms
from ordercast.demo.script import Script
from ordercast.demo.stage import Stage


async def traffic(stage: Stage, script: Script) -> Reached:
    stage.log.chapter("All send: steadily first, one command at a time, then as fast as it goes.")
    tally, crews = stage.tally, list(stage.crews.values())
    tally.command_ns.clear()
    stage.work()
    await stage.go_on(script.steady_s)
    command_ms, message_ms = median_ms(tally.command_ns), median_ms(tally.message_ns)
    stage.log.tell(
        Kind.RATE,
        f"one at a time: a command is confirmed after {_ms(command_ms)}, a message has its place in the order after "
        f"{_ms(message_ms)} (medians of {len(tally.command_ns):,} and {len(tally.message_ns):,})",
    )
    messages, deliveries = await _burst_of_messages(stage, script, crews)
    commands = await _burst_of_commands(stage, script, crews)
    return Reached(messages, deliveries, commands, command_ms, message_ms)


async def _burst_of_messages(stage: Stage, script: Script, crews: list[Crew]) -> tuple[float, float]:
    """Over when everybody has got back the last of its own: what was ordered before that, it has got too. (On a busy
    machine a daemon may be out of the view for a moment; then it is not owed what others sent meanwhile.)"""
    each = script.burst_messages // script.messages_at_once * script.messages_at_once
    delivered, began = stage.tally.delivered, time.monotonic()
    async with stage.news.bounded("the messages of the burst are sent"):
        await asyncio.gather(*(crew.shout(each, script.messages_at_once) for crew in crews))
    await stage.news.until(
        lambda: all(crew.burst[m.client.name] == each for crew in crews for m in crew.members),
        "everybody has got back its messages of the burst",
    )
    took = time.monotonic() - began
    total = each * len(GROUPS) * len(crews)
    deliveries = stage.tally.delivered - delivered
    stage.log.tell(
        Kind.RATE,
        f"{total:,} messages of 100 bytes to two groups in {took:.2f} s: {total / took:,.0f} messages/s, "
        f"{deliveries / took:,.0f} deliveries/s",
    )
    return total / took, deliveries / took


async def _burst_of_commands(stage: Stage, script: Script, crews: list[Crew]) -> float:
    began, before = time.monotonic(), stage.tally.confirmed
    async with stage.news.bounded("the commands of the burst are confirmed"):
        await asyncio.gather(*(crew.book_many(script.burst_commands, script.commands_at_once) for crew in crews))
    took = time.monotonic() - began
    total = stage.tally.confirmed - before
    rate = total / took
    how = f"{script.commands_at_once} at once at each replica"
    stage.log.tell(Kind.RATE, f"{total:,} commands confirmed in {took:.2f} s: {rate:,.0f} commands/s, {how}")
    return rate


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} ms"
