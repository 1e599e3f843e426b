"""Hours and days of nodes that only count, from the windows as they are shown: by SEMANTICS.md alone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.model.counts import HIGHEST

Json = dict[str, Any]

LAGS = ("lag_in_us", "lag_out_us")
SPAN_CHARS = {"hour": len("2026-01-01T00"), "day": len("2026-01-01")}


def counts_by_stream(report: Mapping[str, Any], by: str) -> dict[str, list[list[Json]]]:
    """Give the counts of each hour or day of a report of windows, by stream."""
    return {one["stream"]: counts_by_span(one["windows"], by) for one in report["streams"]}


def counts_by_span(windows: Iterable[Mapping[str, Any]], by: str) -> list[list[Json]]:
    """Give the counts of each hour or day, by time, as INTERFACE.md has them, without percentiles."""
    final = [one for one in windows if one["status"] in {"FINAL", "AMENDED"}]
    spans = sorted({one["window_start"][: SPAN_CHARS[by]] for one in final})
    return [_counts([one for one in final if one["window_start"].startswith(span)]) for span in spans]


def _counts(windows: Sequence[Mapping[str, Any]]) -> list[Json]:
    nodes = [one["node"] for one in windows[0]["counts"]]
    return [_node([window["counts"][place] for window in windows], windows) for place in range(len(nodes))]


def _node(counts: Sequence[Mapping[str, Any]], windows: Sequence[Mapping[str, Any]]) -> Json:
    first = counts[0]
    added = {name: _sum(one[name] for one in counts) for name in ("arrived", "departed", "bytes", "dropped")}
    is_well = all(window["verdict"] in {"CLEAN", "IDLE"} for window in windows)
    return {
        "node": first["node"],
        **added,
        "before": first["before"],
        "left_before": None if first["before"] is None else _sum(one["left_before"] for one in counts),
        "same_before": _same([one["same_before"] for one in counts]),
        "lost_before_lower": _sum(one["lost_before_lower"] for one in counts),
        "lost_before_upper": 0 if is_well else None,
        "behind": first["behind"],
        "seen_behind": None if first["behind"] is None else _sum(one["seen_behind"] for one in counts),
        "same_behind": _same([one["same_behind"] for one in counts]),
        **{name: _join_lags([one[name] for one in counts]) for name in LAGS},
    }


def without_percentiles(counts: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Give counts of a span with what is exact of their lags."""
    return [{**one, **{name: _join_lags([one[name]]) for name in LAGS}} for one in counts]


def _join_lags(lags: Sequence[Mapping[str, int] | None]) -> Json | None:
    """Give how many lags there are, the least and the greatest; None without any."""
    told = [one for one in lags if one is not None]
    if not told:
        return None
    count = sum(one["count"] for one in told)
    return {"count": count, "min": min(one["min"] for one in told), "max": max(one["max"] for one in told)}


def _sum(numbers: Iterable[int]) -> int:
    return min(HIGHEST, sum(numbers))


def _same(said: Sequence[bool | None]) -> bool | None:
    if any(one is False for one in said):
        return False
    return True if all(one is True for one in said) else None
