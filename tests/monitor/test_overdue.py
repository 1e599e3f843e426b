"""Tests of what is overdue in windows that are not final, from the probes' segments to the store and the alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, select

from hopwatch.alerts import rule_config
from hopwatch.alerts.batch_hook import AlertHook
from hopwatch.alerts.storage import history_queries
from hopwatch.monitor.micro_batch import BatchFollower
from hopwatch.monitor.settings import DEFAULTS, Settings
from hopwatch.monitor.spark import window_state
from hopwatch.monitor.store import reader, tables
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.micro_batches import MicroBatches
from tests.support.model_comparison import prepared_store
from tests.support.spool import START_US, STREAM_CONFIGS, at_us, make_batch, observation_batch, write_segment
from tests.support.spool_traffic import pulse

TEN_SECONDS: Final = replace(STREAM_CONFIGS["orders"], deadlines=(("a", 10_000_000), ("b", 10_000_000)))
ALL: Final = range(10)


@dataclass
class Watch:
    """A monitor over two probes, of a and b, whose batches come when a test says."""

    folder: Path
    config: StreamConfig = TEN_SECONDS
    follower: BatchFollower | None = None
    sent: dict[str, int] = field(default_factory=dict)
    store: Engine = field(init=False)
    batches: MicroBatches = field(init=False)

    def __post_init__(self) -> None:
        """Start both probes ten seconds before the window."""
        self.store = prepared_store(self.folder, "stream.db")
        self.batches = MicroBatches({"orders": self.config}, self.store, follower=self.follower)
        self.tell(0, *(self.heartbeat(node, -10) for node in "ab"))

    def heartbeat(self, node: str, seconds: float) -> Batch:
        """Return a heartbeat that completes a moment."""
        return self._number(make_batch(BatchKind.HEARTBEAT, node, complete_through_us=at_us(seconds)))

    def observed(self, node: str, numbers: Sequence[int], seconds: float, **fields: Any) -> Batch:  # noqa: ANN401 - as a Batch has them
        """Return observations that complete a moment."""
        return self._number(observation_batch(numbers, node, complete_through_us=at_us(seconds), **fields))

    def _number(self, batch: Batch) -> Batch:
        seq = self.sent[batch.node] = self.sent.get(batch.node, -1) + 1
        return replace(batch, seq=seq)

    def tell(self, seconds: float, *batches: Batch) -> None:
        """Let batches arrive together, in one micro-batch."""
        path = self.folder / "spool" / f"{len(list(self.folder.rglob('*.seg')))}.seg"
        self.batches.run([write_segment(path, *batches, arrival_us=at_us(seconds))])

    def move(self, seconds: float) -> None:
        """Let both probes complete a moment, and the watermark reach it: the next micro-batch goes by it."""
        self.tell(seconds, *(self.heartbeat(node, seconds) for node in "ab"))
        self.batches.run([pulse(at_us(seconds - 1), f"at{seconds}").write(self.folder / "spool")])

    def figures(self) -> tuple[str, int, int, int]:
        """Return the status of the window, and what is overdue at a, at b and end to end."""
        with self.store.begin() as connection:
            found = reader.read_window(connection, "orders", START_US)
        assert found is not None
        return str(found.status), found.nodes[0].overdue, found.nodes[1].overdue, found.overdue


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    """Return a monitor to which a told of ten messages, at 6 s, and b of nine, at 7 s."""
    return begin(Watch(tmp_path))


def begin(watch: Watch) -> Watch:
    """Let a tell of ten messages, and b of nine."""
    watch.tell(5.2, watch.observed("a", ALL, 5))
    watch.tell(6.1, watch.observed("b", ALL[:9], 6))
    return watch


def test_a_message_is_overdue_once_deadline_and_settle_have_passed(watch: Watch) -> None:
    """A message that was last heard of in the second up to 6 s is due at 46 s, though nothing came of its window."""
    watch.move(45)
    assert watch.figures() == ("OPEN", 0, 0, 0)
    watch.move(46)
    assert watch.figures() == ("OPEN", 0, 1, 1)


def test_the_micro_batch_that_reads_the_accounts_tells_what_is_overdue(watch: Watch) -> None:
    """Accounts and tallies have all of it; the watermark is what the micro-batch before has read."""
    watch.tell(45.9, *(watch.heartbeat(node, 45.9) for node in "ab"))
    assert watch.figures() == ("OPEN", 0, 0, 0)
    watch.tell(46, *(watch.heartbeat(node, 46) for node in "ab"))
    assert watch.figures() == ("OPEN", 0, 1, 1)


def test_what_is_overdue_is_in_flight_and_no_loss(watch: Watch) -> None:
    """Bounds of loss stay 0 until the window is final; then it is lost, and nothing is overdue."""
    watch.move(50)
    with watch.store.begin() as connection:
        found = reader.read_window(connection, "orders", START_US)
    assert found is not None
    assert (found.lost_lower, found.lost, found.in_flight, found.verdict) == (0, 0, 1, None)
    watch.move(241)
    assert watch.figures() == ("FINAL", 0, 0, 0)
    with watch.store.begin() as connection:
        found = reader.read_window(connection, "orders", START_US)
    assert found is not None
    assert found.lost_lower == 1


def test_what_comes_after_its_deadline_is_overdue_no_more(watch: Watch) -> None:
    """A message that comes late, before the window is final, is in time for the window."""
    watch.move(50)
    watch.tell(51, watch.observed("b", ALL[9:], 51))
    assert watch.figures() == ("OPEN", 0, 0, 0)


def test_a_node_that_has_not_told_all_shows_nothing(watch: Watch) -> None:
    """The account of a node that ends at 6 s does not tell what it saw since then."""
    watch.tell(50, watch.heartbeat("a", 50))
    watch.batches.run([pulse(at_us(50), "quiet").write(watch.folder / "spool")])
    assert watch.figures() == ("OPEN", 0, 0, 0)


def test_each_node_has_a_deadline_of_its_own(tmp_path: Path) -> None:
    """A node without one has nothing overdue; what is stuck inside a node is overdue there."""
    config = replace(TEN_SECONDS, deadlines=(("a", 20_000_000),))
    watch = Watch(tmp_path, config)
    watch.tell(5.2, watch.observed("a", ALL, 5))
    watch.tell(5.3, watch.observed("a", [77], 5.1, lag_out_us=b""))
    watch.move(55)
    assert watch.figures() == ("OPEN", 0, 0, 0)
    watch.move(56)
    assert watch.figures() == ("OPEN", 1, 0, 1)


def test_a_stream_without_a_deadline_has_nothing_overdue(tmp_path: Path) -> None:
    """One message of ten is missing, and is in flight until the window is final."""
    watch = begin(Watch(tmp_path, STREAM_CONFIGS["orders"]))
    watch.move(100)
    assert watch.figures() == ("PROVISIONAL", 0, 0, 0)


def test_books_that_are_ahead_of_a_tally_make_nothing_overdue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that the books have and the tally has not yet has its messages; they are not missing."""
    watch = begin(Watch(tmp_path, replace(TEN_SECONDS, shards=2)))
    for budget in ("WORK_PER_TRIGGER", "DEADLINE_WORK_PER_TRIGGER"):
        monkeypatch.setattr(window_state, budget, 0)
    watch.tell(44, watch.observed("b", ALL[9:], 44))
    tallied = [watch.batches.ledger.live["orders"][START_US].watch.tallied]  # type: ignore[union-attr]
    for seconds in range(45, 60):
        watch.move(seconds)
        assert watch.figures()[1:] == (0, 0, 0)
        tallied.append(watch.batches.ledger.live["orders"][START_US].watch.tallied)  # type: ignore[union-attr]
    assert tallied[0] == frozenset()
    watch.move(75)
    assert watch.batches.ledger.live["orders"][START_US].watch.tallied == {0, 1}  # type: ignore[union-attr]
    assert watch.figures()[1:] == (0, 0, 0)


