"""A chart made ready to be sent: its specification, and its tables as Arrow, the same for every viewer."""

from __future__ import annotations

import hashlib
from typing import Any

import altair as alt
import pandas as pd
import pyarrow as pa

Spec = dict[str, Any]


def of(chart: alt.LayerChart) -> Spec:
    """Return what ``st.vega_lite_chart`` takes, with the tables under ``datasets``; the chart itself is used up.

    A table has the name of its contents, so that a chart that did not change is known again.
    """
    tables: dict[str, pa.Table] = {}
    for part in (chart, *chart.layer):
        if isinstance(part.data, pd.DataFrame):
            part.data = _named(part.data, tables)
    # The tests validate what is written here; to do it for each viewer would take longer than all the rest.
    spec: Spec = chart.to_dict(validate=False)
    # Which Altair adds to charts that have no size, and Streamlit's container is one.
    view = spec.get("config", {}).get("view", {})
    for name in ("continuousWidth", "continuousHeight"):
        view.pop(name, None)
    return spec | {"datasets": tables}


def _named(table: pd.DataFrame, tables: dict[str, pa.Table]) -> alt.NamedData:
    made = pa.Table.from_pandas(table, preserve_index=False)
    digest = hashlib.blake2b(digest_size=16)
    digest.update(str(made.schema.names).encode())
    digest.update(pd.util.hash_pandas_object(table, index=False).to_numpy().tobytes())
    name = digest.hexdigest()
    tables[name] = made
    return alt.NamedData(name)
