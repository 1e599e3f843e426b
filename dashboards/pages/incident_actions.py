"""Actions on an incident: to acknowledge and to silence it, in the name of who has logged in.

Without a login nobody is known here by name: the page shows the commands, and changes nothing.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.alerts.storage.acknowledgements import acknowledge_incident, unacknowledge_incident
from hopwatch.alerts.storage.history import Acknowledgement
from hopwatch.alerts.storage.silences import Silence, add_silence, end_silence
from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.query_cache import Change
from hopwatch.dashboards.views.incidents import IncidentView

_HOUR_US: Final = 3_600_000_000
SPANS_US: Final = {
    "30 min": _HOUR_US // 2,
    "2 h": 2 * _HOUR_US,
    "8 h": 8 * _HOUR_US,
    "1 day": 24 * _HOUR_US,
    "7 days": 168 * _HOUR_US,
}
"""Spans of a silence that the page offers."""
MAX_TEXT: Final = 500
"""Characters of a note and of a reason, at most."""


def draw_actions(context: PageContext, one: IncidentView) -> None:
    """Draw what a user can do about an incident."""
    with st.popover("Acknowledge or silence", icon=":material/notifications_paused:", key=f"act-{one.key}"):
        if context.user:
            _draw_acknowledgement(context, one)
            _draw_silence(context, one)
        else:
            for command in one.commands:
                st.code(command, language=None, wrap_lines=True)


def draw_unsilence(context: PageContext, number: int) -> None:
    """Draw the button that ends a silence, for who has logged in."""
    if context.user and st.button("End this silence", key=f"unsilence-{number}"):
        _apply(context, lambda engine: end_silence(engine, number, context.clock.now_us()))


def _draw_acknowledgement(context: PageContext, one: IncidentView) -> None:
    if one.acknowledged:
        st.text(one.acknowledged)
        if st.button("Take the acknowledgement back", key=f"unack-{one.key}"):
            _apply(context, lambda engine: unacknowledge_incident(engine, one.key))
        return
    with st.form(f"ack-{one.key}", border=False):
        note = st.text_input("Note for others", key=f"note-{one.key}")
        if st.form_submit_button(f"Acknowledge as {markup.escape_markdown(context.user)}") and _check_text(note):
            asked = Acknowledgement(context.user, context.clock.now_us(), note.strip())
            _apply(context, lambda engine: acknowledge_incident(engine, one.key, asked))


def _draw_silence(context: PageContext, one: IncidentView) -> None:
    with st.form(f"silence-{one.key}", border=False):
        span = st.selectbox("Hold notifications of it back for", list(SPANS_US), index=1, key=f"span-{one.key}")
        why = st.text_input("Reason", key=f"why-{one.key}").strip()
        if st.form_submit_button("Silence") and _check_text(why, is_required=True):
            from_us = context.clock.now_us()
            asked = Silence(one.key, from_us, from_us + SPANS_US[span], context.user, why)
            _apply(context, lambda engine: add_silence(engine, asked))


def _check_text(text: str, *, is_required: bool = False) -> bool:
    """Return whether a text can be stored; say on the page why not."""
    if is_required and not text:
        st.error("Give a reason, for others.")
    elif len(text) > MAX_TEXT or not text.isprintable():
        st.error(f"Give one line of printable text, of at most {MAX_TEXT} characters.")
    else:
        return True
    return False


def _apply(context: PageContext, change: Change) -> None:
    """Change the store and draw the page anew, or say why it was refused."""
    if error := context.query_cache.apply(change):
        st.error(markup.escape_markdown(error))
    else:
        st.rerun()
