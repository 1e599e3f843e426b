"""The digest's guarantee, over named hard distributions, and how it is built, merged and asked."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from tdigest import TDigest

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.tdigest import Digest, DigestError
from tests.support.distributions import DISTRIBUTIONS, Values, drawn, rank_errors

REPORTED = np.array([0.50, 0.95, 0.99])
TOLERANCES = np.array([0.01, 0.002, 0.002])
EVERYWHERE = np.linspace(0.001, 0.999, 999)
EDGE = tdigest.EXACT_UP_TO
SIZES = (1, 2, 3, 5, 10, 20, 100, EDGE - 1, EDGE, EDGE + 1, EDGE + 2, 400, 777, 1_000, 1_024, 4_096, 10_007, 100_000)

every_distribution = pytest.mark.parametrize("name", DISTRIBUTIONS)


def exact(values: Values, qs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exact quantiles: the smallest value whose rank is at least q."""
    ordered = np.sort(values)
    ranks = np.arange(1, ordered.size + 1) / ordered.size
    return ordered[np.searchsorted(ranks, qs)].astype(np.float64)


def flat(parts: list[Digest]) -> Digest:
    """Return all parts merged at once."""
    return tdigest.merge(parts)


def nested(parts: list[Digest]) -> Digest:
    """Return the parts merged two by two, then these again, to the last."""
    while len(parts) > 1:
        parts = [tdigest.merge(parts[place : place + 2]) for place in range(0, len(parts), 2)]
    return parts[0]


def one_by_one(parts: list[Digest]) -> Digest:
    """Return the parts merged into what is there already, one after the other."""
    merged = parts[0]
    for part in parts[1:]:
        merged = tdigest.merge([merged, part])
    return merged


