"""Tests of the self-test as a whole: in a healthy monitor nothing is found, and in each that is broken something is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from hopwatch.alerts import rule_config
from hopwatch.alerts.batch_hook import AlertHook
from hopwatch.alerts.storage import history_queries
from hopwatch.dashboards.queries.overview import query_overview
from hopwatch.monitor.kernel import sets, tally
from hopwatch.monitor.selftest.injector import SETTLING_US
from hopwatch.monitor.selftest.minute import InjectedMinute
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.settings import DEFAULTS, Settings
from hopwatch.monitor.store import publication, reader, schema, selftest, tables
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.selftest_world import BEGIN_US, SelftestWorld

SETTLING_MINUTES: Final = SETTLING_US // WINDOW_US


def test_a_healthy_monitor_measures_what_was_injected(tmp_path: Path) -> None:
    """Each minute is compared, its bounds are exact, each loss is found, and none is false."""
    world = SelftestWorld(tmp_path, messages=240).run(6)
    assert [minute for minute, *_ in world.outcomes()] == [1, 2, 3]
    assert all(is_exact and lost == found and not false for _, is_exact, lost, found, false, _ in world.outcomes())
    assert sum(lost for _, _, lost, *_ in world.outcomes()) > 20
    assert world.problems() == {}


def test_the_death_of_a_probe_is_no_problem(tmp_path: Path) -> None:
    """In the minutes round it bounds may be open; each loss is found nevertheless, and none is false."""
    world = SelftestWorld(tmp_path, begin_us=BEGIN_US + 41 * WINDOW_US).run(10)
    assert [(minute, is_exact) for minute, is_exact, *_ in world.outcomes()] == [(one, one < 2) for one in range(1, 8)]
    assert len([name for name in world.sinks if ".left." in name]) == 2
    assert world.problems() == {}


def test_a_restart_is_no_problem(tmp_path: Path) -> None:
    """Probes of the run before fall silent without a word: until they are retired bounds may be open."""
    world = SelftestWorld(tmp_path, settling_us=SETTLING_US)
    world.run(SETTLING_MINUTES + 4.5)
    world.start("another-run")
    world.run(SETTLING_MINUTES + 4)
    exact = [minute for minute, is_exact, *_ in world.outcomes() if is_exact]
    assert exact[:3] == [SETTLING_MINUTES, SETTLING_MINUTES + 1, 2 * SETTLING_MINUTES + 5]
    assert world.problems() == {}


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_records_that_come_twice_or_late_are_no_problem(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A transport may repeat a record, and keep it for some seconds, though not out of its order."""
    chance = np.random.default_rng(seed)
    kept: dict[str, list[bytes]] = {}

    def keep(instance: str, records: list[bytes]) -> list[bytes]:
        waiting = kept.setdefault(instance, [])
        waiting += records
        count = int(chance.integers(0, len(waiting) + 1)) if len(waiting) < 8 else len(waiting)
        kept[instance] = waiting[count:]
        return waiting[:count] + waiting[:count][: int(chance.integers(0, 2))]

    world = SelftestWorld(tmp_path_factory.mktemp("world"), damage=keep).run(6)
    assert len(world.outcomes()) == 3
    assert world.problems() == {}


@pytest.mark.parametrize("node", ["source", "router", "left", "right"])
def test_a_lost_record_of_the_transport_is_found(node: str, tmp_path: Path) -> None:
    """A batch that was sent and never came leaves a bound of its minute open."""
    left = [1]

    def lose(instance: str, records: list[bytes]) -> list[bytes]:
        is_due = f".{node}." in instance and world.clock.us > BEGIN_US + round(1.5 * WINDOW_US)
        whole = [record for record in records if decode(record).kind is BatchKind.OBSERVATIONS]
        if is_due and whole and left:
            left.pop()
            records.remove(whole[0])
        return records

    world = SelftestWorld(tmp_path, damage=lose)
    world.run(7)
    assert "open bounds" in world.problems()[1]
    assert set(world.problems()) <= {0, 1}


