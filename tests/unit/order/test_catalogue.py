"""The catalogue is complete: whatever an engine has to have somewhere, it has, or says that it has none."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest

from ordercast.cli.status_drawing import LINE_PARTS, SECTION_LINES
from ordercast.daemon.config.keys import TABLES
from ordercast.daemon.config.node import NodeConfig
from ordercast.daemon.participant import Participant
from ordercast.daemon.status.sections import SECTIONS
from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import AlarmKind
from ordercast.model.errors import UsageError
from ordercast.model.ids import NodeId
from ordercast.model.notes import Occurrence
from ordercast.model.promises import GroupPromise, Promise, ReplicaPromise
from ordercast.networks.assembly import assembled
from ordercast.networks.config import NetworksConfig
from ordercast.networks.layer import Networks
from ordercast.order.catalogue import DEFAULT, ENGINES, LIVE, entry_of, live_entry_of
from ordercast.order.gateways.promised import VIEW_REASONS
from ordercast.pipeline.report.engines import ENGINE_PARTS
from ordercast.sim.calm_swarm import usual_options
from ordercast.sim.options import SimOptions
from ordercast.sim.run import engine_of
from ordercast.sim.swarm import expected_rows, options_of
from ordercast.wire.head import cluster_id_from

# Alarms that are not an engine's: of the daemon, its storage, its networks and their seal.
OF_OTHERS = {
    AlarmKind.KEY_CHANGED,
    AlarmKind.PACKETS_REFUSED,
    AlarmKind.RECORDING_ENDED,
    AlarmKind.SMALL_BUFFER,
    AlarmKind.NARROW_PATH,
    AlarmKind.TWIN_NAMES,
    AlarmKind.NETWORK_FAULTY,
    AlarmKind.NETWORK_REPAIRED,
    AlarmKind.NO_GOOD_NETWORK,
    AlarmKind.STORAGE_FAILED,
}


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_says_of_itself_what_its_entry_says(name: str) -> None:
    entry, engine = entry_of(name), engine_of(SimOptions(engine=name), True, NodeId(0))
    assert entry.name == engine.promises.engine == name
    assert (engine.promises.promises, engine.promises.services) == (entry.promises, entry.services)


def test_every_promise_reason_occurrence_and_alarm_belongs_to_an_engine() -> None:
    entries = list(ENGINES.values())
    assert {promise for entry in entries for promise in entry.promises} == set(Promise)
    assert {promise for entry in entries for promise in entry.groups} == set(GroupPromise)
    assert {promise for entry in entries for promise in entry.replicas} == set(ReplicaPromise)
    reasons = {reason for entry in entries for reason in (*entry.reasons, *entry.attempts)} | set(VIEW_REASONS)
    assert reasons == set(ChangeReason) - {ChangeReason.STARTED}
    assert {occurrence for entry in entries for occurrence in entry.occurrences} == set(Occurrence)
    assert {alarm for entry in entries for alarm in entry.alarms} | OF_OTHERS == set(AlarmKind)


def test_every_table_of_an_engine_is_where_tables_are() -> None:
    for entry in ENGINES.values():
        for table, config in entry.tables.items():
            assert is_dataclass(config) and isinstance(getattr(SimOptions(), table), config)
            if entry.is_live:
                assert isinstance(getattr(NodeConfig(), table), config)
                told = {field.name for field in fields(config)} - {"cluster"}
                links = {"links", "link_loss_ns"}  # of links a file says this alone
                assert {key.field for key in TABLES[table]} - links == told - links


def test_every_live_engine_has_its_sections() -> None:
    for sections in (SECTIONS, SECTION_LINES, LINE_PARTS, ENGINE_PARTS):
        assert set(LIVE) <= set(sections) <= set(ENGINES)


def test_every_engine_can_be_drawn_and_says_what_a_swarm_must_meet() -> None:
    for name in ENGINES:
        usual_options(name).validate()
        options_of(1, engine=name).validate()
        assert expected_rows(engine=name)


def test_the_default_runs_live() -> None:
    assert DEFAULT in LIVE and SimOptions().engine == NodeConfig().engine == DEFAULT


def test_what_is_not_there_is_refused_with_what_is() -> None:
    with pytest.raises(
        UsageError, match="there is no engine 'star'; there are: ring, adaptive, gateways, sites, tree, sequencer"
    ):
        entry_of("star")
    with pytest.raises(UsageError, match="'sequencer' runs in the simulator alone; daemons can run: ring"):
        live_entry_of("sequencer")
    with pytest.raises(UsageError, match="daemons can run"):
        _Nobody(NodeConfig(engine="sequencer"))


class _Nobody(Participant):
    def _opened(self) -> None: ...
    def _delivered(self, deliver: object, size: int) -> None: ...
    def _viewed(self, effect: object) -> None: ...


def test_several_networks_go_under_any_engine() -> None:
    networks = NetworksConfig(count=2)
    for name in ENGINES:
        made = assembled(name, NodeId(1), SimOptions(), networks, nodes=3)
        assert isinstance(made.driven, Networks) or ENGINES[name].is_layered
        assert made.engine.promises == made.driven.promises
        assert assembled(name, NodeId(1), SimOptions(), NetworksConfig(), nodes=3).layers == (None,)


def test_engines_of_one_cluster_do_not_hear_each_other() -> None:
    ids = [cluster_id_from("shop", name) for name in ENGINES]
    assert len(set(ids)) == len(ENGINES) and cluster_id_from("shop") == cluster_id_from("shop", "ring")
