"""Tests of what is old: it goes hour by hour, beside a monitor, and leaves hours, days and accounts as they were."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any, Final

import pytest
from sqlalchemy import Engine

from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import fencing, reader, retention, rollups, writer
from hopwatch.monitor.store.retention import PruneStep
from hopwatch.monitor.store.rollups import HOUR_US
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.clock import ManualClock
from tests.support.conclusions import build_conclusion, dump_tables, write_conclusions
from tests.support.spool import START_US, STREAM_CONFIGS, at_us, pack_ids

MINUTES: Final = 150
BEFORE_US: Final = START_US + 2 * HOUR_US


@pytest.fixture
def engine(engine: Engine) -> Engine:
    """Return the engine of a store with two hours and a half of two streams, all of it judged for good."""
    rules = STREAM_CONFIGS | {"trades": STREAM_CONFIGS["orders"]}
    base = build_conclusion(lost={"b": pack_ids(1)}, changed={"lost": [0, 1]})
    starts = [START_US + number * WINDOW_US for number in range(MINUTES)]
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "q", 0, rules)
        ranges = dict.fromkeys(rules, (starts[0], starts[-1]))
        broken = [
            SetAside("s.seg", n, 1, at_us(60 * n), ("bad_crc", "torn_tail")[n % 2], "odd") for n in range(MINUTES)
        ]
        writer.write_changes(connection, writer.Changes(0, streams=ranges, set_aside=broken))
    for stream in rules:
        made = [replace(base.result, stream=stream, window_start_us=start_us) for start_us in starts]
        write_conclusions(engine, *(base._replace(result=result) for result in made))
        with engine.execution_options(writes=True).begin() as connection:
            writer.drop_tallies(connection, [(stream, start_us) for start_us in starts])
    return engine


def prune(engine: Engine, before_us: int = BEFORE_US) -> PruneStep:
    """Prune, and return all that went."""
    steps = list(retention.prune(engine, before_us, ManualClock()))
    return PruneStep(sum(step.windows for step in steps), sum(step.set_aside for step in steps))


def left(engine: Engine, table: str, place: int = 1) -> list[int]:
    """Return the starts of the windows that a table still has, in minutes."""
    return [(row[place] - START_US) // WINDOW_US for row in dump_tables(engine)[table] if row[0] == "orders"]


def test_what_is_older_goes_in_every_table(engine: Engine) -> None:
    """Windows, nodes, lost ids, revisions; records set aside by their arrival."""
    assert retention.count_due(engine, BEFORE_US) == PruneStep(240, 120)
    assert prune(engine) == PruneStep(240, 120)
    for table in ("windows", "lost_ids", "revisions"):
        assert left(engine, table) == list(range(120, MINUTES))
    assert left(engine, "node_windows") == [minute for minute in range(120, MINUTES) for _ in "ab"]
    assert [row[1] for row in dump_tables(engine)["set_aside"]] == list(range(120, MINUTES))
    assert retention.count_due(engine, BEFORE_US) == prune(engine) == PruneStep(0, 0)


def test_hours_days_and_accounts_stay(engine: Engine) -> None:
    """To the last digit, written before or not."""
    before = [rollups.read_report(engine, by) for by in ("hour", "day")]
    assert [len(stream["hours"]) for stream in before[0]["streams"]] == [3, 3]
    prune(engine)
    assert [rollups.read_report(engine, by) for by in ("hour", "day")] == before
    assert reader.read_report(engine)["accounts"]["set_aside"] == {"bad_crc": 75, "torn_tail": 75}


def test_an_hour_with_a_window_that_can_still_change_stays_whole(engine: Engine) -> None:
    """So that its roll-up is made of all of its windows, whenever that is."""
    live = START_US + 70 * WINDOW_US
    write_conclusions(engine, build_conclusion(replace(build_conclusion().result, window_start_us=live)))
    assert retention.count_due(engine, BEFORE_US) == PruneStep(180, 120)
    assert prune(engine) == PruneStep(180, 120)
    assert left(engine, "windows") == list(range(60, MINUTES))
    with engine.execution_options(writes=True).begin() as connection:
        writer.drop_tallies(connection, [("orders", live)])
    assert prune(engine) == PruneStep(60, 0)


def test_the_cut_is_a_whole_hour() -> None:
    """The cut of retention is a whole hour, so that windows are kept at least as long as configured."""
    minute = 60_000_000
    assert format_iso(retention.cutoff_us(at_us(3 * 3_600) + 59 * minute, HOUR_US)) == "2026-01-01T02:00:00Z"
    assert format_iso(retention.cutoff_us(at_us(3 * 3_600), HOUR_US)) == "2026-01-01T02:00:00Z"


def test_a_transaction_is_an_hour_of_a_stream_and_rests_behind_it(engine: Engine) -> None:
    """At least as long as it took, and a moment where that was nothing."""
    clock = ManualClock()
    steps = list(retention.prune(engine, BEFORE_US, clock))
    assert steps == [PruneStep(windows=60)] * 4 + [PruneStep(set_aside=120)]
    assert clock.monotonic_s() == pytest.approx(6 * retention.MIN_REST_S)


def test_a_prune_that_is_stopped_goes_on_later(engine: Engine) -> None:
    """A prune that is stopped leaves whole hours, and goes on later."""
    before = rollups.read_report(engine, "hour")
    for _ in retention.prune(engine, BEFORE_US, ManualClock()):
        break
    assert left(engine, "windows") == list(range(60, MINUTES))
    assert rollups.read_report(engine, "hour") == before
    prune(engine)
    assert left(engine, "windows") == list(range(120, MINUTES))
    assert rollups.read_report(engine, "hour") == before


def test_a_window_that_comes_back_into_a_pruned_hour_changes_no_hour(engine: Engine) -> None:
    """A window in a pruned hour changes no hour, and goes with the next prune."""
    prune(engine)
    before = rollups.read_report(engine, "hour")
    write_conclusions(engine, build_conclusion(replace(build_conclusion().result, window_start_us=START_US)))
    assert rollups.read_report(engine, "hour") == before
    with engine.execution_options(writes=True).begin() as connection:
        writer.drop_tallies(connection, [("orders", START_US)])
    assert prune(engine) == PruneStep(1, 0)
    assert rollups.read_report(engine, "hour") == before


def test_a_writer_beside_it_is_not_starved(engine: Engine) -> None:
    """A monitor's transactions get their turn between any two of the prune's."""
    waited_s: list[float] = []
    over = threading.Event()

    def write_on() -> None:
        while not over.is_set():
            began_s = time.monotonic()
            with engine.execution_options(writes=True).begin() as connection:
                waited_s.append(time.monotonic() - began_s)
                writer.set_values(connection, {"beat": str(len(waited_s))})
            over.wait(0.01)

    thread = threading.Thread(target=write_on)
    thread.start()
    steps = 0
    for _ in retention.prune(engine, BEFORE_US, SystemClock()):
        steps += 1
    over.set()
    thread.join()
    assert steps == 5
    assert len(waited_s) >= steps
    assert max(waited_s) < 5
    assert left(engine, "windows") == list(range(120, MINUTES))


def test_what_is_set_aside_goes_in_pieces(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records set aside are pruned in bounded transactions, and each is counted once."""
    monkeypatch.setattr(retention, "SET_ASIDE_PER_STEP", 50)
    before: dict[str, Any] = reader.read_report(engine)["accounts"]
    steps = [step.set_aside for step in retention.prune(engine, BEFORE_US, ManualClock()) if step.set_aside]
    assert steps == [50, 50, 20]
    assert reader.read_report(engine)["accounts"] == before
