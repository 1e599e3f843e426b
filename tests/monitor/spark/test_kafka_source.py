"""Tests of a topic as the job reads it: what a batch was to read, and what it keeps between batches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hopwatch.monitor import settings
from hopwatch.monitor.accounting.holes import PlannedRead
from hopwatch.monitor.errors import CheckpointError, TransportError
from hopwatch.monitor.results import CommittedBatch
from hopwatch.monitor.spark.landing import READ_THROUGH, load_read_through_us
from hopwatch.monitor.spark.sources.kafka import MAX_RECORDS_PER_TRIGGER, KafkaSource
from hopwatch.monitor.spark.sources.record_source import SpoolSource, build_source
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from tests.support.file_permissions import without_root

PLANNED_MS = 1_760_000_000_000
TOPIC = '[transport]\nurl = "kafka://127.0.0.1:1/t"\n'


@pytest.fixture
def source(tmp_path: Path) -> KafkaSource:
    """Return the source of a topic that nobody serves."""
    return KafkaSource(KafkaPlace("127.0.0.1:1", "t"), KafkaAccess(), tmp_path / "landed", 100, is_adaptive=False)


def planned(checkpoint: Path, batch_id: int, ends: dict[str, int], first: dict[str, int] | None = None) -> None:
    """Write what Spark notes before it reads a batch, and before the first one."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    lines = ["v1", json.dumps({"batchTimestampMs": PLANNED_MS}), json.dumps({"t": ends})]
    (checkpoint / "offsets" / str(batch_id)).write_text("\n".join(lines))
    if first is not None:
        (checkpoint / "sources" / "0").mkdir(parents=True)
        (checkpoint / "sources" / "0" / "0").write_text("v1\n" + json.dumps({"t": first}))


def test_a_batch_was_to_read_from_where_the_last_one_ended(source: KafkaSource, tmp_path: Path) -> None:
    """The first from where the topic began; a partition that was added since, from its own beginning."""
    planned(tmp_path, 0, {"0": 7}, first={"0": 3})
    planned(tmp_path, 1, {"0": 9, "1": 4})
    moment_us = PLANNED_MS * 1_000
    assert source.expected(tmp_path, 0) == PlannedRead({"t/0": (3, 7)}, moment_us)
    assert source.expected(tmp_path, 1) == PlannedRead({"t/0": (7, 9), "t/1": (0, 4)}, moment_us)


def test_a_batch_as_large_as_one_may_be_is_known(source: KafkaSource, tmp_path: Path) -> None:
    """Spark rounds the share of each partition down."""
    planned(tmp_path, 0, {"0": 50, "1": 49}, first={"0": 0, "1": 0})
    assert source.expected(tmp_path, 0).is_limited


def test_a_batch_that_was_planned_with_an_earlier_limit_is_known_as_full(source: KafkaSource, tmp_path: Path) -> None:
    """More may have been there than it read, so that nothing is judged by the moment of its plan."""
    planned(tmp_path, 0, {"0": 2_000}, first={"0": 0})
    assert replace(source, max_records=50_000).expected(tmp_path, 0).is_limited
    planned(tmp_path, 1, {"0": 3_000})
    assert not replace(source, max_records=50_000).expected(tmp_path, 1).is_limited
    assert source.expected(tmp_path, 1).is_limited


def of_batch(records: int, took_s: float) -> CommittedBatch:
    """Return a batch that was to read so many records, and took so long."""
    return CommittedBatch((), 0, took_s, records)


@pytest.mark.parametrize(
    ("records", "took_s", "limit"),
    [
        (2_000, 3.0, 10_000),
        (1_990, 7.5, 4_000),
        (2_000, 0.0, 16_000),
        (2_000, 12.0, 2_500),
        (2_000, 12.1, None),
        (2_000, 60.0, None),
        (1_700, 1.0, None),
        (0, 0.1, None),
    ],
)
def test_full_batches_let_a_trigger_read_more_up_to_three_intervals(
    source: KafkaSource, records: int, took_s: float, limit: int | None
) -> None:
    """As many more as three intervals have time for, eight times at most; not for a few more, and never fewer."""
    adaptive = replace(source, max_records=2_000, is_adaptive=True)
    wider = adaptive.widen(of_batch(records, took_s), 5_000_000)
    assert wider == (None if limit is None else replace(adaptive, max_records=limit))


