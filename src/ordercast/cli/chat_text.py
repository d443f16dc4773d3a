"""What a chat says: who came, who left, what happened to the network, and what was said. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import assert_never

from rich.text import Text

from ordercast.cli.event_text import News, Roster, listed, network_text
from ordercast.cli.payload_text import SHOWN_MAX, shown
from ordercast.groups.names import AT
from ordercast.model.events import Dropped, Left, Message, Reason, Reconnected, Transition, View

STYLES = ("cyan", "magenta", "green", "blue", "bright_cyan", "bright_magenta", "bright_green", "bright_blue")
DEFAULT_ROOM = "lobby"
HELP = "/who shows who is here, /quit leaves"


class ChatText:
    """Lines for one reader. Names are short where they are clear: alice for alice@n1."""

    def __init__(self, room: str, me: str = "") -> None:
        self.me = me
        self._room = room
        self._roster = Roster()
        self._is_in = False
        self._styles: dict[str, str] = {}

    @property
    def members(self) -> tuple[str, ...]:
        return self._roster.members.get(self._room, ())

    def message(self, message: Message) -> Text:
        """Return what was said, by whom, and whether only this reader hears it."""
        alone = "" if self._room in message.groups else ", to you alone"
        return Text.assemble(
            (f"{self._short(message.sender)}{alone}: ", self._style(message.sender)), shown(message.data, SHOWN_MAX)
        )

    def news(self, news: News) -> Text | None:
        sentence = self._sentence(news)
        return None if sentence is None else Text(sentence, "dim italic" if isinstance(news, View) else "yellow")

    def lost(self, why: str) -> Text:
        return Text(f"{_capitalised(why)}. Looking for a daemon …", "yellow")

    def who(self) -> Text:
        names = [f"{name} (you)" if name == self.me else name for name in self.members]
        return Text(f"{len(names)} here: {listed(names)}", "dim")

    def _sentence(self, news: News) -> str | None:
        match news:
            case View():
                return self._view(news)
            case Transition() | Left():
                return None  # a view follows; and we know that we leave
            case Dropped():
                return f"{news.messages:,} messages are missing here: this terminal was too slow."
            case Reconnected():
                self.me = news.name
                self._is_in = False
                return "You are connected again: what was said meanwhile is missing here."
            case _:
                assert_never(news)

    def _view(self, view: View) -> str:
        before = Counter(map(_client, self.members))
        came, gone = self._roster.changes(view)
        if not self._is_in:
            self._is_in = True
            return self._welcome()
        who = listed(self._shortened(view.who, before))
        match view.reason:
            case Reason.JOIN:
                return f"{who} came in."
            case Reason.LEAVE:
                return f"{who} left."
            case Reason.DISCONNECT:
                return f"{who} is gone: the program ended, or its connection broke."
            case Reason.NETWORK:
                told = network_text(view, self._shortened(came, before), self._shortened(gone, before))
                return f"{_capitalised(told)}. {self._remaining()}"
            case _:
                assert_never(view.reason)

    def _welcome(self) -> str:
        others = [name for name in self.members if name != self.me]
        if not others:
            room = "" if self._room == DEFAULT_ROOM else f" {self._room}"
            hint = f"type `ordercast chat{room}` in another terminal"
            return f"You are {self.me}, alone in the room {self._room}: {hint}."
        return f"You are {self.me} in the room {self._room}, with {listed(others)}."

    def _remaining(self) -> str:
        others = [self._short(name) for name in self.members if name != self.me]
        return f"Here are {listed(['you', *others])}." if others else "You are alone."

    def _short(self, name: str) -> str:
        return self._shortened((name,), Counter())[0]

    def _shortened(self, names: Iterable[str], before: Counter[str]) -> list[str]:
        """Return the name without its daemon, unless two of that name are here or were just now."""
        now = Counter(map(_client, self.members))
        return [_client(name) if max(now[_client(name)], before[_client(name)]) <= 1 else name for name in names]

    def _style(self, name: str) -> str:
        if name == self.me:
            return "bold"
        return self._styles.setdefault(name, STYLES[len(self._styles) % len(STYLES)])


def _capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _client(name: str) -> str:
    return name.partition(AT)[0]
