"""Deliveries made to measure, and names as bad as they come."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from hopwatch.alerts.events import MAX_NAMED, AlertKind, Event, Notification, Severity, Unit, Word
from hopwatch.alerts.storage.outbox import Delivery
from tests.support.notifications import alert, notification
from tests.support.windows import at

NOW_US: Final = at(6)
LOST: Final = alert(
    runbook="https://wiki.example/loss.md",
    link="https://hopwatch.example/?stream=orders&node=b",
    summary="lost: 20 of 1,000 messages (2.00%) surely lost at b of orders on a -> b, over 1.00%",
    lost_ids=("0a" * 16, "0b" * 16),
)
LABELS: Final = {"team": "payments", "rule": "loss", "severity": "page", "stream": "orders"}


def firing(**fields: Any) -> Notification:  # noqa: ANN401 - the fields of a notification
    """Return one loss that fires."""
    return notification(**{"alerts": (LOST,), "summary": LOST.summary, "labels": LABELS} | fields)


def storm() -> Notification:
    """Return an incident of 5,000 places, of which twenty are named."""
    named = tuple(alert(stream=f"s{number}", summary=f"lost: all at s{number}") for number in range(MAX_NAMED))
    labels = {"rule": "loss", "severity": "page"}
    said = "5,000 places of 5,000 streams: loss; the worst: lost: all at s0"
    return notification(key="loss/page/*", alerts=named, total=5_000, labels=labels, summary=said)


def delivery(of: Notification | None = None, **fields: Any) -> Delivery:  # noqa: ANN401 - the fields of a delivery
    """Return a delivery of a notification, of one loss if none is given."""
    given = {"number": 7, "channel": "ops", "created_us": at(5), "tries": 0, "is_again": False}
    return Delivery(notification=of or firing(), **{**given, "is_acknowledged": False, **fields})


NASTY: Final = st.one_of(
    st.text(max_size=300),
    st.sampled_from(
        ["<!channel> & <@U1>", "a\r\nBcc: x@y.example", "{{ 7 * 7 }}", "\ud800", "\u202egpj", "x" * 5_000, ""]
    ),
)
_ALERTS: Final = st.builds(
    alert,
    stream=NASTY,
    node=NASTY,
    edge=NASTY,
    summary=NASTY,
    runbook=NASTY,
    link=NASTY.map(lambda text: "https://h/" + text),
    unit=st.sampled_from(Unit),
    word=st.sampled_from(Word),
    observed=st.floats(),
    lost_ids=st.lists(NASTY, max_size=5).map(tuple),
    labels=st.dictionaries(NASTY, NASTY, max_size=3),
)
NOTIFICATIONS: Final = st.builds(
    notification,
    event=st.sampled_from(Event),
    key=NASTY,
    kind=st.sampled_from(AlertKind),
    severity=st.sampled_from(Severity),
    rule=NASTY,
    labels=st.dictionaries(NASTY, NASTY, max_size=5),
    alerts=st.lists(_ALERTS, min_size=1, max_size=MAX_NAMED).map(tuple),
    total=st.integers(1, 10**6),
    summary=NASTY,
)
"""Whatever a later program, or somebody who writes to the store, may have left in the outbox."""