def test_figures_outlive_a_restart(watch: Watch) -> None:
    """Until all shards are tallied again, the figures are those that the store has."""
    watch.move(50)
    watch.batches.restart()
    watch.move(61)
    assert watch.figures() == ("PROVISIONAL", 0, 1, 1)


def test_a_window_is_judged_again_only_when_more_is_due(watch: Watch) -> None:
    """Time alone writes nothing: the number of the last write stays as long as the same messages are due."""
    numbers = []
    for seconds in (44, 45, 46, 50, 55):
        watch.move(seconds)
        with watch.store.begin() as connection:
            chosen = select(tables.windows.c.sequence).where(tables.windows.c.window_start_us == START_US)
            numbers.append(connection.execute(chosen).scalar_one())
    assert numbers[0] == numbers[1] < numbers[2] == numbers[3] == numbers[4]


def test_the_loss_rule_fires_before_the_window_is_final(tmp_path: Path) -> None:
    """One incident, at 46 s; the final window says in it what was lost, and notifies nobody again."""
    table = {"path": "a -> b", "deadline": "10s"}
    settings = Settings({"streams": {"orders": table}}, DEFAULTS)
    rules = rule_config.build_rules(settings)
    hook = AlertHook(rules)
    watch = begin(Watch(tmp_path, settings.stream_configs()["orders"], hook))
    watch.move(46)
    told = read_losses(watch)
    assert told == [("firing", told[0][1], True)]
    assert told[0][1].startswith(
        "overdue: 1 of 10 messages (10.0%) are missing at b of orders beyond their deadline (10"
    )
    watch.move(241)
    assert read_losses(watch) == told
    with watch.store.begin() as connection:
        summaries = [one.notification.summary for one in history_queries.query_open_incidents(connection)]
    assert any(text.startswith("lost: 1 of 10 messages (10.0%) surely lost at b of orders") for text in summaries)


