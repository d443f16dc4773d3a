"""What becomes of each network: it is marked when it is blamed, probed while it is not good, tried, and taken back.

`Watch` blames, `Marks` and `Probing` remember; here it is decided, told to people and written down.
"""

from __future__ import annotations

from ordercast.model.effects import Alarm, AlarmKind, Broadcast, Effect, Record
from ordercast.model.errors import WireError
from ordercast.model.ids import Instant, ProcessId, RingId, process_text
from ordercast.model.notes import Dropped, Evidence, NetworkState, NetworkTurned
from ordercast.networks.config import NetworksConfig
from ordercast.networks.marks import Marks
from ordercast.networks.probing import Probing
from ordercast.networks.stats import NetworksStats
from ordercast.networks.watch import Suspicion, Watch
from ordercast.wire.codec import decode_probe, encode_probe
from ordercast.wire.messages import Probe


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
        self._ring = RingId(0, ProcessId(0))  # the ring that is installed
        self._in_need = False  # even the last good network has faults: everything is used
        self.probe_at: Instant | None = None  # when the next probes are due

    def begin(
        self, ring: RingId, me: ProcessId, others: tuple[ProcessId, ...], now: Instant, effects: list[Effect]
    ) -> None:
        """A new ring: nothing that was counted among others holds, and every network gets another chance."""
        self._ring, self._me = ring, me
        self._in_need = False
        for probing in self._probing:
            probing.begin(others, now)
        self._watch.begin(others)
        for network, state in enumerate(self._marks.states):
            if state is NetworkState.FAULTY:
                self._try_again(network, Evidence.NEW_RING, now, effects)

    # Marks

    def suspect(self, found: list[Suspicion], now: Instant, effects: list[Effect]) -> None:
        for network, evidence, process, text in found:
            if self._marks[network] is not NetworkState.GOOD:
                continue
            if self._marks.is_last(network):
                self._keep_last(network, evidence, process, text, now, effects)
            else:
                self._mark(network, evidence, process, text, now, effects)

    def _mark(
        self,
        network: int,
        evidence: Evidence,
        process: ProcessId | None,
        text: str,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        self._marks.mark(network, now)
        self._probing[network].restart(now)
        self._watch.reset()
        self._stats.alarms[network] += 1
        about = "" if process is None else f" ({process_text(process)})"
        sentence = f"{self._config.name(network)} is faulty and no longer used: {evidence.value}{about}, {text}"
        alarm = Alarm(AlarmKind.NETWORK_FAULTY, sentence, process, network=network, evidence=evidence)
        effects.append(alarm)
        self._turned(network, evidence, process, sentence, effects)
        self._probe(network, now, effects)

    def _keep_last(
        self,
        network: int,
        evidence: Evidence,
        process: ProcessId | None,
        text: str,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """It is blamed too, but there is no other: use everything, rely on what comes."""
        self._watch.reset()
        if self._in_need:
            return
        self._in_need = True
        about = "" if process is None else f" ({process_text(process)})"
        name = self._config.name(network)
        sentence = f"{name} is the last good network and has faults too: {evidence.value}{about}, {text}"
        alarm = Alarm(AlarmKind.NO_GOOD_NETWORK, sentence, process, network=network, evidence=evidence)
        effects.append(alarm)
        self._turned(network, evidence, process, sentence, effects)
        for other, state in enumerate(self._marks.states):
            if state is NetworkState.FAULTY:
                self._try_again(other, Evidence.NEED, now, effects)

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
            effects.append(Record(Dropped(str(error))))
            return
        if probe.network != network:
            names = self._config.name(probe.network), self._config.name(network)
            effects.append(Record(Dropped(f"a probe of {names[0]} came on {names[1]}: are they connected?")))
            return
        probing = self._probing[network]
        if probe.ring != self._ring or probe.sender not in probing.members or not probing.hear(probe, now):
            return
        excused = [n for n, other in enumerate(self._probing) if other.state_at(probe.sender) is not NetworkState.GOOD]
        self._watch.excuse(probe.sender, frozenset(excused))
        if self._marks[network] is NetworkState.GOOD:
            if probe.state is NetworkState.FAULTY:
                self.suspect([Suspicion(network, Evidence.REFUSAL, probe.sender, "it says so")], now, effects)
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
            elif not self._in_need and (silent := probing.unheard(now)) is not None:
                self._give_up(network, silent, now, effects)

    def probe_all(self, now: Instant, effects: list[Effect]) -> None:
        self.probe_at = None
        for network, state in enumerate(self._marks.states):
            if state is not NetworkState.GOOD:
                self._judge(network, now, effects)
                self._tell_silence(network, now, effects)
            if self._marks[network] is not NetworkState.GOOD or self._probing[network].is_probed(now):
                self._probe(network, now, effects)

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
        probe = Probe(self._ring, self._me, probing.number, network, self._marks[network], whole)
        packet = encode_probe(self._cluster, probe)
        effects.append(Broadcast([(packet, len(packet))], networks=(network,)))
        if self.probe_at is None:
            self.probe_at = Instant(now + self._config.probe_ns)
