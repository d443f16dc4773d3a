"""A dictionary in one thread: what the operations of replicas give when they are done one after the other.

put KEY VALUE    gives the value before          add KEY NUMBER                 gives the sum
get KEY          gives the value                 delete KEY                     gives the value before
set KEY VALUE    gives yes                       compare KEY EXPECTED WANTED    gives yes, or no and what was found

The first four are those of simulated replicas, `set`, `compare` and `get` those of the live dictionary (`-`: no value).
"""

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
            case "set":
                self._values[key] = words[2]
                return b"yes"
            case "compare":
                if (old or "-") != words[2]:
                    return f"no {old or '-'}".encode()
                self._values[key] = words[3]
                return b"yes"
            case _:
                raise ValueError(f"there is no operation {kind!r}")
