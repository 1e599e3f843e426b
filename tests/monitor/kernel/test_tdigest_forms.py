"""The digest as bytes and as the dict of the package ``tdigest``: what comes back, and what is refused."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from tdigest import TDigest

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.centroids import Digest
from hopwatch.monitor.kernel.tdigest import DigestError
from hopwatch.monitor.kernel.tdigest_forms import MAX_CENTROIDS
from tests.support.distributions import DISTRIBUTIONS, drawn, rank_errors

# Version 1, form 0, 3 centroids; min -1, max 300; mean 0 less min, steps 6 and 295; weights 1, 2 and 1, all pure.
STORED = bytes.fromhex("0100 0300 01 d804 00 06 a702 00 02 00")


def test_the_stored_form_is_fixed() -> None:
    """A digest stored as version 1 is read, and written again to the same bytes."""
    digest = tdigest.from_bytes(STORED)
    assert (digest.means.tolist(), digest.weights.tolist()) == ([-1, 5, 300], [1, 2, 1])
    assert digest.pure.all()
    assert tdigest.to_bytes(tdigest.build(np.array([5, 300, -1, 5]))) == tdigest.to_bytes(digest) == STORED


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [0, 1, 200, 5_000])
def test_bytes_come_back(name: str, n: int) -> None:
    """Every digest is read as it was written, in at most 11 bytes a centroid and 24 more."""
    digest = tdigest.build(drawn(name, n))
    stored = tdigest.to_bytes(digest)
    again = tdigest.from_bytes(stored)
    for column in ("means", "weights", "pure"):
        assert getattr(again, column).tolist() == getattr(digest, column).tolist()
    assert (again.min, again.max, tdigest.to_bytes(again)) == (digest.min, digest.max, stored)
    assert len(stored) <= 24 + 11 * digest.means.size


def test_means_that_are_not_whole_come_back() -> None:
    """Means that another program made, in fractions, are stored as floats."""
    digest = tdigest.from_dict({"centroids": [{"m": 0.25, "c": 3}, {"m": 1.5, "c": 2}]})
    again = tdigest.from_bytes(tdigest.to_bytes(digest))
    assert (again.means.tolist(), again.weights.tolist(), again.min, again.max) == ([0.25, 1.5], [3, 2], 0, 2)
    assert tdigest.merge([digest, again]).means.tolist() == [0.25, 1.5]


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (b"\x01\x00", "the head alone is 4 bytes, got 2"),
        (b"\x02" + STORED[1:], "got version 2 and form 0"),
        (b"\x01\x04" + STORED[2:], "got version 1 and form 4"),
        (STORED[:-1] + b"\x80", "it breaks off within a number"),
        (STORED[:-1], "3 centroids of form 0 are 8 numbers, got 7"),
        (STORED + b"\x00", "3 centroids of form 0 are 8 numbers, got 9"),
        (struct.pack("<BBH", 1, 0, 0) + b"\x00", "0 centroids of form 0 are 0 numbers, got 1"),
        (struct.pack("<BBH", 1, 2, 9) + bytes(70), "9 means as floats do not fit into 74 bytes"),
        (STORED[:4] + b"\x80" * 9 + b"\x02" + STORED[5:], "one of its numbers has more than 64 bits"),
        (STORED[:4] + b"\x80" * 10 + b"\x00" + STORED[5:], "one of its numbers has more than 64 bits"),
        (STORED[:4] + b"\x00" + STORED[5:7] + b"\x01" + STORED[8:], "from -1.0 to 300.0, outside 0 to 300"),
        (STORED[:-3] + b"\xff" * 9 + b"\x01" + STORED[-2:], "not whole numbers from 1, less than 2**53 in all"),
        (STORED[:-3] + b"\xff" * 8 + b"\x01" + STORED[-2:], "not whole numbers from 1, less than 2**53 in all"),
        (struct.pack("<BBHBB2d", 1, 3, 2, 0, 4, 2.0, 1.0), "not finite numbers in rising order"),
        (struct.pack("<BBHBB2d", 1, 3, 2, 0, 4, 1.0, float("nan")), "not finite numbers in rising order"),
    ],
)
def test_other_bytes_are_refused(stored: bytes, said: str) -> None:
    """Each way in which bytes are no digest is told, with what was got and what to do."""
    with pytest.raises(DigestError) as refused:
        tdigest.from_bytes(stored)
    assert said in str(refused.value)
    assert str(refused.value).startswith("These bytes are no stored digest: ")
    assert str(refused.value).endswith("Store the digest again from its observations.")


def test_a_stored_digest_is_bounded() -> None:
    """More centroids than the head can count are refused when written."""
    many = np.arange(MAX_CENTROIDS + 1)
    digest = Digest(many.astype(np.float64), np.ones_like(many), np.ones(many.size, np.bool_), 0, MAX_CENTROIDS)
    with pytest.raises(DigestError, match="at most 65535 centroids; got 65536"):
        tdigest.to_bytes(digest)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_package_takes_a_digest_along_and_gives_it_back(name: str) -> None:
    """The package reads our dict, keeps its count, and what comes back is right within 1 % in rank."""
    values = drawn(name, 2_000)
    ours = tdigest.build(values)
    theirs = TDigest().update_from_dict(json.loads(json.dumps(tdigest.to_dict(ours))))
    assert set(tdigest.to_dict(ours)) == set(theirs.to_dict())
    back = tdigest.from_dict(theirs.to_dict())
    assert (theirs.n, back.count) == (2_000, 2_000)
    reported = np.array([0.50, 0.95, 0.99])
    assert rank_errors(values, tdigest.quantiles(back, reported), reported).max() <= 0.01


def test_a_digest_of_the_package_is_taken_over() -> None:
    """A digest of the package, with fractional weights, is read with its count and quantiles."""
    values = drawn("lognormal", 2_000)
    theirs = TDigest()
    theirs.batch_update(values.tolist())
    ours = tdigest.from_dict(theirs.to_dict())
    assert ours.count == 2_000
    assert tdigest.quantile(ours, 0.95) == pytest.approx(theirs.percentile(95), rel=0.02)


@pytest.mark.parametrize("shares", [[], [0.25, 0.25]])
def test_a_dict_without_a_whole_value_is_empty(shares: list[float]) -> None:
    """No centroids, or weights that round to none, are the empty digest."""
    assert tdigest.from_dict({"centroids": [{"m": 1.0, "c": share} for share in shares]}).count == 0


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "got KeyError('centroids')"),
        ({"centroids": [{"m": 1}]}, "got KeyError('c')"),
        ({"centroids": 5}, "got TypeError"),
        ({"centroids": [{"m": "fast", "c": 1}]}, "got ValueError"),
        ({"centroids": [{"m": 10**400, "c": 1}]}, "got OverflowError"),
        ({"centroids": [{"m": float("nan"), "c": 1}]}, "got nan and 1.0"),
        ({"centroids": [{"m": 2.0**64, "c": 1}]}, "got 1.8446744073709552e+19 and 1.0"),
        ({"centroids": [{"m": 1, "c": -1}]}, "got 1.0 and -1.0"),
        ({"centroids": [{"m": 1, "c": float("nan")}]}, "got 1.0 and nan"),
        (
            {"centroids": [{"m": 1, "c": 2**52}, {"m": 2, "c": 2**52}]},
            "counts less than 2**53 values; got 9007199254740992",
        ),
        ({"centroids": [{"m": 1, "c": 1}] * (MAX_CENTROIDS + 1)}, "at most 65535 centroids; got 65536"),
    ],
)
def test_other_dicts_are_refused(form: dict[str, Any], said: str) -> None:
    """Each way in which a dict is no digest is told, with what was got."""
    with pytest.raises(DigestError) as refused:
        tdigest.from_dict(form)
    assert said in str(refused.value)
    assert str(refused.value).startswith("A digest as dict ")
