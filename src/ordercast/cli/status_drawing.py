"""The status of a node as a page for a terminal, and as a line. Draws the JSON document and decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ordercast.cli.event_text import waiting
from ordercast.cli.latency_text import latency_text
from ordercast.cli.tables import new_table
from ordercast.model.ids import MILLISECOND, SECOND
from ordercast.model.quantities import size_text

VIEWS_SHOWN = 6
ALARMS_SHOWN = 4

Document = dict[str, Any]


def status_page(status: Document, *, is_watched: bool = False) -> RenderableType:
    """What is not well comes first: a small window cuts a page that is watched off at the bottom. There what has
    changed comes next; elsewhere it comes last, where the eye is."""
    warnings = [Text(f"! {warning}", style="yellow") for warning in status["warnings"]]
    well = Text("✓ nothing to complain about", style="green")
    parts: list[RenderableType] = [_headline(status), *(warnings or [well]), Text()]
    changes = [_views(status), *([_alarms(status)] if status["alarms"] else [])]
    facts = [_facts(status), _sockets(status)]
    return Group(*parts, *(changes + facts if is_watched else facts + changes))


def status_line(status: Document) -> str:
    """For a log or a pipe."""
    here, rates, engine = status["configuration"], status["rates"], status["engine"]
    members = " ".join(member["name"] for member in here["members"])
    own = "".join(f", {text}" for text in LINE_PARTS[engine](status[engine]))
    warnings = f"; {len(status['warnings'])} warnings" if status["warnings"] else ""
    return (
        f"{status['at']} {status['me']['name']} {here['state'].lower()} {engine} {here['id']} of {members}; "
        f"{_rate(rates['messages_submitted'])} submitted/s, {_rate(rates['messages_delivered'])} delivered/s, "
        f"{_rate(rates['packets_retransmitted'])} retransmitted/s{own}, "
        f"queue {size_text(status['flow']['queue_size'])}{warnings}"
    )


def _headline(status: Document) -> Text:
    me, here = status["me"], status["configuration"]
    state = here["state"]
    style = "green" if here["is_ready"] else "bold yellow"
    return Text.assemble(
        (f" {state.upper()} ", f"reverse {style}"),
        (f"  {me['name']}", "bold"),
        f" of cluster {me['cluster']} · {status['engine']} {here['id']} · up {uptime_text(status['uptime_ns'])} · ",
        (f"Ordercast {me['version']}, {me.get('kernel', 'pure')} kernel", "dim"),
    )


def _clients(clients: Document) -> str:
    words = [f"{clients['sessions']:,} connected, {clients['groups']:,} groups"]
    words += [f"{size_text(clients['waiting_size'])} wait for them"] if clients["waiting_size"] else []
    words += [f"{size_text(clients['memory_size'])} of memory taken"] if clients.get("memory_size") else []
    words += [f"{clients['too_slow']:,} were too slow"] if clients["too_slow"] else []
    words += [f"{clients['over_memory']:,} took too much memory"] if clients.get("over_memory") else []
    words += [f"{clients['held_too_long']:,} made everybody wait too long"] if clients.get("held_too_long") else []
    words += [f"{clients['messages_dropped']:,} messages dropped"] if clients["messages_dropped"] else []
    words += [f"{clients['refused']:,} refused"] if clients["refused"] else []
    words += [f"{clients['strangers']:,} have not said who they are"] if clients.get("strangers") else []
    words += [f"EVERYBODY WAITS FOR {hold['client']}" for hold in clients.get("holding", ())]
    words += ["the groups of two sides are being merged"] if clients["is_merging"] else []
    return "; ".join(words)


def _facts(status: Document) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for title, text in _lines(status):
        table.add_row(Text(title, "bold"), text if isinstance(text, Text) else Text(text))
    return table


def _lines(status: Document) -> Iterator[tuple[str, str | Text]]:
    rates, totals, flow, pauses = (status[key] for key in ("rates", "totals", "flow", "pauses"))
    yield "members", _members(status["configuration"])
    yield "listens", "; ".join(f"{lane['name']} at {lane['address']}" for lane in status["sockets"]["lanes"])
    for what in ("submitted", "delivered"):
        messages, size = rates[f"messages_{what}"], size_text(int(rates[f"bytes_{what}"]))
        yield what, f"{_rate(messages)} messages/s, {size}/s; {totals[f'messages_{what}']:,} in all"
    yield (
        "packets",
        f"{_rate(rates['packets_sent'])} sent/s, {_rate(rates['packets_received'])} received/s; "
        f"{totals['packets_retransmitted']:,} retransmitted here, {totals['packets_requested']:,} asked for by all",
    )
    if latency := latency_text(status.get("latency", ())):
        yield "latency", latency
    if status["networks"]:
        yield "networks", _networks(status["networks"])
    yield "clients", _clients(status["clients"])
    for state in status["clients"].get("states", ()):
        yield "replicas", f"of {state['name']} at {' '.join(state['replicas'])}"
    yield from SECTION_LINES[status["engine"]](status[status["engine"]])
    yield (
        "queue",
        f"{size_text(flow['queue_size'])}, room for {size_text(flow['queue_room'])}; "
        f"the application has {size_text(flow['inbox_size'])} to take"
        + (", ALL WAIT FOR IT" if flow["is_behind"] else ""),
    )
    if pauses["count"]:
        last = f", the last at {_clock(pauses['last_at'])}" if pauses["last_at"] else ""
        yield "pauses", f"{pauses['count']}, the longest {_time(pauses['longest_ns'])}{last}"
    refused = ", ".join(f"{count:,} {why}" for why, count in status["refused"].items() if count)
    yield "refused", refused or "nothing"
    if "sealing" in status:
        yield "sealing", sealing_text(status["sealing"])
    if "storage" in status:
        yield "state", _storage(status["storage"])
    trace = status["trace"]
    yield "trace", f"{trace['level']}, in {trace['folder']}" if trace["folder"] else trace["level"]


def sealing_text(sealing: Document) -> Text:
    """`key 7 (AES-256-GCM); 3 forged`"""
    if not sealing["is_sealed"]:
        return Text("none: packets are clear", style="yellow")
    key = f"key {sealing['used']} ({sealing['cipher']})" if sealing["used"] else "clear, with a key at hand"
    following = f", key {sealing['next']} is next" if sealing["next"] != sealing["used"] else ""
    refused = ", ".join(f"{count:,} {why}" for why, count in sealing["refused"].items() if count)
    return Text(f"{key}{following}; refused: {refused or 'nothing'}")


def _storage(storage: Document) -> Text:
    if storage["folder"] is None:
        return Text("nothing is kept")
    free = "" if storage["free"] is None else f", {storage['free']:.0%} free"
    text = Text(f"{storage['folder']}{free}")
    if not storage["is_used"]:
        text.append(", NOT IN USE", style="bold red")
    if storage["error"]:
        text.append(f": {storage['error']}", style="bold red")
    return text


def _members(here: Document) -> Text:
    text = Text()
    for member in here["members"]:
        text.append(member["name"], style="bold" if member["is_me"] else "")
        titles = {"this node": member["is_me"], "representative": member["is_representative"]}
        marks = [title for title, is_so in titles.items() if is_so]
        text.append(f" ({', '.join(marks)})  " if marks else "  ", style="dim")
    if here["missing"]:
        text.append(f"missing: {' '.join(here['missing'])}", style="bold red")
    return text


def _networks(networks: list[Document]) -> Text:
    text = Text()
    for network in networks:
        text.append(network["name"], style="bold")
        times = f", found faulty {network['marked']} times" if network["marked"] else ""
        text.append(f" {network['state']}{times}  ", style="" if network["state"] == "good" else "bold red")
    return text


def _sockets(status: Document) -> Table:
    sockets = status["sockets"]
    numbers = ("received", "per read", "sent", "per send", "buffer", "kernel drops")
    title = (
        f"sockets: {sockets['transport']}, segmentation {'on' if sockets['segmentation'] else 'off'}, "
        f"buffers of {size_text(sockets['buffer_asked'])} asked for"
    )
    table = new_table("lane", *numbers, right=numbers, title=title)
    for lane in sockets["lanes"]:
        counters = lane["counters"]
        drops = Text(f"{lane['kernel_drops']:,}", style="bold red" if lane["kernel_drops"] else "")
        table.add_row(
            lane["name"],
            f"{counters['packets_received']:,}",
            _ratio(counters["packets_received"], counters["reads"]),
            f"{counters['packets_sent']:,}",
            _ratio(counters["packets_sent"], counters["sends"]),
            size_text(lane["receive_buffer_size"]),
            drops,
        )
    return table


def _views(status: Document) -> Table:
    table = new_table("when", "view", "members", "change", "why", title="view changes, the latest last")
    for view in [view for view in status["views"] if view["kind"] == "regular"][-VIEWS_SHOWN:]:
        change = Text()
        for sign, names, style in (
            ("+", view["joined"], "green"),
            ("-", view["gone"], "red"),
            ("↻", view["restarted"], ""),
        ):
            for name in names:
                change.append(f"{sign}{name} ", style=style)
        table.add_row(_clock(view["at"]), view["id"], " ".join(view["members"]), change, view["reason"])
    return table


def _alarms(status: Document) -> Table:
    table = new_table("when", "alarm", "what", title="alarms, the latest last")
    for alarm in status["alarms"][-ALARMS_SHOWN:]:
        often = f" ({alarm['count']:,} times)" if alarm.get("count", 1) > 1 else ""
        table.add_row(_clock(alarm["at"]), Text(alarm["kind"], style="yellow"), alarm["text"] + often)
    return table


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def _ratio(packets: int, calls: int) -> str:
    return f"{packets / calls:.1f}" if calls else "–"


def round_trip_text(link: Document) -> str:
    return _time(link["round_trip_ns"]) if link["round_trip_ns"] else "?"


def _time(duration_ns: int) -> str:
    return f"{duration_ns / SECOND:.2f} s" if duration_ns >= SECOND else f"{duration_ns / MILLISECOND:.3g} ms"


def _clock(text: str) -> str:
    """The time of day here; the document has UTC."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M:%S}"


