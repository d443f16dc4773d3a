"""GroupHost: a participant whose deliveries are cut into named groups for its sessions.

What waits for the engine and in which order it gets it is decided at the desk (`groups/desk.py`). Here its turns are
submitted whenever there is room, and what comes back is handed to the sessions. Nobody waits here: a session is told
when its request was accepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, assert_never

from ordercast.daemon.clients.told import ClientTold
from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.participant import Participant
from ordercast.daemon.status.parts import ClientsStatus, HoldStatus, ReplicatedStatus
from ordercast.groups.desk import DeskOutput, GroupDesk
from ordercast.groups.layer import Confirmed, Groups, MessageRun, PassedOver, Relisted, Warned
from ordercast.groups.names import REPLICAS
from ordercast.groups.table import Notice
from ordercast.model.configuration import Configuration
from ordercast.model.effects import Alarm, AlarmKind, Deliver, Install, Parted, Placed, Subscribed
from ordercast.model.errors import UsageError
from ordercast.model.ids import Instant
from ordercast.model.notes import PacketDropped
from ordercast.model.roster import Claim, Roster
from ordercast.model.service import Service
from ordercast.order.catalogue import entry_of
from ordercast.session.counters import ClientRefusal
from ordercast.session.handouts import Handouts, Session
from ordercast.session.rights import AccessRule

STATES_SHOWN = 100


class Serving(Protocol):
    """Whoever serves clients here."""

    @property
    def memory_size(self) -> int:
        """Bytes that are kept for all of them."""

    @property
    def memory_max(self) -> int: ...
    @property
    def memberships(self) -> int: ...
    @property
    def strangers_count(self) -> int: ...
    def clients(self) -> list[ClientTold]: ...
    def reread(self) -> bool:
        """Read the certificates again; tell whether they are new. UsageError when they cannot be used."""

    def regrant(self, rules: Sequence[AccessRule]) -> None:
        """Take these rights."""

    @property
    def certificate_days(self) -> int | None:
        """Until the certificate ends; None without one."""

    @property
    def sessions_by_identity(self) -> dict[str, int]: ...


class GroupHost(Participant):
    def __init__(
        self,
        config: NodeConfig | None = None,
        on_configuration: Callable[[Configuration], None] | None = None,
        on_alarm: Callable[[Alarm], None] | None = None,
    ) -> None:
        super().__init__(config)
        self.desk: GroupDesk
        self.handouts = Handouts()
        self._on_configuration = on_configuration
        self._on_alarm = on_alarm
        self._leaving: asyncio.Task[None] | None = None
        self.as_loaded: NodeConfig | None = None  # what the file said when this began, to be compared by a reload
        self._will_pump = False
        self._is_carrying_out = False
        self._will_flush = False
        self._roster_waiters: dict[Claim, list[Callable[[UsageError | None], None]]] = {}
        self._holding: dict[int, Instant] = {}  # sessions for which all wait, and since when
        self.serving: Serving | None = None

    # Sessions

    @property
    def sessions(self) -> dict[int, Session]:
        """The sessions that are open, by number."""
        return self.handouts.sessions

    def open_session(self, session: Session, name: str) -> tuple[int, str]:
        """Its number and its full name. UsageError when the name is bad, or in use. Empty: any that is free."""
        if self.is_removed:
            raise UsageError(f"{self._removal}: connect to another daemon")
        self._running()
        number, full = self.desk.open(name)
        self.sessions[number] = session
        self.counters.clients.connected += 1
        return number, full

    def close_session(
        self, number: int, full: str, groups: int = 0, accepted: Callable[[], None] | None = None
    ) -> None:
        """It is gone: what it has sent is still sent, and then everybody is told. It was in so many groups."""
        if self.sessions.pop(number, None) is not None and self.is_running:
            self.desk.close(number, full, groups, accepted)
            self._pump_if_free()

    def hold(self, number: int, is_holding: bool) -> None:
        """All wait for this session, or no longer."""
        was_behind = self.is_behind
        if is_holding:
            self._holding.setdefault(number, self.now())
        else:
            self._holding.pop(number, None)
        if self.is_behind != was_behind:
            self._tell_behind()

    @property
    def named(self) -> Groups:
        return self.desk.groups

    @property
    def is_behind(self) -> bool:
        return self.reading.is_behind or bool(self._holding)

    def request(
        self,
        number: int,
        payloads: Sequence[bytes],
        service: Service = Service.AGREED,
        accepted: Callable[[], None] | None = None,
        changes: int = 0,
    ) -> None:
        """Have it sent in this session's turn, after what it has asked for before. `changes`: it is a join or a leave
        of so many groups."""
        self.desk.request(number, payloads, service, accepted, changes)
        self._pump_if_free()

    @property
    def requests_waiting(self) -> int:
        """Requests waiting for engine room or for a merge to finish."""
        return self.desk.requests_waiting

    def _pump_if_free(self) -> None:
        if self._is_carrying_out:
            self._pump_soon()
        else:
            self._pump()

    def _pump_soon(self) -> None:
        """Pump once the effects at hand are carried out: what the engine delivers comes in its order."""
        if not self._will_pump:
            self._will_pump = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Hand over what there is room for."""
        self._will_pump = False
        if self._is_leaving:
            return  # the engine takes nothing more
        if self.desk.interests.has_changes and self.is_running:
            self._tell_interest(self.desk.interests.changes())
        while self.is_running and (turn := self.desk.next_turn(self._has_room_for)) is not None:
            self._hand_over(turn.payloads, turn.service, turn.session, turn.size, turn.destinations)
            if turn.accepted is not None:
                turn.accepted()
                if (session := self.sessions.get(turn.session)) is not None:
                    self.touch(session)

    def clients_status(self) -> ClientsStatus:
        counters, serving = self.counters.clients, self.serving
        return ClientsStatus(
            sessions=len(self.sessions),
            groups=len(self.desk.groups.table),
            is_merging=not self.desk.groups.is_steady,
            waiting_size=sum(session.waiting_size for session in self.sessions.values()),
            connected=counters.connected,
            refused=counters.refused,
            too_slow=counters.too_slow,
            messages_dropped=counters.messages_dropped,
            received_size=sum(session.received_size for session in self.sessions.values()),
            requests_size=self.desk.requests_size,
            memory_size=0 if serving is None else serving.memory_size,
            memory_max=0 if serving is None else serving.memory_max,
            memberships=0 if serving is None else serving.memberships,
            strangers=0 if serving is None else serving.strangers_count,
            over_memory=counters.over_memory,
            held_too_long=counters.held_too_long,
            refusals={kind.value: counters.refusals[kind] for kind in ClientRefusal},
            holding=tuple(self._holds()),
            states=tuple(self._states()),
            insecure=dict(counters.insecure),
            denials=dict(counters.denials),
            certificate_days=None if serving is None else serving.certificate_days,
            callback=None if self.counters.callback is None else replace(self.counters.callback),
            identities={} if serving is None else serving.sessions_by_identity,
        )

    def _states(self) -> Iterator[ReplicatedStatus]:
        """Replicas of a state meet in a group of its name."""
        table = self.desk.groups.table
        groups, _ = table.page(REPLICAS, STATES_SHOWN)
        for group in groups:
            if group.startswith(REPLICAS):
                yield ReplicatedStatus(group.removeprefix(REPLICAS), table.members_of(group))

    # The node list

    def await_roster(self, claim: Claim, told: Callable[[UsageError | None], None]) -> None:
        """Tell when this node list has come in order: None when it was taken, else why not."""
        self._roster_waiters.setdefault(claim, []).append(told)

    def _take_roster(self, roster: Roster) -> None:
        """An ordered change. All daemons of the configuration have it at this place."""
        waiters = self._roster_waiters.pop(roster.claim, [])
        if not self.is_running:
            return
        refusal: UsageError | None = None
        try:
            self.enlist(roster)
        except UsageError as error:
            refusal = UsageError(f"the node list was changed by somebody else meanwhile, try again: {error}")
        for told in waiters:
            told(refusal)
        if refusal is not None:
            return
        if self.config.node not in roster:
            self._leave_for_good(roster)

    def _leave_for_good(self, roster: Roster) -> None:
        """The cluster goes on without this node, which takes leave in order and says why."""
        text = f"version {roster.version} of the node list does not have {self.config.name}: it was removed"
        self.raise_alarm(Alarm(AlarmKind.REMOVED, f"{text} from the cluster and leaves it", self.process))
        self._leaving = asyncio.get_running_loop().create_task(self.leave(f"{text} from the cluster"))

    def _holds(self) -> Iterator[HoldStatus]:
        now = self.now()
        for number, since in self._holding.items():
            session = self.sessions[number]
            yield HoldStatus(session.name, now - since, session.waiting_size)

    # What the engine brings

    def _opened(self) -> None:
        self.desk = GroupDesk(
            self.process,
            self.config.name,
            overhead=self._overhead,
            portion_size_max=self.config.sizes.queue_size_max,
            overtakes=entry_of(self.engine.promises.engine).overtakes,
        )

    def _delivered(self, deliver: Deliver, size: int) -> None:
        self._carry_out_groups(self.desk.deliver(deliver))

    def _viewed(self, effect: Install) -> None:
        if self._on_configuration is not None:
            self._on_configuration(effect.configuration)
        outputs = self.desk.install(effect.configuration, parts=effect.parts, is_uneven=effect.is_uneven)
        self._carry_out_groups(outputs)

    def on_parted(self, effect: Parted) -> None:
        self._carry_out_groups(self.desk.part(effect))

    def _placed(self, effect: Placed) -> None:
        self._carry_out_groups(self.desk.placed(effect))

    def on_alarm(self, alarm: Alarm, at: Instant) -> None:
        super().on_alarm(alarm, at)
        if self._on_alarm is not None:
            self._on_alarm(alarm)

    def on_room(self) -> None:
        super().on_room()
        self._pump_soon()

    def on_subscribed(self, effect: Subscribed) -> None:
        super().on_subscribed(effect)
        if self.desk.subscribed(effect.groups):
            self._pump_soon()

    def _carry_out_groups(self, outputs: list[DeskOutput]) -> None:
        self._is_carrying_out = True
        try:
            for output in outputs:
                self._carry_out_one(output)
        finally:
            self._is_carrying_out = False
        self._flush_soon()
        if self.desk.has_something:
            self._pump_soon()

    def _carry_out_one(self, output: DeskOutput) -> None:
        match output:
            case MessageRun() | Notice() | Confirmed():
                self.handouts.give(output)
            case Relisted():
                asyncio.get_running_loop().call_soon(self._take_roster, output.roster)
            case Warned():
                self.counters.alarms.append((self.now(), Alarm(AlarmKind.TWIN_NAMES, output.text)))
            case PassedOver():
                self.counters.refused[output.why] += 1
                self.on_note(PacketDropped(output.why), self.now())
            case _:
                assert_never(output)

    def touch(self, session: Session) -> None:
        """Have it flushed before the event loop looks at the network again: one write for all that came meanwhile."""
        self.handouts.touched[session] = None
        self._flush_soon()

    def end_turn(self) -> None:
        """What came of the packets is written at once: the event loop need not come round for that."""
        super().end_turn()
        if self.handouts.touched:
            self.handouts.flush()

    def end_reading(self, session: Session) -> None:
        """The session has said all for now, and flushes itself; others are flushed soon if something came of it."""
        self._is_turn = False
        self.handouts.touched.pop(session, None)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if self.handouts.touched and not self._will_flush and not self._is_turn:
            self._will_flush = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._will_flush = False
        self.handouts.flush()

    def _close(self) -> None:
        super()._close()
        why = str(self._failure) if self._failure is not None else f"the daemon {self.config.name} has left"
        sessions, self.handouts.sessions = self.sessions, {}
        for session in sessions.values():
            session.on_ended(why)
