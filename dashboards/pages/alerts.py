"""Page of outliers and alerts: open incidents, their history and deliveries, outliers."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import filters, incident_actions
from hopwatch.dashboards.queries.alert_models import AlertsInRange
from hopwatch.dashboards.queries.health import MAX_ROWS, AlertsQuery
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.views import common_range, incident_history, incidents, outliers
from hopwatch.dashboards.views.address import FoldState
from hopwatch.dashboards.views.display_range import DisplayRange
from hopwatch.dashboards.views.incident_history import IncidentHistoryRow
from hopwatch.dashboards.views.incidents import AlertPlace, DeliveryView, IncidentView
from hopwatch.display.colours import Mark

PLACE_COLUMNS: Final = (
    ("Where", "hw-name"),
    ("Since", "hw-narrow"),
    ("Observed", "hw-number"),
    ("Expected", "hw-number"),
    ("Affected", "hw-number"),
    ("In words", "hw-long"),
)
HISTORY_COLUMNS: Final = (
    ("Since", "hw-narrow"),
    ("Until", "hw-narrow"),
    ("Severity, rule", "hw-narrow"),
    ("Where", "hw-name"),
    ("Observed", "hw-number"),
    ("In words", "hw-long"),
    ("Told", "hw-long"),
)
OUTLIER_COLUMNS: Final = (
    ("Window", "hw-narrow"),
    ("Where", "hw-name"),
    ("Level", "hw-narrow"),
    ("Quantity", "hw-narrow"),
    ("Observed", "hw-number"),
    ("Expected", "hw-number"),
    ("Why", "hw-long"),
)
MAX_FIRING: Final = 50
MAX_PENDING: Final = 20


def draw_page(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the page."""
    here = context.address
    shown = common_range.select_common_range(here, standing, context.clock.now_us())
    filters.draw_filters(context, standing)
    if shown.notice:
        st.warning(markup.escape_markdown(shown.notice))
    is_all = here.folded is FoldState.SHOWN
    answer = context.fetch(AlertsQuery(here.stream, shown.from_us, shown.to_us, is_all))
    if answer.value is None:
        st.error(markup.escape_markdown(answer.error or "nothing was read"))
        return
    _draw_firing(context, answer.value)
    _draw_history(context, answer.value, shown)
    _draw_outliers(context, answer.value, shown)


def _draw_firing(context: PageContext, found: AlertsInRange) -> None:
    now_us = context.clock.now_us()
    lasting = incidents.build_incidents(found, now_us, context.zone)
    with st.container(border=True):
        title = markup.title(f"Firing now: {len(lasting):,} {'incident' if len(lasting) == 1 else 'incidents'}")
        st.html(title + _note(incidents.format_heartbeat(found, now_us)))
        for one in lasting[:MAX_FIRING]:
            st.html(_format_incident(context, one))
            incident_actions.draw_actions(context, one)
        if len(lasting) > MAX_FIRING:
            st.html(_note(f"{len(lasting) - MAX_FIRING:,} more are not shown: choose a stream."))
        if silences := incidents.format_silences(found, now_us, context.zone):
            st.html(markup.title(f"Silences: {len(silences):,}", "hopwatch alerts unsilence NUMBER ends one"))
            for number, told in silences.items():
                st.html(_note(told))
                incident_actions.draw_unsilence(context, number)
        _draw_pending(
            context, "Pending: not bad for long enough yet", incidents.build_pending_rows(found.pending, now_us)
        )
        _draw_pending(
            context,
            "Not notified, because another alert covers them",
            incidents.build_pending_rows(found.covered, now_us),
        )


def _format_incident(context: PageContext, one: IncidentView) -> str:
    chip = markup.chip(one.mark, context.palette)
    words = (
        f"<b>{markup.escape_html(one.rule)}</b> since {markup.escape_html(one.since)}"
        f", for {markup.escape_html(one.duration)}"
    )
    book = f"Runbook: {markup.external_link(one.runbook, one.runbook)}" if one.runbook else ""
    told = f"Notified: {_format_deliveries(context, one.deliveries)}" if one.deliveries else "No channel was notified."
    parts = [
        part
        for part in (
            markup.escape_html(one.acknowledged),
            markup.escape_html(one.silenced),
            told,
            book,
            f"Key: {markup.code(one.key)}",
        )
        if part
    ]
    rows = [_format_place(context, place) for place in one.places]
    table = markup.table(PLACE_COLUMNS, rows, "hw-signs", "Places of an incident, the worst first")
    more = _note(f"{one.more_places:,} more places are not named.") if one.more_places > 0 else ""
    return f'<p class="hw-incident">{chip} {words}<br><span class="hw-note">{" · ".join(parts)}</span></p>{table}{more}'


def _format_place(context: PageContext, place: AlertPlace) -> tuple[str, ...]:
    return (
        _format_location(context, place),
        markup.escape_html(place.since),
        markup.emphasis(place.observed, is_bad=True),
        markup.escape_html(place.expected),
        markup.escape_html(place.affected),
        markup.escape_html(place.summary),
    )


