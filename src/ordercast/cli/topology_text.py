"""What the order of a network of rings waits for, in sentences, and what to do. Reads the JSON document of a status and
asks nobody."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.cli.engine_section import Document, lasted, missing_sentences
from ordercast.cli.event_text import listed, verb
from ordercast.model.ids import SECOND
from ordercast.model.quantities import size_text
from ordercast.order.gateways.drawing import Drawing

SHORT_NS = 1 * SECOND  # that everything may wait, for order takes rotations
_DISK = "the disk of this node"


def explained(section: Document) -> list[str]:
    """Return what delivery waits for now, and what is at risk; the most pressing first."""
    if not section["parts"]:
        return ["This node is in no network yet: its rings have not all begun, see `ordercast status`."]
    return [
        *_waiting(section),
        *missing_sentences(section),
        *_holds(section),
        *_changes(section),
        *_queues(section),
        *(_silent(section["silent"]) if section["silent"] else ()),
        *_alone(section),
    ]


def waits_for(section: Document) -> str:
    """Return in one phrase what is next, and what it waits for; nothing where nothing waits."""
    waiting = section["waiting"]
    if waiting is None:
        return ""
    missing = listed(waiting["rings"] or waiting["processes"] or [_DISK if waiting.get("for_disk") else "its turn"])
    return f"{_what(waiting)} has waited {lasted(waiting['for_ns'])} for {missing}"


def _what(waiting: Document) -> str:
    by = f" of {waiting['sender']}" if waiting["sender"] else ""
    return f"{waiting['what']}{by} on {waiting['ring']}"


def _waiting(section: Document) -> Iterator[str]:
    waiting = section["waiting"]
    if waiting is None:
        yield "Nothing waits: everything that is known here has been delivered."
        return
    phrase = waits_for(section)
    sentence = phrase[0].upper() + phrase[1:]
    if waiting["for_ns"] < SHORT_NS:
        yield f"Messages flow: {phrase}, which is no longer than order takes."
    elif waiting["rings"]:
        yield f"{sentence}: it may still bring something before tick {waiting['tick']}."
        for ring in waiting["rings"]:
            yield _advice_on(ring, section)
    elif waiting["processes"]:
        yield f"{sentence}: {_why_processes(waiting)}. See that they run, and that their rings form."
    elif waiting.get("for_disk"):
        yield (
            f"{sentence}: the number at which its next life begins has to be stored there before it goes on. See that "
            "its state folder can be written; it goes on without storage after a while, and says so."
        )
    else:
        yield f"{sentence}."


def _why_processes(waiting: Document) -> str:
    if "message" in waiting["what"]:
        return "it is not known that they have the message, and a safe one waits for all"
    return "they have not said whether they went along"


def _advice_on(ring: str, section: Document) -> str:
    """Return why a ring may be silent, as far as it is seen from here, and where to look."""
    part = next((part for part in section["parts"] if part["name"] == ring), None)
    own = next((own for own in section["attachments"] if own["ring"] == ring), None)
    if own is not None and not own["is_ready"]:
        return f"{ring} is an own ring of this node and in the state {own['state']}: its members form a ring anew."
    if part is None or not part["gateways"]:
        return f"{ring}: see `ordercast status` at one of its members."
    gateways = listed(part["gateways"])
    return (
        f"How far {ring} is, tick {part['front']}, is told by {gateways}: see that they run, that the network of "
        f"{ring} works, and `ordercast status` at one of {listed(part['members'])}."
    )


def _holds(section: Document) -> Iterator[str]:
    for hold in section["holds"]:
        yield (
            f"{hold['process']} has asked everybody to stop sending for {lasted(hold['for_ns'])}: {hold['reason']}. "
            f"Nobody's messages go out until it takes that back; look at {hold['process']} (`ordercast status`)."
        )


def _changes(section: Document) -> Iterator[str]:
    for merge in section["merges"]:
        late = merge["unmarked"] or merge["unspoken"]
        what = "where its past ends" if merge["unmarked"] else "how its side looks"
        waits = f"; {listed(late)} {verb(late, 'has', 'have')} not said {what}" if late else ""
        yield f"On {merge['ring']} rings of different pasts become one ({listed(merge['members'])}){waits}."
    for part in section["parts"]:
        if part["awaited"]:
            yield (
                f"{part['name']} has formed anew, and what its old ring {part['id']} last ordered waits for the word "
                f"of {listed(part['awaited'])}."
            )


def _queues(section: Document) -> Iterator[str]:
    for own in section["attachments"]:
        if own["queue_size"] > 1 << 20:
            size = size_text(own["queue_size"])
            yield f"{size} wait here to be carried onto {own['ring']}: it is slower than the rings that send to it."


def _silent(silent: list[str]) -> Iterator[str]:
    yield f"{listed(silent)} cannot be heard any more, and will leave the view when what they sent is in order."


# What the network would not survive


def drawing_of(section: Document) -> tuple[Drawing, list[str], list[str]]:
    """Return the network as a drawing, with the names of its rings and of its gateways, each in order."""
    rings = list(dict.fromkeys(part["name"] for part in section["parts"]))
    joined = {name: of for name, of in section["attached"].items() if len(of) > 1}
    numbers = tuple(tuple(rings.index(ring) for ring in of) for of in joined.values())
    return Drawing(len(rings), numbers), rings, list(joined)


def _alone(section: Document) -> Iterator[str]:
    drawing, rings, gateways = drawing_of(section)
    vital = drawing.vital_gateways()
    for place in vital:
        ways = listed([rings[ring] for ring in drawing.gateways[place]])
        yield f"{gateways[place]} alone joins {ways}: without it the network is in two; start a second gateway there."
    for ring in drawing.vital_rings() if not vital else ():
        yield f"{rings[ring]} alone keeps other rings together: join its neighbours by a gateway beside it."
