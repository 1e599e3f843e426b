"""Tests of alerts in the micro-batch's transaction: decided once, however often the batch is, and read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import stamina
from sqlalchemy import Engine, select

from hopwatch.alerts.batch_hook import AlertHook
from hopwatch.alerts.decision.evaluation import AlertSnapshot
from hopwatch.alerts.decision.inputs import ObjectiveCounts
from hopwatch.alerts.events import AlertKind, Event, Notification
from hopwatch.alerts.storage import alert_state, history_queries, outbox
from hopwatch.monitor.outliers.explanation import Explanation
from hopwatch.monitor.outliers.findings import OutlierFinding
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.results import LabelCounts, LabelValueKind, SecondCounts, Status
from hopwatch.monitor.store import reader, tables
from tests.support.alert_batches import BEFORE_AMENDED, alerting, play, rules
from tests.support.batch_traffic import traffic
from tests.support.conclusions import build_conclusion, dump_tables
from tests.support.micro_batches import MicroBatches
from tests.support.sink_stream import ATTEMPTS, BEFORE, BEHIND, Stream, Trouble
from tests.support.spool import START_US, STREAM_CONFIGS
from tests.support.windows import lag, window

PAGE: Final = "loss/page/orders"
SIDES: Final = ("lag_in_us", "lag_out_us")


def history(engine: Engine) -> list[tuple[str, str]]:
    """Return what was told: event and key, in order."""
    column = tables.alert_history.c
    with engine.begin() as connection:
        return [tuple(row) for row in connection.execute(select(column.event, column.key).order_by(column.number))]


def test_a_loss_is_told_in_the_transaction_that_writes_it(engine: Engine, tmp_path: Path) -> None:
    """History and outbox have it, and the counts that budgets are summed from."""
    play(MicroBatches(STREAM_CONFIGS, engine, follower=alerting()), tmp_path, BEFORE_AMENDED)
    assert history(engine) == [("firing", "heartbeat/ticket/*"), ("firing", "set_aside/ticket/*"), ("firing", PAGE)]
    found = outbox.query_due(engine, 0)
    assert [(one.channel, one.notification.key) for one in found] == [("chat", PAGE), ("pager", PAGE)]
    (alert,) = found[0].notification.alerts
    assert (alert.node, alert.edge, len(alert.lost_ids)) == ("b", "a -> b", 5)
    assert (alert.window_start_us - START_US, alert.since_us) == (60_000_000, START_US)
    with engine.begin() as connection:
        past = alert_state.StoredPastWindows(connection)
        judged = [row for row in dump_tables(engine)["windows"] if row[0] == "orders" and row[2] == "FINAL"]
        judged = [row for row in judged if row[4] not in {"UNKNOWN", "SILENT"}]
        assert len(judged) == 2
        summed = past.sum_counts("orders", "loss", START_US, START_US + 3_600_000_000)
        assert summed == ObjectiveCounts(sum(row[6] for row in judged), sum(row[11] for row in judged))
        assert past.sum_counts("orders", "loss", START_US, START_US) == ObjectiveCounts(0, 0)


def test_a_window_brings_the_likely_causes_of_its_losses() -> None:
    """In words, by node, with the seconds of a burst; one that nothing explains has an empty one."""
    rows = tuple(
        LabelCounts("version", "a", LabelValueKind.VALUE, value, 500, 0, 0, loss, 0)
        for value, loss in (("1.1", 80), ("1.0", 0))
    )
    outage = SecondCounts((20,) * 60, (20,) * 4 + (0,) * 56)
    burst = "100% of 80 missing have event times from 00:01:00 UTC to 00:01:04 UTC"
    cause = "100% of 80 missing have version 1.1 at a"
    cases = ((rows, None, cause), ((), outage, burst), (rows, outage, f"{burst}; {cause}"), ((), None, ""))
    for labels, seconds, expected in cases:
        concluded = build_conclusion(window(1, lost={"b": 80}))._replace(labels=((), labels), seconds=(None, seconds))
        minute = alerting().note(concluded)
        assert minute is not None
        assert minute.explanations == {"b": expected}


def test_a_window_brings_the_likely_cause_of_its_lags() -> None:
    """In words, by node; empty where none is known."""
    rows = tuple(
        LabelCounts(
            "host", "b", LabelValueKind.VALUE, value, 500, 0, 0, 0, 0, departures=500, slow=slow, slow_dispersion=1.0
        )
        for value, slow in (("h1", 0), ("h2", 50))
    )
    minute = alerting().note(build_conclusion(window(1))._replace(labels=((), rows)))
    assert minute is not None
    assert minute.lag_explanations == {"a": "", "b": "100% of 50 slowest departures have host h2"}


def test_an_open_window_is_read_where_a_node_is_late() -> None:
    """With its digests, and with nothing of what is known of final windows alone."""
    late = {"b": {"lag_out_us": lag(61_000_000, 10)}}
    hook = alerting('[[alerts.rules]]\nkind = "lag"\nthreshold = "1m"\n')
    for nodes, is_read in ((late, True), ({}, False)):
        concluded = build_conclusion(window(1, status=Status.OPEN, nodes=nodes))
        minute = hook.note(concluded)
        assert (minute is not None) is is_read
        if minute is not None:
            assert (minute.lags, minute.lost_ids) == (concluded.tally.lags, {})


def test_a_replayed_batch_adds_nothing(tmp_path: Path, engine: Engine) -> None:
    """A process that is killed after every transaction, and given its batch again, tells what a calm one does."""
    play(MicroBatches(STREAM_CONFIGS, engine, follower=alerting()), tmp_path / "calm", crash_after_store=True)
    first = dump_tables(engine)
    with engine.execution_options(writes=True).begin() as connection:
        for table in tables.metadata.sorted_tables:
            connection.execute(table.delete())
    play(MicroBatches(STREAM_CONFIGS, engine, follower=alerting()), tmp_path / "again")
    second = dump_tables(engine)
    names = [name for name in first if name.startswith("alert_") or name == "objective_minutes"]
    assert {name: first[name] for name in names} == {name: second[name] for name in names}
    assert len(first["alert_history"]) == 3


@pytest.fixture
def _no_waiting() -> Iterator[None]:
    """Let the attempts follow each other at once."""
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize("at", [BEFORE, BEHIND, 20, 30, 40])
def test_a_batch_that_fails_anywhere_is_told_once(at: int | str, engine: Engine, tmp_path: Path) -> None:
    """At a statement, before the COMMIT, or when its answer is lost: as if nothing had been."""
    stream = Stream(STREAM_CONFIGS, engine, folder=tmp_path / "work")
    stream.sink.place = replace(stream.sink.place, follower=alerting())
    trouble = Trouble(engine)
    for paths in traffic(tmp_path / "spool"):
        trouble.at = at
        stream.run(paths)
    assert history(engine) == [("firing", "heartbeat/ticket/*"), ("firing", "set_aside/ticket/*"), ("firing", PAGE)]
    assert len(dump_tables(engine)["alert_outbox"]) == 2


def test_what_is_remembered_is_read_back_as_it_was(engine: Engine, tmp_path: Path) -> None:
    """States, incidents, and the two moments, to the last field."""
    stream = play(MicroBatches(STREAM_CONFIGS, engine, follower=alerting()), tmp_path)
    with engine.execution_options(writes=True).begin() as connection:
        kept = alert_state.read_snapshot(connection)
        assert {AlertKind(state.series.rule) for state in kept.states.values()} >= {AlertKind.LOSS, AlertKind.HEARTBEAT}
        assert kept.incidents[PAGE].notification is not None
        assert kept.begun_us > 0
        empty = AlertSnapshot(clock_us=kept.clock_us, begun_us=kept.begun_us)
        alert_state.write_snapshot(connection, kept, empty)
        assert alert_state.read_snapshot(connection) == empty
        alert_state.write_snapshot(connection, empty, kept)
        assert alert_state.read_snapshot(connection) == kept
    assert stream.batch_id > 0


def test_a_page_whose_windows_are_amended_to_unknown_says_so(engine: Engine, tmp_path: Path) -> None:
    """After any kill, open and unsent alerts of windows amended to unknown no longer call messages lost."""
    play(MicroBatches(STREAM_CONFIGS, engine, follower=alerting()), tmp_path, crash_after_store=True)
    with engine.begin() as connection:
        (page,) = [one for one in history_queries.query_open_incidents(connection) if one.notification.key == PAGE]
    for notification in (page.notification, outbox.query_due(engine, 0)[0].notification):
        (alert,) = notification.alerts
        assert (alert.affected, alert.lost_ids) == (0, ())
        assert notification.summary.startswith(
            "loss: window 2026-01-01T00:01:00Z at b of orders was amended, and is UNKNOWN"
        )
    assert len(history(engine)) == 3


def test_lags_of_minutes_before_come_with_their_stamps(engine: Engine, tmp_path: Path) -> None:
    """In order of time, as the report has them; of the side of a node that has more."""
    play(MicroBatches(STREAM_CONFIGS, engine, follower=alerting()), tmp_path)
    with engine.begin() as connection:
        found = alert_state.StoredPastWindows(connection).read_lags("orders", 0, 2**60)["b"]
        windows = reader.read_windows_json(connection, "orders", None, None)
    lags = [
        [node[side] or {"count": 0, "p95": None} for side in SIDES] for _, node in (one["nodes"] for one in windows)
    ]
    assert [one.stamps for one in found] == [max(side["count"] for side in sides) for sides in lags]
    assert [(one.lag_in_us, one.lag_out_us) for one in found] == [
        tuple(side["p95"] for side in sides) for sides in lags
    ]
    assert sum(one.stamps for one in found) > 0


def test_what_says_nothing_any_more_is_counted_no_more(engine: Engine) -> None:
    """A window that an amendment made UNKNOWN counts in neither good nor bad."""
    key = ("orders", "loss", START_US)
    with engine.execution_options(writes=True).begin() as connection:
        past = alert_state.StoredPastWindows(connection)
        for counted, summed in (
            (ObjectiveCounts(9, 1), (9, 1)),
            (ObjectiveCounts(9, 2), (9, 2)),
            (None, (0, 0)),
            (None, (0, 0)),
        ):
            alert_state.write_counts(connection, {key: counted})
            assert past.sum_counts("orders", "loss", START_US, START_US + 1) == summed


def test_alerts_of_rules_that_are_gone_end(engine: Engine, tmp_path: Path) -> None:
    """Within a minute, whatever windows that brings."""
    stream = play(MicroBatches(STREAM_CONFIGS, engine, follower=alerting()), tmp_path)
    with engine.execution_options(writes=True).begin() as connection:
        alerting("[alerts]\ndefaults = false").follow(connection, [], stream.watermark_us + 60_000_000)
    told = history(engine)[3:]
    assert sorted(told) == sorted(
        [("resolved", "heartbeat/ticket/*"), ("resolved", "set_aside/ticket/*"), ("resolved", PAGE)]
    )
    assert dump_tables(engine)["alert_states"] == []


def test_without_a_channel_there_is_a_history_alone(engine: Engine, tmp_path: Path) -> None:
    """Without a channel, notifications are kept in the history."""
    play(MicroBatches(STREAM_CONFIGS, engine, follower=AlertHook(rules())), tmp_path)
    assert (len(dump_tables(engine)["alert_history"]), dump_tables(engine)["alert_outbox"]) == (3, [])


def test_within_a_minute_there_is_nothing_to_decide_without_a_window(engine: Engine, tmp_path: Path) -> None:
    """A trigger of five seconds does not read and write an hour-long storm twelve times a minute."""
    stream = play(MicroBatches(STREAM_CONFIGS, engine, follower=alerting()), tmp_path)
    before, minute_us = dump_tables(engine), stream.watermark_us - stream.watermark_us % 60_000_000
    for later_us in (minute_us + 59_999_999, minute_us + 60_000_000):
        assert dump_tables(engine) == before
        with engine.execution_options(writes=True).begin() as connection:
            alerting().follow(connection, [], later_us)
    assert dump_tables(engine) != before


def test_before_anything_has_arrived_nothing_is_told(engine: Engine) -> None:
    """There is no time yet, and no heartbeat of 1970."""
    with engine.execution_options(writes=True).begin() as connection:
        follower: Any = alerting()
        follower.follow(connection, [], 0)
        assert alert_state.read_snapshot(connection).states == {}


def test_a_window_that_is_not_final_is_not_noted(tmp_path: Path, engine: Engine) -> None:
    """Nothing of it is kept until the end of the batch."""
    seen: list[Any] = []

    class Watching(AlertHook):
        """Keep what is noted."""

        def note(self, conclusion: Any) -> Any:  # noqa: ANN401 - as the protocol has it
            found = super().note(conclusion)
            seen.append((conclusion.result.status.is_final, found is not None))
            return found

    play(MicroBatches(STREAM_CONFIGS, engine, follower=Watching(rules())), tmp_path)
    assert set(seen) == {(True, True), (False, False)}


def test_what_the_watch_has_found_is_told(engine: Engine, tmp_path: Path) -> None:
    """An outlier of a window that is judged goes by the rule of outliers."""
    why = Explanation(Quantity.MESSAGES, 40, 90, 110, (), START_US, 8.0)
    found = {"b": (OutlierFinding(START_US, "b", is_outlier=True, why=why),)}

    class Odd(AlertHook):
        """Let every window be odd."""

        def note(self, conclusion: Any) -> Any:  # noqa: ANN401 - as the protocol has it
            return super().note(conclusion._replace(outliers=found))

    only = rules('[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "outlier"\n')
    play(MicroBatches(STREAM_CONFIGS, engine, follower=Odd(only)), tmp_path)
    assert history(engine) == [("firing", "outlier/ticket/orders")]


def test_a_notification_says_who_it_is_about(engine: Engine, tmp_path: Path) -> None:
    """In its labels, which the key is made of, and no more than once."""
    said: list[Notification] = []

    def routes(one: Notification) -> tuple[str, ...]:
        said.append(one)
        return ()

    play(MicroBatches(STREAM_CONFIGS, engine, follower=AlertHook(rules(), routes)), tmp_path)
    begun = [one for one in said if one.is_news and one.event is Event.FIRING]
    assert len({one.key for one in begun}) == len(begun)
    assert begun[-1].labels == {"rule": "loss", "severity": "page", "stream": "orders"}
