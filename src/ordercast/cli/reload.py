"""`ordercast reload`: has a daemon read its file again, for the node list in it."""

from __future__ import annotations

from rich.text import Text

from ordercast.cli.cluster import ask
from ordercast.cli.terminal import complain, output, write_json


def reload(at: str | None, as_json: bool) -> int:
    document = ask(at, {"do": "reload"})
    if as_json:
        write_json(document)
        return 0
    names = ", ".join(node["name"] for node in document["nodes"])
    what = "is taken" if document["changed"] else "has not changed"
    output().print(Text(f"{document['daemon']}: version {document['version']} of the node list {what}, with {names}"))
    for what, said in (("rights", "the rights of clients are new"), ("certificates", "the certificates are new")):
        if document.get(what):
            output().print(Text(said))
    if document["restart"]:
        complain(f"what else has changed in the file needs a restart: {', '.join(document['restart'])}")
    for difference in document["differences"]:
        output().print(Text(difference, "yellow"))
    return 0
