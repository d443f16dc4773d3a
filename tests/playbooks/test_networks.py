"""Conversations with the layer for several networks, as texts: `>` what it is given, `<` what it does and passes up.

token NUMBER seq=S on NETWORK...     data SEQ from nK on NETWORK...     announce nK on NETWORK
probe nK STATE on NETWORK [not-whole]   send COUNT   pass-on NUMBER [vital]   wait MILLISECONDS
hold SEQ (the engine's aru)
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from textwrap import dedent

from ordercast.model.effects import Alarm, Broadcast, Effect, Record, SendTo
from ordercast.model.ids import MILLISECOND, process_text
from ordercast.model.notes import NetworkState, NetworkTurned, TokenReleased
from ordercast.networks.config import Replication
from ordercast.networks.probe import decode_probe
from ordercast.wire.head import KIND_AT, LAYER_KIND
from ordercast.wire.header import MessageKind
from tests.packets import seq_of
from tests.unit.networks.stage import (
    CLUSTER,
    EVERYBODY,
    Stage,
    announcement,
    burst,
    data_packet,
    number_of,
    token_out,
    token_packet,
)

NAMES = {process_text(process): process for process in EVERYBODY}
STATES = {state.value.replace(" ", "-"): state for state in NetworkState}


def play(text: str, style: Replication, networks: int) -> None:
    expected = [line.strip() for line in dedent(text).splitlines() if line.strip()]
    stage, actual, seq = Stage(style, networks), list[str](), [1]
    for line in expected:
        if line.startswith(">"):
            before = len(stage.up)
            effects = _give(stage, line[1:].split(), seq)
            actual += [line, *(f"< up {_packet(packet)}" for packet in stage.up[before:])]
            actual += [f"< {told}" for effect in effects if (told := _told(effect))]
        elif not line.startswith("<"):
            actual.append(line)
    if actual != expected:
        diff = difflib.unified_diff(expected, actual, "the playbook", "the layer", lineterm="", n=3)
        raise AssertionError("\n".join(["the conversation went another way:", *diff]))


def _give(stage: Stage, words: Sequence[str], seq: list[int]) -> Sequence[Effect]:
    verb, *rest = words
    networks = [int(word) for word in rest[rest.index("on") + 1 :] if word.isdigit()] if "on" in rest else []
    match verb:
        case "token":
            packet = token_packet(int(rest[0]), int(rest[1].removeprefix("seq=")))
            return stage.give_all(*((network, packet) for network in networks))
        case "data":
            return stage.give_all(*((network, data_packet(int(rest[0]), NAMES[rest[2]])) for network in networks))
        case "announce":
            return stage.give(networks[0], announcement(NAMES[rest[0]]))
        case "probe":
            return stage.probe(networks[0], NAMES[rest[0]], STATES[rest[1]], "not-whole" not in rest)
        case "send":
            count = int(rest[0])
            seq[0] += count
            return stage.send(burst(seq[0] - count, count))
        case "pass-on":
            return stage.send(token_out(int(rest[0]), is_vital="vital" in rest))
        case "hold":
            stage.engine.aru = int(rest[0])
            return []
        case _:
            return stage.wait(int(rest[0]) * MILLISECOND)


def _packet(packet: bytes) -> str:
    if packet[KIND_AT] == MessageKind.TOKEN:
        return f"token {number_of(packet)}"
    return f"data {seq_of(packet)}" if packet[KIND_AT] == MessageKind.DATA else "announcement"


def _told(effect: Effect) -> str:
    match effect:
        case Broadcast(networks=networks):
            first = effect.packets[0]
            if first[KIND_AT] == LAYER_KIND:
                probe = decode_probe(first, CLUSTER)
                return f"probe {probe.number} {probe.state.value} on {networks[0]}"
            seqs = [seq_of(packet) for packet in effect.packets]
            return f"data {seqs[0]}..{seqs[-1]} on {' '.join(map(str, networks))}"
        case SendTo(networks=networks):
            return f"token on {' '.join(map(str, networks))}"
        case Alarm(kind=kind):
            return f"! {kind.value}"
        case Record(note=NetworkTurned() as note):
            return f"* network {note.network} {note.state.value}: {note.evidence.value}"
        case Record(note=TokenReleased() as note):
            return f"* {note.cause.value}"
        case _:
            return ""


def test_a_dead_network_costs_a_timer_each_time_until_it_is_marked() -> None:
    rounds = "\n".join(
        f"""
        > token {4 * number} seq=0 on 0
        > wait 10
          < up token {4 * number}
          < * it had waited long enough
        """
        for number in range(1, 10)
    )
    play(
        f"""
        -- network 1 is dead, and nine tokens wait for it in vain
        {rounds}
        -- the tenth is one too many
        > token 40 seq=0 on 0
        > wait 10
          < up token 40
          < ! network faulty
          < * network 1 faulty: tokens did not come in time
          < probe 1 faulty on 1
          < * it had waited long enough
        -- from now on nobody waits for it, and nothing but probes is sent on it
        > token 44 seq=0 on 0
          < up token 44
          < * every good network brought it
        > send 2
          < data 1..2 on 0
        > pass-on 5
          < token on 0
        > data 7 from n3 on 1
          < up data 7
        """,
        Replication.ACTIVE,
        2,
    )


def test_a_token_that_overtakes_messages_waits_for_them_and_no_longer_than_it_must() -> None:
    play(
        """
        > token 4 seq=10 on 0
          < up token 4
          < * nothing was missing
        -- messages up to 10 were announced by that token; 10 is still on its way on network 1
        > hold 9
        > token 8 seq=14 on 0
        > wait 3
        > hold 10
        > data 10 from n2 on 1
          < up data 10
          < up token 8
          < * what was missing came
        -- this time it is lost
        > hold 13
        > token 12 seq=18 on 1
        > wait 10
          < up token 12
          < * it had waited long enough
        """,
        Replication.PASSIVE,
        2,
    )


def test_messages_and_tokens_take_turns() -> None:
    play(
        """
        > send 5
          < data 1..2 on 0
          < data 3..4 on 1
          < data 5..5 on 2
        > pass-on 5
          < token on 0
        > send 1
          < data 6..6 on 2
        > pass-on 6
          < token on 1
        > pass-on 6 vital
          < token on 0 1 2
        > pass-on 7
          < token on 2
        """,
        Replication.PASSIVE,
        3,
    )


def test_a_network_is_marked_by_a_members_word_and_put_on_trial_by_a_new_need() -> None:
    play(
        """
        > probe n3 faulty on 0
          < ! network faulty
          < * network 0 faulty: a member sends nothing but probes on it
          < probe 1 faulty on 0
        -- the other one is the last
        > probe n2 faulty on 1
          < ! no good network
          < * network 1 good: a member sends nothing but probes on it
          < * network 0 on trial: no other network is without faults
          < probe 2 on trial on 0
          < probe 1 good on 1
        > send 1
          < data 1..1 on 0 1
        """,
        Replication.ACTIVE,
        2,
    )
