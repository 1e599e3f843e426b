"""Comparison of a candidate with its baseline in words: a line of a table for loss and for lag each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hopwatch.display import texts
from hopwatch.monitor.kernel.comparison import MIN_WINDOWS, ComparisonVerdict
from hopwatch.monitor.lookup.comparison import ShareComparison, VersionComparison
from hopwatch.monitor.texts.escaping import escape_line

COMPARISON_COLUMNS: Final = ("share", "verdict", "difference", "95% interval", "candidate", "baseline")
"""Heads of the columns; the first one is words."""
VERDICTS: Final = {
    ComparisonVerdict.WORSE: "worse",
    ComparisonVerdict.NOT_WORSE: "not worse",
    ComparisonVerdict.UNKNOWN: "not known",
}


@dataclass(frozen=True, slots=True)
class VersionComparisonLine:
    """A line in the order of COMPARISON_COLUMNS, and whether the candidate is worse."""

    cells: tuple[str, ...]
    is_bad: bool


def describe_pair(found: VersionComparison) -> str:
    """Return the label with its candidate and its baseline, on one line."""
    baseline = "all others" if found.query.baseline is None else escape_line(found.query.baseline)
    return f"{escape_line(found.query.label)} {escape_line(found.candidate)} against {baseline}"


def build_comparison_lines(found: VersionComparison) -> list[VersionComparisonLine]:
    """Return a line for what is lost and, if departures are stamped, one for what is slow."""
    pairs = (("lost", found.loss), ("slow", found.slow))
    return [_build_line(name, one) for name, one in pairs if one is not None]


def describe_unknown(found: VersionComparison) -> list[str]:
    """Return sentences that say why something is not known; none where all is."""
    told = []
    if found.windows < MIN_WINDOWS:
        told.append(f"{found.windows:,} final windows have messages of the candidate; {MIN_WINDOWS} are needed")
    elif any(one is not None and one.difference is None for one in (found.loss, found.slow)):
        told.append(f"fewer than {MIN_WINDOWS} windows have messages of both, and tell what is bad")
    if found.loss.unknown:
        words = f"{found.loss.unknown:,} messages of the candidate are in windows that do not tell what is lost"
        told.append(f"{words}: at worst all of them are")
    return told


def _build_line(name: str, one: ShareComparison) -> VersionComparisonLine:
    is_bad, verdict = one.verdict is ComparisonVerdict.WORSE, VERDICTS[one.verdict]
    found = one.difference
    if found is None:
        return VersionComparisonLine((name, verdict, *[texts.NONE] * 4), is_bad)
    cells = (
        name,
        verdict,
        _format_signed(found.share),
        f"{_format_signed(found.lower)} to {_format_signed(found.upper)}",
        texts.format_share(found.bad, found.messages),
        texts.format_share(found.other_bad, found.other_messages),
    )
    return VersionComparisonLine(cells, is_bad)


def _format_signed(share: float) -> str:
    """Return a difference of shares in percentage points."""
    sign = "+" if share > 0 else "\u2212" if share < 0 else ""
    return sign + texts.format_ratio(abs(share))
