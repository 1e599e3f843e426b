"""Proxy of clients whose records and metadata have attributes of the same names: aiokafka's and kafka-python's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hopwatch.probes.contract.limits import OUT_PARTITION_LABEL, PARTITION_LABEL
from hopwatch.probes.integrations.message_marker import ClientProxy
from hopwatch.probes.message_headers import MessageIdentity


class RecordClientProxy(ClientProxy):
    """Proxy of a client of Kafka: stamps the records that it returns, and the deliveries that it reports."""

    def _stamp_arrival(self, record: Any) -> None:  # noqa: ANN401 - a record of any types
        """Stamp ``in`` of a record."""
        self._marker.stamp_arrival(record.headers, record.topic, {PARTITION_LABEL: record.partition})

    def _stamp_arrivals(self, found: Mapping[Any, Iterable[Any]]) -> None:
        """Stamp ``in`` of the records of several partitions."""
        for records in found.values():
            for record in records:
                self._stamp_arrival(record)

    def _stamp_delivery(self, identity: MessageIdentity, metadata: Any) -> None:  # noqa: ANN401 - None without acks
        """Stamp ``out`` of a message that was delivered."""
        partition = getattr(metadata, "partition", None)
        labels = None if partition is None else {OUT_PARTITION_LABEL: partition}
        self.hopwatch_probe.departed(*identity, labels=labels)