def _format_location(context: PageContext, place: AlertPlace) -> str:
    second = place.edge or (place.stream if place.node else "")
    whose = f"{place.stream}: {place.edge}" if place.edge and place.stream else second
    link = filters.link_node(context, place.stream, place.node, place.window_us)
    return f'<span class="hw-first">{link}</span><span class="hw-second">{markup.escape_html(whose)}</span>'


def _draw_pending(context: PageContext, title: str, rows: tuple[tuple[Mark, str, str], ...]) -> None:
    if not rows:
        return
    told = "".join(
        f'<p class="hw-incident">{markup.chip(mark, context.palette)} {markup.escape_html(what)} '
        f'<span class="hw-note">{markup.escape_html(since)}</span></p>'
        for mark, what, since in rows[:MAX_PENDING]
    )
    more = _note(f"{len(rows) - MAX_PENDING:,} more.") if len(rows) > MAX_PENDING else ""
    st.html(markup.title(f"{title}: {len(rows):,}") + told + more)


def _draw_history(context: PageContext, found: AlertsInRange, shown: DisplayRange) -> None:
    told = incident_history.build_history(found, context.clock.now_us(), context.zone)
    with st.container(border=True):
        note = filters.format_range(context, shown)
        title = markup.title(f"Incidents: {len(told):,}", note)
        if not told:
            st.html(title + _note("None in this range."))
            return
        rows = [_format_history_row(context, one) for one in told[:MAX_ROWS]]
        more = "" if found.is_complete and len(told) <= MAX_ROWS else _note("Older ones of this range are not shown.")
        fates = "; ".join(f"{mark.icon} {mark.word}: {mark.meaning}" for mark in incidents.FATES.values())
        st.html(
            title + markup.table(HISTORY_COLUMNS, rows, "hw-signs", "Incidents, the latest first") + more + _note(fates)
        )


def _format_history_row(context: PageContext, one: IncidentHistoryRow) -> tuple[str, ...]:
    begun = f"Beginning: {_format_deliveries(context, one.start_deliveries)}" if one.start_deliveries else ""
    ended = f"End: {_format_deliveries(context, one.end_deliveries)}" if one.end_deliveries else ""
    until = one.until or "still firing"
    place = one.worst_place
    more = f'<span class="hw-second">and {one.more_places:,} more places</span>' if one.more_places else ""
    book = f'<span class="hw-second">{markup.external_link(one.runbook, one.runbook)}</span>' if one.runbook else ""
    return (
        markup.escape_html(one.since),
        markup.two_lines(
            until, f"lasted {one.duration}" if one.until else f"for {one.duration}", is_loud=not one.until
        ),
        f'{markup.chip(one.mark, context.palette)}<span class="hw-second">{markup.escape_html(one.rule)}</span>',
        (_format_location(context, place) if place else "") + more,
        markup.two_lines(place.observed, place.expected) if place else "",
        f'<span class="hw-first">{markup.escape_html(one.summary)}</span>{book}',
        markup.stack_lines(begun, ended) or '<span class="hw-note">not notified</span>',
    )


def _format_deliveries(context: PageContext, found: tuple[DeliveryView, ...]) -> str:
    return ", ".join(_format_delivery(context, one) for one in found)


def _format_delivery(context: PageContext, one: DeliveryView) -> str:
    colour = one.mark.colour(context.palette)
    note = f' <span class="hw-note">({markup.escape_html(one.note)})</span>' if one.note else ""
    fate = f'<span style="color:{colour}">{markup.escape_html(f"{one.mark.icon} {one.mark.word}")}</span>'
    hint = markup.escape_html(one.mark.meaning)
    return f'<span class="hw-told" title="{hint}">{markup.escape_html(one.channel)} {fate}</span>{note}'


def _draw_outliers(context: PageContext, found: AlertsInRange, shown: DisplayRange) -> None:
    rows = [
        (
            markup.two_lines(row.at, row.since),
            filters.link_node_and_stream(context, row.stream, row.node, row.window_us),
            markup.chip(row.mark, context.palette),
            markup.escape_html(row.quantity),
            markup.escape_html(row.observed),
            markup.escape_html(row.expected),
            markup.stack_lines(*(markup.escape_html(reason) for reason in row.why)),
        )
        for row in outliers.build_rows(found.findings, context.zone)
    ]
    with st.container(border=True):
        title = markup.title(f"Outliers: {found.finding_count:,}", filters.format_range(context, shown))
        st.html(title)
        filters.draw_fold_control(context, "Include notices (not alerted)")
        left_out = found.finding_count - len(rows)
        more = f"{left_out:,} older ones are not shown. " if left_out else ""
        table = markup.table(OUTLIER_COLUMNS, rows, "hw-signs", "Outliers, the newest first") if rows else ""
        none = "" if rows else "None in this range. "
        st.html(table + _note(f"{none}{more}What to do: {outliers.RUNBOOK}"))


def _note(words: str) -> str:
    return f'<p class="hw-note">{markup.escape_html(words)}</p>'
