"""Rows of the completeness panels: contracts with what stands in their way, and the curve of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final

from hopwatch.dashboards.views.address import parse_moment_us
from hopwatch.display import texts
from hopwatch.monitor.kernel.completeness_curve import WaitCurve

WORDS: Final = {"complete": "complete", "pending": "not yet", "failed": "will not be"}
MAX_OBSTACLES: Final = 3


@dataclass(frozen=True, slots=True)
class ContractRow:
    """A contract and one of its spans: the answer, counts, and what stands in the way."""

    name: str
    stream: str
    span: tuple[str, str]
    state: str
    is_bad: bool
    known: str
    lost: str
    obstacles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CurveRow:
    """Gaps of windows that are judged after a wait."""

    wait: str
    windows: str
    windows_share: str
    arrivals: str
    arrivals_share: str
    worst: str


def build_contract_rows(answers: Iterable[dict[str, Any]], zone: tzinfo) -> Iterator[ContractRow]:
    """Yield the rows of the answers to a contract."""
    for one in answers:
        upper = texts.UNKNOWN if one["lost_upper"] is None else f"{one['lost_upper']:,}"
        told = [part["text"] for kind in ("blocked", "probes", "holes") for part in one[kind]]
        more = [f"and {len(told) - MAX_OBSTACLES:,} more: hopwatch ready {one['contract']}"]
        yield ContractRow(
            one["contract"],
            one["stream"],
            (_format(one["from"], zone), f"to {_format(one['until'], zone)}"),
            WORDS[one["state"]],
            one["state"] == "failed",
            f"{one['known']:,}",
            format_bounds(one["lost_lower"], upper),
            tuple(told[:MAX_OBSTACLES] + (more if len(told) > MAX_OBSTACLES else [])),
        )


def build_curve_rows(curve: WaitCurve) -> Iterator[CurveRow]:
    """Yield the rows of a curve."""
    for point in curve.points:
        yield CurveRow(
            texts.format_lag(point.wait_us),
            format_bounds(point.windows_lower, f"{point.windows_upper:,}"),
            texts.format_percent(point.windows_upper, curve.windows),
            format_bounds(point.late_lower, f"{point.late_upper:,}"),
            texts.format_percent(point.late_upper, curve.arrivals),
            texts.format_ratio(point.worst_share),
        )


def format_bounds(lower: int, upper: str) -> str:
    """Return bounds of a count, one number if they are the same."""
    return upper if f"{lower:,}" == upper else f"{lower:,} to {upper}"


def _format(moment: str, zone: tzinfo) -> str:
    at_us = parse_moment_us(moment)
    return texts.NONE if at_us is None else texts.format_moment(at_us, zone)
