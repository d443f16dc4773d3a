"""What replicas say to each other inside the messages of their group, and what stands before a picture.

    COMMAND   one change of the state, or a no-op that only wants its place
    FOLLOWING likewise, and it counts only behind another one of its sender that has no answer yet
    STATE     at every view, from every member: what I have and what I know
    LOADED    the picture that I lacked is here
    UNITED    several sides have met, and these of them make the state
    FORCE     an operator says: go on with the best state that is here
    EXCLUDE   these members say nothing: decide without them
    ASK       who is still there? while sides are being united
    HERE      the answer
    DURABLE   my journal has everything of this component up to here

Network byte order. `decode` and `decode_preface` raise WireError and nothing else, and check counts before they build.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from ordercast.groups.names import checked_destination
from ordercast.model.errors import UsageError, WireError
from ordercast.model.events import ViewId
from ordercast.model.ids import ConfigurationId, Position, ProcessId
from ordercast.model.lineage import Lineage, Term
from ordercast.replicated.effects import Point
from ordercast.replicated.quorum import Electorate, Life
from ordercast.replicated.sessions import Outcome, Session, Sessions
from ordercast.replicated.track import DIGEST_SIZE, Held, Rank
from ordercast.wire.reader import ByteReader

ADDRESS_SIZE_MAX: Final = 1000
STRUCTURE_SIZE_MAX: Final = 64
ERA_SAID_MAX: Final = (1 << 32) - 2  # in a STATE: the one after it can still be written


class Kind(IntEnum):
    """Numbers travel on the wire: append only."""

    COMMAND = 1
    OLD_STATE = 2  # of versions that put no command behind another: whoever says it is not heard
    LOADED = 3
    UNITED = 4
    FORCE = 5
    EXCLUDE = 6
    ASK = 7
    HERE = 8
    DURABLE = 9
    STATE = 10
    FOLLOWING = 11


_FORCE: Final = bytes((Kind.FORCE,))
_FOLLOWING: Final = bytes((Kind.FOLLOWING,))
_COMMANDS: Final = (bytes((Kind.COMMAND,)), _FOLLOWING)
NOOP: Final = 1  # of COMMAND: no change is wanted, only a place in the order
VOTER, FOUNDING, HAS_RANK, HAS_FORMED, HAS_LOADING, KEPT, BEHIND, HAS_MEMORY = 1, 2, 4, 8, 16, 32, 64, 128  # of STATE

COMMAND: Final = struct.Struct("!BBQQQ")
FOLLOWING: Final = struct.Struct("!BBQQQQ")
VIEW: Final = struct.Struct("!QQ QQQH")  # configuration; origin, number and slot of its position
STEP: Final = struct.Struct("!I")
U16: Final = struct.Struct("!H")
U32: Final = struct.Struct("!I")
U64: Final = struct.Struct("!Q")
LIFE: Final = struct.Struct("!QI")
assert (COMMAND.size, VIEW.size) == (26, 42)


class Command(NamedTuple):
    """`settled`: its sender has the answers to all requests up to this one. `previous`: the last one before it that its
    sender has no answer to; 0: there is none."""

    life: int
    request: int
    settled: int
    previous: int
    is_noop: bool
    data: bytes


class Loading(NamedTuple):
    """A picture that is on its way, and the sequence that there will be when it has come."""

    point: Point
    rank: Rank


class State(NamedTuple):
    """What one member says at a view, once in every round of it."""

    view: ViewId
    round: int
    era: int
    behind: bool  # in this era it has been in a view that is not before this one
    life: int
    stint: int
    voter: bool
    kept: bool  # no vote since it was cut off, but it has all that it had then, and nothing was being decided
    founding: bool
    rank: Rank | None  # None: no state
    formed: Electorate | None  # the last primary component that it knows to have been decided
    attempts: tuple[Electorate, ...]  # those that may have been, after it
    loading: Loading | None
    pictures: tuple[Point, ...]  # that it serves
    address: bytes
    memory: int = 0  # what its journal is called, for as long as it has that one; 0: it has none
    structure: str = ""  # what is replicated; "": it has no name
    quorum: int = 0  # by which rule it decides (`quorum.mark_of`)


class Loaded(NamedTuple):
    view: ViewId
    life: int
    stint: int


class Force(NamedTuple):
    view: ViewId


class Exclude(NamedTuple):
    """Said by one who has spoken in this round. `names`: members who have not, or have not answered an ASK, sorted."""

    view: ViewId
    round: int
    names: tuple[str, ...]


class Ask(NamedTuple):
    """Asks all in a view and a round."""

    view: ViewId
    round: int


class Here(NamedTuple):
    view: ViewId
    round: int


class Durable(NamedTuple):
    """Said by one who has the component's state. `length`: of its sequence, as far as that is safe on its disk."""

    view: ViewId
    round: int
    length: int


