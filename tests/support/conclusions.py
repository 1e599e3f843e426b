"""Windows as the store takes and gives them, made to measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel.bounds import NodeBooks
from hopwatch.monitor.kernel.masks import ids_from_bytes
from hopwatch.monitor.kernel.tally import LostIds, Tally, empty_tally
from hopwatch.monitor.kernel.verdict import WindowStage, conclude_window
from hopwatch.monitor.results import NodeCounts, NodeResult, Quantiles, ServerCount, Status, Verdict, WindowResult
from hopwatch.monitor.store import tables, writer
from tests.support.spool import START_US, STREAM_CONFIGS

PATHWAY: Final = STREAM_CONFIGS["orders"].pathway
NO_BOOKS: Final = NodeBooks(*(np.zeros(2, np.int64) for _ in fields(NodeBooks)))

_COUNTS: Final = st.integers(-(2**63), 2**63 - 1)
_QUANTILES: Final = st.builds(Quantiles, *[_COUNTS] * len(fields(Quantiles)))
_RATIOS: Final = st.none() | st.floats(0, 1)
_COUNTS_BY_NODE: Final = st.lists(
    st.builds(
        NodeCounts,
        node=st.text(),
        arrived=_COUNTS,
        departed=_COUNTS,
        bytes=_COUNTS,
        dropped=_COUNTS,
        coverage=_RATIOS,
        before=st.none() | st.text(),
        left_before=st.none() | _COUNTS,
        same_before=st.none() | st.booleans(),
        lost_before_lower=_COUNTS,
        behind=st.none() | st.text(),
        seen_behind=st.none() | _COUNTS,
        same_behind=st.none() | st.booleans(),
        servers=st.lists(
            st.builds(
                ServerCount,
                probe=st.text(),
                count=st.none() | _COUNTS,
                left_before=st.none() | _COUNTS,
                same_before=st.none() | st.booleans(),
                missing_ids=st.lists(st.text(), max_size=2).map(tuple),
            ),
            max_size=2,
        ).map(tuple),
        lag_in_us=st.none() | _QUANTILES,
        lag_out_us=st.none() | _QUANTILES,
    ),
    max_size=2,
).map(tuple)
_BY_TYPE: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "int": _COUNTS,
    "int | None": st.none() | _COUNTS,
    "float | None": _RATIOS,
    "Quantiles | None": st.none() | _QUANTILES,
    "Status": st.sampled_from(Status),
    "Verdict | None": st.none() | st.sampled_from(Verdict),
    "tuple[str, ...]": st.lists(st.text()).map(tuple),
    "tuple[NodeCounts, ...]": _COUNTS_BY_NODE,
}


def _any(of: type[NodeResult | WindowResult], **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    drawn = {field.name: _BY_TYPE[str(field.type)] for field in fields(of) if field.name not in given}
    return st.builds(of, **drawn, **given)


def window_results() -> st.SearchStrategy[WindowResult]:
    """Draw windows of a stream with two nodes, every field with any value that it may have."""
    nodes = st.tuples(*(_any(NodeResult, node=st.just(node)) for node in PATHWAY.nodes))
    key = {"stream": st.just("orders"), "window_start_us": st.just(START_US), "revision": st.integers(0, 2**31 - 1)}
    return _any(WindowResult, **key, nodes=nodes)


def build_conclusion(
    result: WindowResult | None = None,
    *,
    tally: Tally | None = None,
    lost: Mapping[str, bytes] | None = None,
    changed: Mapping[str, Any] | None = None,
    status: Status = Status.FINAL,
) -> Conclusion:
    """Return a conclusion: of an empty window if none is given; ``lost`` are packed ids by node."""
    tally = tally or empty_tally(PATHWAY)
    result = result or conclude_window(PATHWAY, WindowStage("orders", START_US, status), tally, NO_BOOKS)
    lost_ids = tuple(LostIds.from_ids(ids_from_bytes((lost or {}).get(node, b""))) for node in PATHWAY.nodes)
    return Conclusion(result, tally, lost_ids, is_settled=True, books=b"books", changed=changed)


def write_conclusions(engine: Engine, *conclusions: Conclusion, watermark_us: int = START_US) -> None:
    """Write conclusions in a transaction of their own."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_conclusions(connection, conclusions, watermark_us)


def dump_tables(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table."""
    with engine.begin() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in tables.metadata.sorted_tables
        }
