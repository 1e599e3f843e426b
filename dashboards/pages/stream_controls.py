"""Controls of the page of a stream: range, node and window."""

from __future__ import annotations

from typing import Any

import streamlit as st

from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.models import StreamRange
from hopwatch.dashboards.views.address import ComparedPeriod, HeatMeasure, RangePreset
from hopwatch.dashboards.views.display_range import MINUTE_US, DisplayRange
from hopwatch.dashboards.views.earlier_range import NAMES
from hopwatch.display import texts
from hopwatch.monitor.results import WindowResult

WHOLE_RANGE = "the whole range"
ALL_NODES = "all nodes"


def draw_controls(context: PageContext, shown: DisplayRange, stretch: StreamRange, window: WindowResult | None) -> None:
    """Draw the choices; whatever is chosen goes into the URL."""
    here = context.address
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        draw_range_control(context)
        names = ["", *stretch.nodes]
        shown_node = here.node if here.node in names else ""
        key = f"node-{here.node}"
        st.selectbox(
            "Node",
            names,
            index=names.index(shown_node),
            format_func=lambda name: name or ALL_NODES,
            key=key,
            on_change=context.on_change(key, lambda node: {"node": node}, shown_node),
            width=220,
        )
        if stretch.step_us == MINUTE_US or window:
            _draw_window_control(context, shown, window)
        _draw_compare_control(context)
    if here.node and here.node not in stretch.nodes:
        st.warning("There is no such node in this stream: showing all nodes.")


def _draw_compare_control(context: PageContext) -> None:
    """Draw the choice of the earlier range that this one is compared with."""
    here = context.address
    key = f"compare-{here.compare}"
    choices = list(ComparedPeriod)
    st.selectbox(
        "Compare with",
        choices,
        index=choices.index(here.compare),
        format_func=lambda one: NAMES.get(one, "nothing"),
        key=key,
        on_change=context.on_change(key, lambda one: {"compare": one}, here.compare),
        width=170,
    )


def draw_measure_control(context: PageContext) -> None:
    """Draw the choice of what colours the heat map."""
    here = context.address
    key = f"measure-{here.heat}"
    st.segmented_control(
        "Coloured by",
        list(HeatMeasure),
        default=here.heat,
        format_func=lambda one: {HeatMeasure.LOSS: "Loss", HeatMeasure.LAG: "Lag"}[one],
        label_visibility="collapsed",
        required=True,
        key=key,
        on_change=context.on_change(key, lambda heat: {"heat": heat}, here.heat),
    )


def draw_range_control(context: PageContext) -> None:
    """Draw the choice of the range, and the way back from one that stays where it is."""
    here = context.address
    key, away = f"range-{here.range}-{here.is_fixed}", {"from_us": None, "to_us": None}
    shown = None if here.is_fixed else here.range
    st.segmented_control(
        "Range",
        list(RangePreset),
        default=shown,
        format_func=lambda one: one.value,
        required=not here.is_fixed,
        key=key,
        on_change=context.on_change(
            key, lambda name: {"range": name, "window_us": None, **away} if name else {}, shown
        ),
    )
    if here.is_fixed:
        back = context.on_change("newest", lambda _: away)
        st.button("Back to the newest", icon=":material/zoom_out:", key="newest", on_click=back)


def _draw_window_control(context: PageContext, shown: DisplayRange, window: WindowResult | None) -> None:
    starts = list(range(shown.to_us - MINUTE_US, shown.from_us - 1, -MINUTE_US)) if shown.step_us == MINUTE_US else []
    at = window.window_start_us if window else None
    choices = [None, *starts] if at is None or at in starts else [None, at, *starts]
    key = f"window-{at}"
    st.selectbox(
        "Window",
        choices,
        index=choices.index(at),
        format_func=lambda start_us: WHOLE_RANGE if start_us is None else texts.format_moment(start_us, context.zone),
        key=key,
        on_change=context.on_change(key, parse_window_choice, at),
        width=230,
    )


def parse_window_choice(choice: int | str | None) -> dict[str, Any]:
    """Return what a choice of the list of windows means.

    Streamlit gives the label of a choice that is not in the list any more: the window went while the list was open,
    and the page stays as it is.
    """
    return {} if isinstance(choice, str) else {"window_us": choice}
