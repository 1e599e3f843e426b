"""Tests of a topic as the job reads it: what a batch was to read, and what it keeps between batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hopwatch.monitor.accounting.holes import PlannedRead
from hopwatch.monitor.errors import CheckpointError, TransportError
from hopwatch.monitor.spark.landing import READ_THROUGH, load_read_through_us
from hopwatch.monitor.spark.sources.kafka import KafkaSource
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from tests.support.file_permissions import without_root

PLANNED_MS = 1_760_000_000_000


@pytest.fixture
def source(tmp_path: Path) -> KafkaSource:
    """Return the source of a topic that nobody serves."""
    return KafkaSource(KafkaPlace("127.0.0.1:1", "t"), KafkaAccess(), tmp_path / "landed", 100)


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