class United(NamedTuple):
    """Said by the uniter. `numbers`: the sides that are united, rising."""

    view: ViewId
    life: int
    stint: int
    numbers: tuple[int, ...]


class Preface(NamedTuple):
    """The core's part of a picture: what is applied in it, and what is held behind that."""

    applied: int
    digest: bytes  # of what is applied
    sessions: Sessions
    held: tuple[Held, ...]


def encode_command(command: Command) -> bytes:
    life, request, settled, previous, is_noop, data = command
    if not previous:
        return COMMAND.pack(Kind.COMMAND, NOOP * is_noop, life, request, settled) + data
    return FOLLOWING.pack(Kind.FOLLOWING, NOOP * is_noop, life, request, settled, previous) + data


def decode_command(data: bytes) -> Command:
    """The caller has seen that it is one."""
    head = FOLLOWING if data[:1] == _FOLLOWING else COMMAND
    if len(data) < head.size:
        raise WireError(f"a command of {len(data)} bytes")
    _, flags, life, request, settled, *more = head.unpack_from(data)
    previous = more[0] if more else 0
    if flags & ~NOOP or not request or settled >= request or (more and not settled < previous < request):
        raise WireError(f"a command with flags {flags}, request {request}, settled {settled}, previous {previous}")
    return Command(life, request, settled, previous, bool(flags & NOOP), data[head.size :])


def is_command(data: bytes) -> bool:
    return data[:1] in _COMMANDS


def encode_state(state: State) -> bytes:
    flags = VOTER * state.voter | KEPT * state.kept | FOUNDING * state.founding
    flags |= HAS_RANK * (state.rank is not None) | HAS_FORMED * (state.formed is not None)
    flags |= HAS_LOADING * (state.loading is not None) | BEHIND * state.behind | HAS_MEMORY * bool(state.memory)
    parts = [bytes((Kind.STATE, flags)), term_bytes(Term(state.era, state.view)), U32.pack(state.round)]
    parts.append(LIFE.pack(state.life, state.stint))
    if state.rank is not None:
        parts.append(rank_bytes(state.rank))
    if state.formed is not None:
        parts.append(electorate_bytes(state.formed))
    parts.append(U16.pack(len(state.attempts)))
    parts += map(electorate_bytes, state.attempts)
    if state.loading is not None:
        parts += [_point_bytes(state.loading.point), rank_bytes(state.loading.rank)]
    parts.append(U16.pack(len(state.pictures)))
    parts += map(_point_bytes, state.pictures)
    structure = state.structure.encode()
    parts += [U16.pack(len(state.address)), state.address, U16.pack(len(structure)), structure, U64.pack(state.quorum)]
    return b"".join((*parts, U64.pack(state.memory)) if state.memory else parts)


def encode_loaded(loaded: Loaded) -> bytes:
    return bytes((Kind.LOADED,)) + view_bytes(loaded.view) + LIFE.pack(loaded.life, loaded.stint)