def uptime_text(duration_ns: int) -> str:
    minutes, seconds = divmod(duration_ns // SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


# What engines have of their own, by their names: lines of the page, and parts of the one line


def _ring_lines(ring: Document) -> Iterator[tuple[str, str]]:
    rotation = _time(ring["rotation_ns"]) if ring["rotation_ns"] else "not measured: the token rests"
    yield "token", f"{ring['visits']:,} visits, rotation {rotation}"
    limited = f"{ring['limited_visits']:,} visits limited"
    yield "flow control", f"window {ring['window']}, {ring['visit_max']} per visit; {limited}"


def _ring_part(ring: Document) -> Iterator[str]:
    yield f"rotation {_time(ring['rotation_ns'])}"


def _rings_lines(section: Document) -> Iterator[tuple[str, str]]:
    parts = section["parts"]
    yield "rings", "; ".join(f"{part['name']}: {' '.join(part['members'])}" for part in parts) or "not yet one network"
    gateways = {name: rings for name, rings in section["attached"].items() if len(rings) > 1}
    yield "gateways", "; ".join(f"{name} joins {' and '.join(rings)}" for name, rings in gateways.items()) or "none"
    for own in section["attachments"]:
        token, rotation = own["token"], "rests"
        if own["token"]["rotation_ns"]:
            rotation = f"rotation {_time(token['rotation_ns'])}"
        queue = f", {size_text(own['queue_size'])} to be carried onto it" if own["queue_size"] else ""
        yield f"on {own['ring']}", f"{own['state'].lower()}, {token['visits']:,} visits, {rotation}{queue}"
    yield "order", _order(section)


def _order(section: Document) -> str:
    first, count = section["waiting"], section["undelivered"]
    words = [f"{waiting(count, 'packet')} for {'its' if count == 1 else 'their'} place"]
    if first is not None and (missing := first["rings"] or first["processes"]):
        words.append(f"the next for {' '.join(missing)}, since {_time(first['for_ns'])}")
    words += [f"{hold['process']} HOLDS EVERYBODY: {hold['reason']}" for hold in section["holds"]]
    words += [f"{section['filtered']:,} not carried on, for nobody wants them"] if section["filtered"] else []
    return "; ".join(words)


def _rings_part(section: Document) -> Iterator[str]:
    yield f"{len(section['parts'])} rings"
    yield f"{section['undelivered']:,} undelivered"


def _slots_lines(section: Document) -> Iterator[tuple[str, str]]:
    members = sorted(section["members"], key=lambda member: member["rank"])
    yield (
        "places",
        f"distribution {section['distribution']}, the next by {section['book_keeper']}: "
        + ", ".join(f"{member['name']} {member['weight']}/{section['period']}" for member in members),
    )
    yield "marks", f"{section['marks']:,}; {section['asks']:,} asks, {section['answers']:,} answered for others"
    yield "order", _blocked(section)


def _blocked(section: Document) -> str:
    words = [waiting(section["waiting_places"], "place")]
    for member in section["members"]:
        if member["blocks_ns"] is not None:
            words.append(f"{member['name']} blocks since {_time(member['blocks_ns'])}")
        if member["is_behind"]:
            words.append(f"ALL WAIT FOR {member['name']}")
    return "; ".join(words)


def _slots_part(section: Document) -> Iterator[str]:
    yield f"distribution {section['distribution']}"
    yield f"{section['marks']:,} marks"


def _sites_lines(section: Document) -> Iterator[tuple[str, str]]:
    sites = section["sites"]
    yield "sites", "; ".join(f"{site['name']}: {' '.join(site['members'])}" for site in sites) or "not yet begun"
    speaker = "this node" if section["is_representative"] else section["representative"]
    yield "speaks for it", f"{speaker}, for {section['site']}"
    for link in section["links"]:
        figures = f"{link['state']}, round trip {round_trip_text(link)}, loss {link['loss']:.1%}"
        queue = f", {size_text(link['queue_size'])} wait" if link["queue_size"] else ""
        yield f"link to {link['site']}", f"{link['peer']}: {figures}{queue}"
    yield "order", _sites_order(section)


def _sites_order(section: Document) -> str:
    waiting, words = section["waiting"], []
    if section["attempt"] is not None:
        words.append(f"a new view waits for {' '.join(section['attempt']) or 'nobody'}")
    if waiting is not None and waiting["sites"]:
        words.append(f"the next message waits for {' '.join(waiting['sites'])}")
    words += [f"ALL WAIT FOR {site['name']}" for site in section["sites"] if site["is_behind"]]
    words.append(f"{size_text(section['unstable_size'])} of this node not yet everywhere")
    return "; ".join(words)


def _sites_part(section: Document) -> Iterator[str]:
    yield f"{len(section['sites'])} sites"
    yield f"{sum(link['state'] == 'up' for link in section['links'])} links up"


def _tree_lines(section: Document) -> Iterator[tuple[str, str]]:
    trees = sum(node["parent"] is None for node in section["forest"])
    yield (
        "forest",
        f"{trees} trees of {len(section['forest'])} nodes, opening {section['opened']}, by {section['manager']}",
    )
    yield "place", _tree_place(section)
    yield "entries", _tree_entries(section)
    pauses = f"{section['pauses']:,}, median {_time(section['pause_median_ns'])}, p99 {_time(section['pause_p99_ns'])}"
    yield "pauses", f"{pauses}, longest {_time(section['longest_pause_ns'])}"
    if section["changes"]:
        yield "last change", section["changes"][-1]
    yield "order", _tree_order(section)


def _tree_place(section: Document) -> str:
    if section["birth"] is None:
        return "BETWEEN TWO TREES" + (f": {' '.join(section['closing'])} must close" if section["closing"] else "")
    above = "root" if section["parent"] is None else f"below {section['parent']['node']}"
    below = f", above {' '.join(child['node'] for child in section['children'])}" if section["children"] else ""
    return f"{above}{below}; born in opening {section['birth']}, depth {section['depth']}; {section['links']} links"


def _tree_entries(section: Document) -> str:
    count, rate = section["entries_count"], sum(entry["rate"] for entry in section["entries"])
    busiest = section["entries"][0] if section["entries"] else None
    named = f", the busiest {busiest['group']}" if busiest and busiest["rate"] else ""
    return f"{count} groups enter here, {rate:,} messages a second{named}; {section['wanted']} are wanted here"


def _tree_order(section: Document) -> str:
    words = [f"{section['waiting']:,} wait, {section['unstable']:,} not yet everywhere, {section['held']:,} kept"]
    words += [f"{section['queued']:,} wait for a safe message"] if section["queued"] else []
    words += [f"GROUPS OF {name} WAIT" for name in section["behind"]]
    words += [f"NO LINK {one}–{other}" for one, other in section["broken"]]
    words += [f"all trees ended {section['reconciled']} times"] if section["reconciled"] else []
    return "; ".join(words)


def _tree_part(section: Document) -> Iterator[str]:
    yield "root" if section["parent"] is None else f"below {section['parent']['node']}"
    yield f"{section['entries_count']} entries"


SECTION_LINES: Mapping[str, Callable[[Document], Iterator[tuple[str, str]]]] = {
    "ring": _ring_lines,
    "gateways": _rings_lines,
    "adaptive": _slots_lines,
    "sites": _sites_lines,
    "tree": _tree_lines,
}
LINE_PARTS: Mapping[str, Callable[[Document], Iterator[str]]] = {
    "ring": _ring_part,
    "gateways": _rings_part,
    "adaptive": _slots_part,
    "sites": _sites_part,
    "tree": _tree_part,
}
