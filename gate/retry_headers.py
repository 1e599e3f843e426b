"""Headers of a record that waits in a topic for a later try: how often it was tried, when first, and when again."""

from __future__ import annotations

from typing import Final, NamedTuple

from hopwatch.gate.transactions import KafkaHeaders

TRIES_HEADER: Final = "hopwatch-tries"
"""Header of the number of requests that carried the message, or of looks at the record, as text."""
FIRST_SENT_HEADER: Final = "hopwatch-first-sent"
"""Header of the time of the first request, or the first look, as text: µs since 1970."""
UNTIL_HEADER: Final = "hopwatch-not-before"
"""Header of the earliest time of the next try, as text: µs since 1970."""
RETRY_HEADERS: Final = frozenset({TRIES_HEADER, FIRST_SENT_HEADER, UNTIL_HEADER})
_MAX_DIGITS: Final = 18


class RetryState(NamedTuple):
    """State of a message that waited in a retry topic; times are µs since 1970, 0 for none."""

    tries: int = 0
    first_sent_us: int = 0
    until_us: int = 0


def build_state_headers(state: RetryState) -> KafkaHeaders:
    """Return the headers that say the state of a message."""
    return [
        (TRIES_HEADER, str(state.tries)),
        (FIRST_SENT_HEADER, str(state.first_sent_us)),
        (UNTIL_HEADER, str(state.until_us)),
    ]


def parse_retry_headers(headers: KafkaHeaders) -> RetryState:
    """Return the state that a message's headers carry; what is absent or no number is 0.

    A message whose state cannot be read is tried at once, as one that is sent for the first time.
    """
    found = {name: value for name, value in headers if name in RETRY_HEADERS}
    return RetryState(*(read_number(found.get(name)) for name in (TRIES_HEADER, FIRST_SENT_HEADER, UNTIL_HEADER)))


def read_number(value: bytes | str | None) -> int:
    """Return the number in a header; 0 if there is none."""
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else value or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else 0
