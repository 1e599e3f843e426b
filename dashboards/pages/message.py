"""The journey of one message, hop by hop."""

from __future__ import annotations

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import filters
from hopwatch.dashboards.queries.message_search import MessagePathsQuery
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.queries.search_models import SearchResult
from hopwatch.dashboards.views import journey
from hopwatch.dashboards.views.address import MAX_SHOWN, PageName
from hopwatch.dashboards.views.journey import Journey
from hopwatch.display import texts
from hopwatch.monitor.lookup.journey import parse_ids

COLUMNS = (
    ("Node", "hw-name"),
    ("Side", "hw-narrow"),
    ("When, by the probe's clock", "hw-narrow"),
    ("After its event time", "hw-number"),
    ("Since the stamp before", "hw-number"),
    ("Outcome", ""),
    ("Probe", ""),
)


def draw_page(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the page: a place to paste an id, and what is kept of its message."""
    _draw_controls(context, standing)
    text = context.address.message_id
    if not text.strip():
        st.html(markup.note("An id is a UUID, 32 hexadecimal digits, a number, or the text that a service calls it."))
        return
    with st.spinner("Searching what is kept"):
        found = context.query_cache.message_search.find(text, context.address.stream)
    for trouble in found.errors:
        st.error(markup.escape_markdown(f"Not all could be searched: {trouble}"))
    keys = journey.list_keys(found, parse_ids(text))
    if partly := journey.format_partial_search(found):
        st.warning(markup.escape_markdown(partly))
    if not keys:
        _draw_nothing_found(context, text, found)
        return
    terms = {key: context.query_cache.message_search.window_terms(key.stream) for key in keys[: journey.MAX_WINDOWS]}
    ways = context.fetch(MessagePathsQuery(tuple((key.stream, key.start_us, of_key) for key, of_key in terms.items())))
    if ways.value is None:
        st.error(markup.escape_markdown(ways.error or "the store was not read"))
        return
    now_us = context.clock.now_us()
    for key, way in zip(terms, ways.value, strict=True):
        _draw_journey(context, journey.build_journey(found, key, way, now_us, context.zone))
    if older := journey.format_older(keys):
        st.html(markup.note(older))


def _draw_controls(context: PageContext, standing: StreamsOverview) -> None:
    here = context.address
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        key = f"id-{here.message_id:.{MAX_SHOWN}}"
        st.text_input(
            "Message id",
            value=here.message_id,
            placeholder="0189d1a2-0000-7000-8000-00000000abcd",
            key=key,
            on_change=context.on_change(key, lambda text: {"message_id": text.strip()}, here.message_id),
            width=460,
        )
        filters.draw_stream_control(context, standing, 220)


def _draw_nothing_found(context: PageContext, text: str, found: SearchResult) -> None:
    """Say that nothing is kept, and how long anything is."""
    st.warning(markup.escape_markdown(journey.format_nothing_found(text, found)))
    terms = context.query_cache.message_search.window_terms(context.address.stream)
    span = f", in this stream {texts.format_age(terms.kept_until_us(0))} from the start of its minute," if terms else ""
    told = (
        "An id is looked for whole; the page of a window finds a missing one by a part of it. "
        f"Stamps are kept as long as they may change their window{span} and those of "
        "a missing message as long as its window."
    )
    st.html(markup.note(told))


def _draw_journey(context: PageContext, one: Journey) -> None:
    at = texts.format_moment(one.key.start_us, context.zone)
    node = one.lost_at[0] if one.lost_at else ""
    window = context.url_query(
        page=PageName.WINDOW, stream=one.key.stream, window_us=one.key.start_us, message_id="", node=node
    )
    chip = markup.chip(one.mark, context.palette)
    link = markup.link(f"{one.key.stream}, window {at}", window, "everything about this minute")
    with st.container(border=True):
        told = f'<p class="hw-title">{chip} &nbsp;{link}</p>{markup.note(one.summary)}'
        told += markup.note_list(one.reasons) if one.reasons else ""
        told += f'<p class="hw-note hw-id">{markup.escape_html(one.id_text)}{context.link_trace(one.id_text)}</p>'
        if one.steps:
            told += markup.table(COLUMNS, map(_format_step, one.steps), "hw-journey", f"Journey: {one.summary}")
        told += markup.note(f"{one.left_out:,} more stamps are not shown.") if one.left_out else ""
        st.html(told + (markup.note(one.retention) if one.retention else ""))


def _format_step(step: journey.JourneyStep) -> tuple[str, ...]:
    outcome = (
        f'<span class="hw-loud">{markup.escape_html(step.outcome)}</span>'
        if step.is_lost
        else markup.escape_html(step.outcome)
    )
    cells = (step.node, step.side, step.when, step.since_event, step.since_previous)
    return (*map(markup.escape_html, cells), outcome, markup.escape_html(step.probe))
