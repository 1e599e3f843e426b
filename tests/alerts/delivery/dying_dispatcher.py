"""A dispatcher's process whose receiver is a file, and which is killed right after that has heard something.

``python -m tests.alerts.delivery.dying_dispatcher STORE_URL FILE DIES_AT [ALERTMANAGER_URL]``: every delivery is a line
of the file, and a post to that Alertmanager; after the line of that number the process kills itself, before anything is
noted. 0 lets it live; it ends when nothing is due.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from hopwatch.alerts.channels.alertmanager import Alertmanager
from hopwatch.alerts.channels.channel import Accepted, Channel, Outcome
from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery.dispatcher import Dispatcher
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.settings.channels import AlertmanagerChannel
from hopwatch.monitor.store import dialect


@dataclass(frozen=True)
class Deadly:
    """A channel that writes what it is given to a file, and does not survive one line of it."""

    file: Path
    dies_at: int
    before: Channel | None = None

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Write, and die if it is time."""
        outcome = self.before.send(delivery, now_us) if self.before else Accepted()
        said = delivery.notification
        with self.file.open("a+", encoding="utf-8") as file:
            file.write(json.dumps([said.key, said.event.value]) + "\n")
            file.flush()
            file.seek(0)
            lines = len(file.readlines())
        if lines == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

    def close(self) -> None:
        """Do nothing."""


if __name__ == "__main__":
    store_url, name, dies_at, *urls = sys.argv[1:]
    before = Alertmanager("pager", AlertmanagerChannel.model_validate({"urls": urls})) if urls else None
    deadly = Deadly(Path(name), int(dies_at), before)
    dispatcher = Dispatcher(dialect.create_engine(store_url), Routing({"pager": deadly}), SystemClock())
    while dispatcher.deliver_due():
        pass
