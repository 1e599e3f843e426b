"""Tests of the one state operator, driven by hand: no Spark, no waiting, the watermark is a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo

from hopwatch.monitor.kernel.window import STRAGGLING_US
from hopwatch.monitor.payloads import split_payloads, unpack_tally
from hopwatch.monitor.row_kinds import CLAIMS_ROW, FACTS_ROW, SET_ASIDE_ROW, TALLY_ROW, TICK_ROW
from hopwatch.monitor.spark import window_state as state_module
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.monitor.spark.rows import join_rows
from hopwatch.monitor.spark.window_state import ShardState, WindowShardProcessor
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.batch import Batch
from tests.support.spool import (
    START_MS,
    START_US,
    STREAM_CONFIGS,
    WINDOW_POLICY,
    at_us,
    observation_batch,
    write_segment,
)

KEY: Final = (CLAIMS_ROW, "orders", START_MS, 0)
FINAL_US: Final = WINDOW_POLICY.final_at_us(START_US)
OVER_US: Final = WINDOW_POLICY.amendable_until_us(START_US) + STRAGGLING_US


class KeptList(list[tuple[bytes, int]]):
    """List of one key, in the place of Spark's."""

    def get(self) -> Iterator[tuple[bytes, int]]:
        """Return what is kept."""
        return iter(self)

    appendValue = list.append  # noqa: N815 - Spark's name


@dataclass
class Kept:
    """Handle, value, claims and timers of one key, in the place of Spark's."""

    value: Any = None
    packed: KeptList = field(default_factory=KeptList)
    timers: list[int] = field(default_factory=list)
    watermark_us: int = 0

    def getValueState(self, name: str, schema: str) -> Kept:  # noqa: ARG002, N802 - Spark's name
        """Return the value of the key."""
        return self

    def getListState(self, name: str, schema: str) -> KeptList:  # noqa: ARG002, N802 - Spark's name
        """Return the claims of the key."""
        return self.packed

    def registerTimer(self, moment_ms: int) -> None:  # noqa: N802 - Spark's name
        """Note a timer."""
        self.timers.append(moment_ms)

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802 - Spark's name
        """Return the watermark."""
        return self.watermark_us // 1_000

    def get(self) -> Any:  # noqa: ANN401 - whatever was kept
        """Return what is kept."""
        return self.value

    def update(self, value: Any) -> None:  # noqa: ANN401 - whatever is to be kept
        """Keep a value."""
        self.value = value

    def clear(self) -> None:
        """Forget the value."""
        self.value = None


