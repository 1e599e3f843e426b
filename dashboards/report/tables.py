"""The tables of a report: steps, nodes, lost ids, outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Final

from hopwatch.dashboards import markup
from hopwatch.dashboards.queries.models import StreamRange
from hopwatch.dashboards.queries.report import StreamReport
from hopwatch.dashboards.views import series
from hopwatch.display import loss, loss_table, step_marks, texts
from hopwatch.display.counts import describe_counts
from hopwatch.display.step_marks import StepResult
from hopwatch.monitor.kernel.naming import HASH_SUFFIX
from hopwatch.monitor.outliers.findings import OutlierFinding
from hopwatch.monitor.results import RollUp, Verdict, WindowResult
from hopwatch.monitor.texts.escaping import escape_line

MAX_IDS: Final = 1_000
"""Lost ids of a stream that a report lists."""
MAX_DETAILS: Final = 100
"""Windows of a stream of which every node is listed."""
MAX_ITEMS: Final = 20
"""Most parts of a figure of the accounting that are listed one by one."""
_NUMBER, _NARROW = "hw-number", "hw-narrow"


def render_steps(stretch: StreamRange) -> str:
    """Return a row a window, hour or day, each with what it was judged and why."""
    first = stretch.steps[0] if stretch.steps else None
    is_rolled = isinstance(first, RollUp)
    counts = ("known", "delivered", "filtered", "rejected", "lost", "partial", "in flight", "deferred", "recovered")
    ends = (("missing", _NUMBER), ("lag p95", _NUMBER))
    more = (("windows", _NUMBER), ("by verdict", "")) if is_rolled else (("life", _NARROW), ("why", ""))
    head = (("start", _NARROW), ("seen as", _NARROW), *((name, _NUMBER) for name in counts), *ends, *more)
    rows = [_build_step_row(one, counts) for one in stretch.steps]
    return markup.table(head, rows, "hw-steps", "Figures of each step of the range")


def render_nodes(one: StepResult, caption: str) -> str:
    """Return the loss table of a window or a range, nodes as columns."""
    told = loss_table.build_loss_table(one)
    head = [("", _NARROW), *((node, _NUMBER) for node in told.nodes)]
    marks = ["", *(markup.badge(mark) for mark in told.marks)]
    rows = [
        [markup.escape_html(line.name), *(markup.emphasis(cell.text, is_bad=cell.is_bad) for cell in line.cells)]
        for line in told.rows
    ]
    return markup.table(head, [marks, *rows], "hw-matrix", caption)


def render_details(stretch: StreamRange) -> str:
    """Return every node of each window that is not well, those that surely lost most first if there are many."""
    ill = [one for one in stretch.steps if isinstance(one, WindowResult) and one.verdict not in _HEALTHY]
    shown = sorted(ill, key=lambda one: (-one.lost_lower, one.window_start_us))[:MAX_DETAILS]
    left = len(ill) - len(shown)
    more = markup.elements("p", [f"{left:,} more windows are not listed node by node."], "hw-note") if left else ""
    return "".join(_render_detail(one) for one in sorted(shown, key=lambda one: one.window_start_us)) + more


def render_lost_ids(told: StreamReport) -> str:
    """Return the ids of messages that are missing, by window and node, the first ``MOST_IDS``; empty without any."""
    rows, left, losses = [], MAX_IDS, _format_losses(told.stream_range.steps)
    for (start_us, node), ids in sorted(told.lost_ids.items()):
        shown = ids[:left]
        left -= len(shown)
        if shown:
            lost = losses.get((start_us, node), texts.UNKNOWN)
            codes = " ".join(f"<code>{markup.escape_html(escape_line(one))}</code>" for one in shown)
            rows.append((markup.escape_html(texts.format_moment(start_us)), markup.escape_html(node), lost, codes))
    if not rows:
        return ""
    kept = sum(len(ids) for ids in told.lost_ids.values())
    note = f"The first 100 of each window and node; {MAX_IDS - left:,} of {kept:,} are listed."
    head = (("window", _NARROW), ("node", ""), ("loss of node", _NUMBER), ("message ids", ""))
    if any(one.endswith(HASH_SUFFIX) for ids in told.lost_ids.values() for one in ids):
        note += " Of some texts only the hashes were sent: hopwatch find TEXT looks for a text by its hash."
    return markup.elements("p", [note], "hw-note") + markup.table(
        head, rows, "hw-ids", "Ids of messages that are missing, lost or not"
    )


def render_outliers(findings: Sequence[OutlierFinding]) -> str:
    """Return what the detector found, outliers before what is only odd, as many as a report has room for."""
    ordered = sorted(findings, key=lambda one: (not one.is_outlier, one.window_start_us))
    rows = [
        (
            markup.escape_html(texts.format_moment(one.window_start_us)),
            markup.escape_html(one.node or series.END_TO_END),
            "outlier" if one.is_outlier else "odd",
            markup.escape_html(str(one.why)),
        )
        for one in ordered[:MAX_IDS]
    ]
    if not rows:
        return ""
    left = len(ordered) - len(rows)
    more = markup.elements("p", [f"{left:,} more are not listed."], "hw-note") if left else ""
    head = (("window", _NARROW), ("node", ""), ("found", _NARROW), ("why", ""))
    return markup.table(head, rows, "hw-outliers", "Outliers") + more


def render_accounts(told: Mapping[str, object]) -> str:
    """Return the monitor's own accounting, a row a figure."""
    rows = []
    for name, value in told.items():
        words = value if isinstance(value, int) else ", ".join(_format_items(value)) or "none"
        shown = texts.format_count(words) if isinstance(words, int) else words
        rows.append((markup.escape_html(name.replace("_", " ")), markup.escape_html(shown)))
    return markup.table((("received", ""), ("", _NUMBER)), rows, "hw-accounts", "The monitor's own accounting")


