"""First steps, shown while the store is empty: start the monitor and send an observation."""

from __future__ import annotations

import streamlit as st

EXAMPLE_CODE = """\
from hopwatch import Probe

probe = Probe(stream="orders", node="router", sink="spool:./var/spool")
with probe.passing(message_id, event_time):
    handle(message)"""


def draw_page(config: str, *, has_store: bool) -> None:
    """Draw the page; ``has_store`` says whether a monitor has worked here already."""
    with st.container(key="empty", width=760):
        st.subheader("Nothing was read yet", anchor=False)
        if has_store:
            st.text("There is a store, and no observation is in it. This page fills by itself with the first minute.")
        else:
            st.text("There is no store yet: the monitor makes it. This page fills by itself with the first minute.")
        st.text("1. Start the monitor:")
        st.code(f"hopwatch run --config {config}", language="bash")
        st.text("2. Stamp messages in a service, at each node of the stream's path:")
        st.code(EXAMPLE_CODE, language="python")
        st.text("Or look at a pipeline that is there already, with 2 of 100 messages dropped at its router:")
        st.code("hopwatch demo --drop router=0.02", language="bash")
