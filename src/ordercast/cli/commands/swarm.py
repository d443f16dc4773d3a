"""What `ordercast swarm` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import EngineName, Json, Topology
from ordercast.cli.declare import Option, command


@command(example="ordercast swarm --seeds 1..500 --trace failures")
def swarm(
    seeds: Annotated[str, Option(metavar="A..B", help="Seeds to run, both ends included.")],
    engine: EngineName = None,
    topology: Topology = None,
    groups: Annotated[
        bool, Option("--groups", help="With clients that join, leave, send and crash; partitions in cascades.")
    ] = False,
    replicated: Annotated[
        bool, Option("--replicated", help="With replicas of a state: commands, quorums, transfers, crashes.")
    ] = False,
    networks: Annotated[
        bool, Option("--networks", help="With several networks, used in every style, that fail in every way.")
    ] = False,
    sealed: Annotated[bool, Option("--sealed", help="With sealed packets, an adversary, and changes of keys.")] = False,
    processes: Annotated[int | None, Option(metavar="N", help="Worker processes (default: all cores).")] = None,
    trace: Annotated[Path | None, Option(metavar="DIR", help="Write the traces of failing seeds here.")] = None,
    strict_coverage: Annotated[
        bool, Option("--strict-coverage", help="Exit status 1 also when something expected never happened.")
    ] = False,
    shrink: Annotated[
        bool, Option("--shrink", help="Find the smallest run that still fails, of the first failing seed.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Run many seeds, each with its own hostile cluster, network and faults.

    Ends with how often everything happened that a campaign must have met: what never happened was not tested.
    Exit status 1 when any seed failed.
    """
    from ordercast.cli import swarm as work

    return work.run_swarm(
        seeds=seeds,
        engine=engine,
        topology=topology,
        groups=groups,
        replicated=replicated,
        networks=networks,
        sealed=sealed,
        processes=processes,
        trace=trace,
        strict_coverage=strict_coverage,
        shrinks=shrink,
        as_json=as_json,
    )
