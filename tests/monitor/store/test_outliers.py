"""Tests of what the store keeps of outliers: memory before an hour, findings, and who takes both up."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Engine, delete, select

from hopwatch.monitor import outlier_detection
from hopwatch.monitor.accounting.ledger import Conclusion, Ledger, LiveWindow
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.masks import ids_from_bytes
from hopwatch.monitor.kernel.tally import LostIds, NodeLags, empty_tally
from hopwatch.monitor.outliers import state
from hopwatch.monitor.outliers.findings import FindingChanges
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.outliers.series_tracker import SeriesTracker
from hopwatch.monitor.results import Status, Verdict, WindowResult
from hopwatch.monitor.store import fencing, outliers, reader, retention, tables, writer
from hopwatch.monitor.store.rollups import HOUR_US
from tests.monitor.window_series import NODES, minute, straight, struck
from tests.support.clock import ManualClock
from tests.support.spool import STREAM_CONFIGS

PATHWAY: Final = STREAM_CONFIGS["orders"].pathway
LIVE_WINDOWS: Final = 64


def written(connection: Connection, ledger: Ledger, results: Sequence[WindowResult]) -> list[Conclusion]:
    """Write windows as a micro-batch does, the newest of which can still change; return what is said of them."""
    nobody = tuple(LostIds.from_ids(ids_from_bytes(b"")) for _ in NODES)
    made = [Conclusion(one, empty_tally(PATHWAY), nobody, True, b"", None) for one in results]  # noqa: FBT003 - is_settled
    writer.write_conclusions(connection, made, 0)
    said = outlier_detection.detect_outliers(connection, ledger, made)
    newest_us = max(result.window_start_us for result in results)
    live = ledger.live.setdefault("orders", {})
    live |= {newest_us - number * 60_000_000: LiveWindow() for number in range(LIVE_WINDOWS)}
    for start_us in [start_us for start_us in live if start_us <= newest_us - LIVE_WINDOWS * 60_000_000]:
        del live[start_us]
    outlier_detection.save_series(connection, ledger)
    return said


def in_pieces(engine: Engine, results: Sequence[WindowResult], restart_every: int = 0) -> Ledger:
    """Write windows a piece at a time, each in a transaction, some by a process that was started anew."""
    ledger = Ledger(STREAM_CONFIGS)
    for number, first in enumerate(range(0, len(results), 25)):
        if restart_every and number % restart_every == 0:
            ledger = Ledger(STREAM_CONFIGS)
        with engine.execution_options(writes=True).begin() as connection:
            written(connection, ledger, results[first : first + 25])
    return ledger


def kept(engine: Engine) -> list[tuple[Any, ...]]:
    """Return whose memory is kept, before when, and how many bytes it has."""
    column = tables.outlier_states.c
    with engine.begin() as connection:
        found = connection.execute(select(column.stream, column.place, column.before_us, column.states))
        return [(row.stream, row.place, row.before_us, len(row.states)) for row in found]


def spiked() -> list[WindowResult]:
    """Return windows of which two stand out, and one of which nothing is known."""
    chance = random.Random(7)
    results = [minute(number, chance) for number in range(420)]
    results[250], results[400] = struck(results[250]), struck(results[400], 0)
    results[300] = replace(results[300], verdict=Verdict.UNKNOWN)
    return results


def test_a_process_that_is_started_anew_finds_what_one_that_goes_on_finds(engine: Engine) -> None:
    """From the memory before an hour and the windows since, the series are what they were, to the byte."""
    results = spiked()
    ledger = in_pieces(engine, results, restart_every=3)
    expected, shelf = straight(results)
    assert ledger.watched["orders"].states.tobytes() == expected.states.tobytes()
    assert [one for _, one in outliers.query_findings(engine)] == [shelf.found[key] for key in sorted(shelf.found)]
    hour_us = results[len(results) - LIVE_WINDOWS].window_start_us // HOUR_US * HOUR_US
    size = len(state.to_bytes(state.new_states(6)))
    assert kept(engine) == [("orders", 0, hour_us, size), ("orders", 1, hour_us, size)]
    assert min(ledger.watched["orders"].values) == hour_us


def test_an_amended_window_is_found_anew_by_whoever_comes(engine: Engine) -> None:
    """By the process that judged it first and by one that was started since; what holds no more is erased."""
    results = spiked()
    ledger = in_pieces(engine, results)
    again = replace(spiked()[399], window_start_us=results[400].window_start_us, status=Status.AMENDED, revision=1)
    for one in (ledger, Ledger(STREAM_CONFIGS)):
        with engine.execution_options(writes=True).begin() as connection:
            (said,) = written(connection, one, [again])
        assert said.outliers == {"a": (), "b": ()}
        found = [finding.window_start_us for _, finding in outliers.query_findings(engine)]
        assert found == [results[250].window_start_us]


def test_what_was_found_is_read_in_a_range(engine: Engine) -> None:
    """By stream and time, each with what was observed and expected and why it is odd."""
    results = spiked()
    in_pieces(engine, results)
    (stream, one), (_, other) = outliers.query_findings(engine)
    assert (stream, one.node, one.why.quantity, one.is_outlier) == ("orders", "b", Quantity.MESSAGES, False)
    assert str(one.why).startswith("messages ")
    assert one.why.reasons[0].view == "level_up"
    assert outliers.query_findings(engine, "orders", one.window_start_us + 1) == [("orders", other)]
    assert outliers.query_findings(engine, "orders", None, other.window_start_us) == [("orders", one)]
    assert outliers.query_findings(engine, "payments") == []


def test_a_window_that_is_not_final_does_not_enter(engine: Engine) -> None:
    """A window that is not final does not enter the detector."""
    result = replace(spiked()[0], status=Status.PROVISIONAL, verdict=None)
    with engine.execution_options(writes=True).begin() as connection:
        (said,) = written(connection, ledger := Ledger(STREAM_CONFIGS), [result])
    assert said.outliers == {}
    assert ledger.watched == {}


def test_findings_go_with_their_windows(engine: Engine) -> None:
    """A prune takes them, and leaves the memory, of which there is one a node whatever its age."""
    results = spiked()
    in_pieces(engine, results)
    with engine.execution_options(writes=True).begin() as connection:
        span = results[0].window_start_us, results[-1].window_start_us
        fencing.register_batch(connection, "a-query", 0, STREAM_CONFIGS)
        writer.write_changes(connection, writer.Changes(0, streams={"orders": span}))
        writer.drop_tallies(connection, [("orders", one.window_start_us) for one in results])
    before_us = results[300].window_start_us // HOUR_US * HOUR_US
    for _ in retention.prune(engine, before_us, ManualClock()):
        pass
    assert [finding.window_start_us for _, finding in outliers.query_findings(engine)] == [results[400].window_start_us]
    assert len(kept(engine)) == 2


def test_a_prune_leaves_what_is_said_of_an_episode_that_lasts(engine: Engine) -> None:
    """A gap ends no episode, however long: whoever is started behind it says what the episode is of."""
    chance = random.Random(8)
    results = [minute(number, chance) for number in range(1_720)]
    results[1_497] = struck(results[1_497])
    for number in range(1_500, 1_700):
        results[number] = replace(results[number], verdict=Verdict.UNKNOWN)
    in_pieces(engine, results[:1_710])
    told = outliers.query_findings(engine)[-1][1]
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "a-query", 0, STREAM_CONFIGS)
        writer.write_changes(connection, writer.Changes(0, streams={"orders": (0, results[-1].window_start_us)}))
        writer.drop_tallies(connection, [("orders", one.window_start_us) for one in results[:-90]])
    for _ in retention.prune(engine, results[-90].window_start_us // HOUR_US * HOUR_US, ManualClock()):
        pass
    assert [finding for _, finding in outliers.query_findings(engine)] == [told]
    with engine.execution_options(writes=True).begin() as connection:
        (said,) = written(connection, Ledger(STREAM_CONFIGS), results[1_710:1_711])
    assert said.outliers == {"a": (), "b": (told,)}


def test_a_process_that_is_started_before_any_memory_is_kept_finds_the_same(engine: Engine) -> None:
    """As where windows can be amended for days: who comes next begins where the first one did, not a day ago."""
    chance = random.Random(10)
    results = [minute(number, chance) for number in range(1_600)]
    nobody = tuple(LostIds.from_ids(ids_from_bytes(b"")) for _ in NODES)
    made = [Conclusion(one, empty_tally(PATHWAY), nobody, True, b"", None) for one in results]  # noqa: FBT003 - is_settled
    ledger = Ledger(STREAM_CONFIGS)
    for first, last in ((0, 800), (800, 1_590), (1_590, 1_600)):
        ledger = replace(ledger, watched={})
        with engine.execution_options(writes=True).begin() as connection:
            writer.write_conclusions(connection, made[first:last], 0)
            outlier_detection.detect_outliers(connection, ledger, made[first:last])
    expected, _ = straight(results)
    assert ledger.watched["orders"].states.tobytes() == expected.states.tobytes()


def test_the_past_is_taken_up_a_few_windows_at_a_time(engine: Engine) -> None:
    """A day of a pipeline with a thousand nodes, with digests, would be gigabytes."""
    digest = tdigest.build(np.arange(2_000))
    tally = replace(empty_tally(PATHWAY), lags=tuple(NodeLags(digest, digest, digest) for _ in NODES))
    chance, nobody = random.Random(11), tuple(LostIds.from_ids(ids_from_bytes(b"")) for _ in NODES)
    made = [Conclusion(minute(number, chance), tally, nobody, True, b"", None) for number in range(1_000)]  # noqa: FBT003
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_conclusions(connection, made, 0)
        next(
            reader.read_final_windows(connection, "orders", 0)
        )  # what the first statements leave behind is not counted
        tracemalloc.start()
        found = sum(1 for _ in reader.read_final_windows(connection, "orders", 0))
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert found == len(made)
    assert peak_bytes < len(made) * len(tdigest.to_bytes(digest))


def test_nothing_is_said_of_an_episode_whose_figures_are_gone(engine: Engine) -> None:
    """A store that was pruned by an older version has no more than that it lasts: neither odd nor well."""
    chance = random.Random(8)
    results = [minute(number, chance) for number in range(1_720)]
    results[1_630] = struck(results[1_630])
    in_pieces(engine, results[:1_710])
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(delete(tables.outliers))
        watched = outlier_detection.resume_series(connection, "orders", NODES)
        watched.findings.clear()
        ledger = Ledger(STREAM_CONFIGS, watched={"orders": watched})
        (said,) = written(connection, ledger, results[1_710:1_711])
    assert said.outliers == {"a": ()}


def test_a_store_of_before_begins_with_its_last_day(engine: Engine) -> None:
    """Of windows that were written before anybody looked, a day's enter when the next one comes."""
    chance = random.Random(9)
    results = [minute(number, chance) for number in range(1_600)]
    nobody = tuple(LostIds.from_ids(ids_from_bytes(b"")) for _ in NODES)
    made = [Conclusion(one, empty_tally(PATHWAY), nobody, True, b"", None) for one in results[:-1]]  # noqa: FBT003
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_conclusions(connection, made, 0)
        written(connection, ledger := Ledger(STREAM_CONFIGS), results[-1:])
    expected, _ = straight(results[-1_441:])
    assert ledger.watched["orders"].states.tobytes() == expected.states.tobytes()


