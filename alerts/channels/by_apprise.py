"""All other ways to people, by Apprise: chats, phones, desks, a hundred services. What it does is up to its plugins.

Apprise says whether all of its services took a notification, not why one did not: what failed is tried again, and
services that had it may have it twice. It follows redirects and goes where its URLs say, so they are to be trusted. It
logs parts of them, so its log is off.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import Final

import apprise

from alerts.channels import texts, written
from alerts.channels.channel import Failed, Outcome, Taken
from alerts.events import Event
from alerts.outbox import Delivery
from monitor.settings.channels import AppriseChannel

MOST_BODY: Final = 10_000
"""Services have bounds of their own, by which Apprise cuts or splits."""


class ByApprise:
    """A channel to some of Apprise's services."""

    def __init__(self, name: str, settings: AppriseChannel) -> None:
        """Take its settings; nothing is asked yet."""
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
        self._name, self._settings = name, settings
        self._template = settings.said("template")
        self._services = apprise.Apprise(asset=apprise.AppriseAsset(app_id="Hopwatch", secure_logging=True))
        self._services.add(settings.said("urls").split())
        self._timeout_s = settings.timeout_us / 1e6
        self._thread: threading.Thread | None = None

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Hand it to Apprise, which is waited for no longer than the timeout."""
        del now_us
        if self._thread is not None and self._thread.is_alive():
            return Failed("Apprise is still busy with the notification before this one")
        seen = written.values(delivery)
        usual = texts.body(delivery.notification, MOST_BODY, is_acknowledged=delivery.is_acknowledged)
        title = written.by_template(self._name, self._settings.title, seen) or texts.title(delivery.notification)
        title = texts.shortened(texts.one_line(title), texts.MOST_TITLE)
        body = texts.shortened(written.by_template(self._name, self._template, seen) or usual, MOST_BODY)
        is_over = delivery.notification.event is Event.RESOLVED
        return self._asked(title, body, apprise.NotifyType.SUCCESS if is_over else apprise.NotifyType.FAILURE)

    def close(self) -> None:
        """Nothing is kept open."""

    def _asked(self, title: str, body: str, of: apprise.NotifyType) -> Outcome:
        answer: queue.SimpleQueue[Outcome] = queue.SimpleQueue()

        def notify() -> None:
            try:
                is_taken = self._services.notify(body=body, title=title, notify_type=of, body_format="text")
            except Exception as error:  # noqa: BLE001 - a plugin may raise anything, and its text may name a URL
                answer.put(Failed(f"Apprise fails with {type(error).__name__}"))
            else:
                answer.put(Taken() if is_taken else Failed("Apprise could not reach all of its services"))

        # A plugin has a deadline for each wait at best, none for all of them.
        self._thread = threading.Thread(target=notify, name="hopwatch-apprise", daemon=True)
        self._thread.start()
        try:
            return answer.get(timeout=self._timeout_s)
        except queue.Empty:
            return Failed(f"Apprise did not end within {self._timeout_s:g} s")
