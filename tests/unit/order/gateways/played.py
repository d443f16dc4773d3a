"""Networks of rings that run in the simulator, with a look at their engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ordercast.model.ids import SECOND, NodeId
from ordercast.order.engine import Engine
from ordercast.order.gateways.node import GatewayNode
from ordercast.sim.fault_text import fault_from
from ordercast.sim.options import SimOptions
from ordercast.sim.run import Result, engine_of, simulate
from ordercast.sim.topology import Attachments


def played(
    attachments: Attachments,
    engines: dict[int, GatewayNode],
    faults: Iterable[str] = (),
    look: Callable[[], None] = lambda: None,
) -> Result:
    """Play a network for four seconds, and `look` after three; `engines` are those of each host's latest life."""
    options = SimOptions(
        nodes=len(attachments),
        engine="gateways",
        attachments=attachments,
        messages=30,
        fault_time_ns=4 * SECOND,
        faults=tuple(map(fault_from, faults)),
    )

    def make(node: NodeId) -> Engine:
        engine = engine_of(options, False, node)
        assert isinstance(engine, GatewayNode)
        engines[node] = engine
        return engine

    result = simulate(
        options, 1, verbose=False, make_engine=make, script=lambda world: world.schedule(3 * SECOND, look)
    )
    assert result.settled and result.is_valid, result.verdict.sentence
    return result
