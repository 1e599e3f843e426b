"""What was set aside, and what was rejected."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import filtering
from hopwatch.dashboards.reading.signs import ROWS, WhatWasSetAside
from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.views import period, quality
from hopwatch.dashboards.views.span import STEP_WORDS, Span
from hopwatch.monitor.accounting.quality import Quality
from hopwatch.monitor.kernel.tally import NEVER_US

REASONS: Final = (
    ("Reason", "hw-name"),
    ("Records in the range", "hw-number"),
    ("Share", "hw-number"),
    ("Ever", "hw-number"),
    ("What it means", "hw-long"),
)
RECORDS: Final = (
    ("Arrived", "hw-narrow"),
    ("Reason", "hw-narrow"),
    ("What is wrong", "hw-long"),
    ("Where its bytes are", "hw-long"),
)
NAMES: Final = (
    ("Name", "hw-name"),
    ("Nearest that is declared", "hw-name"),
    ("Probe", "hw-name"),
    ("Records", "hw-number"),
    ("Last arrived", "hw-narrow"),
)
STOPPED: Final = (
    ("Node, stream", "hw-name"),
    ("Messages seen", "hw-number"),
    ("Rejected", "hw-number"),
    ("Rejected of seen", "hw-number"),
    ("Filtered", "hw-number"),
    ("Filtered of seen", "hw-number"),
)
HOLES: Final = (
    ("Partition", "hw-name"),
    ("Offsets", "hw-narrow"),
    ("Records", "hw-number"),
    ("Arrived between", "hw-long"),
)


def show(looking: Looking, standing: Standing) -> None:
    """Draw the page."""
    here = looking.address
    shown = period.of(here, standing, looking.clock.now_us())
    filtering.show(looking, standing)
    if shown.complaint:
        st.warning(markup.plain(shown.complaint))
    # What came behind the newest window is of a range that moves on, too.
    arrived_us = shown.to_us if here.is_fixed else NEVER_US
    answer = looking.ask(WhatWasSetAside(here.stream, shown.from_us, shown.to_us, shown.step_us, arrived_us))
    if answer.value is None:
        st.error(markup.plain(answer.trouble or "nothing was read"))
        return
    _stopped(looking, answer.value, shown)
    _set_aside(looking, answer.value)
    if answer.value.undeclared:
        _names(looking, answer.value)
    if answer.value.holes:
        _holes(looking, answer.value)


def _stopped(looking: Looking, found: Quality, shown: Span) -> None:
    with st.container(border=True):
        step = STEP_WORDS[shown.step_us]
        note = f"Messages that ended at a node, on purpose or as bad, in final windows by the {step}: "
        note += filtering.ends(looking, shown)
        head = markup.title("Rejected and filtered", note)
        rows = [
            (
                filtering.place_of(looking, row.stream, row.node),
                markup.text(row.seen),
                markup.loud(row.rejected, is_bad=row.is_bad),
                markup.loud(row.rejected_share, is_bad=row.is_bad),
                markup.text(row.filtered),
                markup.text(row.filtered_share),
            )
            for row in quality.stopped(found)
        ]
        table = markup.table(STOPPED, rows, "hw-signs", "Messages rejected and filtered at each node")
        told = quality.nodes(found) if found.node_count else "No message was seen in a final window of this range."
        st.html(head + (table if rows else "") + _note(f"{told} {quality.NOT_KEPT}"))


def _set_aside(looking: Looking, found: Quality) -> None:
    with st.container(border=True):
        note = "Records of the transport that could not be read, by when they arrived."
        whose = " They are of no stream: all of them are shown." if looking.address.stream else ""
        head = markup.title("Records set aside", f"{note}{whose}")
        if not found.reasons:
            st.html(head + _note("None, ever."))
            return
        reasons = [
            (
                markup.exact(row.name),
                markup.loud(row.in_range, is_bad=row.in_range != "0"),
                markup.text(row.share),
                markup.text(row.ever),
                markup.text(row.meaning),
            )
            for row in quality.reasons(found)
        ]
        st.html(head + markup.table(REASONS, reasons, "hw-signs", "Records set aside, by reason"))
        rows = [
            (
                markup.two(row.arrived, row.age),
                markup.exact(row.reason),
                markup.text(row.message),
                f'{markup.exact(row.path)}<span class="hw-second">{markup.text(row.where)}</span>',
            )
            for row in quality.records(found, looking.clock.now_us(), looking.zone)
        ]
        if not rows:
            st.html(_note("None arrived in this range, or those that did are pruned."))
            return
        title = markup.title("The newest of them", f"{len(rows):,}, at most {ROWS:,} are shown." if rows else "")
        st.html(title + markup.table(RECORDS, rows, "hw-signs", "The newest records set aside"))


def _names(looking: Looking, found: Quality) -> None:
    with st.container(border=True):
        note = "The configuration has no such stream or node: a misspelt one, or one that is to be declared or ignored."
        rows = [
            (
                f'{markup.exact(row.name)}<span class="hw-second">{markup.text(row.place)}</span>',
                markup.exact(row.nearest),
                f'{markup.exact(row.probe)}<span class="hw-second">{markup.text(row.started)}</span>',
                markup.loud(row.records, is_bad=True),
                markup.text(row.last),
            )
            for row in quality.names(found, looking.clock.now_us(), looking.zone)
        ]
        head = markup.title("Names that are not declared", note)
        st.html(head + markup.table(NAMES, rows, "hw-signs", "Names that are not declared"))


def _holes(looking: Looking, found: Quality) -> None:
    with st.container(border=True):
        note = "They make the windows that they may be of UNKNOWN."
        rows = [
            (
                markup.exact(row.place),
                markup.text(row.offsets),
                markup.loud(row.records, is_bad=True),
                markup.text(row.arrived),
            )
            for row in quality.holes(found, looking.zone)
        ]
        left_out = found.hole_count - len(rows)
        more = _note(f"{left_out:,} older ones are not shown.") if left_out else ""
        head = markup.title("Records that aged out before they were read", note)
        st.html(head + markup.table(HOLES, rows, "hw-signs", "Holes of the transport") + more)


def _note(words: str) -> str:
    return f'<p class="hw-note">{markup.text(words)}</p>'
