"""Tests of what the pages of probes, alerts and quality show: words, units and marks, before anything is drawn."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.alerts.events import Event, Severity, Unit
from hopwatch.alerts.figure_texts import format_figure
from hopwatch.alerts.storage.history import Acknowledgement, ChannelDelivery, HistoryEntry, OpenIncident
from hopwatch.alerts.storage.outbox import DeliveryState
from hopwatch.dashboards import markup
from hopwatch.dashboards.queries.alert_models import AlertsInRange
from hopwatch.dashboards.views import incident_history, incidents, instances, outliers, quality
from hopwatch.display import texts
from hopwatch.display.colours import DARK, LIGHT, Palette, compute_contrast
from hopwatch.monitor.accounting.instances import InstanceState
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.payloads import SET_ASIDE_REASONS
from tests.support.health_data import over
from tests.support.notifications import alert, notification
from tests.support.windows import at


def of(*told: HistoryEntry, lasting: tuple[OpenIncident, ...] = ()) -> AlertsInRange:
    """Return what the page is told."""
    return AlertsInRange(lasting, (), (), (), told, is_complete=True, findings=(), finding_count=0)


def test_every_reason_severity_fate_state_and_quantity_has_its_words() -> None:
    """None is shown by a name that nobody explains."""
    assert set(quality.MEANINGS) == set(SET_ASIDE_REASONS)
    assert set(incidents.SEVERITIES) == set(Severity)
    assert set(incidents.FATES) == set(DeliveryState)
    assert set(instances.MARKS) == set(InstanceState)
    assert all(outliers.format_figure(one, 1.0) for one in Quantity)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_can_be_read(palette: Palette) -> None:
    """Each with an icon, and a contrast of 4.5 on both grounds."""
    marks = [
        *incidents.SEVERITIES.values(),
        *incidents.FATES.values(),
        *instances.MARKS.values(),
        outliers.OUTLIER,
        outliers.NOTICE,
    ]
    for mark in marks:
        assert mark.icon
        assert mark.meaning
        assert min(compute_contrast(mark.colour(palette), ground) for ground in (palette.ground, palette.raised)) >= 4.5


@pytest.mark.parametrize(
    ("number", "unit", "told"),
    [
        (0.02, Unit.RATIO, "2.00%"),
        (2_500_000.0, Unit.MICROSECONDS, "2.5 s"),
        (1_500.0, Unit.MINUTES, "1,500 min"),
        (1.0, Unit.RECORDS, "1 record"),
        (12_000.0, Unit.RECORDS, "12,000 records"),
        (12.34, Unit.SCORE, "score 12.3"),
        (14.4, Unit.BURN_RATE, "14.4 times the budget"),
    ],
)
def test_figures_of_alerts_have_their_units(number: float, unit: Unit, told: str) -> None:
    """As a person reads them."""
    assert format_figure(number, unit) == told


@pytest.mark.parametrize(
    ("unit", "threshold", "told"),
    [(Unit.RATIO, 0.01, "at most 1.00%"), (Unit.MINUTES, 15.0, "less than 15 min"), (Unit.SCORE, 0.0, texts.NONE)],
)
def test_what_is_expected_is_said(unit: Unit, threshold: float, told: str) -> None:
    """The threshold of an alert is shown in its unit."""
    assert incidents.build_place(alert(unit=unit, threshold=threshold), UTC).expected == told


def test_who_has_taken_an_incident_on_is_told() -> None:
    """With the note for others."""
    one = OpenIncident(notification(), at(2), Acknowledgement("a person", at(4), "on it"))
    (shown,) = incidents.build_incidents(of(lasting=(one,)), at(5), UTC)
    assert shown.acknowledged == "acknowledged by a person 1 min 0 s ago: on it"


def test_pages_come_before_tickets_and_the_oldest_first() -> None:
    """As a person works them off."""
    made = [
        OpenIncident(notification(key=f"{n}", severity=severity, since_us=at(since)), 0, None)
        for n, (severity, since) in enumerate(
            [(Severity.TICKET, 1), (Severity.PAGE, 3), (Severity.TICKET, 0), (Severity.PAGE, 2)]
        )
    ]
    assert [one.key for one in incidents.build_incidents(of(lasting=tuple(made)), at(5), UTC)] == ["3", "1", "2", "0"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=20), st.sets(st.sampled_from("abc")))
def test_each_end_is_of_one_incident_and_each_that_lasts_is_there(
    said: list[tuple[str, bool]], lasting: set[str]
) -> None:
    """Each end belongs to one incident, and each incident is listed once, wherever the range begins."""
    told = []
    for number, (key, is_end) in enumerate(said):
        made = notification(key=key, since_us=at(number))
        told.append(HistoryEntry(number, over(made, number + 1) if is_end else made, ()))
    found = incident_history.build_history(
        of(*told, lasting=tuple(OpenIncident(notification(key=key), 0, None) for key in lasting)), at(99), UTC
    )
    ends = sum(one.notification.event is Event.RESOLVED for one in told)
    assert sum(bool(one.until) for one in found) == ends
    # Of a beginning behind the last end nothing more is known, or it lasts.
    last = dict(said)
    begun = {key for key, is_end in last.items() if not is_end}
    assert len(found) - ends == len(begun | lasting)


def test_a_delivery_says_what_failed_and_when_it_is_tried_again() -> None:
    """A clock that noted a time long past says nothing of it."""
    sending = ChannelDelivery("pager", DeliveryState.WAITING, 2, at(6), "HTTP 500")
    (soon,) = incidents.build_deliveries([sending], at(5))
    assert soon.note == "2 failures, the last: HTTP 500; tried again in 1 min 0 s"
    (due,) = incidents.build_deliveries([sending], at(7))
    assert due.note == "2 failures, the last: HTTP 500"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "//evil.example", "data:text/html,x", "docs/runbooks/loss.md"])
def test_only_addresses_of_the_web_are_links(url: str) -> None:
    """All else is text."""
    assert markup.external_link(url, url) == markup.escape_html(url)
