"""The rules of a configuration, told with the keys as the file has them and what they are now. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ordercast.daemon.config.keys import Key
from ordercast.model.quantities import duration_text


def in_the_words_of_the_file(sentence: str, keys: Iterable[Key], *settings: object) -> str:
    """`settings` are the dataclasses whose fields the sentence speaks of."""
    now = []
    for key in keys:
        value = next((getattr(one, key.field) for one in settings if hasattr(one, key.field)), None)
        if value is not None and re.search(rf"\b{key.field}\b", sentence):
            sentence = re.sub(rf"\b{key.field}\b", key.name, sentence)
            now.append(f"{key.name} is {duration_text(value) if key.field.endswith('_ns') else value}")
    return f"{sentence} ({', '.join(now)})" if now else sentence
