"""Who stamps, when they were last heard, and what they missed."""

from __future__ import annotations

import streamlit as st

from dashboards.looking import Looking
from dashboards.reading.told import Standing


def show(looking: Looking, standing: Standing) -> None:
    """Draw the page."""
    del looking, standing
    st.text("")