def encode_united(united: United) -> bytes:
    head = bytes((Kind.UNITED,)) + view_bytes(united.view) + LIFE.pack(united.life, united.stint)
    return head + U16.pack(len(united.numbers)) + b"".join(map(U32.pack, united.numbers))


def is_force(payload: bytes) -> bool:
    return payload[:1] == _FORCE


def encode_force(force: Force) -> bytes:
    return bytes((Kind.FORCE,)) + view_bytes(force.view)


def encode_exclude(exclude: Exclude) -> bytes:
    head = bytes((Kind.EXCLUDE,)) + view_bytes(exclude.view) + U32.pack(exclude.round)
    names = [name.encode() for name in exclude.names]
    return head + U16.pack(len(names)) + b"".join(U16.pack(len(name)) + name for name in names)


def encode_ask(ask: Ask) -> bytes:
    return bytes((Kind.ASK,)) + view_bytes(ask.view) + U32.pack(ask.round)


def encode_here(here: Here) -> bytes:
    return bytes((Kind.HERE,)) + view_bytes(here.view) + U32.pack(here.round)


def encode_durable(durable: Durable) -> bytes:
    return bytes((Kind.DURABLE,)) + view_bytes(durable.view) + U32.pack(durable.round) + U64.pack(durable.length)


Message = State | Loaded | United | Force | Exclude | Ask | Here | Durable


def decode(data: bytes) -> Message:
    """All but commands."""
    reader = ReplicaReader(data)
    kind = reader.byte()
    if kind == Kind.STATE:
        message: Message = _decode_state(reader)
    elif kind == Kind.LOADED:
        message = Loaded(reader.view(), *reader.unpack(LIFE))
    elif kind == Kind.UNITED:
        view = reader.view()
        life, stint = reader.unpack(LIFE)
        message = United(view, life, stint, reader.many(reader.u32))
    elif kind == Kind.FORCE:
        message = Force(reader.view())
    elif kind == Kind.EXCLUDE:
        message = Exclude(reader.view(), reader.u32(), reader.many(reader.name))
    elif kind == Kind.ASK:
        message = Ask(reader.view(), reader.u32())
    elif kind == Kind.HERE:
        message = Here(reader.view(), reader.u32())
    elif kind == Kind.DURABLE:
        message = Durable(reader.view(), reader.u32(), reader.u64())
    else:
        raise WireError(f"there is no kind {kind}")
    reader.end()
    return message


def is_structure_name(text: str) -> bool:
    """Say whether a structure may be called so: a name of Python's, in ASCII."""
    return text.isidentifier() and text.isascii() and len(text) <= STRUCTURE_SIZE_MAX


def _decode_state(reader: ReplicaReader) -> State:
    flags = reader.byte()
    era, view = reader.term()
    if era > ERA_SAID_MAX:
        raise WireError(f"era {era:,}, after which there is none")
    number = reader.u32()
    life, stint = reader.unpack(LIFE)
    state = State(
        view,
        number,
        era,
        bool(flags & BEHIND),
        life,
        stint,
        bool(flags & VOTER),
        bool(flags & KEPT),
        bool(flags & FOUNDING),
        reader.rank() if flags & HAS_RANK else None,
        reader.electorate() if flags & HAS_FORMED else None,
        reader.many(reader.electorate),
        Loading(reader.point(), reader.rank()) if flags & HAS_LOADING else None,
        reader.many(reader.point),
        reader.text_bytes(),
        structure=reader.structure(),
        quorum=reader.u64(),
    )
    return state._replace(memory=reader.u64()) if flags & HAS_MEMORY else state


def encode_preface(preface: Preface) -> bytes:
    sessions = preface.sessions
    parts = [U64.pack(preface.applied), preface.digest, U64.pack(sessions.forgotten), U32.pack(len(sessions.by_life))]
    for life, session in sessions.by_life.items():
        parts += [U64.pack(life), U64.pack(session.settled), U32.pack(len(session.outcomes))]
        for request, (position, result) in session.outcomes.items():
            parts += [U64.pack(request), U64.pack(position), U32.pack(len(result)), result]
    parts.append(U32.pack(len(preface.held)))
    for held in preface.held:
        name = held.name.encode()
        parts += [U16.pack(len(name)), name, U32.pack(len(held.payload)), held.payload]
    return b"".join(parts)