def _format_items(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}: {texts.format_count(count)}" for name, count in value.items()]
    if not isinstance(value, list):
        return [str(value)]
    items = [str(one.get("text", one) if isinstance(one, Mapping) else one) for one in value[:MAX_ITEMS]]
    return [*items, *([f"{len(value) - MAX_ITEMS:,} more"] if len(value) > MAX_ITEMS else [])]


def _build_step_row(one: StepResult, counts: Sequence[str]) -> list[str]:
    figures = [texts.format_count(getattr(one, name.replace(" ", "_"))) for name in counts]
    lost = counts.index("lost")
    figures[lost] = loss.format_loss(one)
    missing = texts.format_count(one.lost) if one.lost != one.lost_lower else texts.NONE
    cells = [
        markup.emphasis(figure, is_bad=place == lost and one.lost_lower > 0) for place, figure in enumerate(figures)
    ]
    ends = [missing, texts.format_lag(one.lag_us.p95 if one.lag_us else None)]
    if isinstance(one, RollUp):
        verdicts = [(verdict, getattr(one, verdict.value.lower())) for verdict in Verdict]
        told = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts if count)
        by_count = [describe_counts(of_node) for of_node in one.counts if of_node.lost_before_lower]
        why = [texts.format_count(one.windows), "; ".join([told, *by_count])]
    else:
        life = one.status.value if not one.revision else f"{one.status.value}, revision {one.revision}"
        why = [life, "; ".join(one.reasons)]
    start = markup.escape_html(texts.format_moment(step_marks.get_start_us(one), UTC))
    return [
        start,
        markup.badge(step_marks.mark_step(one).mark),
        *cells,
        *(markup.escape_html(words) for words in [*ends, *why]),
    ]


def _render_detail(one: WindowResult) -> str:
    at = texts.format_moment(one.window_start_us)
    unknown = loss.format_unknown(one.lost_lower, one.lost_upper)
    lost = f"{loss.format_loss(one)} lost of {texts.format_count(one.known)}{unknown}"
    head = (
        f"<summary>{markup.escape_html(at)} {markup.badge(step_marks.mark_step(one).mark)}"
        f" {markup.escape_html(lost)}</summary>"
    )
    said = (*one.reasons, *map(describe_counts, one.counts))
    return f"<details>{head}{markup.elements('p', said, 'hw-note')}{render_nodes(one, f'Nodes at {at}')}</details>"


def _format_losses(found: Sequence[StepResult]) -> dict[tuple[int, str], str]:
    return {
        (step_marks.get_start_us(one), node.node): loss.format_node_loss(node)
        + loss.format_unknown(node.loss_lower, node.loss_upper)
        for one in found
        for node in one.nodes
    }


_HEALTHY: Final = (Verdict.CLEAN, Verdict.IDLE)
