"""Texts of the page of one window: its status, the holes of its probes, its revisions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final

from hopwatch.dashboards.queries.window_models import AgedOutRecords, WindowHole
from hopwatch.display import texts
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.results import Revision, Status, WindowResult

MAX_CHANGES: Final = 40
"""Lines of one revision that are shown."""
END_TO_END: Final = "end to end"
_FIELD_NAMES: Final = {
    "lost": "missing",
    "loss": "missing",
    "loss_ratio": "missing part",
    "lost_lower": "surely lost",
    "loss_lower": "surely lost",
    "lost_upper": "lost at most",
    "loss_upper": "lost at most",
}
_BOUNDS: Final = frozenset({"lost_upper", "loss_upper"})
_RATIOS: Final = frozenset({"loss_ratio", "coverage"})


@dataclass(frozen=True, slots=True)
class HoleLine:
    """A probe instance in words: its name, its start, and what it did not report."""

    node: str
    probe: str
    since: str
    holes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Amendment:
    """A revision in words: its number, when it was made, and what it changed end to end and at each node."""

    revision: int
    judged_at: str
    lines: tuple[tuple[str, str], ...]
    left_out: int


def format_status(one: WindowResult, terms: WindowPolicy | None, zone: tzinfo) -> str:
    """Return where a window stands in its life."""
    late = f" {one.overdue:,} messages are overdue: missing beyond a deadline, for sure." if one.overdue else ""
    due = f" It is judged after {texts.format_moment(terms.final_at_us(one.window_start_us), zone)}." if terms else ""
    if one.status is Status.OPEN:
        return f"It still receives: these are the counts so far.{late}{due}"
    if one.status is Status.PROVISIONAL:
        return f"The window is over and not judged yet: what is missing is in flight, not lost.{late}{due}"
    waits = f" {one.in_flight:,} came late and are in flight: it will be judged again." if one.in_flight else ""
    if one.status is Status.FINAL:
        return f"It was judged.{waits}"
    return f"It was judged, and judged anew by what came after.{waits}"


def build_hole_line(one: WindowHole, zone: tzinfo) -> HoleLine:
    """Return the holes of a probe instance in a window, in words."""
    told = []
    if one.missing:
        are = "batch that may belong" if one.missing == 1 else "batches that may belong"
        told.append(f"{one.missing:,} missing {are} to this window")
    told += [f"{texts.format_count(count)} observations dropped: {cause}" for cause, count in sorted(one.drops.items())]
    if one.has_set_aside:
        told.append("batches of this window that came too late, or were implausible, and do not count")
    if one.complete_through_us is not None:
        told.append(
            f"silent without a bye: it reported everything up to {texts.format_moment(one.complete_through_us, zone)},"
            " and nothing after"
        )
    return HoleLine(one.node, one.probe, texts.format_moment(one.epoch_us, zone), tuple(told))


def format_aged_out(one: AgedOutRecords) -> str:
    """Return what a hole of the transport is."""
    count = one.last - one.first + 1
    return f"{count:,} records of {one.partition}, {one.first:,} to {one.last:,}, had aged out before they were read."


def format_no_holes(one: WindowResult, *, is_live: bool) -> str:
    """Return what to say where no probe instance has a hole."""
    if not is_live and any(node.dropped for node in one.nodes):
        return "Drops of each probe, and their reasons, are kept only until a window can no longer change."
    if not one.status.is_final:
        return "No hole is known so far."
    return "No probe instance that was heard has a hole in this window."


def build_amendment(one: Revision, zone: tzinfo) -> Amendment:
    """Return a revision in words: end to end first, then node by node."""
    by_node: dict[str, list[str]] = {}
    for name, (before, after) in one.changed.items():
        node, _, field = name.rpartition(".")
        by_node.setdefault(node, []).append(_format_change(field, before, after))
    lines = [(node or END_TO_END, " · ".join(told)) for node, told in sorted(by_node.items())]
    return Amendment(
        one.revision,
        texts.format_moment(one.watermark_us, zone),
        tuple(lines[:MAX_CHANGES]),
        max(0, len(lines) - MAX_CHANGES),
    )


def _format_change(field: str, before: Any, after: Any) -> str:  # noqa: ANN401 - what JSON holds
    name = _FIELD_NAMES.get(field, field.removesuffix("_us").replace("_", " "))
    if isinstance(before, dict) or isinstance(after, dict):
        return f"{name} p95 {_format_p95(before)} → {_format_p95(after)}"
    return f"{name} {_format_value(field, before)} → {_format_value(field, after)}"


def _format_p95(lag: Any) -> str:  # noqa: ANN401 - what JSON holds
    return texts.format_lag(lag["p95"] if lag else None)


def _format_value(field: str, value: Any) -> str:  # noqa: ANN401 - what JSON holds
    if isinstance(value, list):
        return " / ".join(str(one) for one in value) or "none"
    if field in _BOUNDS and value is None:
        return "no bound"
    if field in _RATIOS:
        return texts.format_ratio(value)
    if field.endswith("_us"):
        return texts.format_lag(value)
    if isinstance(value, int):
        return str(value) if isinstance(value, bool) else texts.format_count(value)
    return texts.NONE if value is None else str(value)
