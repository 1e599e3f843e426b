"""All other ways to people, by Apprise: chats, phones, desks, a hundred services. What it does is up to its plugins.

Apprise says whether all of its services took a notification, not why one did not: what failed is tried again, and
services that had it may have it twice. It follows redirects and goes where its URLs say, so they are to be trusted. It
logs parts of them, so its log is off. A plugin has no deadline for all that it does, and no bound on what it reads:
each notification is a process of its own, which is killed when its time is over.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import hopwatch
from hopwatch.alerts.channels import texts, written
from hopwatch.alerts.channels.channel import Failed, Outcome, Taken
from hopwatch.alerts.events import Event
from hopwatch.alerts.outbox import Delivery
from hopwatch.monitor.settings.channels import AppriseChannel

MOST_BODY: Final = 10_000
"""Services have bounds of their own, by which Apprise cuts or splits."""
COMMAND: Final = (sys.executable, "-m", "hopwatch.alerts.channels.apprise_process")
PACKAGES: Final = Path(hopwatch.__file__).parents[1]
"""Where a process that is started there finds the package, and nothing else by that name."""


class ByApprise:
    """A channel to some of Apprise's services."""

    def __init__(self, name: str, settings: AppriseChannel) -> None:
        """Take its settings; nothing is asked yet."""
        self._name, self._settings = name, settings
        self._template = settings.read_secret("template")
        self._urls = settings.read_secret("urls").split()
        self._timeout_s = settings.timeout_us / 1e6

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Hand it to Apprise, which is waited for no longer than the timeout."""
        del now_us
        seen = written.values(delivery)
        usual = texts.body(delivery.notification, MOST_BODY, is_acknowledged=delivery.is_acknowledged)
        title = written.by_template(self._name, self._settings.title, seen) or texts.title(delivery.notification)
        title = texts.shortened(texts.one_line(title), texts.MOST_TITLE)
        body = texts.shortened(written.by_template(self._name, self._template, seen) or usual, MOST_BODY)
        is_over = delivery.notification.event is Event.RESOLVED
        return self._asked({"title": title, "body": body, "type": "success" if is_over else "failure"})

    def close(self) -> None:
        """Nothing is kept open."""

    def _asked(self, told: dict[str, str]) -> Outcome:
        asked = json.dumps({"urls": self._urls, **told})
        try:
            ended = subprocess.run(  # noqa: S603 - our own program
                COMMAND, cwd=PACKAGES, input=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                timeout=self._timeout_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Failed(f"Apprise did not end within {self._timeout_s:g} s")
        try:
            # A process that failed has not answered, whatever it wrote.
            why = str(json.loads("" if ended.returncode else ended.stdout))
        except ValueError:
            return Failed(f"Apprise's process ended with exit code {ended.returncode} and no answer")
        return Failed(why) if why else Taken()
