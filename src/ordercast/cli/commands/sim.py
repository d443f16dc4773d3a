"""What `ordercast sim` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ordercast.cli.commands.options import EngineName, Json, Topology
from ordercast.cli.declare import Given, Option, command


@command(example="ordercast sim --nodes 5 --loss 5% --fault '0.3s crash n1' --fault '0.6s restart n1' --seed 7")
def sim(
    given: Given,
    engine: EngineName = None,
    nodes: Annotated[int, Option(help="Hosts; most engines take 1 to 64.")] = 5,
    messages: Annotated[int, Option(help="Messages that the applications submit.")] = 200,
    clients: Annotated[
        int, Option(help="Clients per host; if any, messages are their deeds: join, leave, send, crash …")
    ] = 0,
    sizes: Annotated[str, Option(metavar="MIN..MAX", help="Bytes of a message; K and M allowed.")] = "20..400",
    service: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="agreed, safe, fifo, causal or reliable; repeat for a mixture (default: all)"),
    ] = None,
    seed: Annotated[int, Option(help="Everything random is drawn from it.")] = 1,
    loss: Annotated[str, Option(metavar="CHANCE", help="Chance of losing a packet: 0.05 or 5%.")] = "0",
    duplication: Annotated[str, Option(metavar="CHANCE", help="Chance of a second copy.")] = "0",
    straggler: Annotated[str, Option(metavar="CHANCE", help="Chance of a hop ten times as slow.")] = "0",
    delay: Annotated[str, Option(metavar="MIN..MAX", help="Of one hop; ms, or with a unit.")] = "50us..400us",
    duration: Annotated[
        str, Option(metavar="TIME", help="Virtual time in which messages are sent and random faults strike.")
    ] = "1s",
    attach: Annotated[
        list[str] | None,
        Option(
            metavar="'HOSTS SEGMENTS'",
            help="Segments of some hosts, such as 'n2 seg0 seg1'; repeat. Hosts not named are on seg0.",
        ),
    ] = None,
    topology: Topology = None,
    rings: Annotated[int | None, Option(metavar="N", help="With --topology: so many (default: 3).")] = None,
    link: Annotated[
        list[str] | None,
        Option(
            metavar="'LINK …'",
            help="A link unlike the others, such as 'n0<>n1 delay 50ms..60ms loss 1% rate 10mbit queue 64K'; repeat.",
        ),
    ] = None,
    rate: Annotated[
        list[str] | None,
        Option(metavar="'HOST N/s'", help="More messages of a host, such as 'n0 20/s' or 'n0 20/s poisson'; repeat."),
    ] = None,
    accelerated: Annotated[bool, Option("--accelerated/--plain", help="Pass the token on early.")] = False,
    faults: Annotated[int, Option(help="How many random faults.")] = 0,
    fault: Annotated[
        list[str] | None,
        Option(metavar="'AT KIND …'", help="A scripted fault, such as '0.5s partition n0 n1 | n2 n3 n4'; repeat."),
    ] = None,
    hostile: Annotated[bool, Option("--hostile", help="Draw all options from the seed, as swarm does.")] = False,
    groups: Annotated[bool, Option("--groups", help="With --hostile: with clients, as swarm --groups does.")] = False,
    replicated: Annotated[
        bool, Option("--replicated", help="With --hostile: with replicas, as swarm --replicated does.")
    ] = False,
    networks: Annotated[
        bool, Option("--networks", help="With --hostile: with several networks, as swarm --networks does.")
    ] = False,
    replication: Annotated[
        str, Option(metavar="STYLE", help="With --redundant: active, passive or active-passive.")
    ] = "active",
    sealed: Annotated[bool, Option("--sealed", help="With --hostile: as swarm --sealed does.")] = False,
    redundant: Annotated[int, Option(metavar="N", help="So many networks; faults name them net0, net1, …")] = 1,
    campaign: Annotated[
        Path | None, Option(metavar="FILE", help="Take all options from a cell of this campaign, see --cell.")
    ] = None,
    cell: Annotated[str | None, Option(metavar="NAME", help="With --campaign: the cell, by its name.")] = None,
    trace: Annotated[Path | None, Option(metavar="DIR", help="Write the trace into this folder.")] = None,
    as_json: Json = False,
) -> int:
    """Simulate a cluster: virtual time, hostile network, every promise checked.

    The same seed and options give the same run.
    Exit status 1 unless everything is VALID and settled.
    """
    from ordercast.cli import sim as work

    return work.sim(
        given=given,
        engine=engine,
        nodes=nodes,
        messages=messages,
        clients=clients,
        sizes=sizes,
        service=service,
        seed=seed,
        loss=loss,
        duplication=duplication,
        straggler=straggler,
        delay=delay,
        duration=duration,
        attach=attach,
        topology=topology,
        rings=rings,
        link=link,
        rate=rate,
        accelerated=accelerated,
        faults=faults,
        fault=fault,
        hostile=hostile,
        groups=groups,
        replicated=replicated,
        networks=networks,
        sealed=sealed,
        replication=replication,
        redundant=redundant,
        campaign=campaign,
        cell=cell,
        trace=trace,
        as_json=as_json,
    )
