"""What is odd, what was told to whom, and why."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import filtering
from hopwatch.dashboards.reading.alarms import Alarms
from hopwatch.dashboards.reading.signs import ROWS, WhatIsWrong
from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.views import alarms, episodes, odd, period
from hopwatch.dashboards.views.address import Folded
from hopwatch.dashboards.views.alarms import Delivery, Firing, Place
from hopwatch.dashboards.views.colours import Mark
from hopwatch.dashboards.views.episodes import Episode
from hopwatch.dashboards.views.span import Span

PLACES: Final = (
    ("Where", "hw-name"),
    ("Since", "hw-narrow"),
    ("Observed", "hw-number"),
    ("Expected", "hw-number"),
    ("Affected", "hw-number"),
    ("In words", "hw-long"),
)
HISTORY: Final = (
    ("Since", "hw-narrow"),
    ("Until", "hw-narrow"),
    ("Severity, rule", "hw-narrow"),
    ("Where", "hw-name"),
    ("Observed", "hw-number"),
    ("In words", "hw-long"),
    ("Told", "hw-long"),
)
OUTLIERS: Final = (
    ("Window", "hw-narrow"),
    ("Where", "hw-name"),
    ("Level", "hw-narrow"),
    ("Quantity", "hw-narrow"),
    ("Observed", "hw-number"),
    ("Expected", "hw-number"),
    ("Why", "hw-long"),
)
MOST_FIRING: Final = 50
MOST_UNTOLD: Final = 20


def show(looking: Looking, standing: Standing) -> None:
    """Draw the page."""
    here = looking.address
    shown = period.of(here, standing, looking.clock.now_us())
    filtering.show(looking, standing)
    if shown.complaint:
        st.warning(markup.plain(shown.complaint))
    is_all = here.folded is Folded.SHOWN
    answer = looking.ask(WhatIsWrong(here.stream, shown.from_us, shown.to_us, is_all))
    if answer.value is None:
        st.error(markup.plain(answer.trouble or "nothing was read"))
        return
    _firing(looking, answer.value)
    _history(looking, answer.value, shown)
    _outliers(looking, answer.value, shown)


def _firing(looking: Looking, found: Alarms) -> None:
    now_us = looking.clock.now_us()
    lasting = alarms.firing(found, now_us, looking.zone)
    with st.container(border=True):
        title = markup.title(f"Firing now: {len(lasting):,} {'incident' if len(lasting) == 1 else 'incidents'}")
        st.html(title + _note(alarms.heartbeat(found, now_us)))
        for one in lasting[:MOST_FIRING]:
            st.html(_incident(looking, one))
        if len(lasting) > MOST_FIRING:
            st.html(_note(f"{len(lasting) - MOST_FIRING:,} more are not shown: choose a stream."))
        _untold(looking, "Bad for too short a time yet", alarms.untold(found.pending, now_us))
        _untold(looking, "Not told, because another alert stands for them", alarms.untold(found.covered, now_us))


def _incident(looking: Looking, one: Firing) -> str:
    chip = markup.chip(one.mark, looking.palette)
    words = f"<b>{markup.text(one.rule)}</b> since {markup.text(one.since)}, for {markup.text(one.lasts)}"
    book = f"Runbook: {markup.away(one.runbook, one.runbook)}" if one.runbook else ""
    told = f"Told: {_deliveries(looking, one.deliveries)}" if one.deliveries else "No channel was told."
    parts = [part for part in (markup.text(one.taken), told, book, f"Key: {markup.exact(one.key)}") if part]
    rows = [_place(looking, place) for place in one.places]
    table = markup.table(PLACES, rows, "hw-signs", "Places of an incident, the worst first")
    more = _note(f"{one.more:,} more places are not named.") if one.more > 0 else ""
    return f'<p class="hw-incident">{chip} {words}<br><span class="hw-note">{" · ".join(parts)}</span></p>{table}{more}'


def _place(looking: Looking, place: Place) -> tuple[str, ...]:
    return (
        _where(looking, place),
        markup.text(place.since),
        markup.loud(place.observed, is_bad=True),
        markup.text(place.expected),
        markup.text(place.affected),
        markup.text(place.words),
    )


def _where(looking: Looking, place: Place) -> str:
    second = place.edge or (place.stream if place.node else "")
    whose = f"{place.stream}: {place.edge}" if place.edge and place.stream else second
    link = filtering.place(looking, place.stream, place.node, place.window_us)
    return f'<span class="hw-first">{link}</span><span class="hw-second">{markup.text(whose)}</span>'


def _untold(looking: Looking, title: str, rows: tuple[tuple[Mark, str, str], ...]) -> None:
    if not rows:
        return
    told = "".join(
        f'<p class="hw-incident">{markup.chip(mark, looking.palette)} {markup.text(what)} '
        f'<span class="hw-note">{markup.text(since)}</span></p>'
        for mark, what, since in rows[:MOST_UNTOLD]
    )
    more = _note(f"{len(rows) - MOST_UNTOLD:,} more.") if len(rows) > MOST_UNTOLD else ""
    st.html(markup.title(f"{title}: {len(rows):,}") + told + more)


def _history(looking: Looking, found: Alarms, shown: Span) -> None:
    told = episodes.of(found, looking.clock.now_us(), looking.zone)
    with st.container(border=True):
        note = filtering.ends(looking, shown)
        title = markup.title(f"Incidents: {len(told):,}", note)
        if not told:
            st.html(title + _note("None in this range."))
            return
        rows = [_episode(looking, one) for one in told[:ROWS]]
        more = "" if found.is_all_told and len(told) <= ROWS else _note("Older ones of this range are not shown.")
        fates = "; ".join(f"{mark.icon} {mark.word}: {mark.meaning}" for mark in alarms.FATES.values())
        st.html(title + markup.table(HISTORY, rows, "hw-signs", "Incidents, the latest first") + more + _note(fates))


def _episode(looking: Looking, one: Episode) -> tuple[str, ...]:
    begun = f"Beginning: {_deliveries(looking, one.begun)}" if one.begun else ""
    ended = f"End: {_deliveries(looking, one.ended)}" if one.ended else ""
    until = one.until or "still firing"
    place = one.place
    more = f'<span class="hw-second">and {one.more:,} more places</span>' if one.more else ""
    book = f'<span class="hw-second">{markup.away(one.runbook, one.runbook)}</span>' if one.runbook else ""
    return (
        markup.text(one.since),
        markup.two(until, f"lasted {one.lasted}" if one.until else f"for {one.lasted}", is_loud=not one.until),
        f'{markup.chip(one.mark, looking.palette)}<span class="hw-second">{markup.text(one.rule)}</span>',
        (_where(looking, place) if place else "") + more,
        markup.two(place.observed, place.expected) if place else "",
        f'<span class="hw-first">{markup.text(one.summary)}</span>{book}',
        markup.stacked(begun, ended) or '<span class="hw-note">nobody</span>',
    )


def _deliveries(looking: Looking, found: tuple[Delivery, ...]) -> str:
    return ", ".join(_delivery(looking, one) for one in found)


def _delivery(looking: Looking, one: Delivery) -> str:
    colour = one.mark.colour(looking.palette)
    note = f' <span class="hw-note">({markup.text(one.note)})</span>' if one.note else ""
    fate = f'<span style="color:{colour}">{markup.text(f"{one.mark.icon} {one.mark.word}")}</span>'
    hint = markup.text(one.mark.meaning)
    return f'<span class="hw-told" title="{hint}">{markup.text(one.channel)} {fate}</span>{note}'


def _outliers(looking: Looking, found: Alarms, shown: Span) -> None:
    rows = [
        (
            markup.two(row.at, row.since),
            filtering.place_of(looking, row.stream, row.node, row.window_us),
            markup.chip(row.mark, looking.palette),
            markup.text(row.quantity),
            markup.text(row.observed),
            markup.text(row.expected),
            markup.stacked(*(markup.text(reason) for reason in row.why)),
        )
        for row in odd.rows(found.findings, looking.zone)
    ]
    with st.container(border=True):
        title = markup.title(f"Outliers: {found.found:,}", filtering.ends(looking, shown))
        st.html(title)
        filtering.fold(looking, "Notices too, which nobody is told of")
        left_out = found.found - len(rows)
        more = f"{left_out:,} older ones are not shown. " if left_out else ""
        table = markup.table(OUTLIERS, rows, "hw-signs", "Outliers, the newest first") if rows else ""
        none = "" if rows else "None in this range. "
        st.html(table + _note(f"{none}{more}What to do: {odd.RUNBOOK}"))


def _note(words: str) -> str:
    return f'<p class="hw-note">{markup.text(words)}</p>'
