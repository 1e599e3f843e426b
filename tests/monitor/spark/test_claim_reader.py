"""Tests of redeeming claim checks: what is read back from the segments is what was observed."""

from __future__ import annotations

import resource
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks, naming
from hopwatch.monitor.kernel.journeys import RecordColumns
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import Tally, build_tally, empty_tally, instance_name, merge_tallies
from hopwatch.monitor.payloads import CLAIMS, EARLY, Claims, pack_tally
from hopwatch.monitor.row_kinds import CLAIMS_ROW
from hopwatch.monitor.spark import claim_reader
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.probes.contract import envelope, id_texts
from hopwatch.probes.contract.batch import Batch, WireIdKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import NO_REASON, NOT_STAMPED
from tests.support.spool import STREAM_CONFIGS, at_us, observation_batch, pack_ids, pack_lags, write_segment

CONFIG = STREAM_CONFIGS["orders"]
PATHWAY = CONFIG.pathway
END_US = at_us(60)


def claims_on(*paths: Path) -> list[Claims]:
    """Return the claims that the decoder leaves for the window."""
    rows = decode_segments([str(path) for path in paths], STREAM_CONFIGS)
    return [Claims.unpack(row.payload) for row in rows if row.kind == CLAIMS_ROW]


def of_arrays(batches: Iterable[Batch], arrival_us: int) -> Tally:
    """Return the kernel's tally of the same observations, given as arrays."""
    return build_tally(
        PATHWAY,
        [
            ObservedBatch(
                PATHWAY.nodes.index(batch.node),
                instance_name(batch.node, batch.probe, batch.epoch_us),
                arrival_us,
                masks.ids_from_bytes(batch.message_ids),
                np.frombuffer(batch.lag_in_us, "<i8"),
                np.frombuffer(batch.lag_out_us, "<i8"),
                np.frombuffer(batch.outcome, "u1"),
                batch.id_kind,
                np.frombuffer(batch.id_texts, "u1"),
                np.frombuffer(batch.id_text_ends, "<u4"),
                record=partial(_recorded, batch),
            )
            for batch in batches
        ],
        END_US,
    )


def _recorded(batch: Batch, rows: NDArray[np.int64]) -> RecordColumns:
    """Return what a batch says of the observations at some places, value by value."""
    kinds = (("event_offset_us", "<u4", 0), ("lag_in_us", "<i8", NOT_STAMPED), ("lag_out_us", "<i8", NOT_STAMPED))
    offsets, lags_in, lags_out, outcomes, reasons, until = (
        [np.frombuffer(field, dtype)[row] if (field := getattr(batch, name)) else missing for row in rows.tolist()]
        for name, dtype, missing in (*kinds, ("outcome", "u1", 0), ("reason", "u1", NO_REASON), ("until_us", "<i8", 0))
    )
    event_times_us = np.array([batch.window_start_ms * 1_000 + int(offset) for offset in offsets], np.int64)
    lag_in_us, lag_out_us = np.array(lags_in, np.int64), np.array(lags_out, np.int64)
    outcome, reason = np.array(outcomes, np.uint8), np.array(reasons, np.uint8)
    columns = event_times_us, lag_in_us, lag_out_us, outcome, reason
    return RecordColumns(batch.probe, *columns, batch.reasons, np.array(until, np.int64))


MIN_VIEWED = st.sampled_from([1, claim_reader.MIN_VIEWED])
"""Whether batches are looked at one by one, or taken together."""


@st.composite
def _batches(draw: st.DrawFn) -> list[Batch]:
    """Draw batches of one window: any nodes, ids, stamps and outcomes that a probe may send."""
    batches = []
    for seq in range(draw(st.integers(1, 5))):
        numbers = draw(st.lists(st.integers(0, 9), min_size=1, max_size=8))
        outcome = draw(st.none() | st.binary(min_size=len(numbers), max_size=len(numbers)).map(_as_outcomes))
        times = st.lists(st.integers(-(2**40), 2**40), min_size=len(numbers), max_size=len(numbers))
        stamps: dict[str, Any] = {
            "lag_in_us": pack_lags(*draw(times)),
            "lag_out_us": draw(st.just(b"") | times.map(lambda us: pack_lags(*us))),
        }
        named = draw(st.sampled_from([{"id_kind": WireIdKind.INT}, *_as_texts(numbers)]))
        batches.append(
            observation_batch(numbers, draw(st.sampled_from("ab")), seq=seq, outcome=outcome or b"", **stamps | named)
        )
    return batches


