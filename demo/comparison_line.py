"""One line of "injected against measured"."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple


class ComparisonLine(NamedTuple):
    """An injected and a measured figure, in words, and whether they agree as ``relation`` requires."""

    what: str
    node: str
    injected: str
    relation: str
    measured: str
    holds: bool


def expect_equal(what: str, node: str, injected: int, measured: int) -> ComparisonLine:
    """Return the line of two numbers that must be equal."""
    return ComparisonLine(what, node, f"{injected:,}", "=", f"{measured:,}", injected == measured)


def expect_at_most(what: str, node: str, injected: int, measured: int) -> ComparisonLine:
    """Return the line of a number that may have been reported only in part."""
    return ComparisonLine(what, node, f"{injected:,}", "≥", f"{measured:,}", measured <= injected)


def expect_within(what: str, node: str, lower: int, upper: int, measured: int) -> ComparisonLine:
    """Return the line of a number that the truth knows only as a range, from ``lower`` to ``upper``."""
    injected = f"{lower:,}" if lower == upper else f"{lower:,} … {upper:,}"
    return ComparisonLine(
        what, node, injected, "=" if lower == upper else "∋", f"{measured:,}", lower <= measured <= upper
    )


def format_difference(missing: AbstractSet[bytes], extra: AbstractSet[bytes]) -> str:
    """Return in words how a set of ids differs from the one it should be; nothing if it does not."""
    found = [(ids, word) for ids, word in ((missing, "missing"), (extra, "too many")) if ids]
    return "".join(f", {len(ids):,} {word} (first {min(ids).hex()})" for ids, word in found)
