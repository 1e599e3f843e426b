"""Laws of lag histograms: buckets, sums in any order, and digests that are those of the model."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.count_lags import CountLags, digest_histograms, merge_count_lags
from hopwatch.monitor.kernel.figures import quantiles_of
from hopwatch.probes.contract.lag_histograms import (
    MAX_LAGS,
    HistogramError,
    add_histograms,
    check_histogram,
    count_lags,
    find_buckets,
    find_middles,
    parse_histogram,
)
from hopwatch.probes.contract.limits import MAX_HISTOGRAM_BYTES
from tests.model import lag_histogram as model
from tests.support.distributions import rank_errors

INT64 = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-1_000, 1_000)
LAGS = st.lists(INT64 | SMALL | st.integers(0, 10_000_000), max_size=400)


def pack(lags: list[int]) -> bytes:
    """Return the histogram of lags."""
    return count_lags(np.array(lags, np.int64))


@given(INT64)
def test_a_bucket_is_that_of_its_middle_and_near_all_of_its_lags(lag: int) -> None:
    """Buckets are numbered as the model numbers them; a middle is off by at most 1/256 of a lag, or not at all."""
    (bucket,) = find_buckets(np.array([lag], np.int64)).tolist()
    (middle,) = find_middles(np.array([bucket], np.int64)).tolist()
    assert (bucket, middle) == (model.bucket(lag), model.middle(bucket))
    assert find_buckets(np.array([middle], np.int64)).tolist() == [bucket]
    assert abs(middle - lag) * 256 <= abs(lag)
    assert -7_296 <= bucket <= 7_295


@given(INT64, INT64)
def test_buckets_ascend_with_lags(first: int, second: int) -> None:
    """So that percentiles of buckets are those of lags, rounded."""
    low, high = sorted((first, second))
    before, after = find_buckets(np.array([low, high], np.int64)).tolist()
    assert before <= after


@given(LAGS)
def test_the_bytes_are_those_of_the_model(lags: list[int]) -> None:
    """Written and read alike, so that other languages may write them by the page alone."""
    data = pack(lags)
    assert data == model.write(model.histogram(lags))
    if lags:
        found, read = parse_histogram(data), model.read(data)
        assert read is not None
        assert (found.min_us, found.max_us, found.total) == (min(lags), max(lags), len(lags))
        assert dict(zip(found.buckets.tolist(), found.counts.tolist(), strict=True)) == read.counts


@given(st.lists(st.tuples(INT64, st.integers(0, 1_000)), max_size=100))
def test_counted_lags_are_as_many_lags(pairs: list[tuple[int, int]]) -> None:
    """A ready histogram is the same as all of its lags one by one; a lag that no message has is none."""
    lags, counts = (np.array([pair[side] for pair in pairs], np.int64) for side in range(2))
    assert count_lags(lags, counts) == pack(np.repeat(lags, counts).tolist())


@given(st.lists(LAGS, max_size=6), st.randoms(use_true_random=False))
def test_sums_are_the_same_in_any_order_and_groups(parts: list[list[int]], dice: random.Random) -> None:
    """To the byte those of all lags at once: so live and at once tell the same, whatever comes first."""
    whole = pack([lag for part in parts for lag in part])
    packed = list(map(pack, parts))
    dice.shuffle(packed)
    assert add_histograms(packed) == whole
    one_by_one = b""
    for part in packed:
        one_by_one = add_histograms([one_by_one, part])
    assert one_by_one == whole


@given(st.lists(st.lists(SMALL | st.integers(-(2**53), 2**53), max_size=400), max_size=6))
def test_a_window_has_the_percentiles_of_the_middles_exactly(parts: list[list[int]]) -> None:
    """Of lags up to 285 years in any number of buckets; count and bounds are those of the lags."""
    found = quantiles_of(digest_histograms(list(map(pack, parts))))
    expected = model.quantiles_by_count(map(model.histogram, parts))
    assert (found and {name: getattr(found, name) for name in found.__dataclass_fields__}) == expected


@given(st.lists(LAGS, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_a_span_keeps_the_promise_of_the_digest(parts: list[list[int]], dice: random.Random) -> None:
    """Of the middles, in any order: 1 % of rank for the median, 0.2 % for the others."""
    windows = [CountLags(digest_histograms([pack(part)]), tdigest.EMPTY) for part in parts]
    merged = merge_count_lags(windows)
    dice.shuffle(windows)
    assert merge_count_lags(windows).figures == merged.figures
    assert merged.figures["lag_out_us"] is None
    lags = np.concatenate([parse_histogram(pack(part)).lags_us for part in parts if part] or [np.empty(0, np.int64)])
    counts = [count for part in parts if part for count in parse_histogram(pack(part)).counts.tolist()]
    found = merged.figures["lag_in_us"]
    assert (found is None) == (not counts)
    if found is not None:
        told = np.array([found.p50, found.p95, found.p99], np.float64)
        errors = rank_errors(np.repeat(lags, counts), told, np.array([0.5, 0.95, 0.99]))
        assert (errors <= np.array([0.01, 0.002, 0.002])).all()


@given(st.binary(max_size=40) | LAGS.map(pack), st.binary(max_size=3), st.integers(0, 60))
def test_broken_bytes_raise_nothing_but_their_error(data: bytes, more: bytes, at: int) -> None:
    """The model refuses the same ones."""
    broken = data[:at] + more + data[at + len(more) :]
    is_good = False
    with suppress(HistogramError):
        parse_histogram(broken)
        is_good = True
    assert bool(broken) or not is_good
    with suppress(ValueError):
        assert (model.read(broken) is not None) == is_good
        return
    assert not is_good


REFUSED = {
    "nothing": (b"", "begins with the number of its form, 1, got nothing"),
    "another form": (b"\x02\x00\x00\x01\x01", "begins with the number of its form, 1, got 2"),
    "a number that breaks off": (b"\x01\x80", "made of LEB128 numbers: it breaks off within a number"),
    "no buckets": (b"\x01\x00\x00\x00", "has 1 to 14592 buckets, and 3 numbers and two a bucket, got 0 buckets"),
    "too many buckets": (b"\x01\x00\x00\x81\x72" + b"\x01" * 29_185, "got 14593 buckets and 29189 numbers"),
    "a step of 0": (b"\x01\x0a\x0c\x02\x00\x01\x01", "ascend by 1 to 14592, got steps of 0 to 0"),
    "an empty bucket": (
        b"\x01\x0a\x0c\x02\x01\x00\x01",
        "a bucket of a lag histogram has 1 to 2\\^42 lags, got 0 to 1",
    ),
    "a greatest lag elsewhere": (b"\x01\x0a\x0e\x02\x01\x01\x01", "its greatest lag, 7 from 5 to 7 µs, got 6"),
    "bounds the wrong way": (b"\x01\x0c\x0a\x01\x01", "its greatest lag, 5 from 6 to 5 µs, got 6"),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_histogram_is_refused_with_what_was_got(data: bytes, message: str) -> None:
    """Before anything is allocated for what it says."""
    with pytest.raises(HistogramError, match=message):
        parse_histogram(data)


def test_a_histogram_has_no_more_lags_than_messages() -> None:
    """Nor more than fit into a day of them."""
    check_histogram(pack([1, 2]), 2)
    with pytest.raises(HistogramError, match="of 2 messages has at most 2 lags, got 3"):
        check_histogram(pack([1, 2, 3]), 2)
    with pytest.raises(HistogramError, match=f"at most 2\\^42 - 1 lags, got {MAX_LAGS + 1}"):
        count_lags(np.zeros(1, np.int64), np.array([MAX_LAGS + 1]))


def test_of_too_many_lags_nothing_is_known() -> None:
    """In any order in which they were added; a sum beyond the bound never looks like a smaller one."""
    full, one = count_lags(np.zeros(1, np.int64), np.array([MAX_LAGS])), pack([0])
    assert digest_histograms([full]).count == MAX_LAGS
    for parts in ([full, one], [add_histograms([full, one])], [add_histograms([full, full, full])]):
        assert digest_histograms(parts) is tdigest.EMPTY


def test_the_histogram_of_all_buckets_fits_the_wire() -> None:
    """With some messages in each: what a probe leaves out for its size, no real minute has."""
    lags = find_middles(np.arange(-7_296, 7_296))
    assert len(count_lags(lags, np.full(len(lags), 1_000))) < MAX_HISTOGRAM_BYTES
