"""Messages to send again: their keys, the header that counts how often each was sent again, and its limit."""

from __future__ import annotations

from typing import Final, NamedTuple

from hopwatch.gate.transactions import KafkaHeaders

REDRIVEN_HEADER: Final = "hopwatch-redriven"
"""Header of a message that was sent again, as text: how often."""
MAX_REDRIVES: Final = 3
"""How often a message is sent again at most: one that is lost each time would go round for ever."""


class RedriveKey(NamedTuple):
    """Key of a message in its stream: the start of its window in µs, and its id, 16 bytes."""

    window_start_us: int
    message_id: bytes


def read_redrives(headers: KafkaHeaders) -> int:
    """Return how often a message was sent again; of a count that cannot be read the most, as nothing is known of it."""
    counts = [value for name, value in headers if name == REDRIVEN_HEADER]
    if not counts:
        return 0
    text = counts[-1].decode("ascii", "replace") if isinstance(counts[-1], bytes) else str(counts[-1])
    is_count = text.isascii() and text.isdecimal() and len(text) == 1
    return min(int(text), MAX_REDRIVES) if is_count else MAX_REDRIVES


def build_redriven_headers(headers: KafkaHeaders, redrives: int) -> KafkaHeaders:
    """Return the headers of a message that is sent again for the ``redrives``-th time: its own, and the count."""
    own = [header for header in headers if header[0] != REDRIVEN_HEADER]
    return [*own, (REDRIVEN_HEADER, str(redrives))]
