"""URL of the trace of a message that was stamped in a traced service: its id begins with those of trace and span."""

from __future__ import annotations

import re
from typing import Final

TRACE_ID_FIELD: Final = "{trace_id}"
"""Field of a template that a trace id takes the place of."""
_TRACED_ID: Final = re.compile(r"([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]+")


def build_trace_url(template: str, message_id: str) -> str | None:
    """Return the URL of a message's trace; None without a template, and for other ids."""
    found = _TRACED_ID.fullmatch(message_id) if template else None
    return template.replace(TRACE_ID_FIELD, found[1]) if found else None
