"""A dictionary in one thread: what the operations of simulated replicas give when they are done one after the other."""

from __future__ import annotations


class SequentialDictionary:
    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def result(self, operation: bytes) -> bytes:
        words = operation.decode().split(" ")
        kind, key = words[0], words[1]
        old = self._values.get(key, "")
        match kind:
            case "get":
                return old.encode()
            case "put":
                self._values[key] = words[2]
                return old.encode()
            case "delete":
                self._values.pop(key, None)
                return old.encode()
            case "add":
                total = (int(old) if old.isdigit() else 0) + int(words[2])
                self._values[key] = str(total)
                return str(total).encode()
            case _:
                raise ValueError(f"there is no operation {kind!r}")
