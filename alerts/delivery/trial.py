"""Test notification: send an incident marked as a test through channels, firing and then resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from hopwatch.alerts.channels.channel import Channel, Failure, Outcome
from hopwatch.alerts.delivery.log import describe_fault
from hopwatch.alerts.events import Alert, AlertKind, Event, Notification, Severity, Unit, Word, build_key
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.results import format_iso

RULE: Final = "test"
RUNBOOK: Final = "docs/ALERTS.md#delivery"
BEGIN_SUMMARY: Final = (
    "This is a test of Hopwatch's alerts, sent by hand: nothing is wrong, and there is nothing to do."
)
END_SUMMARY: Final = "This was a test of Hopwatch's alerts, sent by hand: it is over."
NO_REASON: Final = "it does not say why"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Result of the test at one channel; ``why`` is empty if the channel accepted the notification."""

    channel: str
    key: str
    event: Event
    why: str

    def to_json(self) -> dict[str, Any]:
        """Return it as ``--json`` shows it."""
        document = asdict(self) | {"event": self.event.value, "is_taken": not self.why}
        return document | {"why": self.why or None}


def send_trial(
    channels: Mapping[str, Channel], severity: Severity, clock: Clock, hold_s: float = 0.0
) -> list[TrialResult]:
    """Send the test through all channels as firing, and after ``hold_s`` as resolved.

    It is resolved even where the firing one failed, as that may have arrived. The key holds the time, so that each test
    is an incident of its own.
    """
    begun = build_notification(severity, clock.now_us())
    ended = replace(begun, event=Event.RESOLVED, summary=END_SUMMARY)
    results = [_send_one(name, channel, 0, begun, clock) for name, channel in channels.items()]
    clock.wait(hold_s)
    return results + [_send_one(name, channel, 1, ended, clock) for name, channel in channels.items()]


def build_notification(severity: Severity, now_us: int) -> Notification:
    """Build the firing notification of a test."""
    stream = f"test-{now_us}"
    figures: dict[str, Any] = {"observed": 0.0, "threshold": 0.0, "affected": 0, "out_of": 0, "lost_ids": ()}
    place: dict[str, Any] = {
        "stream": stream,
        "node": "",
        "edge": "",
        "runbook": RUNBOOK,
        "link": "",
        "summary": BEGIN_SUMMARY,
    }
    identity: dict[str, Any] = {"rule": RULE, "kind": AlertKind.LOSS, "severity": severity}
    alert = Alert(
        word=Word.ALIVE, unit=Unit.RATIO, since_us=now_us, window_start_us=now_us, **identity, **figures, **place
    )
    return Notification(
        key=build_key(RULE, severity, stream),
        event=Event.FIRING,
        labels={"rule": RULE, "severity": severity.value, "stream": stream},
        alerts=(alert,),
        total=1,
        since_us=now_us,
        at_us=now_us,
        summary=f"{BEGIN_SUMMARY} {format_iso(now_us)}",
        **identity,
    )


def _send_one(name: str, channel: Channel, number: int, notification: Notification, clock: Clock) -> TrialResult:
    delivery = Delivery(number, name, notification, notification.at_us, tries=0, is_again=False, is_acknowledged=False)
    outcome = _send_guarded(channel, delivery, clock.now_us())
    return TrialResult(
        name, notification.key, notification.event, (outcome.why or NO_REASON) if isinstance(outcome, Failure) else ""
    )


def _send_guarded(channel: Channel, delivery: Delivery, now_us: int) -> Outcome:
    try:
        return channel.send(delivery, now_us)
    except Exception as error:  # noqa: BLE001 - the other channels are tested all the same
        return Failure(describe_fault(error))
