"""The journey of one message, hop by hop."""

from __future__ import annotations

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import filtering
from hopwatch.dashboards.reading.search_told import Searched
from hopwatch.dashboards.reading.searches import WaysOf
from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.views import journey, texts
from hopwatch.dashboards.views.address import MOST_SHOWN, Page
from hopwatch.dashboards.views.journey import Journey
from hopwatch.monitor.lookup.journey import parse_ids

HEAD = (
    ("Node", "hw-name"),
    ("Side", "hw-narrow"),
    ("When, by the probe's clock", "hw-narrow"),
    ("After its event time", "hw-number"),
    ("Since the stamp before", "hw-number"),
    ("Outcome", ""),
    ("Probe", ""),
)


def show(looking: Looking, standing: Standing) -> None:
    """Draw the page: a place to paste an id, and what is kept of its message."""
    _asked(looking, standing)
    text = looking.address.message_id
    if not text.strip():
        st.html(markup.note("An id is a UUID, 32 hexadecimal digits, a number, or the text that a service calls it."))
        return
    with st.spinner("Searching what is kept"):
        found = looking.answers.searches.find(text, looking.address.stream)
    for trouble in found.trouble:
        st.error(markup.plain(f"Not all could be searched: {trouble}"))
    keys = journey.keys(found, parse_ids(text))
    if partly := journey.partly(found):
        st.warning(markup.plain(partly))
    if not keys:
        _nothing(looking, text, found)
        return
    terms = {key: looking.answers.searches.terms_of(key.stream) for key in keys[: journey.MOST_WINDOWS]}
    ways = looking.ask(WaysOf(tuple((key.stream, key.start_us, of_key) for key, of_key in terms.items())))
    if ways.value is None:
        st.error(markup.plain(ways.trouble or "the store was not read"))
        return
    now_us = looking.clock.now_us()
    for key, way in zip(terms, ways.value, strict=True):
        _journey(looking, journey.of(found, key, way, now_us, looking.zone))
    if older := journey.older(keys):
        st.html(markup.note(older))


def _asked(looking: Looking, standing: Standing) -> None:
    here = looking.address
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        key = f"id-{here.message_id:.{MOST_SHOWN}}"
        st.text_input(
            "Message id",
            value=here.message_id,
            placeholder="0189d1a2-0000-7000-8000-00000000abcd",
            key=key,
            on_change=looking.changes(key, lambda text: {"message_id": text.strip()}, here.message_id),
            width=460,
        )
        filtering.stream(looking, standing, 220)


def _nothing(looking: Looking, text: str, found: Searched) -> None:
    """Say that nothing is kept, and how long anything is."""
    st.warning(markup.plain(journey.nothing(text, found)))
    terms = looking.answers.searches.terms_of(looking.address.stream)
    span = f", in this stream {texts.age(terms.kept_until_us(0))} from the start of its minute," if terms else ""
    told = (
        "An id is looked for whole; the page of a window finds a missing one by a part of it. "
        f"Stamps are kept as long as they may change their window{span} and those of "
        "a missing message as long as its window."
    )
    st.html(markup.note(told))


def _journey(looking: Looking, one: Journey) -> None:
    at = texts.moment(one.key.start_us, looking.zone)
    node = one.lost_at[0] if one.lost_at else ""
    window = looking.query(
        page=Page.WINDOW, stream=one.key.stream, window_us=one.key.start_us, message_id="", node=node
    )
    chip = markup.chip(one.mark, looking.palette)
    link = markup.link(f"{one.key.stream}, window {at}", window, "everything about this minute")
    with st.container(border=True):
        told = f'<p class="hw-title">{chip} &nbsp;{link}</p>{markup.note(one.told)}'
        told += markup.notes(one.reasons) if one.reasons else ""
        told += f'<p class="hw-note hw-id">{markup.text(one.shown)}</p>'
        if one.steps:
            told += markup.table(HEAD, map(_step, one.steps), "hw-journey", f"Journey: {one.told}")
        told += markup.note(f"{one.left_out:,} more stamps are not shown.") if one.left_out else ""
        st.html(told + (markup.note(one.kept) if one.kept else ""))


def _step(step: journey.Step) -> tuple[str, ...]:
    outcome = f'<span class="hw-loud">{markup.text(step.outcome)}</span>' if step.is_lost else markup.text(step.outcome)
    cells = (step.node, step.side, step.when, step.since_event, step.since_before)
    return (*map(markup.text, cells), outcome, markup.text(step.probe))
