"""Label names of alerts."""

from __future__ import annotations

import re
from typing import Final

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