def test_a_clock_that_is_set_is_found(tmp_path: Path) -> None:
    """A wall clock that is 300 ms ahead from one moment on makes lags that nothing was late for."""
    world = SelftestWorld(tmp_path)
    world.run(1.5)
    world.clock.us += 300_000
    world.run(5)
    assert world.problems() == {1: "wrong lag"}


def test_a_monitor_that_stood_still_is_found(tmp_path: Path) -> None:
    """Stamps that were due come late; minutes that have passed meanwhile are injected no more."""
    world = SelftestWorld(tmp_path)
    world.run(1.5)
    world.clock.advance(200)
    world.run(6)
    assert set(world.problems()) == {1, 2}
    assert all("paused" in kinds for kinds in world.problems().values())
    with schema.open_snapshot(world.store) as connection:
        texts = [one.problems[0].text for one in selftest.read_failures(connection, 0, 2**62)]
    assert [text.removesuffix(" s")[:-2] for text in texts] == [
        "the monitor stood still for 170",
        "the monitor stood still for 200",
    ]


def test_windows_that_are_not_judged_are_found(tmp_path: Path) -> None:
    """If nothing of a minute came into the monitor, its window is silent."""
    world = SelftestWorld(tmp_path, damage=lambda _instance, _records: [])
    world.run(5)
    assert world.problems() == {1: "not judged"}


def test_a_minute_that_is_too_old_is_compared_no_more(tmp_path: Path) -> None:
    """A monitor that was down for hours has no use for what it injected before."""
    world = SelftestWorld(tmp_path)
    old = BEGIN_US - selftest.MAX_AGE_US - 10 * WINDOW_US
    for start_us in (old, BEGIN_US - 10 * WINDOW_US):
        selftest.record_minute(world.store, InjectedMinute(start_us, late_us=20_000_000))
    world.run(3)
    assert world.problems() == {-10: "paused"}


def test_a_kernel_that_overlooks_losses_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets without what is lost inside nodes miss ids, and counts are wrong."""
    break_sets(monkeypatch, lost_inside=False, loss=False)
    world = SelftestWorld(tmp_path, messages=240).run(5)
    assert all("missed loss" in kinds and "wrong count" in kinds for kinds in world.problems().values())
    assert set(world.problems()) == {1}


def break_sets(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:  # noqa: ANN401 - what a mask is said to be
    """Let the kernel say something else of all masks."""
    classify = sets.classify

    def broken(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the kernel has them
        told = classify(*args, **kwargs)
        return replace(told, **{name: np.full_like(getattr(told, name), value) for name, value in changes.items()})

    monkeypatch.setattr(sets, "classify", broken)
    monkeypatch.setattr(tally, "classify", broken)


def test_a_failed_minute_is_an_alert_of_the_monitor(tmp_path: Path) -> None:
    """The alert says how many minutes failed and the first problem; it ends once none has failed for a while."""
    rules = rule_config.build_rules(Settings({"selftest": {}}, DEFAULTS))
    world = SelftestWorld(tmp_path, follower=AlertHook(rules))
    world.run(1.5)
    world.clock.advance(20)
    world.run(24)
    with schema.open_snapshot(world.store) as connection:
        history = history_queries.query_history(connection, history_queries.select_newest(100))
        said = [
            (one.notification.event, one.notification.summary) for one in history if "selftest" in one.notification.key
        ]
    assert [event for event, _ in said] == ["resolved", "firing"]
    assert "self-test failed: in 1 min what was injected was not measured" in said[-1][1]
    assert "the monitor stood still for 20.0 s" in said[-1][1]


def test_reports_leave_the_self_test_out_unless_it_is_named(tmp_path: Path) -> None:
    """Losses that were made are in no sum; lists of streams do not have the stream, and nothing of it is published."""
    world = SelftestWorld(tmp_path).run(5)
    assert reader.read_report(world.store)["streams"] == []
    (told,) = reader.read_report(world.store, SELFTEST_STREAM)["streams"]
    assert any(window["lost"] for window in told["windows"])
    with schema.open_snapshot(world.store) as connection:
        assert publication.count_waiting(connection) == 0
        assert [one.stream for one in query_overview(connection).streams] == [SELFTEST_STREAM]
        assert connection.execute(select(tables.outliers)).all() == []
