"""Random interleavings of copies, losses, probes, rings and time: what must always hold of the layer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.model.effects import AlarmKind, Broadcast, SendTo
from ordercast.model.ids import MILLISECOND, ConfigurationId
from ordercast.model.notes import NetworkState
from ordercast.networks.config import Replication
from ordercast.wire.head import KIND_AT, LAYER_KIND
from tests.property_sizes import scaled
from tests.unit.networks.stage import (
    EVERYBODY,
    FOUR,
    ME,
    THREE,
    TWO,
    Stage,
    alarms,
    announcement,
    burst,
    data_packet,
    sends,
    token_out,
    token_packet,
    turns,
    view,
)

MEMBER = st.sampled_from((TWO, THREE, FOUR))
NETWORK = st.integers(0, 3)
ACTS = st.one_of(
    st.tuples(st.just("data"), NETWORK, MEMBER, st.integers(1, 40)),
    st.tuples(st.just("token"), NETWORK, st.integers(1, 6)),
    st.tuples(st.just("again"), NETWORK),
    st.tuples(st.just("announcement"), NETWORK, MEMBER),
    st.tuples(st.just("probe"), NETWORK, MEMBER, st.sampled_from(NetworkState), st.booleans(), st.integers(0, 1)),
    st.tuples(st.just("send"), st.integers(1, 20)),
    st.tuples(st.just("pass on")),
    st.tuples(st.just("wait"), st.integers(1, 400)),
    st.tuples(st.just("miss"), st.booleans()),
    st.tuples(st.just("ring")),
)


class Run:
    """Does what it is told, and checks after each step what must hold."""

    def __init__(self, style: Replication, count: int) -> None:
        self.stage = Stage(style, count, problem_threshold=3, token_lag_max=5, message_lag_max=180)
        self.count, self.style = count, style
        self.number, self.seq, self.ring = 0, 1, ConfigurationId(8, ME)

    def act(self, what: str, *arguments: int) -> None:
        stage = self.stage
        since, before = len(stage.log), stage.layer.marks.states
        tokens = len(stage.tokens_up)
        match what:
            case "data":
                network, member, seqs = arguments
                stage.give(network % self.count, *(data_packet(seq, member, self.ring) for seq in range(1, seqs)))  # type: ignore[arg-type]
            case "token":
                network, more = arguments
                self.number += more
                stage.give(network % self.count, token_packet(self.number, self.seq, ring=self.ring))
            case "again":
                stage.give(arguments[0] % self.count, token_packet(self.number, self.seq, ring=self.ring))
            case "announcement":
                stage.give(arguments[0] % self.count, announcement(arguments[1], self.ring))  # type: ignore[arg-type]
            case "probe":
                network, member, state, whole, skip = arguments
                stage.probe(network % self.count, member, state, bool(whole), skip, self.ring)  # type: ignore[arg-type]
            case "send":
                out = sends(stage.send(burst(self.seq, arguments[0])))
                assert {seq for _, seq in out} == set(range(self.seq, self.seq + arguments[0]))
                assert len(set(out)) == len(out), "no packet twice on one network"
                self.seq += arguments[0]
            case "pass on":
                stage.send(token_out(self.number + 1))
            case "wait":
                stage.wait(arguments[0] * MILLISECOND)
            case "miss":
                stage.engine.aru = 0 if arguments[0] else 1 << 40
            case "ring":
                self.ring, self.number = ConfigurationId(self.ring.seq + 4, ME), 0
                stage.send(view(EVERYBODY, self.ring))
        self.check(since, before, tokens)

    def check(self, since: int, before: tuple[NetworkState, ...], tokens: int) -> None:
        stage, effects = self.stage, self.stage.log[since:]
        marks = stage.layer.marks
        assert marks.good, "one network is always good"
        marked = [turn for turn in turns(effects) if turn.state is NetworkState.FAULTY]
        silent = {n for n, state in enumerate(before) if state is NetworkState.FAULTY and not turns(effects)}
        for effect in effects:
            if isinstance(effect, Broadcast | SendTo):
                packet = effect.packet if isinstance(effect, SendTo) else effect.bursts[0][0]
                is_probe = packet[KIND_AT] == LAYER_KIND
                assert is_probe or not silent & set(effect.networks), "a marked network is sent probes alone"
                assert effect.networks, "nothing is sent nowhere"
        assert len(alarms(effects)) <= len(marked), "no alarm without a mark"
        assert len(alarms(effects, AlarmKind.NETWORK_REPAIRED)) <= len(turns(effects))
        released = stage.tokens_up[tokens:]
        assert len(set(released)) == len(released), "no token twice"


@settings(max_examples=scaled(120), deadline=None)
@given(st.sampled_from(Replication), st.lists(ACTS, max_size=60))
def test_whatever_comes_in_whatever_order(style: Replication, acts: list[tuple[str, ...]]) -> None:
    run = Run(style, 4 if style is Replication.ACTIVE_PASSIVE else 2)
    for what, *arguments in acts:
        run.act(what, *arguments)  # type: ignore[arg-type]
    run.stage.wait(run.stage.config.token_hold_ns)
    assert run.stage.layer.next_deadline() is None or not run.stage.engine.deadline


@settings(max_examples=scaled(60), deadline=None)
@given(
    st.sampled_from(Replication),
    st.lists(st.tuples(st.integers(1, 12), st.sets(st.integers(0, 2), max_size=3)), min_size=1, max_size=40),
)
def test_every_new_token_goes_up_once_and_within_its_time(
    style: Replication, rounds: list[tuple[int, set[int]]]
) -> None:
    """Each round a token comes on some of the networks, in any order, some copies late."""
    stage, number, expected = Stage(style, 3), 0, []
    for milliseconds, networks in rounds:
        number += 4
        for network in sorted(networks):
            stage.token(number, network)
            stage.wait(milliseconds * MILLISECOND // 4)
        stage.wait(stage.config.token_hold_ns)
        if networks:
            expected.append(number)
        assert stage.tokens_up == expected
