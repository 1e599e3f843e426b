"""Deliveries of the service: the table of each in the configuration of a run."""

from __future__ import annotations

from typing import Final, NamedTuple

RETRIES_S: Final = (2, 5)
"""Waits of the retry topics: short, so that a run ends within minutes."""
TIMEOUT_S: Final = 5


class DeliveryPlan(NamedTuple):
    """Delivery of one topic to one receiver on this machine; its node has the name of the delivery."""

    name: str
    topic_url: str
    receiver_port: int

    @property
    def url(self) -> str:
        """Return the address that messages are posted to."""
        return f"http://127.0.0.1:{self.receiver_port}/events"

    @property
    def group(self) -> str:
        """Return the consumer group, which no other run has."""
        return self.topic_url.rpartition("/")[2]

    @property
    def retry_urls(self) -> list[str]:
        """Return the URLs of the retry topics."""
        return [f"{self.topic_url}.{self.name}.retry.{wait_s}s" for wait_s in RETRIES_S]

    @property
    def rejected_url(self) -> str:
        """Return the URL of the topic of what the receiver rejects."""
        return f"{self.topic_url}.rejected"