def _as_texts(numbers: list[int]) -> list[dict[str, Any]]:
    """Return what a batch says whose ids are texts: with the texts, and without them."""
    texts = [f"order-{number}" for number in numbers]
    laid_out, ends = id_texts.join_texts([text.encode() for text in texts])
    said: dict[str, Any] = {"id_kind": WireIdKind.TEXT, "message_ids": b"".join(map(id_bytes, texts))}
    return [said, said | {"id_texts": laid_out, "id_text_ends": ends}]


def _as_outcomes(drawn: bytes) -> bytes:
    return bytes(byte % 3 for byte in drawn)


@given(_batches(), MIN_VIEWED)
def test_a_tally_of_claims_is_that_of_the_arrays(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Batch], min_viewed: int
) -> None:
    """The tally of claims on a segment equals, to the byte, the tally of the same arrays, be batches small or large."""
    path = write_segment(tmp_path_factory.mktemp("spool") / "s.seg", *batches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim_reader, "MIN_VIEWED", min_viewed)
        tally = claim_reader.tally_claims(CONFIG, claims_on(path), END_US)
    assert pack_tally(tally) == pack_tally(of_arrays(batches, at_us(70)))


@given(_batches(), st.integers(1, 5), MIN_VIEWED)
def test_shards_share_the_messages_out(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Batch], shards: int, min_viewed: int
) -> None:
    """Each message counts in one shard; merged, the shards are the window: masks, stamps, ids, sightings."""
    claims = claims_on(write_segment(tmp_path_factory.mktemp("spool") / "s.seg", *batches))
    sharded = replace(CONFIG, shards=shards)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim_reader, "MIN_VIEWED", min_viewed)
        merged = merge_tallies([claim_reader.tally_claims(sharded, claims, END_US, shard) for shard in range(shards)])
    whole = claim_reader.tally_claims(CONFIG, claims, END_US)
    assert _exact(merged) == _exact(whole)


def _exact(tally: Tally) -> list[object]:
    arrays = (tally.masks, tally.counts, tally.sighted_us, tally.stamps, tally.negative)
    lost = [
        (lost.message_ids.tolist(), lost.sighted_us.tolist(), naming.pack_names(lost.names)) for lost in tally.lost_ids
    ]
    late = [
        (one.message_ids.tolist(), one.lag_us.tolist(), naming.pack_names(one.names)) for one in tally.slowest or ()
    ]
    return [*(array.tolist() for array in arrays), lost, late, tally.last_first_sighting_us, tally.observations]


def test_no_claims_are_an_empty_window() -> None:
    """Nothing claimed, nothing observed."""
    assert claim_reader.drop_duplicates([]) == []
    assert pack_tally(claim_reader.tally_claims(CONFIG, [], END_US)) == pack_tally(empty_tally(PATHWAY))


def test_a_segment_that_no_counted_batch_lies_in_is_not_opened(tmp_path: Path) -> None:
    """A batch that came too early to count is claimed so that its copy is known; its segment may be gone meanwhile."""
    early = write_segment(tmp_path / "a.seg", observation_batch([1, 2]), arrival_us=at_us(-301))
    counted = write_segment(tmp_path / "b.seg", observation_batch([3], "b"), arrival_us=at_us(70))
    claims = claims_on(early, counted)
    assert [claim.refs["count"].tolist() for claim in claims] == [[EARLY], [1]]
    early.unlink()
    assert claim_reader.tally_claims(CONFIG, claims, END_US).observations == 1


def test_a_batch_that_comes_twice_counts_once(tmp_path: Path) -> None:
    """In another segment or in the same one; its messages were sighted when the first of the two arrived."""
    batch = observation_batch([1, 2])
    late = write_segment(tmp_path / "a.seg", batch, batch, arrival_us=at_us(90))
    early = write_segment(tmp_path / "b.seg", batch, arrival_us=at_us(80))
    for paths in ((late, early), (early, late)):
        tally = claim_reader.tally_claims(CONFIG, claims_on(*paths), END_US)
        assert (tally.observations, tally.stamps.tolist()) == (2, [[2, 2], [0, 0]])
        assert tally.last_first_sighting_us == at_us(80)


