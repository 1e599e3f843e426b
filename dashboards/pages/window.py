"""Everything about one minute of a stream."""

from __future__ import annotations

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import losses, lost_ids
from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.reading.whole_window import AllOfAWindow
from hopwatch.dashboards.reading.window_told import WholeWindow
from hopwatch.dashboards.views import conservation, judged, texts, whole_window
from hopwatch.dashboards.views.address import Page
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.results import WindowResult

HOLES = (("Node", "hw-name"), ("Probe", ""), ("Started", "hw-narrow"), ("What it did not tell of this minute", ""))


def show(looking: Looking, standing: Standing) -> None:
    """Draw the page of the window that is looked at; one that is not there is told, with a way back."""
    here = looking.address
    start_us = here.window_us
    if start_us is None or standing.of(here.stream) is None:
        return
    terms = looking.answers.searches.terms_of(here.stream)
    answer = looking.ask(AllOfAWindow(here.stream, start_us, here.node, terms))
    if answer.value is None:
        _nothing(looking, start_us, answer.trouble)
        return
    whole = answer.value
    _head(looking, whole, terms)
    _conservation(looking, whole.result)
    losses.show(looking, whole.result)
    left, right = st.columns([3, 2], gap="medium")
    with left.container(border=True, height="stretch"):
        _holes(looking, whole)
    with right.container(border=True, height="stretch"):
        _revisions(looking, whole)
    lost_ids.show(looking, whole)


def _nothing(looking: Looking, start_us: int, trouble: str) -> None:
    """Say that there is no such window, or that it could not be read."""
    at = texts.moment(start_us, looking.zone)
    back = markup.link("Back to the stream", looking.query(page=Page.STREAM, window_us=None))
    if trouble:
        st.error(markup.plain(f"The window of {at} was not read: {trouble}"))
    else:
        told = f"The store has no window of {at} for this stream: nothing of it was read, or it is kept no more."
        st.warning(markup.plain(told))
    st.html(f'<div class="hw-steps">{back}</div>')


def _head(looking: Looking, whole: WholeWindow, terms: WindowPolicy | None) -> None:
    one = whole.result
    chip = markup.chip(judged.of(one).mark, looking.palette)
    at = markup.text(texts.moment(one.window_start_us, looking.zone))
    life = markup.text(f" · {one.status.value}, revision {one.revision}")
    title = f'<p class="hw-title">{chip} &nbsp;{at}<span class="hw-note">{life}</span></p>'
    state = f'<div class="hw-state">{markup.note(whole_window.status(one, terms, looking.zone))}</div>'
    reasons = markup.notes(one.reasons) if one.reasons else ""
    st.html(f"{_beside(looking, whole)}{title}{state}{reasons}{losses.figures(one)}")


def _beside(looking: Looking, whole: WholeWindow) -> str:
    """Return links to the windows before and after, and to this one on the page of the stream."""
    ways = [
        _way(looking, "← ", whole.before_us, "no window before"),
        _way(looking, "", whole.after_us, "no window after", " →"),
        markup.link("This minute on the page of the stream", looking.query(page=Page.STREAM)),
    ]
    return f'<nav class="hw-steps" aria-label="Windows beside this one">{"".join(ways)}</nav>'


def _way(looking: Looking, before: str, start_us: int | None, none: str, after: str = "") -> str:
    if start_us is None:
        return f'<span class="hw-off">{markup.text(none)}</span>'
    at = texts.moment(start_us, looking.zone)
    return markup.link(f"{before}{at}{after}", looking.query(window_us=start_us, search="", part=1))


def _conservation(looking: Looking, one: WindowResult) -> None:
    told = conservation.of(one)
    with st.container(border=True):
        bar = markup.bar(told.parts, looking.palette, told.total, is_final=one.status.is_final)
        apart = "".join(f"<dt>{markup.text(name)}</dt><dd>{markup.text(words)}</dd>" for name, words in told.apart)
        total = f'<p class="hw-sum">{markup.text(told.total)}</p>'
        st.html(f'{markup.title("What became of its messages")}{total}{bar}<dl class="hw-apart">{apart}</dl>')


def _holes(looking: Looking, whole: WholeWindow) -> None:
    lines = [whole_window.hole(one, looking.zone) for one in whole.holes]
    rows = [
        (markup.text(line.node), markup.text(line.probe), markup.text(line.since), markup.notes(line.holes))
        for line in lines
    ]
    more = whole.holed - len(lines)
    note = f"{whole.holed:,} probe instances; the first {len(lines):,} are shown." if more else ""
    told = markup.title("Probes that had holes", note)
    told += markup.notes(map(whole_window.aged_out, whole.aged_out)) if whole.aged_out else ""
    if rows:
        told += markup.table(HOLES, rows, "hw-holes", "Probe instances that did not tell all of this minute")
    elif not whole.aged_out:
        told += markup.note(whole_window.no_hole(whole.result, is_live=whole.is_live))
    st.html(told)


def _revisions(looking: Looking, whole: WholeWindow) -> None:
    told = markup.title("Revisions", "What came after the first judgement, and what it changed.")
    if not whole.revisions:
        told += markup.note("None: the first judgement stands." if whole.result.status.is_final else "None so far.")
    for one in whole.revisions:
        amended = whole_window.amendment(one, looking.zone)
        more = [("", f"and {amended.left_out:,} more nodes")] if amended.left_out else []
        lines = "".join(
            f"<dt>{markup.text(name)}</dt><dd>{markup.text(words)}</dd>" for name, words in (*amended.lines, *more)
        )
        head = markup.text(f"Revision {amended.revision}, judged at {amended.when}")
        told += f'<p class="hw-title hw-revision">{head}</p><dl class="hw-apart">{lines}</dl>'
    st.html(told)