def decode_preface(data: bytes) -> Preface:
    reader = ReplicaReader(data)
    applied, digest = reader.u64(), reader.take(DIGEST_SIZE)
    sessions = Sessions(forgotten=reader.u64())
    for _ in range(reader.u32()):
        life = reader.u64()
        session = sessions.by_life[life] = Session(reader.u64())
        for _ in range(reader.u32()):
            request, position = reader.u64(), reader.u64()
            session.outcomes[request] = Outcome(position, reader.take(reader.u32()))
    held = tuple(reader.held() for _ in range(reader.u32()))
    reader.end()
    return Preface(applied, digest, sessions, held)


_Item = TypeVar("_Item")


class ReplicaReader(ByteReader):
    """Takes what replicas say apart. A count is never trusted: every item takes at least a byte, so that the loop ends
    where the bytes do."""

    def u32(self) -> int:
        return int(self.unpack(U32)[0])

    def u64(self) -> int:
        return int(self.unpack(U64)[0])

    def text_bytes(self) -> bytes:
        return self.take(self.unpack(U16)[0])

    def name(self) -> str:
        """Read the name of a member: held to the rules of names, as it is compared and shown."""
        try:
            return checked_destination(str(self.text_bytes(), "ascii"))
        except (UnicodeDecodeError, UsageError) as error:
            raise WireError(f"a name that is none: {error}") from None

    def structure(self) -> str:
        """Read what a structure is called: it is shown, too."""
        text = self.text_bytes().decode("ascii", "replace")
        if text and not is_structure_name(text):
            raise WireError("a name of a structure that is none")
        return text

    def view(self) -> ViewId:
        seq, representative, origin_seq, origin_representative, number, slot = self.unpack(VIEW)
        position = Position(ConfigurationId(origin_seq, ProcessId(origin_representative)), number, slot)
        return ViewId(ConfigurationId(seq, ProcessId(representative)), position)

    def term(self) -> Term:
        return Term(self.u32(), self.view())

    def point(self) -> Point:
        return Point(self.term(), self.unpack(STEP)[0])

    def rank(self) -> Rank:
        lineage = Lineage(self.term(), self.u32())
        return Rank(lineage, self.term(), self.u64(), self.take(DIGEST_SIZE))

    def electorate(self) -> Electorate:
        return Electorate(self.point(), self.many(self._life))

    def _life(self) -> Life:
        name = self.name()
        life, stint = self.unpack(LIFE)
        return Life(name, life, stint)

    def held(self) -> Held:
        name = self.name()
        return Held(name, self.take(self.u32()))

    def many(self, read: Callable[[], _Item]) -> tuple[_Item, ...]:
        return tuple(read() for _ in range(self.unpack(U16)[0]))


def view_bytes(view: ViewId) -> bytes:
    origin, number, slot = view.position
    return VIEW.pack(*view.configuration, *origin, number, slot)


def term_bytes(term: Term) -> bytes:
    return U32.pack(term.era) + view_bytes(term.view)


def _point_bytes(point: Point) -> bytes:
    return term_bytes(point.term) + STEP.pack(point.step)


def rank_bytes(rank: Rank) -> bytes:
    lineage = term_bytes(rank.lineage.term) + U32.pack(rank.lineage.side)
    return lineage + term_bytes(rank.term) + U64.pack(rank.length) + rank.digest


def electorate_bytes(electorate: Electorate) -> bytes:
    lives = []
    for name, life, stint in electorate.lives:
        text = name.encode()
        lives.append(U16.pack(len(text)) + text + LIFE.pack(life, stint))
    return b"".join((_point_bytes(electorate.point), U16.pack(len(lives)), *lives))
