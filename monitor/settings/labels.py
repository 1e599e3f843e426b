"""Names and values of labels, of alerts and of streams."""

from __future__ import annotations

import re
from typing import Final

MAX_VALUE_CHARS: Final = 100
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,63}")
_RESERVED: Final = frozenset(
    {"alertname", "edge", "event", "installation", "key", "kind", "node", "rule", "severity", "stream", "word"}
)
"""Labels that Hopwatch sets on every alert."""


def check_label_name(name: str) -> str:
    """Check the name of a label.

    Raises:
        ValueError: the name is invalid or reserved.
    """
    if not _NAME.fullmatch(name) or name in _RESERVED:
        msg = (
            f"a label is 1 to 64 of the characters a-z0-9_ and none of {', '.join(sorted(_RESERVED))}; got {name!r:.80}"
        )
        raise ValueError(msg)
    return name


def check_label_value(value: str) -> str:
    """Check the value of a stream's label.

    Raises:
        ValueError: it is empty, too long or no word.
    """
    if value.split() != [value] or len(value) > MAX_VALUE_CHARS or not value.isprintable():
        msg = f"the value of a label is a word of 1 to {MAX_VALUE_CHARS} characters, without spaces, got {value!r:.80}"
        raise ValueError(msg)
    return value