@dataclass
class Driven:
    """The operator with one key in its hands."""

    folder: Path
    rules: dict[str, StreamConfig] = field(default_factory=lambda: dict(STREAM_CONFIGS))
    kept: Kept = field(default_factory=Kept)
    key: tuple[str, str, int, int] = KEY

    def arrive(self, watermark_us: int, *batches: Batch, arrival_us: int = at_us(70)) -> list[Row]:
        """Let a trigger bring a segment with these batches, and return the rows that come out."""
        return self.rows(watermark_us, self.claims(*batches, arrival_us=arrival_us))

    def claims(self, *batches: Batch, arrival_us: int = at_us(70)) -> list[bytes]:
        """Return the claims on a new segment with these batches."""
        path = write_segment(self.folder / f"{len(list(self.folder.iterdir()))}.seg", *batches, arrival_us=arrival_us)
        rows = join_rows(decode_segments([str(path)], STREAM_CONFIGS))
        return [row.payload for row in rows if row.kind == CLAIMS_ROW]

    def rows(
        self, watermark_us: int, payloads: Sequence[bytes], operator: WindowShardProcessor | None = None
    ) -> list[Row]:
        """Let a trigger bring these payloads, of which this operator may have seen some."""
        self.kept.watermark_us = watermark_us
        rows = iter([Row(payload=payload) for payload in payloads])
        return list((operator or self.operator()).handleInputRows(self.key, rows, self.kept))

    def wake(self, watermark_us: int, timer_us: int = 0) -> list[Row]:
        """Let a timer expire."""
        self.kept.watermark_us = watermark_us
        info = ExpiredTimerInfo(timer_us // 1_000 + 1)
        return list(self.operator().handleExpiredTimer(self.key, self.kept, info))

    def operator(self) -> WindowShardProcessor:
        """Return a new one, as each trigger has: whatever is not in the state is lost between them."""
        operator = WindowShardProcessor(self.rules)
        operator.init(self.kept)  # type: ignore[arg-type]  # all that the operator uses of it
        return operator


@pytest.fixture
def driven(tmp_path: Path) -> Driven:
    """Return an operator without state."""
    return Driven(tmp_path)


@pytest.fixture
def growing(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> Driven:
    """Return an operator for which ten observations are many, however many batches they come in."""
    monkeypatch.setattr(state_module, "WORK_PER_TRIGGER", 10)
    monkeypatch.setattr(state_module, "WORK_PER_BATCH", 0)
    monkeypatch.setattr(state_module, "WORK_PER_TALLY", 0)
    return driven


def tallied(rows: list[Row]) -> list[tuple[str, int]]:
    """Return the kind of each row and how many observations it stands for."""
    return [(row.kind, unpack_tally(row.payload).observations if row.kind == TALLY_ROW else 0) for row in rows]


def test_the_first_claims_are_tallied_at_once(driven: Driven) -> None:
    """A dashboard is alive with the first trigger: the row carries key, watermark, sighting and tally."""
    (row,) = driven.arrive(at_us(20), observation_batch([1, 2]), arrival_us=at_us(70))
    assert row[:6] == (TALLY_ROW, "orders", START_MS, 0, at_us(20), at_us(70))
    assert unpack_tally(row.payload).observations == 2


def test_the_first_claims_set_the_timers_of_a_windows_life(driven: Driven) -> None:
    """Its end, its judgement, its end of amendments, and when all that is in flight is due; each 1 ms behind."""
    driven.arrive(at_us(20), observation_batch([1]), arrival_us=at_us(70))
    due = [at_us(60), FINAL_US, OVER_US, WINDOW_POLICY.settled_at_us(START_US, at_us(70))]
    assert driven.kept.timers == [moment_us // 1_000 + 1 for moment_us in due]


def test_later_claims_set_only_the_timer_of_what_is_in_flight(driven: Driven) -> None:
    """The window's own moments stay as they are."""
    driven.arrive(at_us(20), observation_batch([1]))
    driven.kept.timers.clear()
    driven.arrive(at_us(80), observation_batch([2], seq=1), arrival_us=at_us(90))
    assert driven.kept.timers == [WINDOW_POLICY.settled_at_us(START_US, at_us(90)) // 1_000 + 1]


def test_claims_add_up_over_triggers(driven: Driven) -> None:
    """Each tally is of all that was ever claimed, duplicate batches apart."""
    driven.arrive(at_us(20), observation_batch([1, 2]))
    assert tallied(driven.arrive(at_us(25), observation_batch([3], seq=1), observation_batch([1, 2]))) == [
        (TALLY_ROW, 3)
    ]


@pytest.mark.parametrize(("kind", "shard"), [(FACTS_ROW, 0), (SET_ASIDE_ROW, 0)])
def test_other_rows_pass_by_with_the_watermark(kind: str, shard: int, driven: Driven) -> None:
    """Other rows pass with the watermark, and leave no state and no timer."""
    driven.key = (kind, "", 0, shard)
    assert driven.rows(at_us(20), [b"one", b"two"]) == [
        (kind, "", 0, 0, at_us(20), 0, b"one"),
        (kind, "", 0, 0, at_us(20), 0, b"two"),
    ]
    assert (driven.kept.value, driven.kept.timers) == (None, [])


BROUGHT = {
    "small": ([4, 4], [4, 8]),
    "just small": ([8, 2], [8, 10]),
    "large at once": ([40], [None]),
    "large, bit by bit": ([8, 20, 40, 1], [8, None, None, None]),
}


@pytest.mark.parametrize(("brought", "counted"), BROUGHT.values(), ids=BROUGHT)
def test_a_window_is_tallied_with_each_trigger_until_it_is_large(
    brought: list[int], counted: list[int | None], growing: Driven
) -> None:
    """Up to WORK_PER_TRIGGER at every trigger; beyond, it waits for its next moment."""
    for seq, (many, total) in enumerate(zip(brought, counted, strict=True)):
        rows = growing.arrive(at_us(20 + seq), observation_batch(range(many), seq=seq))
        assert tallied(rows) == ([] if total is None else [(TALLY_ROW, total)])


def test_many_batches_of_little_make_a_large_window(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a batch costs as much as WORK_PER_BATCH observations: ten of one are as large as a thousand."""
    monkeypatch.setattr(
        state_module, "WORK_PER_TRIGGER", state_module.WORK_PER_TALLY + 10 * (state_module.WORK_PER_BATCH + 1)
    )
    brought = [driven.arrive(at_us(20 + seq), observation_batch([seq], seq=seq)) for seq in range(12)]
    assert [tallied(rows) for rows in brought[8:]] == [[(TALLY_ROW, 9)], [(TALLY_ROW, 10)], [], []]


def test_the_windows_of_a_worker_share_what_a_trigger_may_spend(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The windows of a worker share the work of a trigger; those beyond it wait for the next one."""
    of_one = state_module.WORK_PER_TALLY + state_module.WORK_PER_BATCH + 1
    monkeypatch.setattr(state_module, "WORK_PER_TRIGGER", 2 * of_one)
    (payload,) = driven.claims(observation_batch([1]))
    for _ in range(2):
        operator, came = driven.operator(), []
        for start_ms in (START_MS + minute * 60_000 for minute in range(3)):
            driven.key, driven.kept.value = (*KEY[:2], start_ms, 0), None
            driven.kept.packed.clear()
            came.append(tallied(driven.rows(at_us(20), [payload], operator)))
        assert came == [[(TALLY_ROW, 1)], [(TALLY_ROW, 1)], []]
    assert at_us(20) < driven.kept.timers[-1] * 1_000 <= at_us(40) + 1_000


@pytest.mark.parametrize(("shard", "tallies"), [(0, 0), (1, 1)])
def test_the_shard_that_counts_order_spends_more_of_a_trigger(
    shard: int, tallies: int, driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims that fit into a trigger wait in the shard that counts order, too: a budget is of time."""
    of_one = state_module.WORK_PER_TALLY + state_module.WORK_PER_BATCH + 100
    monkeypatch.setattr(state_module, "WORK_PER_TRIGGER", of_one)
    driven.rules = {"orders": replace(STREAM_CONFIGS["orders"], shards=2, order=True)}
    driven.key = (*KEY[:3], shard)
    assert len(driven.arrive(at_us(20), observation_batch(range(100)))) == tallies


def test_the_first_claims_of_a_window_that_has_ended_are_tallied_at_once(driven: Driven) -> None:
    """The first claims of a window that has ended are tallied at once."""
    assert tallied(driven.arrive(at_us(100), observation_batch([1]))) == [(TALLY_ROW, 1)]


def test_what_was_left_aside_is_tallied_within_20_s(growing: Driven) -> None:
    """One timer wakes the window for all of it, and what nothing was added to is not tallied again."""
    growing.arrive(at_us(20), observation_batch(range(20)))
    growing.arrive(at_us(25), observation_batch([30], seq=1))
    first, second = growing.kept.timers[-1], growing.arrive(at_us(25.001), observation_batch([31], seq=2))
    assert (second, growing.kept.timers[-1]) == ([], first)
    assert at_us(20) < first * 1_000 <= at_us(40) + 1_000
    assert tallied(growing.wake(first * 1_000)) == [(TALLY_ROW, 22)]
    assert tallied(growing.wake(first * 1_000)) == [(TICK_ROW, 0)]


def test_windows_with_deadlines_have_a_budget_and_moments_of_their_own(
    growing: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Overdue messages are found by tallies: up to DEADLINE_WORK_PER_TRIGGER at every trigger, else within 10 s."""
    monkeypatch.setattr(state_module, "DEADLINE_WORK_PER_TRIGGER", 30)
    growing.rules = {"orders": replace(STREAM_CONFIGS["orders"], deadlines=(("b", 1),))}
    assert tallied(growing.arrive(at_us(20), observation_batch(range(30)))) == [(TALLY_ROW, 30)]
    assert tallied(growing.arrive(at_us(25), observation_batch([30], seq=1))) == []
    assert at_us(25) < growing.kept.timers[-1] * 1_000 <= at_us(35) + 1_000
    assert tallied(growing.wake(growing.kept.timers[-1] * 1_000)) == [(TALLY_ROW, 31)]


def test_a_large_window_waits_at_its_end_for_its_next_moment(growing: Driven) -> None:
    """Its last messages are still on their way; one tally has them, too. A small one is tallied at once."""
    growing.arrive(at_us(50), observation_batch(range(20)), arrival_us=at_us(50))
    assert tallied(growing.wake(at_us(60.001), at_us(60))) == [(TICK_ROW, 0)]
    assert at_us(60) < growing.kept.timers[-1] * 1_000 <= at_us(80.001) + 1_000
    assert tallied(growing.wake(growing.kept.timers[-1] * 1_000)) == [(TALLY_ROW, 20)]


def test_a_large_window_is_tallied_at_its_end_if_it_is_to_be_judged_then(growing: Driven) -> None:
    """As where no message is waited for, or the watermark has come far at once."""
    growing.arrive(at_us(50), observation_batch(range(20)), arrival_us=at_us(50))
    assert tallied(growing.wake(FINAL_US, at_us(60))) == [(TALLY_ROW, 20)]


def test_windows_that_follow_each_other_are_recounted_at_different_moments(growing: Driven) -> None:
    """After a minute's end both have news, and each may be as much as a trigger can bear."""
    moments = []
    for start_ms in (START_MS, START_MS + 60_000, START_MS + 120_000):
        growing.key, growing.kept = (*KEY[:2], start_ms, 0), Kept()
        growing.rows(at_us(125), growing.claims(observation_batch(range(20))))
        moments.append(growing.kept.timers[-1] % 20_000)
    assert moments[0] == moments[2]
    assert abs(moments[1] - moments[0]) == 10_000


def test_streams_are_recounted_at_moments_of_their_own(growing: Driven) -> None:
    """Else one trigger in a few would pay for all of them."""
    moments = set()
    for name in (f"s{number}" for number in range(10)):
        growing.rules[name], growing.key, growing.kept = STREAM_CONFIGS["orders"], ("claims", name, START_MS, 0), Kept()
        growing.arrive(at_us(20), observation_batch(range(20)))
        moments.add(growing.kept.timers[-1])
    assert len(moments) == 10


def test_from_its_judgement_on_a_window_is_tallied_with_every_claim(growing: Driven) -> None:
    """From its judgement on, a window is tallied with every claim."""
    growing.arrive(at_us(20), observation_batch(range(20)))
    assert tallied(growing.arrive(FINAL_US - 1_000, observation_batch([30], seq=1))) == []
    assert tallied(growing.arrive(FINAL_US, observation_batch([31], seq=2))) == [(TALLY_ROW, 22)]


def test_a_timer_without_news_is_a_tick(driven: Driven) -> None:
    """The ledger learns how far the watermark is, and decides by itself what is due."""
    driven.arrive(at_us(20), observation_batch([1]))
    assert driven.wake(FINAL_US) == [(TICK_ROW, "", 0, 0, FINAL_US, 0, b"")]


def has_stamps(rows: list[Row]) -> list[bool]:
    """Return of each tally whether it keeps stamps."""
    return [unpack_tally(row.payload).stamp_sample is not None for row in rows if row.kind == TALLY_ROW]


def test_stamps_are_kept_once_a_window_is_over(driven: Driven) -> None:
    """By the watermark, or by what has arrived: most tallies are of a window that lasts, and nobody asks for times."""
    early, late = at_us(59), at_us(60)
    assert has_stamps(driven.arrive(at_us(60) - 1, observation_batch([1]), arrival_us=early)) == [False]
    assert has_stamps(driven.arrive(at_us(60), observation_batch([2], seq=1), arrival_us=early)) == [True]
    driven.kept = Kept()
    assert has_stamps(driven.arrive(at_us(20), observation_batch([3]), arrival_us=late)) == [True]


def test_a_window_to_which_nothing_came_after_its_end_is_tallied_then(driven: Driven) -> None:
    """Its last tally is from before, without stamps; no other timer tallies it again."""
    driven.arrive(at_us(20), observation_batch([1]), arrival_us=at_us(59))
    assert tallied(driven.wake(at_us(61), timer_us=at_us(90))) == [(TICK_ROW, 0)]
    rows = driven.wake(at_us(61), timer_us=at_us(60))
    assert (tallied(rows), has_stamps(rows)) == ([(TALLY_ROW, 1)], [True])


def test_a_window_whose_last_claims_came_after_its_end_is_not_tallied_again(driven: Driven) -> None:
    """As in a backlog, where all of a window is in hand before the watermark has come to its end."""
    driven.arrive(at_us(20), observation_batch([1]), arrival_us=at_us(60))
    assert tallied(driven.wake(at_us(61), timer_us=at_us(60))) == [(TICK_ROW, 0)]


def test_a_window_is_forgotten_when_nothing_can_change_it(driven: Driven) -> None:
    """Not a moment earlier: up to the end of amendments, and a minute for what is read out of order."""
    driven.arrive(at_us(20), observation_batch([1]))
    driven.wake(OVER_US)
    assert driven.kept.value is not None
    assert tallied(driven.wake(OVER_US + 1_000)) == [(TICK_ROW, 0)]
    assert driven.kept.value is None


def test_what_was_left_aside_is_tallied_before_the_window_is_forgotten(growing: Driven) -> None:
    """Nothing that was claimed goes uncounted."""
    growing.arrive(at_us(20), observation_batch(range(20)))
    growing.arrive(at_us(25), observation_batch([30], seq=1))
    assert tallied(growing.wake(OVER_US + 1_000)) == [(TALLY_ROW, 21)]
    assert growing.kept.value is None


def test_claims_on_a_window_that_is_over_are_refused(driven: Driven) -> None:
    """Claims on a window that is over are refused, and leave no state and no timer."""
    assert driven.arrive(OVER_US, observation_batch([1])) != []
    driven.kept = Kept()
    assert driven.arrive(OVER_US + 1_000, observation_batch([1])) == []
    assert (driven.kept.value, driven.kept.timers) == (None, [])


def test_a_window_without_state_ticks(driven: Driven) -> None:
    """A timer that outlives its window does no harm."""
    assert tallied(driven.wake(OVER_US + 200_000_000)) == [(TICK_ROW, 0)]
    assert driven.kept.value is None


def test_a_stream_that_the_configuration_has_dropped_is_forgotten(driven: Driven) -> None:
    """Its timers expire in silence; the job goes on."""
    driven.arrive(at_us(20), observation_batch([1]))
    driven.rules = {}
    assert driven.wake(at_us(61)) == []
    assert driven.kept.value is None


def test_each_shard_tallies_its_own_messages(driven: Driven) -> None:
    """The same claims reach every shard, each message is counted in one of them."""
    driven.rules = {"orders": replace(STREAM_CONFIGS["orders"], shards=2)}
    counted = []
    for shard in (0, 1):
        driven.key, driven.kept = (*KEY[:3], shard), Kept()
        (row,) = driven.arrive(at_us(20), observation_batch(range(100)))
        assert row.shard == shard
        counted.append(unpack_tally(row.payload).observations)
    assert sum(counted) == 100
    assert min(counted) > 0


def test_state_is_what_spark_can_keep(driven: Driven) -> None:
    """Parcels as one and two numbers, in the order of the schema; nothing of the observations themselves."""
    driven.arrive(at_us(20), observation_batch(range(1_000)))
    claims, claimed, counted = driven.kept.value
    work = 1_000 + state_module.WORK_PER_BATCH
    assert (claimed, counted, len(list(split_payloads(claims)))) == (work, work, 1)
    assert len(claims) < 500


def test_many_claims_move_into_a_list(driven: Driven) -> None:
    """A value is written anew in each trigger, of a list what is added; a tally reads both."""
    many = [observation_batch([number], probe=f"p{number}") for number in range(400)]
    driven.arrive(at_us(20), *many)
    rows = driven.arrive(at_us(21), observation_batch([400], probe="p400"))
    ((packed, size),) = driven.kept.packed
    assert len(packed) < size / 4
    assert 0 < len(driven.kept.value[0]) < 500
    assert tallied(rows) == [(TALLY_ROW, 401)]
    more = [observation_batch([number], probe=f"p{number}") for number in range(401, 801)]
    assert tallied(driven.arrive(at_us(22), *more)) == [(TALLY_ROW, 801)]
    assert len(driven.kept.packed) == 2
    assert driven.kept.packed[0] == (packed, size)
    assert driven.kept.value[0] == b""


def test_many_claims_in_the_value_of_an_older_checkpoint_are_read(driven: Driven) -> None:
    """There the value had all of them; what comes next moves them into the list."""
    older = driven.claims(*(observation_batch([number], probe=f"p{number}") for number in range(400)))
    joined = b"".join(older)
    assert len(joined) > state_module.MAX_CLAIMS_BYTES
    driven.kept.value = joined, 400, 0
    assert tallied(driven.wake(at_us(61), at_us(60))) == [(TALLY_ROW, 400)]
    assert tallied(driven.arrive(at_us(62), observation_batch([400], probe="p400"))) == [(TALLY_ROW, 401)]
    assert len(driven.kept.packed) == 1


def test_a_shard_knows_what_was_left_aside() -> None:
    """More claimed than tallied is due; equal is not."""
    assert ShardState(b"", 3, 2).is_due
    assert not ShardState(b"", 3, 3).is_due
    assert not ShardState().is_due
