"""Retry topics of a delivery: their names, and the headers that a waiting message carries.

A message that is deferred goes to the retry topic of its tier, with its key, value and headers unchanged, and with
three headers that say how often it was sent, when first, and the earliest time of its next try. It holds up those
behind it in its partition until its time has come, so that all of a topic wait equally long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from hopwatch.gate.retry_headers import RETRY_HEADERS, RetryState, build_state_headers
from hopwatch.gate.transactions import KafkaHeaders
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER

CLOCK_SKEW_US: Final = 60_000_000
"""Time by which the clocks of processes may differ."""
REJECTED_SUFFIX: Final = ".rejected"
_UNITS_US: Final = (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000))


class RetryTier(NamedTuple):
    """Retry topic and the wait of its messages, in µs."""

    topic: str
    wait_us: int


class DeliveryTopics(NamedTuple):
    """Topics of one delivery: its source, that of rejected messages, and the retry topics by their waits."""

    source: str
    rejected: str
    tiers: tuple[RetryTier, ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """Topics that the delivery writes."""
        return (self.rejected, *(tier.topic for tier in self.tiers))

    def is_retry(self, topic: str) -> bool:
        """Return whether a topic is one of the retry topics."""
        # The usual case first: each record is asked for.
        return topic != self.source and any(tier.topic == topic for tier in self.tiers)

    def bound_state(self, state: RetryState, topic: str, now_us: int) -> RetryState:
        """Return the state of a message in a retry topic, without times that cannot be.

        A clock that was wrong, or a stranger, may have written them. A message that would wait longer than its topic
        says is tried at once, as it would hold up those behind it; one that was sent first in the future is as if it
        was now, as it would never expire.
        """
        waits_us = [tier.wait_us for tier in self.tiers if tier.topic == topic]
        is_late = state.until_us > now_us + max(waits_us, default=0) + CLOCK_SKEW_US
        return RetryState(state.tries, min(state.first_sent_us, now_us), 0 if is_late else state.until_us)


def build_topics(source: str, name: str, waits_us: Iterable[int], rejected: str = "") -> DeliveryTopics:
    """Return the topics of the delivery of this name, such as ``orders.billing.retry.30s``."""
    tiers = (RetryTier(f"{source}.{name}.retry.{format_wait(wait_us)}", wait_us) for wait_us in waits_us)
    return DeliveryTopics(source, rejected or source + REJECTED_SUFFIX, tuple(tiers))


def format_wait(wait_us: int) -> str:
    """Return a wait as the configuration writes it, in the largest unit that fits: ``30s``, ``5m``, ``1h``."""
    unit, span_us = next((one for one in _UNITS_US if wait_us % one[1] == 0), _UNITS_US[-1])
    return f"{wait_us // span_us}{unit}"


def build_retry_headers(headers: KafkaHeaders, state: RetryState, message_id: str, event_us: int) -> KafkaHeaders:
    """Return the headers of a message in a retry topic: its own, and its state.

    Its id and event time are added where it has none, since its place in the topic and its own time change.
    """
    own = [one for one in headers if one[0] not in RETRY_HEADERS]
    # The last header of a name counts, and one that is null is none.
    last: Mapping[str, object] = dict(own)
    present = {name for name, value in last.items() if value is not None}
    identity = ((ID_HEADER, message_id), (TIME_HEADER, str(event_us)))
    own += [(name, value) for name, value in identity if name not in present]
    return [*own, *build_state_headers(state)]
