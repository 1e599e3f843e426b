"""Tests of hours and days: at any moment they are what their windows say, and once those are pruned what they said."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, delete

from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.count_lags import CountLags, digest_histograms
from hopwatch.monitor.kernel.figures import quantiles_of
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.rollup import COUNTS, NODE_COUNTS
from hopwatch.monitor.kernel.tally import Tally, build_tally
from hopwatch.monitor.results import NodeCounts, Status, Verdict, WindowResult, format_iso
from hopwatch.monitor.store import fencing, reader, rollups, tables, writer
from hopwatch.monitor.store.rollups import DAY_US, HOUR_US
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.lag_histograms import count_lags
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.conclusions import PATHWAY, build_conclusion, dump_tables, write_conclusions
from tests.support.micro_batches import MicroBatches
from tests.support.spool import (
    START_US,
    STREAM_CONFIGS,
    WINDOW_POLICY,
    at_us,
    make_batch,
    observation_batch,
    window_ms,
    write_segment,
)

Json = dict[str, Any]


@pytest.fixture
def engine(engine: Engine) -> Engine:
    """Return the engine of a store that knows the rules of its streams, as every micro-batch leaves them."""
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "q", 0, STREAM_CONFIGS)
    return engine


def tally(*lags_us: int) -> Tally:
    """Return the tally of a window in which messages came to the first node so late, and left it 5 µs later."""
    ids = np.arange(2 * len(lags_us), dtype=np.uint64).reshape(-1, 2)
    lags = np.array(lags_us, np.int64)
    return build_tally(PATHWAY, [ObservedBatch(0, "", at_us(1), ids, lags, lags + 5, np.empty(0, np.uint8))], at_us(60))


def window(start_us: int, *lags_us: int, **fields: Any) -> Conclusion:  # noqa: ANN401 - the fields of a window
    """Return a final window with these lags at its first node."""
    made = build_conclusion(tally=tally(*lags_us))
    return made._replace(result=replace(made.result, window_start_us=start_us, **fields))


def spans(engine: Engine, by: str, **where: Any) -> list[Json]:  # noqa: ANN401 - the range
    """Return the hours or days of the stream that tests look at."""
    (stream,) = rollups.read_report(engine, by, **where)["streams"]
    return list(stream[f"{by}s"])


def roll_all(engine: Engine) -> None:
    """Roll up every hour that is stale."""
    with engine.execution_options(writes=True).begin() as connection:
        for stream, hour_us in rollups.read_stale_hours(connection):
            rollups.roll_up_hour(connection, stream, hour_us)
        assert rollups.read_stale_hours(connection) == []


def summed(windows: list[Json], span_us: int) -> dict[str, Json]:
    """Return the counts of the final windows of a report, by the start of their span."""
    found: dict[str, Json] = {}
    for one in windows:
        if one["verdict"] is None:
            continue
        start_us = int(np.datetime64(one["window_start"][:-1], "us").astype(np.int64))
        start = format_iso(start_us - start_us % span_us)
        of_span = found.setdefault(start, {"windows": 0, "verdicts": defaultdict(int), "nodes": [{}, {}]})
        of_span["windows"] += 1
        of_span["verdicts"][one["verdict"]] += 1
        _add(of_span, one, COUNTS, "lost_upper")
        for sums, node in zip(of_span["nodes"], one["nodes"], strict=True):
            _add(sums, node, NODE_COUNTS, "loss_upper")
            for lag in ("lag_in_us", "lag_out_us", "inside_us"):
                sums[lag] = sums.get(lag, 0) + (node[lag]["count"] if node[lag] else 0)
    return found


def _add(sums: Json, one: Json, names: tuple[str, ...], bound: str) -> None:
    for name in names:
        sums[name] = sums.get(name, 0) + one[name]
    before = sums.get(bound, 0)
    sums[bound] = None if one[bound] is None or before is None else before + one[bound]


def told(spans_told: list[Json]) -> dict[str, Json]:
    """Return hours or days in the form that :func:`summed` has."""
    found = {}
    for one in spans_told:
        kept = {name: one[name] for name in (*COUNTS, "lost_upper", "windows")}
        kept["verdicts"] = {name: count for name, count in one["verdicts"].items() if count}
        kept["nodes"] = [
            {name: node[name] for name in (*NODE_COUNTS, "loss_upper")}
            | {lag: node[lag]["count"] if node[lag] else 0 for lag in ("lag_in_us", "lag_out_us", "inside_us")}
            for node in one["nodes"]
        ]
        found[one["start"]] = kept
    return found


def test_hours_and_days_are_what_their_windows_say(engine: Engine) -> None:
    """Counts are added, windows counted by verdict, unknown bounds stay unknown; not final is not counted."""
    write_conclusions(
        engine,
        window(START_US, 10, known=4, lost=1, lost_lower=1, lost_upper=2, verdict=Verdict.LOSSY),
        window(START_US + WINDOW_US, 20, known=6, lost=0, lost_lower=0, lost_upper=0, verdict=Verdict.CLEAN),
        window(START_US + HOUR_US, 30, known=5, lost_upper=None, verdict=Verdict.UNKNOWN),
        window(START_US + HOUR_US + WINDOW_US, 40, status=Status.OPEN, verdict=None),
        window(START_US + DAY_US, 50, verdict=Verdict.SILENT),
    )
    first, second, third = spans(engine, "hour")
    assert [first["start"], second["start"], third["start"]] == [
        "2026-01-01T00:00:00Z",
        "2026-01-01T01:00:00Z",
        "2026-01-02T00:00:00Z",
    ]
    assert (first["windows"], first["verdicts"]["LOSSY"], first["verdicts"]["CLEAN"]) == (2, 1, 1)
    assert (first["known"], first["lost"], first["lost_upper"], first["loss_ratio"]) == (10, 1, 2, 0.1)
    assert (second["windows"], second["verdicts"]["UNKNOWN"], second["lost_upper"]) == (1, 1, None)
    day, _ = spans(engine, "day")
    assert (day["windows"], day["known"], day["lost_lower"], day["lost_upper"]) == (3, 15, 1, None)
    assert day["verdicts"] == {"SILENT": 0, "IDLE": 0, "LOSSY": 1, "CLEAN": 1, "UNKNOWN": 1}


def test_percentiles_are_of_merged_digests(engine: Engine) -> None:
    """Neither their mean nor their greatest: one slow minute among quick ones is where it belongs."""
    write_conclusions(engine, window(START_US, *range(1_000)), window(START_US + WINDOW_US, *[100_000] * 10))
    for by in ("hour", "day"):
        (one,) = spans(engine, by)
        lag = one["nodes"][0]["lag_in_us"]
        assert (lag["count"], lag["min"], lag["max"]) == (1_010, 0, 100_000)
        exact = np.quantile([*range(1_000), *[100_000] * 10], [0.5, 0.95], method="inverted_cdf")
        assert abs(lag["p50"] - exact[0]) <= 10
        assert abs(lag["p95"] - exact[1]) <= 2


def test_the_ratio_of_a_node_is_over_what_was_expected_or_seen(engine: Engine) -> None:
    """Of all windows together: not the mean of their ratios."""
    base = build_conclusion().result
    node = replace(base.nodes[1], seen=6, lost_in_transit=2, unobserved=2, loss=2, loss_ratio=0.2)
    quiet = replace(base.nodes[1], seen=30)
    for number, one in enumerate((node, quiet)):
        result = replace(base, window_start_us=START_US + number * WINDOW_US, nodes=(base.nodes[0], one))
        write_conclusions(engine, build_conclusion(result))
    (hour,) = spans(engine, "hour")
    assert hour["nodes"][1]["loss_ratio"] == 2 / 40
    assert hour["nodes"][0]["loss_ratio"] is None


def test_what_is_rolled_up_is_what_was_read_before(engine: Engine) -> None:
    """To the last digit, percentiles too, however often and in whatever order hours are written."""
    rng = np.random.default_rng(1)
    for minutes in range(0, 60 * 30, 7):
        write_conclusions(
            engine, window(START_US + minutes * WINDOW_US, *rng.integers(0, 10**9, 300).tolist(), known=minutes)
        )
    before = spans(engine, "hour"), spans(engine, "day")
    roll_all(engine)
    assert (spans(engine, "hour"), spans(engine, "day")) == before
    write_conclusions(engine, window(START_US + 7 * WINDOW_US, 1, known=1))
    amended = spans(engine, "hour"), spans(engine, "day")
    assert amended != before
    roll_all(engine)
    assert (spans(engine, "hour"), spans(engine, "day")) == amended


def test_a_window_that_is_amended_amends_its_hour_and_day(engine: Engine) -> None:
    """An amended window amends its hour and its day, written before or not."""
    write_conclusions(engine, window(START_US, 1, known=4, lost=2))
    roll_all(engine)
    write_conclusions(engine, window(START_US, 1, known=4, lost=0, status=Status.AMENDED, revision=1))
    assert [(one["known"], one["lost"]) for by in ("hour", "day") for one in spans(engine, by)] == [(4, 0)] * 2


def test_spans_come_in_the_range_that_is_asked_for(engine: Engine) -> None:
    """From is inclusive, to is exclusive, by the start of the span; some of them are written, some are not."""
    write_conclusions(engine, *(window(START_US + number * HOUR_US, 1) for number in range(48)))
    roll_all(engine)
    write_conclusions(engine, *(window(START_US + number * HOUR_US, 2) for number in range(0, 48, 3)))
    found = spans(engine, "hour", from_us=START_US + 2 * HOUR_US, to_us=START_US + 5 * HOUR_US)
    assert [one["start"][11:13] for one in found] == ["02", "03", "04"]
    assert [one["nodes"][0]["lag_in_us"]["max"] for one in found] == [1, 2, 1]
    (day,) = spans(engine, "day", from_us=START_US + 1, to_us=START_US + 2 * DAY_US)
    assert (day["start"], day["windows"]) == ("2026-01-02T00:00:00Z", 24)
    (day,) = spans(engine, "day", to_us=START_US + DAY_US)
    assert (day["start"], day["windows"]) == ("2026-01-01T00:00:00Z", 24)


def test_a_frozen_hour_stays_as_it_is(engine: Engine) -> None:
    """A frozen hour stays as it is, as its windows were pruned."""
    write_conclusions(engine, window(START_US, 1, known=4))
    with engine.execution_options(writes=True).begin() as connection:
        rollups.freeze_hour(connection, "orders", START_US)
    before = spans(engine, "hour"), spans(engine, "day")
    write_conclusions(engine, window(START_US + WINDOW_US, 1, known=7))
    assert (spans(engine, "hour"), spans(engine, "day")) == before
    roll_all(engine)
    assert (spans(engine, "hour"), spans(engine, "day")) == before


def test_a_stream_without_windows_has_no_hours(engine: Engine) -> None:
    """A stream without windows is listed without hours."""
    assert rollups.read_report(engine, "hour")["streams"] == [{"stream": "orders", "hours": []}]
    assert rollups.read_report(engine, "day")["accounts"] == reader.read_report(engine)["accounts"]


# Beside a stream


def batches(spool: Path) -> list[list[Path]]:
    """Write three hours of micro-batches, one in ten minutes: losses, a late message, a probe that is not heard."""
    made: list[list[Path]] = []
    for n in range(18):
        told_us, start_ms = at_us(600 * n + 70), window_ms(10 * n)
        fields: Json = {"seq": n, "window_start_ms": start_ms, "sent_at_us": told_us, "complete_through_us": told_us}
        records = [observation_batch(range(100 * n, 100 * n + 9), **fields)]
        if n % 5:
            records.append(observation_batch(range(100 * n, 100 * n + 9 - n % 3), "b", **fields))
        if n == 8:
            records.append(observation_batch([108], "b", seq=18, window_start_ms=window_ms(10), sent_at_us=told_us))
        records.append(make_batch(BatchKind.HEARTBEAT, "monitor", stream="_hopwatch", seq=n, sent_at_us=told_us))
        made.append([write_segment(spool / f"{n}.seg", *records, arrival_us=told_us)])
    for number, later_s in enumerate((11_500, 20_000, 20_001, 20_002, 20_003)):
        beat = make_batch(
            BatchKind.HEARTBEAT, "monitor", stream="_hopwatch", seq=18 + number, sent_at_us=at_us(later_s)
        )
        made.append([write_segment(spool / f"beat-{number}.seg", beat, arrival_us=at_us(later_s))])
    return [*made, []]


def test_after_every_micro_batch_hours_are_the_sum_of_their_windows(engine: Engine, tmp_path: Path) -> None:
    """While windows become final, are amended and are forgotten; in the end all hours are written."""
    amended = {"orders": replace(STREAM_CONFIGS["orders"], terms=replace(WINDOW_POLICY, amend_for_us=4_800_000_000))}
    stream = MicroBatches(amended, engine)
    seen = set()
    for paths in batches(tmp_path / "spool"):
        stream.run(paths)
        (windows,) = (one["windows"] for one in reader.read_report(engine)["streams"])
        seen |= {one["status"] for one in windows}
        assert told(spans(engine, "hour")) == summed(windows, HOUR_US)
        assert told(spans(engine, "day")) == summed(windows, DAY_US)
    assert {"FINAL", "AMENDED", "PROVISIONAL"} <= seen
    kept = dump_tables(engine)
    assert kept["stale_hours"] == []
    assert [row[1] for row in kept["rollups"]] == ["day", "hour", "hour", "hour"]


def test_a_micro_batch_rolls_up_one_hour_at_a_time(engine: Engine, tmp_path: Path) -> None:
    """So that none takes much longer for it; the rest is made for whoever reads."""
    stream = MicroBatches(STREAM_CONFIGS, engine)
    written = []
    for paths in batches(tmp_path / "spool"):
        stream.run(paths)
        written.append(sum(row[1] == "hour" for row in dump_tables(engine)["rollups"]))
    assert max(after - before for before, after in pairwise(written)) == 1
    assert written[-1] == 3


def test_clearing_leaves_no_hours(engine: Engine) -> None:
    """A run over everything begins with none."""
    write_conclusions(engine, window(START_US, 1))
    roll_all(engine)
    with engine.execution_options(writes=True).begin() as connection:
        writer.clear_results(connection)
    assert rollups.read_report(engine, "hour")["streams"] == []


def test_a_digest_that_was_kept_is_the_digest_that_was(engine: Engine) -> None:
    """Days are merged from what the hours keep."""
    write_conclusions(engine, window(START_US, *range(3_000)))
    roll_all(engine)
    kept = {
        row[1]: [part for part in row if isinstance(part, bytes)]
        for row in dump_tables(engine)["node_rollups"]
        if not row[3]
    }
    assert kept["day"] == kept["hour"]
    assert tdigest.from_bytes(kept["hour"][0]).count == 3_000


def test_a_window_result_has_what_is_added() -> None:
    """Each count is a field of windows and of their nodes."""
    assert set(COUNTS) <= set(WindowResult.__dataclass_fields__)


def test_order_is_added_up_and_its_digests_merged(engine: Engine) -> None:
    """Inversions of an hour and a day are those of its windows, displacements of all their messages."""
    for number, counts in enumerate(([0, 0, 3], [0, 9, 1, 1])):
        digest = tdigest.build(np.array(counts, np.int64))
        of = tally(1)
        lags = (of.lags[0], replace(of.lags[1], displacement=digest))
        of = replace(of, lags=lags, inversions=np.array([0, sum(counts)]))
        node = replace(build_conclusion().result.nodes[1], inversions=sum(counts), displacement=quantiles_of(digest))
        base = build_conclusion(tally=of)
        start_us = START_US + number * WINDOW_US
        result = replace(base.result, window_start_us=start_us, nodes=(base.result.nodes[0], node))
        write_conclusions(engine, base._replace(result=result))
    (window, _) = reader.read_report(engine)["streams"][0]["windows"]
    assert (window["nodes"][1]["inversions"], window["nodes"][1]["displacement"]["max"]) == (3, 3)
    (fresh,) = rollups.read_report(engine, "hour")["streams"][0]["hours"]
    with engine.execution_options(writes=True).begin() as connection:
        rollups.roll_up_hour(connection, "orders", START_US - START_US % HOUR_US)
    for by in ("hour", "day"):
        (span,) = rollups.read_report(engine, by)["streams"][0][f"{by}s"]
        assert span["nodes"] == fresh["nodes"]
        assert (span["nodes"][1]["inversions"], span["nodes"][0]["displacement"]) == (14, None)
        assert span["nodes"][1]["displacement"] == {"count": 7, "min": 0, "p50": 1, "p95": 9, "p99": 9, "max": 9}


def test_what_nodes_counted_is_added_and_outlives_its_windows(engine: Engine) -> None:
    """Of hours and days that are built for the reader, that are written, and whose windows were pruned."""
    said = NodeCounts(
        "n",
        8,
        8,
        100,
        1,
        1.0,
        "a",
        10,
        same_before=False,
        lost_before_lower=2,
        behind="b",
        seen_behind=8,
        same_behind=True,
    )
    same = replace(said, left_before=8, same_before=True, lost_before_lower=0)
    for start_us, verdict, counts, lags_us in (
        (START_US, Verdict.LOSSY, said, [1, 2, 3]),
        (START_US + WINDOW_US, Verdict.CLEAN, same, []),
        (START_US + HOUR_US, Verdict.CLEAN, same, [-4, 100]),
    ):
        lags = CountLags(digest_histograms([count_lags(np.array(lags_us, np.int64))]))
        made = window(start_us, 10, verdict=verdict, counts=(replace(counts, **lags.figures),))
        write_conclusions(engine, made._replace(count_lags=(lags,)))
    fresh = [[span["counts"] for span in spans(engine, by)] for by in ("hour", "day")]
    ((lossy, clean), (day,)) = fresh
    alike = {"node": "n", "before": "a", "behind": "b", "same_behind": True, "lag_out_us": None}
    lags_in = (
        {"lag_in_us": {"count": 3, "min": 1, "p50": 2, "p95": 3, "p99": 3, "max": 3}},
        {"lag_in_us": {"count": 2, "min": -4, "p50": -4, "p95": 100, "p99": 100, "max": 100}},
        {"lag_in_us": {"count": 5, "min": -4, "p50": 2, "p95": 100, "p99": 100, "max": 100}},
    )
    lost = {"same_before": False, "lost_before_lower": 2, "lost_before_upper": None}
    none = {"same_before": True, "lost_before_lower": 0, "lost_before_upper": 0}
    sums = ("arrived", "departed", "bytes", "dropped", "left_before", "seen_behind")
    assert lossy == [alike | lags_in[0] | lost | dict(zip(sums, (16, 16, 200, 2, 18, 16), strict=True))]
    assert clean == [alike | lags_in[1] | none | dict(zip(sums, (8, 8, 100, 1, 8, 8), strict=True))]
    assert day == [alike | lags_in[2] | lost | dict(zip(sums, (24, 24, 300, 3, 26, 24), strict=True))]
    roll_all(engine)
    assert [[span["counts"] for span in spans(engine, by)] for by in ("hour", "day")] == fresh
    with engine.execution_options(writes=True).begin() as connection:
        for hour_us in (START_US, START_US + HOUR_US):
            rollups.freeze_hour(connection, "orders", hour_us)
        connection.execute(delete(tables.windows))
    assert [[span["counts"] for span in spans(engine, by)] for by in ("hour", "day")] == fresh
