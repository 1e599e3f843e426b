"""One-shot run (``run --once``): one batch query over all records; every window is final.

The same decoder, the same kernel and the same ledger as in the stream: a batch query has no timers and needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from hopwatch.monitor.kernel.tally import NEVER_US
from hopwatch.monitor.payloads import Claims, pack_tally, split_payloads
from hopwatch.monitor.row_kinds import CLAIMS_ROW, CLOCK_ROW, TALLY_ROW
from hopwatch.monitor.spark import claim_reader
from hopwatch.monitor.spark.rows import KEY_COLUMNS, TALLIED_COLUMNS, TALLIED_SCHEMA
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WATERMARK_US = NEVER_US
"""In ``--once`` all time has passed."""


def tally_rows(decoded: DataFrame, rules: Mapping[str, StreamConfig]) -> DataFrame:
    """Return one row a window shard with its tally, and the rows that pass by, by ``TALLIED_SCHEMA``."""
    return decoded.groupBy(*KEY_COLUMNS).applyInArrow(build_tallier(rules), TALLIED_COLUMNS)


def build_tallier(rules: Mapping[str, StreamConfig]) -> Callable[[pa.Table], pa.Table]:
    """Return the function for ``applyInArrow`` that turns the claims of a window shard into its tally."""

    def tally_group(group: pa.Table) -> pa.Table:
        kind, stream, start_ms, shard = (group.column(name)[0].as_py() for name in KEY_COLUMNS)
        payloads = group.column("payload").to_pylist()
        if kind == CLOCK_ROW:
            return TALLIED_SCHEMA.empty_table()
        if kind != CLAIMS_ROW:
            return _build_table((kind, "", 0, 0, WATERMARK_US, 0, payload) for payload in payloads)
        claims = [Claims.unpack(parcel) for joined in payloads for parcel in split_payloads(joined)]
        if not any(claim.observations for claim in claims):
            return TALLIED_SCHEMA.empty_table()
        start_us = start_ms * 1_000
        tally = claim_reader.tally_claims(rules[stream].at(start_us), claims, start_us + WINDOW_US, shard)
        sighted_us = tally.last_first_sighting_us
        return _build_table([(TALLY_ROW, stream, start_ms, shard, WATERMARK_US, sighted_us, pack_tally(tally))])

    return tally_group


def _build_table(rows: Iterator[tuple[object, ...]] | list[tuple[object, ...]]) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, TALLIED_SCHEMA, strict=True)],
        schema=TALLIED_SCHEMA,
    )
