"""The page that the dashboard is held against: all node-windows of a range by pandas, drawn by Streamlit's line chart.

It shows the p95 of each node's lag and the losses, asks the database for each viewer anew, and does so every 5 s.
"""

from __future__ import annotations

import sys
from typing import Final

import pandas as pd
import sqlalchemy
import streamlit as st
from sqlalchemy import Engine

HOUR_US: Final = 3_600_000_000
REFRESH_S: Final = 5
RANGES: Final = {"1h": 1, "6h": 6, "24h": 24, "7d": 7 * 24, "30d": 30 * 24}
_WANTED: Final = sqlalchemy.text(
    "SELECT window_start_us, node, loss, lag_in_us_p95, lag_out_us_p95 FROM node_windows"
    " WHERE stream = :stream AND window_start_us >= :from_us ORDER BY window_start_us, place"
)


def read_windows(engine: Engine, stream: str, end_us: int, hours: int) -> pd.DataFrame:
    """Return the node-windows of the last hours."""
    with engine.connect() as connection:
        asked = {"stream": stream, "from_us": end_us - hours * HOUR_US}
        return pd.read_sql(_WANTED, connection, params=asked)


@st.cache_resource
def _engine(url: str) -> Engine:
    return sqlalchemy.create_engine(url)


@st.fragment(run_every=REFRESH_S)
def _show(url: str, stream: str, end_us: int) -> None:
    found = read_windows(_engine(url), stream, end_us, RANGES[st.query_params.get("range", "1h")])
    found["at"] = pd.to_datetime(found["window_start_us"], unit="us")
    for name in ("loss", "lag_in_us_p95", "lag_out_us_p95"):
        st.line_chart(found.pivot_table(name, "at", "node"))


if __name__ == "__main__":
    _show(sys.argv[1], sys.argv[2], int(sys.argv[3]))
