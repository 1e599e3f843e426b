"""Laws of the digest: what no order, no parting and no storing changes, and how quantile and cdf belong together."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.tdigest import DigestError
from tests.support.distributions import DISTRIBUTIONS, Values, drawn, rank_errors
from tests.support.examples import examples

INT64 = st.integers(-(2**63), 2**63 - 1)
REPORTED = np.array([0.50, 0.95, 0.99])
TOLERANCES = np.array([0.01, 0.002, 0.002])


def chosen(least: int = 0) -> st.SearchStrategy[Values]:
    """Return any few values, among them the extremes, for hypothesis to shrink."""
    few_kinds = st.sampled_from([-5, 0, 1, 2, 1_000, 10**12])
    return arrays(np.int64, st.integers(least, 60), elements=few_kinds | st.integers(-100, 100) | INT64)


def hard(least: int = 1) -> st.SearchStrategy[Values]:
    """Return up to 5,000 values of a named hard distribution."""
    return st.builds(drawn, st.sampled_from(sorted(DISTRIBUTIONS)), st.integers(least, 5_000), st.integers(0, 2**32))


values_of_any_kind = chosen() | hard()
some_values = chosen(1) | hard()
small_values = st.one_of(
    arrays(np.int64, st.integers(1, 60), elements=st.integers(-(10**9), 10**9)),
    st.builds(drawn, st.sampled_from(["lognormal", "mostly ties", "stairs", "sorted"]), st.integers(1, 5_000)),
)
ranks = st.floats(0, 1)


@given(values_of_any_kind)
def test_count_and_bounds_are_exact(values: Values) -> None:
    """Count, min and max are those of the values, to the last of 64 bits."""
    digest = tdigest.build(values)
    bounds = (int(values.min()), int(values.max())) if values.size else (0, 0)
    assert (digest.count, digest.min, digest.max) == (values.size, *bounds)


@given(values_of_any_kind, st.randoms(use_true_random=False))
def test_order_changes_nothing(values: Values, dice: random.Random) -> None:
    """The same values in any order build the same bytes."""
    places = list(range(values.size))
    dice.shuffle(places)
    assert tdigest.to_bytes(tdigest.build(values[places])) == tdigest.to_bytes(tdigest.build(values))


@given(values_of_any_kind)
def test_values_are_left_as_they_are(values: Values) -> None:
    """Building sorts a copy: the array that was given is not touched."""
    before = values.copy()
    values.flags.writeable = False
    tdigest.build(values)
    assert (values == before).all()


@given(values_of_any_kind)
def test_a_digest_is_in_order_and_within_its_bounds(values: Values) -> None:
    """Means rise from min to max, weights count from 1, and a centroid of one value is pure."""
    digest = tdigest.build(values)
    assert (np.diff(digest.means) >= 0).all()
    assert (digest.weights >= 1).all()
    assert digest.pure[digest.weights == 1].all()
    if values.size:
        assert (digest.means[0], digest.means[-1]) == (float(digest.min), float(digest.max))


@given(st.lists(values_of_any_kind, max_size=6), st.randoms(use_true_random=False))
def test_merge_is_commutative_to_the_byte(parts: list[Values], dice: random.Random) -> None:
    """Digests merge to the same bytes in any order, and lose no value."""
    digests = [tdigest.build(part) for part in parts]
    merged = tdigest.merge(digests)
    dice.shuffle(digests)
    assert tdigest.to_bytes(tdigest.merge(digests)) == tdigest.to_bytes(merged)
    assert merged.count == sum(part.size for part in parts)


@given(hard(60), st.floats(0.01, 0.98), st.floats(0.01, 0.99))
def test_merge_is_associative_within_the_guarantee(values: Values, one: float, two: float) -> None:
    """(a + b) + c and a + (b + c) are both within 1 % of p50 and 0.2 % of p95 and p99."""
    a, b, c = (tdigest.build(part) for part in np.split(values, sorted(int(values.size * cut) for cut in (one, two))))
    for merged in (
        tdigest.merge([tdigest.merge([a, b]), c]),
        tdigest.merge([a, tdigest.merge([b, c])]),
    ):
        assert (rank_errors(values, tdigest.quantiles(merged, REPORTED), REPORTED) <= TOLERANCES).all()
        assert (merged.count, merged.min, merged.max) == (values.size, values.min(), values.max())


@given(st.lists(chosen(), max_size=4))
def test_few_values_merge_exactly(parts: list[Values]) -> None:
    """Up to 256 values, the parting leaves no trace: merged is built from all."""
    together = np.concatenate([np.empty(0, np.int64), *parts])
    merged = tdigest.merge([tdigest.build(part) for part in parts])
    assert tdigest.to_bytes(merged) == tdigest.to_bytes(tdigest.build(together))


@given(values_of_any_kind)
def test_merge_with_nothing_changes_nothing(values: Values) -> None:
    """A digest merged with empty ones is itself."""
    digest = tdigest.build(values)
    assert tdigest.to_bytes(tdigest.merge([tdigest.EMPTY, digest])) == tdigest.to_bytes(digest)


@given(chosen(1), ranks)
def test_few_values_are_answered_exactly(values: Values, q: float) -> None:
    """A quantile of few values is the least of them whose rank is at least q."""
    ordered = np.sort(values)
    place = next(place for place in range(values.size) if (place + 1) / values.size >= q)
    assert tdigest.quantile(tdigest.build(values), q) == float(ordered[place])


@given(some_values, st.lists(some_values, max_size=3), st.lists(ranks, min_size=2, max_size=20))
def test_quantiles_rise_with_their_rank(values: Values, others: list[Values], qs: list[float]) -> None:
    """A greater rank never has a lesser value, and none leaves the bounds, built or merged."""
    merged = tdigest.merge([tdigest.build(part) for part in (values, *others)])
    found = tdigest.quantiles(merged, [0, *sorted(qs), 1])
    assert (np.diff(found) >= 0).all()
    assert (found[0], found[-1]) == (float(merged.min), float(merged.max))


@given(some_values, st.lists(st.floats(-1e19, 1e19), min_size=2, max_size=20))
def test_cdf_rises_from_0_to_1(values: Values, xs: list[float]) -> None:
    """A greater value never has a lesser share, and all shares are from 0 to 1."""
    digest = tdigest.build(values)
    shares = [tdigest.cdf(digest, x) for x in sorted([*xs, *map(float, values[:5])])]
    assert shares == sorted(shares)
    assert (shares[0] >= 0, shares[-1] <= 1) == (True, True)


@given(small_values, ranks)
def test_cdf_is_the_inverse_of_quantile(values: Values, q: float) -> None:
    """The share of values up to the quantile of q is at least q, and the share before it at most q."""
    digest = tdigest.build(values)
    x = tdigest.quantile(digest, q)
    rounding = 1e-6 * max(1.0, abs(x))
    assert tdigest.cdf(digest, x) >= q - 1e-6
    assert tdigest.cdf(digest, x - rounding) <= q + 1e-6


@given(st.lists(values_of_any_kind, max_size=3))
def test_stored_digests_come_back(parts: list[Values]) -> None:
    """A stored digest is read with the same answers, and is written again with the same bytes."""
    digest = tdigest.merge([tdigest.build(part) for part in parts])
    again = tdigest.from_bytes(tdigest.to_bytes(digest))
    assert tdigest.to_bytes(again) == tdigest.to_bytes(digest)
    assert (again.count, again.min, again.max) == (digest.count, digest.min, digest.max)
    if digest.count:
        assert tdigest.quantiles(again, REPORTED).tolist() == tdigest.quantiles(digest, REPORTED).tolist()


@given(st.lists(small_values, max_size=3))
def test_dicts_come_back(parts: list[Values]) -> None:
    """A digest written as the package's dict is read back to the byte."""
    digest = tdigest.merge([tdigest.build(part) for part in parts])
    assert tdigest.to_bytes(tdigest.from_dict(tdigest.to_dict(digest))) == tdigest.to_bytes(digest)


@settings(max_examples=examples(300))
@given(st.binary(max_size=80) | st.binary(max_size=80).map(lambda tail: b"\x01" + tail))
def test_no_bytes_do_any_harm(data: bytes) -> None:
    """Bytes are a digest that keeps its promises, or are refused with the digest's own error."""
    with suppress(DigestError):
        digest = tdigest.from_bytes(data)
        assert digest.count == 0 or (np.diff(tdigest.quantiles(digest, [0, 0.5, 1])) >= 0).all()


@given(some_values, st.data())
def test_no_damage_does_any_harm(values: Values, data: st.DataObject) -> None:
    """A stored digest with a byte changed and its end cut off is refused, or is a digest."""
    stored = bytearray(tdigest.to_bytes(tdigest.build(values)))
    stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DigestError):
        digest = tdigest.from_bytes(bytes(stored[: data.draw(st.integers(0, len(stored)))]))
        assert tdigest.to_bytes(tdigest.from_bytes(tdigest.to_bytes(digest))) == tdigest.to_bytes(digest)
