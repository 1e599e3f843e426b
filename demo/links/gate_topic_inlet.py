"""The gate's topic as a link: the value is the event, its headers carry id and event time."""

from __future__ import annotations

from confluent_kafka import Message

from hopwatch.demo.entrance import events
from hopwatch.demo.link import LinkError
from hopwatch.demo.links.topics import TopicInlet
from hopwatch.probes import message_headers


class GateTopicInlet(TopicInlet):
    """The receiving end."""

    def _taken(self, message: Message) -> bytes:
        record = super()._taken(message)
        try:
            found = message_headers.parse_headers(message.headers())
        except ValueError as error:
            raise LinkError(f"an event of the gate has no marks that can be read: {error}") from None
        if found is None:
            raise LinkError("an event of the gate carries no marks")
        return events.pack_event(found.message_id, found.event_us, record)
