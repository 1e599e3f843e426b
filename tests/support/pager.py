"""A real Alertmanager behind a channel that can be cut off, and the person whom it pages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hopwatch.alerts.channels.alertmanager import Alertmanager as Channel
from hopwatch.alerts.channels.channel import Outcome
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.settings.channels import AlertmanagerChannel
from servers.alertmanager import Alertmanager
from servers.process import until
from tests.support.channel import Receiver
from tests.support.http_receiver import Receiver as Person
from tests.support.http_receiver import answers, receiving

PATIENT: Any = {"timeout": "300ms"}


@dataclass
class Pager(Receiver):
    """A channel to Alertmanagers by HTTP: to the one that works, or in a bad spell to what stands in its place.

    The spells are on the clock of the test; Alertmanager is on the wall's, which the channel is told.
    """

    works: Channel = field(kw_only=True)
    fails: Channel | None = field(default=None, kw_only=True)

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Post it, and note what came through."""
        self.asked.append((now_us, delivery))
        is_bad = any(one.from_us <= now_us < one.until_us for one in self.spells)
        outcome = (self.fails if is_bad and self.fails else self.works).send(delivery, SystemClock().now_us())
        if not is_bad:
            self.hear(delivery, now_us)
        return outcome


def channel(*urls: str, **settings: Any) -> Channel:  # noqa: ANN401 - of a channel
    """Return a channel to the instances at some URLs."""
    return Channel("pager", AlertmanagerChannel.model_validate({"urls": urls} | PATIENT | settings))


@dataclass
class Paging:
    """An Alertmanager, and what it has told a person."""

    server: Alertmanager
    person: Person

    def told(self, name: str = "HopwatchLoss") -> list[tuple[str, str]]:
        """Return what the person was told of alerts of a name: status and stream, in order."""
        bodies = [json.loads(request.body) for request in self.person.requests]
        alerts = [alert for body in bodies for alert in body["alerts"]]
        return [
            (alert["status"], alert["labels"].get("stream", "*"))
            for alert in alerts
            if alert["labels"]["alertname"] == name
        ]

    def await_told(self, count: int) -> Counter[tuple[str, str]]:
        """Wait until the person was told so often, and return of what how often."""
        until(lambda: len(self.told()) >= count, f"{count} notifications by Alertmanager")
        return Counter(self.told())

    def alerts(self, name: str = "HopwatchLoss") -> list[dict[str, Any]]:
        """Return the alerts of a name that are not over."""
        return [alert for alert in self.server.alerts() if alert["labels"]["alertname"] == name]


@contextmanager
def paging(folder: Path) -> Iterator[Paging]:
    """Yield an Alertmanager that tells a person of each alert by itself, and at once."""
    with receiving(answers(200)) as person:
        route = {"receiver": "person", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
        hook = {"url": person.url("/pages"), "send_resolved": True}
        receivers = [{"name": "person", "webhook_configs": [hook]}]
        server = Alertmanager(folder, json.dumps({"route": route, "receivers": receivers}))
        server.start()
        try:
            yield Paging(server, person)
        finally:
            server.stop()