def test_the_first_micro_batch_of_a_monitor_leaves_what_is_overdue_to_the_next(tmp_path: Path) -> None:
    """Alerts are judged by the watermark, and a monitor that has just begun has none: nobody would be told."""
    settings = Settings({"streams": {"orders": {"path": "a -> b", "deadline": "10s"}}}, DEFAULTS)
    watch = begin(Watch(tmp_path, settings.stream_configs()["orders"]))
    watch.move(46)
    segments = sorted(tmp_path.rglob("*.seg"), key=lambda path: path.stat().st_mtime_ns)
    (tmp_path / "late").mkdir()
    watch.store = prepared_store(tmp_path / "late", "stream.db")
    hook = AlertHook(rule_config.build_rules(settings))
    watch.batches = MicroBatches(settings.stream_configs(), watch.store, follower=hook)
    watch.batches.run(segments)
    assert (watch.figures(), read_losses(watch)) == (("OPEN", 0, 0, 0), [])
    watch.move(46.5)
    assert watch.figures() == ("OPEN", 0, 1, 1)
    assert [event for event, *_ in read_losses(watch)] == ["firing"]


def test_what_arrives_after_all_ends_the_alert(tmp_path: Path) -> None:
    """The end says that it has arrived."""
    settings = Settings({"streams": {"orders": {"path": "a -> b", "deadline": "10s"}}}, DEFAULTS)
    watch = begin(Watch(tmp_path, settings.stream_configs()["orders"], AlertHook(rule_config.build_rules(settings))))
    watch.move(46)
    watch.tell(51, watch.observed("b", ALL[9:], 51))
    watch.move(61)
    (_, (event, summary, _)) = read_losses(watch)
    assert (event, summary.rpartition("; ")[2]) == ("resolved", "what was overdue has arrived after all")


def read_losses(watch: Watch) -> list[tuple[str, str, bool]]:
    """Return what was told of losses, the oldest first: event, sentence, and whether it is news."""
    with watch.store.begin() as connection:
        entries = history_queries.query_history(connection, history_queries.select_newest(100))
    told = [entry.notification for entry in reversed(entries)]
    return [(str(one.event), one.summary, one.is_news) for one in told if one.rule == "loss"]


def test_the_window_after_the_next_is_no_window_to_judge(watch: Watch) -> None:
    """A window that begins behind the moment that is judged has nothing overdue, and costs no judgement."""
    watch.tell(61, watch.observed("a", [100], 61, window_start_ms=(START_US + WINDOW_US) // 1_000))
    watch.move(70)
    with watch.store.begin() as connection:
        found = reader.read_window(connection, "orders", START_US + WINDOW_US)
    assert found is not None
    assert (found.overdue, found.in_flight) == (0, 1)