def test_findings_are_read_as_they_were_written(engine: Engine) -> None:
    """Every figure, and what is not known of a young series stays unknown."""
    _, shelf = straight(spiked())
    first = next(iter(shelf.found.values()))
    young = first._replace(why=replace(first.why, low=None, high=None, reasons=()))
    with engine.execution_options(writes=True).begin() as connection:
        outliers.write_changes(connection, "orders", FindingChanges([], [young]))
    assert outliers.query_findings(engine) == [("orders", young)]


def test_the_stream_whose_values_reach_back_the_farthest_comes_first(engine: Engine) -> None:
    """The stream with the oldest values is saved first, one in a micro-batch."""
    chance = random.Random(11)
    ledger = Ledger(
        {"orders": STREAM_CONFIGS["orders"], "refunds": STREAM_CONFIGS["orders"], "trades": STREAM_CONFIGS["orders"]}
    )
    for number, stream in enumerate(ledger.rules):
        ledger.watched[stream] = SeriesTracker(NODES)
        late = (3 - number) * 30
        results = [replace(minute(late + place, chance), stream=stream) for place in range(200)]
        with engine.connect() as connection:
            ledger.watched[stream].enter(results, outliers.StoredSeries(connection, stream))
    for expected in (["trades"], ["refunds", "trades"], ["orders", "refunds", "trades"]):
        with engine.execution_options(writes=True).begin() as connection:
            outlier_detection.save_series(connection, ledger)
        assert sorted({row[0] for row in kept(engine)}) == expected


def test_what_is_judged_once_and_for_all_keeps_no_values(engine: Engine) -> None:
    """The findings are those of a run that keeps them, and nothing grows with the windows."""
    results = spiked()
    ledger, nobody = Ledger(STREAM_CONFIGS), tuple(LostIds.from_ids(ids_from_bytes(b"")) for _ in NODES)
    with engine.execution_options(writes=True).begin() as connection:
        for first in range(0, len(results), 50):
            piece = results[first : first + 50]
            made = [Conclusion(one, empty_tally(PATHWAY), nobody, True, b"", None) for one in piece]  # noqa: FBT003 - is_settled
            writer.write_conclusions(connection, made, 0)
            outlier_detection.detect_outliers(connection, ledger, made)
            ledger.release_memory()
    expected, shelf = straight(results)
    assert ledger.watched["orders"].values == {}
    assert ledger.watched["orders"].states.tobytes() == expected.states.tobytes()
    assert [one for _, one in outliers.query_findings(engine)] == [shelf.found[key] for key in sorted(shelf.found)]
