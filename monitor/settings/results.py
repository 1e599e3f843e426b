"""``[results]``: topic that the results of windows are published to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import InitErrorDetails

from hopwatch.monitor.settings import error_details
from hopwatch.monitor.settings.table import SettingsTable
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace


def _check_topic_url(value: object) -> str:
    if not isinstance(value, str) or not value.startswith(KAFKA):
        msg = f'results go to a topic, "{KAFKA}HOST:PORT/TOPIC"; got {value!r:.80}'
        raise ValueError(msg)
    if not value.removeprefix(KAFKA).partition("/")[2]:
        msg = f'results go to a topic of their own, "{KAFKA}HOST:PORT/TOPIC"; {value!r:.80} names none'
        raise ValueError(msg)
    return str(KafkaPlace.parse(value))


class ResultsSettings(SettingsTable):
    """``[results]``: the topic, compacted, that holds the last state of each node in each window."""

    topic: Annotated[str, BeforeValidator(_check_topic_url)]

    @property
    def place(self) -> KafkaPlace:
        """The topic and its brokers."""
        return KafkaPlace.parse(self.topic)


def check_topic(said: Mapping[str, Any], transport: str | None) -> list[InitErrorDetails]:
    """Check that results have a topic of their own, if they have a valid one."""
    try:
        topic = _check_topic_url(said.get("topic"))
    except ValueError:
        return []
    if transport is None or not transport.startswith(KAFKA) or KafkaPlace.parse(transport) != KafkaPlace.parse(topic):
        return []
    told = "results are in a topic of their own, got that of the probes' records, [transport] url"
    return [error_details.error_at(("topic",), topic, told)]
