"""A drill: a notification that says that it is a test, straight through channels, its beginning and then its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from hopwatch.alerts.channels.channel import Channel, Failed, Outcome
from hopwatch.alerts.events import Alert, Event, Kind, Notification, Severity, Unit, Word, key_of
from hopwatch.alerts.outbox import Delivery
from hopwatch.alerts.teller import fault
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.results import format_iso

RULE: Final = "test"
RUNBOOK: Final = "docs/ALERTS.md#delivery"
BEGUN: Final = "This is a test of Hopwatch's alerts, sent by hand: nothing is wrong, and there is nothing to do."
ENDED: Final = "This was a test of Hopwatch's alerts, sent by hand: it is over."
UNSAID: Final = "it does not say why"


@dataclass(frozen=True, slots=True)
class Result:
    """How one channel took the beginning or the end of the test; ``why`` is empty where it has taken it."""

    channel: str
    key: str
    event: Event
    why: str

    def to_json(self) -> dict[str, Any]:
        """Return it as ``--json`` shows it."""
        told = asdict(self) | {"event": self.event.value, "is_taken": not self.why}
        return told | {"why": self.why or None}


def run(channels: Mapping[str, Channel], severity: Severity, clock: Clock, hold_s: float = 0.0) -> list[Result]:
    """Send the test through all channels, and after ``hold_s`` its end.

    The end too where the beginning has failed, as it may have arrived. Its key is made of the moment, so that it is an
    incident of its own.
    """
    begun = notification(severity, clock.now_us())
    ended = replace(begun, event=Event.RESOLVED, summary=ENDED)
    found = [_result(name, channel, 0, begun, clock) for name, channel in channels.items()]
    clock.wait(hold_s)
    return found + [_result(name, channel, 1, ended, clock) for name, channel in channels.items()]


def notification(severity: Severity, now_us: int) -> Notification:
    """Return the beginning of a test."""
    stream = f"test-{now_us}"
    figures: dict[str, Any] = {"observed": 0.0, "threshold": 0.0, "affected": 0, "out_of": 0, "lost_ids": ()}
    place: dict[str, Any] = {"stream": stream, "node": "", "edge": "", "runbook": RUNBOOK, "link": "", "summary": BEGUN}
    what: dict[str, Any] = {"rule": RULE, "kind": Kind.LOSS, "severity": severity}
    alert = Alert(word=Word.ALIVE, unit=Unit.RATIO, since_us=now_us, window_start_us=now_us, **what, **figures, **place)
    return Notification(
        key=key_of(RULE, severity, stream),
        event=Event.FIRING,
        labels={"rule": RULE, "severity": severity.value, "stream": stream},
        alerts=(alert,),
        total=1,
        since_us=now_us,
        at_us=now_us,
        summary=f"{BEGUN} {format_iso(now_us)}",
        **what,
    )


def _result(name: str, channel: Channel, number: int, said: Notification, clock: Clock) -> Result:
    delivery = Delivery(number, name, said, said.at_us, tries=0, is_again=False, is_acknowledged=False)
    outcome = _outcome(channel, delivery, clock.now_us())
    return Result(name, said.key, said.event, (outcome.why or UNSAID) if isinstance(outcome, Failed) else "")


def _outcome(channel: Channel, delivery: Delivery, now_us: int) -> Outcome:
    try:
        return channel.send(delivery, now_us)
    except Exception as error:  # noqa: BLE001 - the other channels are tested all the same
        return Failed(fault(error))
