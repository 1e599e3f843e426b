"""Apprise channel: chats, phones, service desks and a hundred other services, by its plugins.

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
from hopwatch.alerts.channels import template_texts, texts
from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.events import Event
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.settings.channels import AppriseChannel

MAX_BODY: Final = 10_000
"""Services have bounds of their own, by which Apprise cuts or splits."""
COMMAND: Final = (sys.executable, "-m", "hopwatch.alerts.channels.apprise_process")
PACKAGES: Final = Path(hopwatch.__file__).parents[1]
"""Working directory of the process, from which it imports this package."""


class Apprise:
    """Channel to services of Apprise."""

    def __init__(self, name: str, settings: AppriseChannel) -> None:
        """Take the settings; nothing is sent yet."""
        self._name, self._settings = name, settings
        self._template = settings.read_secret("template")
        self._urls = settings.read_secret("urls").split()
        self._timeout_s = settings.timeout_us / 1e6

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Send it by Apprise, in a process that is killed after the timeout."""
        del now_us
        values = template_texts.build_values(delivery)
        usual = texts.format_body(delivery.notification, MAX_BODY, is_acknowledged=delivery.is_acknowledged)
        title = template_texts.render_text(self._name, self._settings.title, values) or texts.format_title(
            delivery.notification
        )
        title = texts.shorten(texts.to_one_line(title), texts.MAX_TITLE)
        body = texts.shorten(template_texts.render_text(self._name, self._template, values) or usual, MAX_BODY)
        is_over = delivery.notification.event is Event.RESOLVED
        return self._run_process({"title": title, "body": body, "type": "success" if is_over else "failure"})

    def close(self) -> None:
        """Nothing is kept open."""

    def _run_process(self, message: dict[str, str]) -> Outcome:
        request = json.dumps({"urls": self._urls, **message})
        try:
            process = subprocess.run(  # noqa: S603 - our own program
                COMMAND, cwd=PACKAGES, input=request, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                timeout=self._timeout_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Failure(f"Apprise did not end within {self._timeout_s:g} s")
        try:
            # A process that failed has not answered, whatever it wrote.
            why = str(json.loads("" if process.returncode else process.stdout))
        except ValueError:
            return Failure(f"Apprise's process ended with exit code {process.returncode} and no answer")
        return Failure(why) if why else Accepted()
