"""What a process says on the control stream: its users' messages first, then its own; what there is no room for waits.

Every message names the configuration in which it has its effect: in a later one it has none.
"""

from __future__ import annotations

from collections import deque

from ordercast.model.effects import Effect, Subscribed
from ordercast.model.ids import ConfigurationId, Instant
from ordercast.model.inputs import Submission
from ordercast.model.service import Service
from ordercast.order.layered import InnerRing
from ordercast.order.outbox import OVERHEAD
from ordercast.order.tree.control import Holding, Wants, encode_held, encode_wants
from ordercast.wire.header import digest_of

TAG_END = 9  # of the tag behind the kind of a control message


class Saying:
    def __init__(self, control: InnerRing) -> None:
        self._control = control
        self.tag = b""  # of the configuration in which what is said next has its effect
        self.own: deque[tuple[bytes, Service]] = deque()  # that wait for room
        self.users: list[Submission] = []
        self.wanted: dict[str, bool] = {}  # groups, and whether they were told to be in force
        self.changed: dict[str, bool] = {}  # what was not said to others
        self.is_behind = False  # the application
        self._said_behind = False

    @property
    def is_empty(self) -> bool:
        return not self.own and not self.changed

    def fits(self, size: int) -> bool:
        return self._control.room() >= size + OVERHEAD

    def want(self, group: str, is_wanted: bool) -> None:
        if is_wanted:
            self.wanted[group] = False
        else:
            self.wanted.pop(group, None)
        self.changed[group] = is_wanted

    def answered(self, effects: list[Effect]) -> list[Effect]:
        """Return the effects, groups that are in force told only to who has asked."""
        for effect in effects:
            if isinstance(effect, Subscribed):
                effect.groups = tuple(name for name in effect.groups if self.wanted.get(name) is False)
                self.wanted.update(dict.fromkeys(effect.groups, True))
        return [effect for effect in effects if not isinstance(effect, Subscribed) or effect.groups]

    def begin(self, own: str) -> None:
        """A configuration begins: say everything that is wanted here, the group of this process's own too."""
        self._said_behind = False
        self.changed.clear()
        self.own.append((encode_wants(Wants((own, *sorted(self.wanted)), is_full=True)), Service.AGREED))

    def add_changes(self) -> None:
        """Add what has changed here since others were told."""
        if self.changed:
            gained = tuple(sorted(name for name, wanted in self.changed.items() if wanted))
            lost = tuple(sorted(name for name, wanted in self.changed.items() if not wanted))
            self.changed.clear()
            self.own.append((encode_wants(Wants(gained, lost)), Service.AGREED))
        if self.is_behind != self._said_behind:
            self._said_behind = self.is_behind
            self.own.append((encode_held(Holding(self.is_behind)), Service.AGREED))

    def users_words(self, now: Instant) -> list[Effect]:
        """Submit what users have to say; return what comes of it."""
        users, self.users = self.users, []
        return self._control.submit(users, now) if users else []

    @property
    def has_turn(self) -> bool:
        """Whether there is something to say, and room for it."""
        return bool(self.own) and self.fits(len(self.own[0][0]))

    def next(self, now: Instant) -> list[Effect]:
        """Submit the first message that waits; return what comes of it."""
        data, service = self.own.popleft()
        return self._control.submit([Submission(self.tagged(data), service)], now)

    def have_effect_in(self, configuration: ConfigurationId) -> None:
        """What is said from now on has its effect in this configuration."""
        self.tag = digest_of(configuration)

    def tagged(self, data: bytes) -> bytes:
        return data[:1] + self.tag + data[1:]