@pytest.mark.parametrize("other", [{"probe": "other"}, {"epoch_us": at_us(-9)}, {"seq": 1}], ids=str)
def test_the_same_observations_from_another_instance_are_no_duplicate_batch(
    other: dict[str, object], tmp_path: Path
) -> None:
    """The same observations from another instance are duplicate stamps, and not a duplicate batch."""
    batch = observation_batch([1, 2])
    again = replace(batch, **other)  # type: ignore[arg-type]  # one field
    tally = claim_reader.tally_claims(CONFIG, claims_on(write_segment(tmp_path / "s.seg", batch, again)), END_US)
    assert (tally.counts.sum(), tally.stamps.tolist()) == (2, [[4, 4], [0, 0]])


CLAIMED = {
    "alone": ([("x", 70, [0, 1])], [[0, 1]]),
    "another instance": ([("x", 70, [0, 1]), ("y", 60, [0, 1])], [[0, 1], [0, 1]]),
    "the same again": ([("x", 70, [0, 1]), ("x", 80, [0, 1])], [[0, 1], []]),
    "earlier, read later": ([("x", 80, [0, 1]), ("x", 70, [1, 2])], [[0], [1, 2]]),
    "twice in one": ([("x", 70, [1, 0, 1])], [[1, 0]]),
    "three times": ([("x", 90, [5]), ("x", 70, [5]), ("x", 80, [5])], [[], [5], []]),
    "nothing": ([("x", 70, []), ("x", 80, [0])], [[], [0]]),
}


@pytest.mark.parametrize(("claimed", "kept"), CLAIMED.values(), ids=CLAIMED)
def test_of_equal_batches_the_earliest_arrival_is_kept(
    claimed: list[tuple[str, int, list[int]]], kept: list[list[int]]
) -> None:
    """Instance and number say which batches are equal, whatever the order in which their segments were read."""
    claims = [
        Claims(f"{n}.seg", (("a", instance),), 1, np.array([(seq, at_us(seconds), *[0] * 13) for seq in seqs], CLAIMS))
        for n, (instance, seconds, seqs) in enumerate(claimed)
    ]
    assert [refs["seq"].tolist() for refs in claim_reader.drop_duplicates(claims)] == kept


@pytest.mark.parametrize("layout", ["a segment of many probes", "a segment each"])
@pytest.mark.parametrize("max_mapped", [4, claim_reader.MAX_MAPPED])
def test_a_window_of_many_probes_has_its_files(
    layout: str, max_mapped: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may have 1,024 files open by default; the observations of more segments than that are tallied."""
    monkeypatch.setattr(claim_reader, "MAX_MAPPED", max_mapped)
    batches = [observation_batch([number], probe=f"probe-{number}") for number in range(1_500)]
    groups = [batches] if layout == "a segment of many probes" else [[batch] for batch in batches]
    claims = claims_on(*(write_segment(tmp_path / f"{at}.seg", *group) for at, group in enumerate(groups)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, hard))
    try:
        tally = claim_reader.tally_claims(CONFIG, claims, END_US)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert tally.observations == len(batches)


def test_a_segment_that_is_gone_names_itself(tmp_path: Path) -> None:
    """The error for a missing segment has its name."""
    path = write_segment(tmp_path / "s.seg", observation_batch([1]))
    claims = claims_on(path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"s\.seg"):
        claim_reader.tally_claims(CONFIG, claims, END_US)


def test_a_segment_that_was_written_over_is_no_observation(tmp_path: Path) -> None:
    """A claim on bytes that are no record is an error."""
    path = write_segment(tmp_path / "s.seg", observation_batch([1]))
    claims = claims_on(path)
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(envelope.RecordError, match="a record starts with 0x81, got 0x00"):
        claim_reader.tally_claims(CONFIG, claims, END_US)


def test_ids_are_the_bytes_on_the_wire(tmp_path: Path) -> None:
    """The ids behind a loss come out as they went in, in byte order."""
    claims = claims_on(write_segment(tmp_path / "s.seg", observation_batch([258, 3, 2**127])))
    tally = claim_reader.tally_claims(CONFIG, claims, END_US)
    assert tally.lost(1, at_us(1_000)).message_ids.tobytes() == pack_ids(3, 258, 2**127)
