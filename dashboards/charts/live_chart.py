"""Interactive chart in a page: resizes with it, has tooltips, and reports drags and clicks.

Streamlit mounts it; what it does in the browser is in ``live.js`` beside this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import streamlit as st

from hopwatch.dashboards.charts import time_chart
from hopwatch.dashboards.charts.time_chart import BOTTOM, LEFT, RIGHT, ROW_HEIGHT, STYLES, TOP, WIDTH, TimeChart

Gesture = Literal["drag", "click"]
_CHART: Final = st.components.v2.component(
    "hopwatch_chart",
    html='<div class="hw-live"><button class="hw-live-png" type="button" aria-label="Download as PNG">PNG</button>'
    '<div class="hw-live-picture"></div><div class="hw-live-tip" hidden></div></div>',
    css=time_chart.STYLES + Path(__file__).with_name("live.css").read_text("utf-8"),
    js=Path(__file__).with_name("live.js").read_text("utf-8"),
    isolate_styles=False,
)
_PLANE: Final = {
    "left": LEFT,
    "right": RIGHT,
    "top": TOP,
    "bottom": BOTTOM,
    "wide": WIDTH,
    "row": ROW_HEIGHT,
    "styles": STYLES,
}
"""Position and style of the plot area, the same in all live charts."""


@dataclass(frozen=True, slots=True)
class LiveChart:
    """A chart as it is sent to a browser: ``svg``, the position of its plot area, and the allowed interactions.

    ``steps`` are the tooltips of the steps, ``cells`` those of each step of each of the ``rows``.
    """

    svg: str
    from_us: int
    to_us: int
    height_px: int
    gesture: Gesture
    steps: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    rows: tuple[str, ...]


def build_live_chart(picture: TimeChart, does: Gesture = "drag") -> LiveChart:
    """Return a picture that is drawn, to be sent."""
    starts_us = range(picture.from_us, picture.to_us, picture.step_us)
    steps = tuple(picture.step_tooltips.get(start_us, "") for start_us in starts_us)
    rows = tuple(dict.fromkeys(row for row, _ in picture.cell_tooltips))
    cells = tuple(
        tuple(
            f"{row}: {picture.cell_tooltips[row, at]}" if (row, at) in picture.cell_tooltips else "" for at in starts_us
        )
        for row in rows
    )
    return LiveChart(picture.to_svg(), picture.from_us, picture.to_us, picture.height_px, does, steps, cells, rows)


def mount(one: LiveChart, key: str, file: str, changed: Callable[[], None]) -> None:
    """Mount it; ``changed`` is called when a person has dragged or clicked, before the page is drawn anew.

    The state of the key then has ``dragged``, two moments in ms, or ``clicked``, a moment in ms and a row.
    """
    told = {
        "file": file,
        "svg": one.svg,
        "does": one.gesture,
        "high": one.height_px,
        "steps": one.steps,
        "cells": one.cells,
        "rows": one.rows,
        "from_ms": one.from_us / 1e3,
        "to_ms": one.to_us / 1e3,
    }
    _CHART(key=key, data=told | _PLANE, on_dragged_change=changed, on_clicked_change=changed)
