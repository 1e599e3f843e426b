"""Policy of a client: batches, retries and bounds, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_BATCH_EVENTS: Final = 1_000
"""Maximum number of events in one request, as the gate takes them."""
MAX_BATCH_BYTES: Final = 1024 * 1024
"""Maximum size of a request, as the gate takes it."""
MAX_EVENT_BYTES: Final = 256 * 1024
"""Maximum size of the data of an event, as the gate takes it."""
_DAY_S: Final = 86_400.0


def _check_range(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} is {least:g} to {most:g}, got {value!r}")


@dataclass(frozen=True, slots=True)
class ClientPolicy:
    """Policy of a client.

    Raises:
        ValueError: a value is outside its bounds; the text names it, the bounds and the value.
    """

    batch_max_events: int = 500
    batch_max_bytes: int = MAX_BATCH_BYTES
    linger_s: float = 0.02
    """Time for which a batch waits to be filled."""
    timeout_s: float = 30.0
    """Longest time of a request; the gate may need 10 s for the transport."""
    backoff_base_s: float = 0.1
    backoff_max_s: float = 10.0
    """Longest wait that the client chooses before it sends again."""
    retry_after_max_s: float = 300.0
    """Longest wait that the gate may ask for."""
    max_waiting_bytes: int = 64 * 1024 * 1024
    """Bound of the memory, or of the disk space of the spool, for events that are not settled yet."""

    def __post_init__(self) -> None:
        """Check the bounds."""
        _check_range("batch_max_events", self.batch_max_events, 1, MAX_BATCH_EVENTS)
        _check_range("batch_max_bytes", self.batch_max_bytes, 1, MAX_BATCH_BYTES)
        _check_range("linger_s", self.linger_s, 0, 60)
        _check_range("timeout_s", self.timeout_s, 0.001, 600)
        _check_range("backoff_base_s", self.backoff_base_s, 0.001, 3_600)
        _check_range("backoff_max_s", self.backoff_max_s, self.backoff_base_s, 3_600)
        _check_range("retry_after_max_s", self.retry_after_max_s, 0, _DAY_S)
        _check_range("max_waiting_bytes", self.max_waiting_bytes, MAX_BATCH_BYTES, 1024**4)