def partings(values: Values) -> Iterator[list[Values]]:
    """Yield ``values``, at random order, parted in the ways that windows, shards and hosts part them."""
    dice = np.random.default_rng(values.size)
    mixed, ordered = dice.permutation(values), np.sort(values)
    drifting = values[np.argsort(np.argsort(values, kind="stable") + dice.normal(0, 0.15 * values.size, values.size))]
    for parts in (2, 5, 64):
        yield np.array_split(mixed, parts)
        yield np.array_split(ordered, parts)
        yield np.array_split(drifting, parts)
        yield np.split(mixed, np.sort(dice.integers(0, values.size, parts - 1)))
        yield np.split(ordered, (values.size * (1 - 0.5 ** np.arange(1, parts))).astype(np.intp))
    yield [mixed[: values.size // 2], *np.array_split(mixed[values.size // 2 :], 64)]


@every_distribution
def test_reported_percentiles_are_exact_when_built(name: str) -> None:
    """p50, p95 and p99 of a digest that was built, not merged, are those of the values, on both sides of the edge."""
    for n in SIZES:
        values = drawn(name, n)
        assert tdigest.quantiles(tdigest.build(values), REPORTED).tolist() == exact(values, REPORTED).tolist(), n


@pytest.mark.parametrize("name", ["lognormal", "mostly ties", "two peaks, parted over p95"])
def test_reported_percentiles_are_exact_for_every_small_count(name: str) -> None:
    """There is no n from 1 to 700 that rounding or an edge makes wrong."""
    for n in range(1, 701):
        values = drawn(name, n)
        assert tdigest.quantiles(tdigest.build(values), REPORTED).tolist() == exact(values, REPORTED).tolist(), n


@pytest.mark.parametrize("name", ["lognormal", "extremes", "stairs"])
def test_reported_percentiles_are_exact_for_a_million(name: str) -> None:
    """p50, p95 and p99 are exact for 1,000,000 values too."""
    values = drawn(name, 1_000_000)
    assert tdigest.quantiles(tdigest.build(values), REPORTED).tolist() == exact(values, REPORTED).tolist()


@every_distribution
def test_every_other_rank_is_near(name: str) -> None:
    """No rank from 0.1 % to 99.9 % is off by more than 1.5 %."""
    for n in SIZES:
        values = drawn(name, n)
        assert rank_errors(values, tdigest.quantiles(tdigest.build(values), EVERYWHERE), EVERYWHERE).max() <= 0.015, n


@every_distribution
@pytest.mark.parametrize("how", [flat, nested, one_by_one])
def test_merged_digests_keep_the_guarantee(name: str, how: Callable[[list[Digest]], Digest]) -> None:
    """Merged digests keep p95 and p99 within 0.2 % in rank, p50 within 1 %, and count and bounds exact."""
    for n in (600, 12_000):
        values = drawn(name, n)
        for parts in partings(values):
            merged = how([tdigest.build(part) for part in parts])
            errors = rank_errors(values, tdigest.quantiles(merged, REPORTED), REPORTED)
            assert (errors <= TOLERANCES).all(), (n, len(parts), errors)
            assert (merged.count, merged.min, merged.max) == (n, values.min(), values.max())


@every_distribution
def test_merge_is_the_same_in_any_order(name: str) -> None:
    """Parts merge to the same bytes in whatever order they come."""
    parts = [tdigest.build(part) for part in np.split(drawn(name, 9_000), [5, 300, 5_000])]
    assert len({tdigest.to_bytes(tdigest.merge(order)) for order in itertools.permutations(parts)}) == 1


@every_distribution
def test_few_values_stay_exact_when_merged(name: str) -> None:
    """Small digests merge to the digest of all their values while these are few, and so to the exact quantiles."""
    values = drawn(name, EDGE)
    merged = tdigest.merge([tdigest.build(part) for part in np.array_split(values, 16)])
    assert tdigest.to_bytes(merged) == tdigest.to_bytes(tdigest.build(values))
    assert tdigest.quantiles(merged, EVERYWHERE).tolist() == exact(values, EVERYWHERE).tolist()


def test_few_distinct_values_are_exact_however_many_there_are() -> None:
    """A million values of 256 kinds are kept as 256 centroids, each with its weight."""
    values = np.random.default_rng(1).integers(0, EDGE, 1_000_000)
    digest = tdigest.build(values)
    assert digest.weights.tolist() == np.bincount(values).tolist()
    assert tdigest.quantiles(digest, EVERYWHERE).tolist() == exact(values, EVERYWHERE).tolist()


def test_means_are_exact_where_sums_leave_64_bits() -> None:
    """A cluster's mean is that of its values though their sum, 2**77, fits into no integer of the machine."""
    values = np.concatenate((np.full(50_000, -(2**63)), 2**61 + 3 * np.arange(50_000)))
    digest = tdigest.build(values)
    of_integers = 2**61 * 50_000 + 3 * sum(range(50_000)) - 2**63 * 50_000
    assert sum(int(m) * w for m, w in zip(digest.means, digest.weights.tolist(), strict=True)) == pytest.approx(
        of_integers, rel=1e-12
    )
    assert (digest.min, digest.max) == (-(2**63), 2**61 + 149_997)


def test_a_digest_of_nothing_is_empty() -> None:
    """No values, no digests and digests of no values all make the empty digest."""
    nothing = np.empty(0, np.int64)
    for digest in (tdigest.build(nothing), tdigest.merge([]), tdigest.merge([tdigest.EMPTY, tdigest.build(nothing)])):
        assert (digest.count, digest.min, digest.max) == (0, 0, 0)


@every_distribution
def test_cdf_is_the_share_of_values(name: str) -> None:
    """The share of values up to the exact median is right within 1 %, and is 0 before and 1 behind all of them."""
    values = drawn(name, 20_000)
    digest = tdigest.build(values)
    middle = float(exact(values, REPORTED)[0])
    assert tdigest.cdf(digest, middle) == pytest.approx((values.astype(np.float64) <= middle).mean(), abs=0.01)
    assert (tdigest.cdf(digest, -np.inf), tdigest.cdf(digest, float(digest.max))) == (0, 1)


@pytest.mark.parametrize(
    "name", ["lognormal", "lognormal, whole ms", "uniform, both signs", "pareto, no mean", "sorted"]
)
def test_the_package_tdigest_says_the_same(name: str) -> None:
    """The package's percentiles, which come one value at a time, lie within 2 % in rank of ours."""
    random.seed(0)
    values = drawn(name, 3_000)
    theirs = TDigest()
    theirs.batch_update(values.tolist())
    said = np.array([theirs.percentile(100 * q) for q in REPORTED])
    assert rank_errors(values, said, REPORTED).max() <= 0.02
    ours = tdigest.build(values)
    assert [tdigest.cdf(ours, x) for x in said] == pytest.approx(REPORTED.tolist(), abs=0.03)


@pytest.mark.parametrize("q", [-0.001, 1.001, float("nan"), [0.5, 2.0]])
def test_a_rank_is_from_0_to_1(q: float | list[float]) -> None:
    """Any other rank is refused, and named."""
    with pytest.raises(DigestError, match=r"asked for at a rank from 0 to 1; got .*(-0\.001|1\.001|nan|2\.0)"):
        tdigest.quantiles(tdigest.build(np.arange(3)), q)


def test_the_empty_digest_is_not_asked() -> None:
    """There is no quantile and no rank without values, and the message says where to look first."""
    for ask in (tdigest.quantile, tdigest.cdf):
        with pytest.raises(DigestError, match="An empty digest has no quantiles and no ranks: look at its count first"):
            ask(tdigest.EMPTY, 0.5)


def test_no_share_of_nan() -> None:
    """The share of values up to NaN is refused."""
    with pytest.raises(DigestError, match="with x in microseconds; got nan"):
        tdigest.cdf(tdigest.build(np.arange(3)), float("nan"))


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros(3, np.int32), np.zeros((2, 2), np.int64)])
def test_only_int64_is_built_from(values: Values) -> None:
    """An array of another type or shape is refused with its type and shape."""
    with pytest.raises(DigestError, match=rf"int64 array of shape \(n,\); got {values.dtype} of shape"):
        tdigest.build(values)
