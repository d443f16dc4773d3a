"""What becomes of each network: it is marked when it is blamed, probed while it is not good, tried, and taken back.

`Watch` blames, `Marks` and `Probing` remember; here it is decided, told to people and written down.
"""

from __future__ import annotations

from dataclasses import dataclass

from ordercast.model.effects import Alarm, AlarmKind, Broadcast, Effect, Record
from ordercast.model.errors import WireError
from ordercast.model.ids import ConfigurationId, Instant, ProcessId, Seq, process_text
from ordercast.model.notes import Evidence, NetworkState, NetworkTurned, PacketDropped
from ordercast.networks.config import HOLD_OFF_LEVEL_MAX, NetworksConfig
from ordercast.networks.marks import Marks
from ordercast.networks.probe import Probe, decode_probe, encode_probe
from ordercast.networks.probing import Probing
from ordercast.networks.watch import NetworkSuspicion, Watch


@dataclass(slots=True)
class NetworksStats:
    """What the layer counts of itself, as plain numbers that rise; for status displays."""

    alarms: list[int]  # how often each network was marked
    expired: int = 0  # tokens that went up because they had waited long enough


class Judgement:
    def __init__(
        self, config: NetworksConfig, cluster: bytes, marks: Marks, watch: Watch, stats: NetworksStats
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._marks = marks
        self._watch = watch
        self._stats = stats
        self._probing = [Probing(config) for _ in range(config.count)]
        self._me = ProcessId(0)
        self._ring = ConfigurationId(0, ProcessId(0))  # the ring that is installed
        self._in_need = False  # no good network brings everybody: everything is used
        self._needs = 0  # how often, on this ring
        self.probe_at: Instant | None = None  # when the next probes are due

    def begin(
        self, ring: ConfigurationId, me: ProcessId, others: tuple[ProcessId, ...], now: Instant, effects: list[Effect]
    ) -> None:
        """A new ring: nothing that was counted among others holds, and every network gets another chance."""
        self._ring, self._me = ring, me
        self._in_need = False
        self._needs = 0
        for probing in self._probing:
            probing.begin(others, now)
        self._watch.begin(others)
        for network, state in enumerate(self._marks.states):
            if state is NetworkState.FAULTY:
                self._try_again(network, Evidence.NEW_RING, now, effects)

    # Marks

    def suspect(self, found: list[NetworkSuspicion], now: Instant, effects: list[Effect]) -> None:
        for suspicion in found:
            if self._marks[suspicion.network] is not NetworkState.GOOD:
                continue
            if self._marks.is_last(suspicion.network):
                self._keep_last(suspicion, now, effects)
            else:
                self._mark(suspicion, now, effects)

    def _mark(self, suspicion: NetworkSuspicion, now: Instant, effects: list[Effect]) -> None:
        network, evidence, process, _ = suspicion
        self._marks.mark(network, now)
        self._probing[network].restart(now)
        self._watch.reset()
        self._stats.alarms[network] += 1
        sentence = f"{self._config.name(network)} is faulty and no longer used: {_in_words(suspicion)}"
        alarm = Alarm(AlarmKind.NETWORK_FAULTY, sentence, process, network=network, evidence=evidence)
        effects.append(alarm)
        self._turned(network, evidence, process, sentence, effects)
        self._probe(network, now, effects)

    def _keep_last(self, suspicion: NetworkSuspicion, now: Instant, effects: list[Effect]) -> None:
        """It is blamed too, but there is no other."""
        self._watch.reset()
        network, evidence, process, _ = suspicion
        name = self._config.name(network)
        sentence = f"{name} is the last good network and has faults too: {_in_words(suspicion)}"
        self._need(network, evidence, process, sentence, now, effects)

    def _need(
        self,
        network: int,
        evidence: Evidence,
        process: ProcessId | None,
        sentence: str,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """Nothing can be relied on: use everything, and ask the others to do so."""
        for good in self._marks.good:
            self._probing[good].doubt()
        if self._in_need:
            return
        self._in_need = True
        self._needs += 1
        alarm = Alarm(AlarmKind.NO_GOOD_NETWORK, sentence, process, network=network, evidence=evidence)
        effects.append(alarm)
        self._turned(network, evidence, process, sentence, effects)
        used = self._marks.used
        self._try_all(now, effects)
        for other in used:  # all must know soon, on whatever reaches them
            self._probe(other, now, effects)

    def miss(self, seq: Seq, now: Instant, effects: list[Effect]) -> None:
        """A packet was asked for many times and did not come on any good network."""
        text = f"no good network brings a packet up to {seq} that was asked for again and again: all are used now"
        self._need(self._marks.good[0], Evidence.MISSING, None, text, now, effects)

    def _try_all(self, now: Instant, effects: list[Effect]) -> None:
        for network, state in enumerate(self._marks.states):
            if state is NetworkState.FAULTY:
                self._try_again(network, Evidence.NEED, now, effects)

    def _try_again(self, network: int, evidence: Evidence, now: Instant, effects: list[Effect]) -> None:
        self._marks.try_again(network)
        self._probing[network].tried_at = now
        sentence = f"{self._config.name(network)} is on trial: {evidence.value}"
        self._turned(network, evidence, None, sentence, effects)
        self._probe(network, now, effects)

    def _take_back(self, network: int, now: Instant, effects: list[Effect]) -> None:
        self._marks.take_back(network, now)
        self._in_need = False
        self._watch.reset()
        sentence = f"{self._config.name(network)} is used again: {Evidence.HEARD.value}"
        effects.append(Alarm(AlarmKind.NETWORK_REPAIRED, sentence, network=network, evidence=Evidence.HEARD))
        self._turned(network, Evidence.HEARD, None, sentence, effects)
        self._probe(network, now, effects)

    def _give_up(self, network: int, process: ProcessId, now: Instant, effects: list[Effect]) -> None:
        self._marks.give_up(network)
        self._probing[network].restart(now)
        sentence = f"{self._config.name(network)} failed its trial: {process_text(process)} was not heard there"
        self._turned(network, Evidence.UNHEARD, process, sentence, effects)

    def _turned(
        self, network: int, evidence: Evidence, process: ProcessId | None, text: str, effects: list[Effect]
    ) -> None:
        effects.append(Record(NetworkTurned(network, self._marks[network], evidence, process, text)))

    # Probes

    def take_probe(self, network: int, data: bytes, now: Instant, effects: list[Effect]) -> None:
        try:
            probe = decode_probe(data, self._cluster)
        except WireError as error:
            effects.append(Record(PacketDropped(str(error))))
            return
        if probe.network != network:
            names = self._config.name(probe.network), self._config.name(network)
            effects.append(Record(PacketDropped(f"a probe of {names[0]} came on {names[1]}: are they connected?")))
            return
        probing = self._probing[network]
        if probe.ring != self._ring or probe.sender not in probing.members or not probing.hear(probe, now):
            return
        self._excuse(probe.sender, now)
        if probe.is_in_need:
            self._try_all(now, effects)
        if self._marks[network] is NetworkState.GOOD:
            if probe.state is NetworkState.FAULTY:
                self.suspect([NetworkSuspicion(network, Evidence.REFUSAL, probe.sender, "it says so")], now, effects)
            if self.probe_at is None and probing.is_probed(now):
                self._probe(network, now, effects)
        else:
            self._judge(network, now, effects)

    def _judge(self, network: int, now: Instant, effects: list[Effect]) -> None:
        """A network that is not good, after a probe came or time has passed."""
        probing, state = self._probing[network], self._marks[network]
        if not probing.members:
            return  # alone, nothing can be learnt
        if state is NetworkState.FAULTY and probing.is_proved(self._marks.levels[network], now):
            self._try_again(network, Evidence.PROVED, now, effects)
        elif state is NetworkState.ON_TRIAL:
            if probing.is_used_by_all(now):
                self._take_back(network, now, effects)
            elif not self._is_needed(now) and (silent := probing.unheard(now)) is not None:
                self._give_up(network, silent, now, effects)

    def _is_needed(self, now: Instant) -> bool:
        """By this process or by another, as it says on whatever network reaches us."""
        return self._in_need or any(probing.is_needed(now) for probing in self._probing)

    def _excuse(self, member: ProcessId, now: Instant) -> None:
        """It is not measured where it says that it sends more than its share, or nothing."""
        states = (probing.state_at(member, now) for probing in self._probing)
        excused = frozenset(network for network, state in enumerate(states) if state is not NetworkState.GOOD)
        self._watch.excuse(member, excused)

    def probe_all(self, now: Instant, effects: list[Effect]) -> None:
        """Every network, while anybody thinks less than well of one: so it is known who is heard where."""
        self.probe_at = None
        for member in self._probing[0].members:
            self._excuse(member, now)
        self._weigh_need(now, effects)
        for network, state in enumerate(self._marks.states):
            if state is not NetworkState.GOOD:
                self._judge(network, now, effects)
                self._tell_silence(network, now, effects)
        if len(self._marks.good) < self._config.count or any(probing.is_probed(now) for probing in self._probing):
            for network in range(self._config.count):
                self._probe(network, now, effects)

    def _weigh_need(self, now: Instant, effects: list[Effect]) -> None:
        """It begins when a member is heard on no good network, though on another; it ends when a good network has
        proved that it brings everybody to everybody."""
        if self._in_need:
            level = min(self._needs - 1, HOLD_OFF_LEVEL_MAX)
            whole = next((n for n in self._marks.good if self._probing[n].is_proved(level, now)), None)
            if whole is not None:
                self._end_need(whole, effects)
            return
        for member in self._probing[0].members:
            where = [n for n, probing in enumerate(self._probing) if probing.is_heard_for_long(member, now)]
            if where and not any(self._probing[n].is_heard(member, now) for n in self._marks.good):
                names = ", ".join(self._config.name(n) for n in where)
                text = f"no good network brings {process_text(member)}, which is heard on {names}: all are used now"
                self._need(self._marks.good[0], Evidence.UNHEARD, member, text, now, effects)
                return

    def _end_need(self, network: int, effects: list[Effect]) -> None:
        self._in_need = False
        sentence = f"{self._config.name(network)} can be relied on again: {Evidence.PROVED.value}"
        effects.append(Alarm(AlarmKind.NETWORK_REPAIRED, sentence, network=network, evidence=Evidence.PROVED))
        self._turned(network, Evidence.PROVED, None, sentence, effects)

    def _tell_silence(self, network: int, now: Instant, effects: list[Effect]) -> None:
        """Once after each mark, when everybody has had time to probe: whom we do not hear there. Who reads the records
        of all members sees from it what broke (`diagnosis.py`)."""
        if self._marks[network] is NetworkState.FAULTY:
            for member in self._probing[network].silent(now):
                sentence = f"{process_text(member)} is not heard on {self._config.name(network)}"
                self._turned(network, Evidence.UNHEARD, member, sentence, effects)

    def _probe(self, network: int, now: Instant, effects: list[Effect]) -> None:
        """Say on a network what we think of it; and again, until all think well of it."""
        probing = self._probing[network]
        probing.number += 1
        whole = probing.hears_all(now)
        probe = Probe(self._ring, self._me, probing.number, network, self._marks[network], whole, self._in_need)
        packet = encode_probe(self._cluster, probe)
        effects.append(Broadcast([(packet, len(packet))], networks=(network,)))
        if self.probe_at is None:
            self.probe_at = Instant(now + self._config.probe_ns)


def _in_words(suspicion: NetworkSuspicion) -> str:
    about = "" if suspicion.process is None else f" ({process_text(suspicion.process)})"
    return f"{suspicion.evidence.value}{about}, {suspicion.text}"
