"""What a type checker says to applications: programs of the docs are sound, typos are not. One run of mypy for all."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ordercast
import ordercast.replicated

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)

HEAD = "import ordercast\nfrom ordercast import replicated\n"
TYPOS = {
    "a name of the package": "ordercast.conect()",
    "a name of replicated state": "replicated.Repilca",
    "a name that is imported": "from ordercast.replicated import Repilca",
    "an argument of connect": "ordercast.connect(nme='alice')",
    "a policy": "ordercast.connect(slow='wiat')",
    "a type": "ordercast.connect(name=3)",
    "a method before the block": "ordercast.connect().join('orders')",
    "a method": "with ordercast.connect() as me:\n    me.jion('orders')",
    "a text that is sent": "with ordercast.connect() as me:\n    me.send('orders', 'text')",
    "a service": "with ordercast.connect() as me:\n    me.send('orders', b'', 3)",
    "a place that was not asked for": "with ordercast.connect() as me:\n    me.send('orders', b'').number",
    "a request without a time": "with ordercast.connect() as me:\n    me.request('prices', b'')",
    "a header that is no text": "with ordercast.connect() as me:\n    me.send('orders', b'', headers={'a': 1})",
    "a value that a codec does not take": "ordercast.TEXT.pack(b'')",
    "a value that a codec does not give": "def f(m: ordercast.Message) -> int:\n    return ordercast.TEXT.unpack(m)",
    "a reply to what is no message": "with ordercast.connect() as me:\n    me.reply(me.receive(), b'')",
    "an attribute of an event": (
        "with ordercast.connect() as me:\n    event = me.receive()\n"
        "    if isinstance(event, ordercast.Message):\n        event.sneder"
    ),
    "a method without await": (
        "async def f() -> None:\n    async with ordercast.connect() as me:\n        me.send('orders', b'')"
    ),
    "a method of a front": (
        "async def f(me: ordercast.Client) -> None:\n"
        "    quorum = replicated.Majority({'a': 1})\n"
        "    async with replicated.Replica(me, 'g', replicated.Dictionary(), quorum=quorum) as front:\n"
        "        await front.put('a', 'b')"
    ),
    "a method of a blocking front": (
        "def f(me: ordercast.BlockingClient) -> None:\n"
        "    quorum = replicated.Majority({'a': 1})\n"
        "    with replicated.BlockingReplica(me, 'g', replicated.Dictionary(), quorum=quorum) as front:\n"
        "        front.ste('a', 'b')"
    ),
    "a blocking replica on a client of asyncio": (
        "def f(me: ordercast.Client) -> None:\n"
        "    replicated.BlockingReplica(me, 'g', replicated.Lock(), quorum=replicated.Majority({'a': 1}))"
    ),
    "a lease that is a number": "async def f(one: replicated.DictionaryFront) -> None:\n    await one.keep(3)",
    "a delay that is a text": "async def f(one: replicated.QueueFront) -> None:\n    await one.put('a', delay='1s')",
    "a value of a front": ("async def f(counter: replicated.CounterFront) -> str:\n    return await counter.add()"),
}
SOUND = '''
"""Names in signatures can be imported, and what is awaited has its type."""
import ordercast
from ordercast.replicated import BlockingReplica, CounterFront, Held, Lock, LockFront, Majority, Patience


async def place(me: ordercast.Member) -> ordercast.Position:
    await me.send("orders", bytearray(b"buy 3"))
    return await me.send("orders", b"buy 3", ordercast.SAFE, confirm=True)


async def one(me: ordercast.Client) -> ordercast.Event | None:
    await anext(me)
    return await me.receive(timeout=1.0)


def first(me: ordercast.BlockingClient) -> ordercast.Position:
    next(me)
    return me.send("orders", memoryview(b"buy 3"), confirm=True)


async def both(lock: LockFront, counter: CounterFront) -> int:
    held: Held = await lock.acquire(timeout=Patience().silence_s)
    return held.token + await counter.add()


def blocking(me: ordercast.BlockingClient) -> int:
    quorum = Majority({"a@n1": 1})
    with BlockingReplica(me, "turn", Lock(), quorum=quorum) as lock, lock.hold(ttl=3.0) as held:
        return held.token


async def ask(me: ordercast.Node, codec: ordercast.Codec[int]) -> int:
    reply = await me.request("prices", codec.pack(3), timeout=1.0, headers={"trace": "7"})
    if reply.wants_reply:
        await me.reply(reply, b"")
    await me.drain()
    return codec.unpack(reply)


def told(alarm: ordercast.Alarm, view: ordercast.ViewId) -> str:
    return f"{alarm} {view}"
'''


def _blocks() -> Iterator[tuple[str, str]]:
    """Every Python block of the docs, by page and number."""
    for page in PAGES:
        for number, found in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")), 1):
            indent, text = found[1], found[2]
            name = f"{page.relative_to(ROOT).with_suffix('')}-{number}"
            yield name, "\n".join(line.removeprefix(indent) for line in text.split("\n"))


def _is_program(text: str) -> bool:
    """Tell a program from a fragment, which goes on from something that was said before."""
    return isinstance(ast.parse(text).body[0], ast.Import | ast.ImportFrom | ast.Expr) and "import " in text


def test_every_block_of_the_docs_is_python() -> None:
    found = dict(_blocks())
    assert len(found) > 20
    for name, text in found.items():
        compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_programs_of_the_docs_are_sound_and_typos_are_found(tmp_path: Path) -> None:
    programs = {re.sub(r"\W", "_", name): text for name, text in _blocks() if _is_program(text)}
    programs["sound"] = SOUND
    typos = {f"typo_{re.sub(' ', '_', name)}": HEAD + text + "\n" for name, text in TYPOS.items()}
    for name, text in {**programs, **typos}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *map(str, sorted(tmp_path.glob("*.py")))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.stderr == ""
    wrong = {Path(line.partition(":")[0]).stem for line in done.stdout.splitlines() if ": error:" in line}
    assert wrong - set(typos) == set(), done.stdout
    assert set(typos) - wrong == set(), done.stdout


@pytest.mark.parametrize("module", [ordercast, ordercast.replicated])
def test_completion_finds_all_names_and_all_are_there(module: object) -> None:
    names: list[str] = getattr(module, "__all__")  # noqa: B009 - a module is any object here
    assert set(names) <= set(dir(module))
    assert [name for name in names if getattr(module, name, None) is None] == []


def test_what_is_not_there_is_said_with_its_name() -> None:
    with pytest.raises(AttributeError, match="module 'ordercast' has no attribute 'conect'"):
        getattr(ordercast, "conect")  # noqa: B009


def test_a_client_that_is_not_connected_says_what_to_do() -> None:
    waiting = ordercast.connect("tcp://127.0.0.1:1")
    with pytest.raises(ordercast.UsageError, match="not connected yet: write `async with"):
        getattr(waiting, "join")  # noqa: B009
    assert repr(waiting) == "<connect to tcp://127.0.0.1:1: enter it with `with` or `async with`>"