def test_a_trigger_reads_no_more_than_a_disk_has_room_for(source: KafkaSource) -> None:
    """Full records are large, and lie on the disk until their windows are final, however fast triggers are."""
    adaptive = replace(source, is_adaptive=True, max_records=60_000)
    wider = adaptive.widen(of_batch(60_000, 0.1), 5_000_000)
    assert wider is not None
    assert wider.max_records == MAX_RECORDS_PER_TRIGGER
    assert wider.widen(of_batch(MAX_RECORDS_PER_TRIGGER, 0.1), 5_000_000) is None


def test_a_number_of_records_that_was_chosen_stays(tmp_path: Path) -> None:
    """A number of the configuration may be there to bound memory; without one it grows from 2,000."""
    (tmp_path / "hopwatch.toml").write_text(TOPIC)
    adaptive = build_source(settings.load(tmp_path / "hopwatch.toml", flags={}, environ={}))
    assert isinstance(adaptive, KafkaSource)
    assert (adaptive.max_records, adaptive.is_adaptive) == (2_000, True)
    (tmp_path / "hopwatch.toml").write_text(f"{TOPIC}records_per_trigger = 500\n")
    fixed = build_source(settings.load(tmp_path / "hopwatch.toml", flags={}, environ={}))
    assert isinstance(fixed, KafkaSource)
    assert fixed.max_records == 500
    assert fixed.widen(of_batch(500, 0.1), 5_000_000) is None


def test_a_spool_has_no_such_number(tmp_path: Path) -> None:
    """A trigger reads so many bytes of it."""
    assert SpoolSource(tmp_path).widen(of_batch(0, 0.1), 5_000_000) is None


def test_a_topic_that_is_made_anew_while_it_is_read_ends_the_job(source: KafkaSource, tmp_path: Path) -> None:
    """A topic whose offsets went back ends the job, as old and new records cannot be told apart."""
    planned(tmp_path, 0, {"0": 55}, first={"0": 0})
    planned(tmp_path, 1, {"0": 3})
    with pytest.raises(CheckpointError) as caught:
        source.expected(tmp_path, 1)
    assert str(caught.value) == (
        "the topic t was made anew: t/0 ends at 3, and was read up to 55; "
        "pass --begin-anew, or name another store and workdir"
    )


def test_a_checkpoint_that_does_not_tell_is_named(source: KafkaSource, tmp_path: Path) -> None:
    """Without it nobody knows what is missing."""
    with pytest.raises(CheckpointError) as caught:
        source.expected(tmp_path, 4)
    assert str(caught.value) == (
        f"the checkpoint {tmp_path} does not tell what batch 4 reads: put it and the store aside to begin anew"
    )


def test_how_far_all_was_read_is_told_to_the_workers_until_the_next_start(source: KafkaSource) -> None:
    """The next start may be one on another checkpoint, or none."""
    assert load_read_through_us(source.landed) == 0
    source.note_read_through(7)
    source.note_read_through(9)
    assert load_read_through_us(source.landed) == 9
    source.tidy((), source.landed.parent)
    assert not (source.landed / READ_THROUGH).exists()


def test_sparks_readers_make_no_topic(source: KafkaSource) -> None:
    """Neither the driver's nor the workers', however the brokers are set up: one that was deleted stays away."""
    assert source._options(2)["kafka.allow.auto.create.topics"] == "false"


def test_segments_that_were_landed_are_named_in_order(source: KafkaSource) -> None:
    """None before the first record came; what is being written is none."""
    assert source.segments() == []
    source.landed.mkdir()
    for name in ("1.seg", "0.seg", "2.open", "notes"):
        (source.landed / name).touch()
    assert source.segments() == [source.landed / "0.seg", source.landed / "1.seg"]


def test_a_working_folder_of_another_user_is_told_with_what_to_do(open_folder: Path) -> None:
    """A work folder of another user is an error that says what to do."""
    landed = open_folder / "var" / "landed"
    landed.mkdir(parents=True)
    landed.parent.chmod(0o600)
    source = KafkaSource(KafkaPlace("127.0.0.1:1", "t"), KafkaAccess(), landed, 100)
    with without_root(), pytest.raises(TransportError) as caught:
        source.segments()
    landed.parent.chmod(0o700)
    assert str(caught.value) == (
        f"the folder {landed}, where records of the topic are landed, cannot be read: Permission denied: "
        f"run this as the monitor's user, or let this one in: chmod g+rx {landed.parent} {landed}"
    )
