"""A digest as bytes, for the store, and as the dict of the PyPI package ``tdigest``, to take along."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

import numpy as np

from hopwatch.monitor.kernel.centroids import EMPTY, Digest, DigestError, group_equal
from hopwatch.probes.contract.varints import VarintError, decode_varints, decode_zigzag, encode_varints, encode_zigzag

MAX_CENTROIDS: Final = 65_535
MAX_COUNT: Final = 2**53
_MAX_MEAN: Final = 2**63
_DELTA, _K = 0.01, 25
_VERSION: Final = 1
_ALL_ONE: Final = 1
_FLOAT_MEANS: Final = 2
_HEAD: Final = struct.Struct("<BBH")
_FLOAT: Final = np.dtype("<f8")


def to_bytes(digest: Digest) -> bytes:
    """Return the stored form of a digest, version 1.

    ``<BBH``: version; form (bit 0: every weight is 1 and none is written, bit 1: means as floats); number of centroids.
    Then LEB128 numbers: min and max; unless bit 1 is set the first mean less min, and the steps from mean to mean;
    unless bit 0 is set ``2 * (weight - 1) + (0 if pure else 1)`` for each centroid. Signed numbers are zigzag.
    With bit 1, the means as float64 LE stand at the end. The empty digest is its head alone.

    Raises:
        DigestError: the digest has more than ``MAX_CENTROIDS`` centroids.
    """
    means = digest.means
    if means.size > MAX_CENTROIDS:
        raise DigestError(f"A stored digest has at most {MAX_CENTROIDS} centroids; got {means.size}.")
    if not means.size:
        return _HEAD.pack(_VERSION, 0, 0)
    is_whole = bool(((np.rint(means) == means) & (np.abs(means) < 2.0**63)).all())
    weights = ((digest.weights - 1) * 2 + ~digest.pure).astype(np.uint64)
    numbers = [np.array([encode_zigzag(digest.min), encode_zigzag(digest.max)], np.uint64)]
    if is_whole:
        first = np.array([encode_zigzag(int(means[0]) - digest.min)], np.uint64)
        whole = means.astype(np.int64).view(np.uint64)
        numbers += [first, whole[1:] - whole[:-1]]
    if weights.any():
        numbers.append(weights)
    form = (0 if weights.any() else _ALL_ONE) | (0 if is_whole else _FLOAT_MEANS)
    tail = b"" if is_whole else means.astype(_FLOAT).tobytes()
    return _HEAD.pack(_VERSION, form, means.size) + encode_varints(np.concatenate(numbers)) + tail


def from_bytes(data: bytes) -> Digest:
    """Return the digest that :func:`to_bytes` wrote.

    Raises:
        DigestError: these are not the bytes of a digest of a known version, whole and within its bounds.
    """
    if len(data) < _HEAD.size:
        raise _unreadable(f"the head alone is {_HEAD.size} bytes, got {len(data)}")
    version, form, size = _HEAD.unpack_from(data)
    if version != _VERSION or form > _ALL_ONE | _FLOAT_MEANS:
        raise _unreadable(f"known are version {_VERSION} and forms 0 to 3, got version {version} and form {form}")
    tail = size * _FLOAT.itemsize if form & _FLOAT_MEANS else 0
    if len(data) < _HEAD.size + tail:
        raise _unreadable(f"{size} means as floats do not fit into {len(data)} bytes")
    try:
        numbers = decode_varints(data[_HEAD.size : len(data) - tail])
    except VarintError as error:
        raise _unreadable(str(error)) from None
    expected = (2 + (0 if tail else size) + (0 if form & _ALL_ONE else size)) if size else 0
    if numbers.size != expected:
        raise _unreadable(f"{size} centroids of form {form} are {expected} numbers, got {numbers.size}")
    if not size:
        return EMPTY
    low, high = decode_zigzag(numbers[0]), decode_zigzag(numbers[1])
    if tail:
        means = np.frombuffer(data, _FLOAT, offset=len(data) - tail).astype(np.float64)
    else:
        first = np.array([(low + decode_zigzag(numbers[2])) % 2**64], np.uint64)
        means = np.cumsum(np.concatenate((first, numbers[3 : size + 2]))).view(np.int64).astype(np.float64)
    packed = np.zeros(size, np.uint64) if form & _ALL_ONE else numbers[-size:]
    weights = (packed >> np.uint64(1)).astype(np.int64) + 1
    return _check_digest(Digest(means, weights, packed & np.uint64(1) == 0, low, high))


def to_dict(digest: Digest) -> dict[str, Any]:
    """Return the form that ``tdigest.TDigest().update_from_dict`` reads; ``delta`` and ``K`` are the package's own.

    The mean of a pure centroid is an ``int`` if it is whole, every other one a ``float``: so :func:`from_dict` knows
    them again, and the package does not mind.
    """
    columns = (digest.means.tolist(), digest.weights.tolist(), digest.pure.tolist())
    centroids = [
        {"m": int(mean) if is_pure and mean.is_integer() else mean, "c": weight}
        for mean, weight, is_pure in zip(*columns, strict=True)
    ]
    return {"n": digest.count, "delta": _DELTA, "K": _K, "centroids": centroids}


def from_dict(form: Mapping[str, Any]) -> Digest:
    """Return the digest of what :func:`to_dict` or ``tdigest.TDigest.to_dict`` gave.

    The package splits weights into fractions: they are rounded such that each sum from the left is the nearest whole
    number. It keeps no bounds: they are the outermost means, to the next whole µs outside. A centroid is taken for pure
    when its weight is 1, its mean an ``int``, or its weight over ``2 * delta`` of all, which no different values share.

    Raises:
        DigestError: a key is missing, or a number is none or out of bounds.
    """
    try:
        listed = [(float(each["m"]), float(each["c"]), isinstance(each["m"], int)) for each in form["centroids"]]
        delta = float(form.get("delta", _DELTA))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DigestError(f"A digest as dict is {{'centroids': [{{'m': 1.5, 'c': 2}}, …]}}; got {error!r}.") from error
    if len(listed) > MAX_CENTROIDS:
        raise DigestError(f"A digest as dict has at most {MAX_CENTROIDS} centroids; got {len(listed)}.")
    for mean, share, _ in listed:
        if not (abs(mean) <= _MAX_MEAN and share > 0):
            raise DigestError(f"A digest as dict has means within 2**63 and weights over 0; got {mean} and {share}.")
    if (count := math.fsum(share for _, share, _ in listed)) >= MAX_COUNT:
        raise DigestError(f"A digest as dict counts less than 2**53 values; got {count}.")
    listed.sort(key=itemgetter(0))
    means, shares, is_int = (np.array([each[column] for each in listed]) for column in range(3))
    weights = np.diff(np.rint(np.cumsum(shares)), prepend=0).astype(np.int64)
    kept = np.flatnonzero(weights)
    if not kept.size:
        return EMPTY
    pure = is_int | (weights == 1) | (weights > 2 * delta * count)
    low, high = math.floor(means[kept[0]]), min(math.ceil(means[kept[-1]]), _MAX_MEAN - 1)
    return group_equal(Digest(means[kept], weights[kept], pure[kept], low, high))


def _check_digest(digest: Digest) -> Digest:
    """Return ``digest`` if it keeps what every digest keeps: order, bounds, a countable count."""
    means, weights = digest.means, digest.weights
    if not np.isfinite(means).all() or (means[1:] < means[:-1]).any():
        raise _unreadable("its means are not finite numbers in rising order")
    if not digest.min <= means[0] <= means[-1] <= digest.max:
        raise _unreadable(f"its means reach from {means[0]} to {means[-1]}, outside {digest.min} to {digest.max}")
    if weights.min() < 1 or weights.sum(dtype=np.float64) >= MAX_COUNT:
        raise _unreadable("its weights are not whole numbers from 1, less than 2**53 in all")
    return digest


def _unreadable(what: str) -> DigestError:
    return DigestError(f"These bytes are no stored digest: {what}. Store the digest again from its observations.")
