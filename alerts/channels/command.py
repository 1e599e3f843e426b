"""Channel that runs a command, which gets the notification as JSON on its standard input.

The variables ``HOPWATCH_EVENT`` (``firing`` or ``resolved``), ``HOPWATCH_KEY``, ``HOPWATCH_RULE`` and
``HOPWATCH_STREAM`` say the same in short. An exit code of 0 means that it was done; after any other it is run again.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

import structlog

from hopwatch.alerts.channels.action_guard import ActionGuard
from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.events import Event, Notification, to_json
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.settings.channels import CommandChannel

_log = structlog.get_logger("hopwatch")


class Command:
    """A channel that runs one command."""

    def __init__(self, name: str, settings: CommandChannel) -> None:
        """Take the settings; nothing is run yet."""
        self._name, self._settings = name, settings
        self._guard = ActionGuard(settings.most, settings.within_us)

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Run it; what it prints is thrown away."""
        notification = delivery.notification
        is_begin = notification.event is Event.FIRING
        if is_begin and (refusal := self._guard.check(now_us)) is not None:
            return refusal
        failure = None if self._settings.dry_run else self._run(notification)
        if failure is not None:
            return failure
        _log.warning(
            "the command would be run" if self._settings.dry_run else "the command was run",
            channel=self._name,
            command=self._settings.command[0],
            incident=notification.key,
        )
        if is_begin:
            self._guard.note(now_us)
        return Accepted()

    def close(self) -> None:
        """Nothing is kept open."""

    def _run(self, notification: Notification) -> Failure | None:
        more = {
            "HOPWATCH_EVENT": notification.event.value,
            "HOPWATCH_KEY": notification.key,
            "HOPWATCH_RULE": notification.rule,
            "HOPWATCH_STREAM": notification.labels.get("stream", ""),
        }
        try:
            process = subprocess.Popen(  # noqa: S603 - the command of the configuration, without a shell
                self._settings.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | more,
                start_new_session=True,
            )
        except OSError as error:
            return Failure(f"{self._settings.command[0]} cannot be run: {error.strerror}")
        with process:
            try:
                process.communicate(to_json(notification).encode("utf-8", "replace"), self._settings.timeout_us / 1e6)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return Failure(f"{self._settings.command[0]} did not end within {self._settings.timeout_us / 1e6:g} s")
        if process.returncode == 0:
            return None
        return Failure(f"{self._settings.command[0]} ended with {process.returncode}")
