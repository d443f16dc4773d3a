"""What an operator asks of a running daemon, as documents: the node list, changes of it, a reload of the file.

A change of the node list is an ordered message: all daemons of the configuration take it at the same place, or, when
another change came first, none does. The answer says which.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from ordercast.daemon.clients.told import client_documents
from ordercast.daemon.config.file import load_config
from ordercast.daemon.config.keys import read_host, read_port
from ordercast.daemon.config.node import PORT_MAX, NodeConfig, Peer
from ordercast.daemon.host import GroupHost
from ordercast.daemon.key_file import keys_of_node
from ordercast.daemon.status.places import everybody
from ordercast.groups.desk import OWN
from ordercast.groups.layer import roster_payload
from ordercast.groups.names import checked_daemon
from ordercast.model.errors import UsageError
from ordercast.model.ids import NODE_MAX, NodeId, node_of
from ordercast.model.roster import Entry, Place, Roster
from ordercast.model.service import Service
from ordercast.sealing.keys import listed
from ordercast.sealing.opener import counts_of
from ordercast.session.frames import DOCUMENT_SIZE_MAX

HEARING_S, HEARING_TURNS = 0.1, 15  # all say what they have about once a second
RATE_S = 1.0  # over which rates of clients are counted
ROWS_MAX = 4_000  # clients in one answer
PAGE_SIZE_MAX = DOCUMENT_SIZE_MAX // 2  # of its rows
GROUPS_TOLD_MAX = 10_000  # of a client: their names, of 64 bytes at most, fit into an answer
ORDER_S = 30.0  # for which an ordered change is waited for
FAR = "nodes of other sites"
_OF_THE_LIST = (
    "peers",
    "rings",
    "nodes_version",
    "source",
    "name",
    "node",
    "state_folder",
    "rights",
)  # not compared by a reload

Document = dict[str, Any]


async def manage(host: GroupHost, document: Document) -> Document:
    """Do what the document asks for. UsageError, and nothing changed, when that cannot be done."""
    match document.get("do"):
        case "list":
            return listing(host)
        case "add":
            return await _change(host, _roster(host).with_entry(_entry_from(document, host.config)))
        case "remove":
            return await _change(host, _roster(host).without(str(document.get("name"))))
        case "reload":
            return await reload(host)
        case "clients":
            return await clients_of(host, str(document.get("after", "")))
        case "places":
            return places_of(host)
        case "keys":
            return keys_document(host)
        case "rekey":
            return await rekey(host, at_once=bool(document.get("now")))
        case other:
            raise UsageError(f"this daemon cannot do {other!r}: it may be of an older version")


def places_of(host: GroupHost) -> Document:
    """Tell where this node serves its status, and where it knows others to."""
    places = {place.name: place.status for place in everybody(host, host.now())}
    return {"daemon": host.config.name, "status": places.get(host.config.name), "nodes": places}


async def clients_of(host: GroupHost, after: str = "") -> Document:
    """Tell of the clients of this daemon whose names come after one, as many as an answer holds, with their rates over
    a second."""
    loop, serving = asyncio.get_running_loop(), host.serving
    if serving is None:
        raise UsageError(f"{host.config.name} serves no clients")
    before, began = serving.clients(), loop.time()
    await asyncio.sleep(RATE_S)
    now = sorted(client for client in serving.clients() if client.name > after)
    rows = _first_page(client_documents(before, now[:ROWS_MAX], loop.time() - began))
    return {"daemon": host.config.name, "clients": rows, "left_out": len(now) - len(rows)}


def _first_page(rows: Sequence[Document]) -> list[Document]:
    """Return as many rows as an answer holds; one at least."""
    page: list[Document] = []
    size = 0
    for row in map(_with_groups_bounded, rows):
        size += len(json.dumps(row))
        if page and size > PAGE_SIZE_MAX:
            break
        page.append(row)
    return page


def _with_groups_bounded(row: Document) -> Document:
    groups = row["groups"]
    return {**row, "groups": groups[:GROUPS_TOLD_MAX], "more_groups": max(0, len(groups) - GROUPS_TOLD_MAX)}


def listing(host: GroupHost) -> Document:
    roster, here = host.engine.roster, {node_of(process) for process in host.members}
    nodes = [] if host.config.is_local or roster is None else roster.entries
    return {
        "cluster": host.config.sizes.cluster,
        "daemon": host.config.name,
        "version": 0 if roster is None else roster.version,
        "ordered": roster is not None and roster.is_ordered,
        "digest": "" if roster is None else f"{roster.claim.digest:016x}",
        "nodes": [_entry_document(entry, host, here) for entry in _everybody(host, nodes)],
        "differences": list(host.engine.roster_differences(host.now())),
    }


def _everybody(host: GroupHost, listed: Sequence[Entry]) -> Sequence[Entry]:
    """The nodes of all rings, where there are several: each ring has a node list of its own."""
    return [peer.entry for peer in host.config.peers] if host.config.rings else listed


def _entry_document(entry: Entry, host: GroupHost, here: set[NodeId]) -> Document:
    return {
        "name": entry.name,
        "id": entry.node,
        "addresses": [place.address for place in entry.places],
        "rings": _rings_of(entry, host.config),
        "token_port": entry.places[0].token_port,
        "data_port": entry.places[0].data_port,
        "status_port": dict(host.config.status.ports).get(entry.name),
        "is_member": entry.node in here,
        "is_me": entry.node == host.config.node,
        **(_site_document(host.config.peer(entry.node)) if host.config.has_sites else {}),
    }


def _site_document(peer: Peer) -> Document:
    """Return the site of a node, and where others reach it."""
    (site,), place = peer.rings, peer.wide_place
    return {"site": site, "wide": place.address, "wide_port": place.port, "link_port": place.listen_port}


def _rings_of(entry: Entry, config: NodeConfig) -> dict[str, list[str]]:
    """Return where a node receives on each of its rings, where there are several."""
    by_name = {ring.name: ring for ring in config.rings}
    names = config.peer(entry.node).rings if config.rings else ()
    places = {name: config.on_ring(by_name[name]).peer(entry.node).entry.places for name in names}
    return {name: [place.address for place in where] for name, where in places.items()}


def _roster(host: GroupHost) -> Roster:
    roster = host.engine.roster
    if host.config.rings:
        which = "each site" if host.config.has_sites else "each ring of a network"
        raise UsageError(
            f"{which} has a node list of its own: change the file on every host, raise nodes_version, and reload it "
            "(`ordercast reload`)"
        )
    if host.config.is_local or roster is None:
        raise UsageError(
            "the nodes of one machine without a file have no list, any of them may join: describe the cluster in a file"
        )
    return roster


def _entry_from(document: Document, config: NodeConfig) -> Entry:
    name, node, addresses = document.get("name"), document.get("id"), document.get("addresses")
    if not isinstance(node, int) or isinstance(node, bool) or not 0 <= node <= NODE_MAX:
        raise UsageError(f"the id of a node is a number within 0..{NODE_MAX}, not {node!r}")
    if not isinstance(addresses, list) or len(addresses) != len(config.networks):
        several = f"{len(config.networks)} addresses, one for each network" if config.more_networks else "one address"
        raise UsageError(f"a node of this cluster has {several}")
    ports = [document.get(key) for key in ("token_port", "data_port")]
    places = []
    for address, network in zip(addresses, config.networks, strict=True):
        token_port, data_port = ports[0] or min(network.port + 1, PORT_MAX), ports[1] or network.port
        places.append(Place(read_host(address), read_port(token_port), read_port(data_port)))
    entry = Entry(NodeId(node), checked_daemon(str(name)), tuple(places))
    versions = {":" in place.address for place in (*entry.places, *config.me().entry.places)}
    if len(versions) > 1:
        raise UsageError("IPv4 and IPv6 addresses do not mix in a cluster")
    return entry


async def _change(host: GroupHost, roster: Roster) -> Document:
    host.check_roster(roster)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def told(error: UsageError | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(None)

    host.await_roster(roster.claim, told)
    host.request(OWN, (roster_payload(host.config.name, roster),), Service.SAFE)
    try:
        async with asyncio.timeout(ORDER_S):
            await done
    except TimeoutError:
        raise UsageError(
            f"the change was not ordered within {ORDER_S:.0f} s, and may still be: see `ordercast cluster list`"
        ) from None
    return listing(host)


async def reload(host: GroupHost) -> Document:
    """Read the file again and take its node list, rights and status ports; return what is new. UsageError, and nothing
    changed, when that cannot be done."""
    config = host.config
    if config.source is None:
        raise UsageError("this daemon was started without a file: there is nothing to reload")
    fresh = await asyncio.to_thread(load_config, config.source, config.name)
    if _legs(fresh) != _legs(config):
        raise UsageError(f"{config.source}: the address of {config.name} has changed: restart this daemon")
    certified = host.serving is not None and host.serving.reread()
    before = host.engine.roster
    host.enlist_all(fresh)
    if host.serving is not None:
        host.serving.regrant(fresh.rights)
    changed = before is None or before.claim != fresh.attachments[0].roster.claim
    restart = [] if host.as_loaded is None else _others_changed(host.as_loaded, fresh)
    rights = host.as_loaded is not None and host.as_loaded.rights != fresh.rights
    if host.as_loaded is not None:
        host.as_loaded = replace(host.as_loaded, rights=fresh.rights)
    host.take_status_ports(fresh)
    taken = {"rights": rights, "certificates": certified}
    return {**listing(host), "changed": changed, "restart": restart, **taken}


async def rekey(host: GroupHost, *, at_once: bool = False) -> Document:
    """Read the key file again. UsageError, and nothing changed, when that cannot be done."""
    keys = await asyncio.to_thread(keys_of_node, host.config)
    if keys is None:
        raise UsageError("this daemon was started without a key file: name one in [security], and restart it")
    if host.sealing is not None and not at_once and host.sealing.parts_with(keys):
        used = listed((host.sealing.keys.used,))
        raise UsageError(
            f"the key file of {host.config.name} has {listed(keys.accepted)}, and this node and those with it use "
            f"{used}: copy the file of the others here, or wait until all use another (`ordercast key status`); "
            "`ordercast key reload --now` takes it all the same, and parts from them"
        )
    host.rekey(replace(keys, at_once=at_once))
    await _hear_others(host)
    return keys_document(host)


async def _hear_others(host: GroupHost) -> None:
    """Wait a moment for the word of those who seem to lack a key: what they said last may be older than their files."""
    for _ in range(HEARING_TURNS):
        if not host.sealing_status().awaited:
            return
        await asyncio.sleep(HEARING_S)


def keys_document(host: GroupHost) -> Document:
    """What every node accepts and uses, as far as it said so."""
    sealing = host.sealing
    if sealing is None:
        return {"daemon": host.config.name, "sealed": False, "nodes": []}
    mine = {"name": host.config.name, "used": sealing.keys.used, "accepted": list(sealing.keys.accepted)}
    others = [
        {"name": host.name_of(life.process), "used": life.used, "accepted": list(life.accepted)}
        for _, life in sorted(sealing.lives.newest().items())
    ]
    here = {document["name"] for document in (mine, *others)}
    silent = [host.name_of(member) for member in host.members if host.name_of(member) not in here]
    return {
        "daemon": host.config.name,
        "sealed": True,
        "used": sealing.keys.used,
        "next": sealing.keys.wanted,
        "awaited": list(host.sealing_status().awaited),
        "nodes": [mine, *others],
        "silent": silent,
        "refused": counts_of(sealing.opener.refused),
    }


def _legs(config: NodeConfig) -> list[tuple[str, tuple[Place, ...]]]:
    """The rings that this node is on, and where it receives on each."""
    names = [ring.name for ring in config.my_rings] or [""]
    return [(name, ring.me().entry.places) for name, ring in zip(names, config.attachments, strict=True)]


def _others_changed(before: NodeConfig, fresh: NodeConfig) -> list[str]:
    """Parts of the file that a reload does not take."""
    before = replace(before, status=replace(before.status, ports=fresh.status.ports))  # of the list, too
    names = [item.name for item in fields(NodeConfig) if item.name not in _OF_THE_LIST]
    changed = [name for name in names if getattr(before, name) != getattr(fresh, name)]
    return changed + ([FAR] if _far(before) != _far(fresh) else [])


def _far(config: NodeConfig) -> tuple[object, ...]:
    """Where this node and those of other sites reach each other, which is settled at the start."""
    return (config.beyond(), config.me().wide_place) if config.has_sites else ()


ManagementAnswer = Callable[[Document], None]


async def answer(host: GroupHost, document: Document, reply: ManagementAnswer) -> None:
    """Manage, and reply with what came of it."""
    try:
        reply(await manage(host, document))
    except UsageError as error:
        reply({"error": str(error)})
