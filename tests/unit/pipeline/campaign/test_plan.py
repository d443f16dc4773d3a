"""A campaign's file becomes cells; what is wrong with it is said in one sentence. The campaigns that ship are sound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.model.service import Service
from ordercast.networks.config import Replication
from ordercast.pipeline.campaign.gauge import Measure
from ordercast.pipeline.campaign.plan import Campaign, campaign_from
from ordercast.pipeline.campaign.replay import replay_of
from ordercast.pipeline.campaign.settings import options_from
from ordercast.pipeline.campaign.trial import trial
from ordercast.sim.faults import FaultKind
from ordercast.sim.options import SimOptions
from ordercast.sim.swarm import hostile_group_options, hostile_options
from ordercast.sim.topology import Line, Link, Rate

SHIPPED = sorted((Path(__file__).parents[4] / "campaigns").glob("*.toml"))

FULL = """
title = "All there is"
seeds = "3..5"
engine = "ring"
[options]
messages = 40
fault_time = "300ms"
[options.ring]
token_loss = "80ms"
[measure]
window = "0s..300ms"
[schedules]
none = []
crash = ["0.1s crash n1", "0.2s restart n1"]
[[grids]]
name = "g"
options = { nodes = 4 }
[grids.axes]
"ring.accelerated" = [false, true]
variant = [{ label = "small", size = 40 }, { label = "large", size = "1K", loss = 0.1 }]
"""


def _campaign(folder: Path, text: str) -> Campaign:
    path = folder / "some.toml"
    path.write_text(text)
    return campaign_from(path)


def test_every_combination_is_a_cell_with_its_name_and_options(tmp_path: Path) -> None:
    campaign = _campaign(tmp_path, FULL)
    assert campaign.seeds == range(3, 6)
    assert len(campaign.cells) == 2 * 2 * 2
    cell = campaign.cell("g: ring.accelerated=true, variant=large, faults=crash")
    options = cell.options(3)
    assert (options.nodes, options.messages, options.loss, options.size_min, options.size_max) == (
        4,
        40,
        0.1,
        1024,
        1024,
    )
    assert options.fault_time_ns == 300 * MILLISECOND
    assert options.ring.accelerated and options.ring.token_loss_ns == 80 * MILLISECOND
    assert [fault.kind for fault in options.faults] == [FaultKind.CRASH, FaultKind.RESTART]
    assert cell.measure == Measure(0, 300 * MILLISECOND)


def test_the_key_of_a_cell_is_made_of_what_it_runs_and_not_of_its_name(tmp_path: Path) -> None:
    first, second = _campaign(tmp_path, FULL), _campaign(tmp_path, FULL.replace('name = "g"', 'name = "other"'))
    assert [cell.key for cell in first.cells] == [cell.key for cell in second.cells]
    assert len({cell.key for cell in first.cells}) == len(first.cells)
    changed = _campaign(tmp_path, FULL.replace("messages = 40", "messages = 41"))
    assert not {cell.key for cell in first.cells} & {cell.key for cell in changed.cells}


def test_hostile_options_are_drawn_from_the_seed_as_a_swarm_draws_them(tmp_path: Path) -> None:
    plain = _campaign(tmp_path, 'title = "h"\nseeds = "0..9"\nhostile = "plain"').cells[0]
    groups = _campaign(tmp_path, 'title = "h"\nseeds = "0..9"\nhostile = "groups"').cells[0]
    assert plain.options(7) == hostile_options(7) and plain.is_plainly_hostile
    assert groups.options(7) == hostile_group_options(7)


def test_load_is_offered_within_the_time_before_the_healing() -> None:
    options = options_from({"load": 900, "fault_time": "2s", "service": "safe"}, SimOptions())
    assert options.messages == 2000  # one in ten comes after
    assert options.services == (Service.SAFE,)
    assert options.fault_time_ns == 2 * SECOND


def test_settings_of_the_networks(tmp_path: Path) -> None:
    head = 'title = "n"\nseeds = "1..2"\n'
    axes = '[axes]\n"networks.replication" = ["passive", "active-passive"]\n'
    networks = '[options.networks]\ncount = 3\ntoken_hold = "2ms"\nnames = ["red", "blue"]\n'
    lines = "[options]\nlines = [{ loss = 0.1 }]\n"
    cells = _campaign(tmp_path, head + lines + networks + axes).cells
    options = [cell.options(1) for cell in cells]
    assert [one.networks.replication for one in options] == [Replication.PASSIVE, Replication.ACTIVE_PASSIVE]
    assert {(one.networks.count, one.networks.token_hold_ns, one.networks.names) for one in options} == {
        (3, 2 * MILLISECOND, ("red", "blue"))
    }
    assert options[0].lines == (Line(loss=0.1),)
    assert options[0].ring == SimOptions().ring


def test_links_rates_and_attachments_are_written_as_on_the_command_line_or_as_tables(tmp_path: Path) -> None:
    head = 'title = "n"\nseeds = "1..1"\n[options]\nattachments = [[0], [0], [0], [0], [0]]\n'
    links = 'links = ["n0<>n1 delay 50ms rate 1mbit", { source = 2, target = 3, loss = 0.5 }]\n'
    rates = 'rates = ["n0 20/s poisson", { node = 1, per_second = 0.5 }]\n'
    options = _campaign(tmp_path, head + links + rates).cells[0].options(1)
    far = Link(0, 1, delay_min_ns=50 * MILLISECOND, delay_max_ns=50 * MILLISECOND, rate=1_000_000)
    assert options.links == (far, replace(far, source=1, target=0), Link(2, 3, loss=0.5))
    assert options.rates == (Rate(0, 20.0, is_poisson=True), Rate(1, 0.5))
    assert options.attachments == ((0,),) * 5


def test_settings_of_the_links_between_sites() -> None:
    settings = {"sites.links": {"silence": "2s", "packet_size": 1472}, "sites.delta": "100ms", "site_links": [[0, 1]]}
    options = options_from(settings, SimOptions())
    links = options.sites.links
    assert (links.silence_ns, links.packet_size) == (
        2 * SECOND,
        1472,
    ) and links.ack_ns == SimOptions().sites.links.ack_ns
    assert options.sites.delta_ns == 100 * MILLISECOND and options.site_links == ((0, 1),)
    for wrong in ({"colour": 1}, 7):
        with pytest.raises(UsageError, match=r"sites\.links"):
            options_from({"sites.links": wrong}, SimOptions())


def test_without_packing_a_packet_holds_one_message() -> None:
    for size in (32, 100, 1024):
        ring = options_from({"size": size, "packing": False}, SimOptions()).ring
        assert ring.whole_size_max >= size
        assert ring.body_size_max < 2 * (size + 7) or size < 36


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("title = ", "is not TOML"),
        ('title = "t"', "seeds is missing"),
        ('title = "t"\nseeds = "5..1"', 'write "1..100"'),
        ('title = "t"\nseeds = "1..2"\ncolour = 1', "no key 'colour'"),
        ('title = "t"\nseeds = "1..2"\n[options]\nnods = 3', "no setting 'nods'"),
        ('title = "t"\nseeds = "1..2"\n[options]\nnodes = "many"', "many"),
        ('title = "t"\nseeds = "1..2"\n[options]\nnetworks = 2', "networks is a table of settings"),
        ('title = "t"\nseeds = "1..2"\n[options.networks]\nnumber = 2', "no setting 'networks.number'"),
        ('title = "t"\nseeds = "1..2"\n[options.networks]\nreplication = "twice"', "choose among active, passive"),
        ('title = "t"\nseeds = "1..2"\n[options.networks]\ncount = 9', "1 to 8 networks"),
        ('title = "t"\nseeds = "1..2"\n[options]\nnodes = 99', "nodes must be within"),
        ('title = "t"\nseeds = "1..2"\n[options]\nrates = ["n0 often"]', "is not a number of messages per second"),
        ('title = "t"\nseeds = "1..2"\n[axes]\nvariant = [1]', "is no setting"),
        ('title = "t"\nseeds = "1..2"\n[axes]\nloss = []', "has no values"),
        ('title = "t"\nseeds = "1..2"\n[schedules]\na = ["crash n1"]', "does not say when"),
        ('title = "t"\nseeds = "1..2"\n[schedules]\na = ["0.1s crash n9"]', "names node 9"),
        ('title = "t"\nseeds = "1..2"\nhostile = "very"', "choose among plain"),
        ('title = "t"\nseeds = "1..2"\n[measure]\nwindow = "1s"', "a stretch of time"),
        ('title = "t"\nseeds = "1..2"\n[measure]\nwindow = "3s..1s"', "ends at 1s and begins at 3s"),
        ('title = "t"\nseeds = "1..2"\n[measure]\nwindow = "1s..1000ms"', "nothing lies between"),
        ('title = "t"\nseeds = "1..2"\n[[grids]]\nmeasure = { window = "3s..1s" }', "ends at 1s and begins at 3s"),
        ('title = "t"\nseeds = "1..2"\n[[grids]]\n[[grids]]', "two cells have the name"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=r"some\.toml") as raised:
        _campaign(tmp_path, text)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_and_a_cell_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        campaign_from(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="has no cell 'x': it has 8"):
        _campaign(tmp_path, FULL).cell("x")


def test_a_comparison_is_about_cells_that_there_are(tmp_path: Path) -> None:
    wanted = '\n[[comparisons]]\ntitle = "c"\ngrid = "g"\nx = "variant"\nx_label = "x"\ny_label = "y"\nmeasure = "{}"\n'
    wanted += 'where = {{ "ring.accelerated" = false, faults = "none" }}\n'
    with pytest.raises(UsageError, match="no measure 'speed'"):
        _campaign(tmp_path, FULL + wanted.format("speed"))
    assert _campaign(tmp_path, FULL + wanted.format("n2_interval_deviation_us")).comparisons
    with pytest.raises(UsageError, match="has no axis 'load'"):
        _campaign(tmp_path, FULL + wanted.format("rotation_us").replace('x = "variant"', 'x = "load"'))
    with pytest.raises(UsageError, match="is about no cell"):
        _campaign(tmp_path, FULL + wanted.format("rotation_us").replace('grid = "g"', 'grid = "h"'))


def test_a_comparison_names_all_in_which_its_cells_differ(tmp_path: Path) -> None:
    """Means over runs that differ in something else would be numbers of nothing."""
    comparison = '\n[[comparisons]]\ntitle = "c"\ngrid = "g"\nx = "variant"\nx_label = "x"\ny_label = "y"\n'
    comparison += 'measure = "rotation_us"\n'
    with pytest.raises(UsageError, match=r"mixes cells that differ in 'ring\.accelerated' \(False, True\): choose"):
        _campaign(tmp_path, FULL + comparison)
    with pytest.raises(UsageError, match=r"mixes cells that differ in 'faults' \(crash, none\)"):
        _campaign(tmp_path, FULL + comparison + 'series = "ring.accelerated"')
    assert _campaign(
        tmp_path, FULL + comparison + 'series = "ring.accelerated"\nwhere = { faults = "crash" }'
    ).comparisons


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ('claims = [{ note = "n", curve = "small", over = "tiny", low = 1, high = 2 }]', "there is no curve 'tiny'"),
        ('claims = [{ note = "n", curve = "small", over = "large", low = 2, high = 1 }]', "is above high"),
        ('claims = [{ note = "n", curve = "small", over = "large", low = 1, high = 2, as = "sum" }]', "choose among"),
        ('claims = [{ note = "n", curve = "small", over = "large", low = 1, heigh = 2 }]', "has no key 'heigh'"),
        ('marks = [{ name = "nowhere" }]', "a mark is at one place"),
        ('log = ["z"]', 'write log = ["x"]'),
    ],
)
def test_what_a_comparison_cannot_draw_is_refused(tmp_path: Path, more: str, sentence: str) -> None:
    comparison = 'title = "c"\ngrid = "g"\nx = "size"\nx_label = "x"\ny_label = "y"\nmeasure = "rotation_us"\n'
    text = FULL + "size = [40, 50]\n[[comparisons]]\n" + comparison + 'series = "variant"\n'
    text += 'where = { "ring.accelerated" = false, faults = "none" }\n' + more
    with pytest.raises(UsageError) as raised:
        _campaign(tmp_path, text)
    assert sentence in str(raised.value)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_campaigns_that_ship_are_sound(path: Path) -> None:
    campaign = campaign_from(path)
    assert campaign.cells and campaign.title
    for cell in campaign.cells:
        cell.options(campaign.seeds[-1]).validate()


def test_campaigns_that_ship_compare_with_the_papers() -> None:
    campaigns = {path.stem: campaign_from(path) for path in SHIPPED}
    for name in ("throughput", "rotation", "redundant"):
        assert any(comparison.prediction and comparison.paper for comparison in campaigns[name].comparisons)


ENGINES_TEXT = """
title = "Two engines"
seeds = "1"
[options]
messages = 20
nodes = 3
fault_time = "50ms"
[axes]
engine = ["ring", "sequencer"]
"""


def test_an_engine_may_be_an_axis_and_brings_the_services_that_it_has(tmp_path: Path) -> None:
    ring, sequencer = (cell.options(1) for cell in _campaign(tmp_path, ENGINES_TEXT).cells)
    assert (ring.engine, sequencer.engine) == ("ring", "sequencer")
    assert ring.services == SimOptions().services and Service.SAFE not in sequencer.services
    assert trial(_campaign(tmp_path, ENGINES_TEXT).cells[1], 1)["outcome"] == "VALID"


def test_another_engine_than_the_files_may_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(ENGINES_TEXT.replace('engine = ["ring", "sequencer"]', "loss = [0.0]"))
    campaign = campaign_from(path, "sequencer")
    (cell,) = campaign.cells
    assert cell.options(1).engine == "sequencer" and cell.key != campaign_from(path).cells[0].key
    assert "--engine sequencer" in replay_of(campaign, cell, 1)
    with pytest.raises(UsageError, match="there is no engine 'star'"):
        campaign_from(path, "star")
    path.write_text(ENGINES_TEXT.replace('engine = ["ring", "sequencer"]', "loss = [0.1]"))
    with pytest.raises(UsageError, match="never change and nothing is repaired: leave out loss"):
        campaign_from(path, "sequencer")
