"""The tables of a report: steps, nodes, lost ids, outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Final

from hopwatch.dashboards import markup
from hopwatch.dashboards.reading.reported import StreamReport
from hopwatch.dashboards.reading.told import Stretch
from hopwatch.dashboards.views import judged, loss, loss_table, series, texts
from hopwatch.dashboards.views.judged import Judged
from hopwatch.monitor.kernel.naming import HASH_SUFFIX
from hopwatch.monitor.outliers.series_tracker import OutlierFinding
from hopwatch.monitor.results import RollUp, Verdict, WindowResult
from hopwatch.monitor.texts.escaping import escape_line

MOST_IDS: Final = 1_000
"""Lost ids of a stream that a report lists."""
MOST_DETAILS: Final = 100
"""Windows of a stream of which every node is listed."""
MOST_ITEMS: Final = 20
"""Parts of a figure of the accounting that are told one by one."""
_NUMBER, _NARROW = "hw-number", "hw-narrow"


def steps(stretch: Stretch) -> str:
    """Return a row a window, hour or day, each with what it was judged and why."""
    first = stretch.steps[0] if stretch.steps else None
    is_rolled = isinstance(first, RollUp)
    counts = ("known", "delivered", "filtered", "rejected", "lost", "partial", "in flight", "recovered")
    ends = (("missing", _NUMBER), ("lag p95", _NUMBER))
    more = (("windows", _NUMBER), ("by verdict", "")) if is_rolled else (("life", _NARROW), ("why", ""))
    head = (("start", _NARROW), ("seen as", _NARROW), *((name, _NUMBER) for name in counts), *ends, *more)
    rows = [_step(one, counts) for one in stretch.steps]
    return markup.table(head, rows, "hw-steps", "Figures of each step of the range")


def nodes(one: Judged, caption: str) -> str:
    """Return the loss table of a window or a range, nodes as columns."""
    told = loss_table.of(one)
    head = [("", _NARROW), *((node, _NUMBER) for node in told.nodes)]
    marks = ["", *(markup.badge(mark) for mark in told.marks)]
    rows = [
        [markup.text(line.name), *(markup.loud(cell.words, is_bad=cell.is_bad) for cell in line.cells)]
        for line in told.lines
    ]
    return markup.table(head, [marks, *rows], "hw-matrix", caption)


def details(stretch: Stretch) -> str:
    """Return every node of each window that is not well, those that surely lost most first if there are many."""
    ill = [one for one in stretch.steps if isinstance(one, WindowResult) and one.verdict not in _WELL]
    shown = sorted(ill, key=lambda one: (-one.lost_lower, one.window_start_us))[:MOST_DETAILS]
    left = len(ill) - len(shown)
    more = markup.elements("p", [f"{left:,} more windows are not listed node by node."], "hw-note") if left else ""
    return "".join(_detail(one) for one in sorted(shown, key=lambda one: one.window_start_us)) + more


def lost_ids(told: StreamReport) -> str:
    """Return the ids of messages that are missing, by window and node, the first ``MOST_IDS``; empty without any."""
    rows, left, losses = [], MOST_IDS, _losses(told.stretch.steps)
    for (start_us, node), ids in sorted(told.lost_ids.items()):
        shown = ids[:left]
        left -= len(shown)
        if shown:
            lost = losses.get((start_us, node), texts.UNKNOWN)
            codes = " ".join(f"<code>{markup.text(escape_line(one))}</code>" for one in shown)
            rows.append((markup.text(texts.moment(start_us)), markup.text(node), lost, codes))
    if not rows:
        return ""
    kept = sum(len(ids) for ids in told.lost_ids.values())
    note = f"The first 100 of each window and node; {MOST_IDS - left:,} of {kept:,} are listed."
    head = (("window", _NARROW), ("node", ""), ("loss of node", _NUMBER), ("message ids", ""))
    if any(one.endswith(HASH_SUFFIX) for ids in told.lost_ids.values() for one in ids):
        note += " Of some texts only the hashes were sent: hopwatch find TEXT looks for a text by its hash."
    return markup.elements("p", [note], "hw-note") + markup.table(
        head, rows, "hw-ids", "Ids of messages that are missing, lost or not"
    )


def outliers(findings: Sequence[OutlierFinding]) -> str:
    """Return what the detector found, outliers before what is only odd, as many as a report has room for."""
    ordered = sorted(findings, key=lambda one: (not one.is_outlier, one.window_start_us))
    rows = [
        (
            markup.text(texts.moment(one.window_start_us)),
            markup.text(one.node or series.END_TO_END),
            "outlier" if one.is_outlier else "odd",
            markup.text(str(one.why)),
        )
        for one in ordered[:MOST_IDS]
    ]
    if not rows:
        return ""
    left = len(ordered) - len(rows)
    more = markup.elements("p", [f"{left:,} more are not listed."], "hw-note") if left else ""
    head = (("window", _NARROW), ("node", ""), ("found", _NARROW), ("why", ""))
    return markup.table(head, rows, "hw-outliers", "Outliers") + more


def accounts(told: Mapping[str, object]) -> str:
    """Return the monitor's own accounting, a row a figure."""
    rows = []
    for name, value in told.items():
        words = value if isinstance(value, int) else ", ".join(_items(value)) or "none"
        shown = texts.count(words) if isinstance(words, int) else words
        rows.append((markup.text(name.replace("_", " ")), markup.text(shown)))
    return markup.table((("received", ""), ("", _NUMBER)), rows, "hw-accounts", "The monitor's own accounting")


def _items(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}: {texts.count(count)}" for name, count in value.items()]
    if not isinstance(value, list):
        return [str(value)]
    items = [str(one.get("text", one) if isinstance(one, Mapping) else one) for one in value[:MOST_ITEMS]]
    return [*items, *([f"{len(value) - MOST_ITEMS:,} more"] if len(value) > MOST_ITEMS else [])]


def _step(one: Judged, counts: Sequence[str]) -> list[str]:
    figures = [texts.count(getattr(one, name.replace(" ", "_"))) for name in counts]
    lost = counts.index("lost")
    figures[lost] = loss.lost(one)
    missing = texts.count(one.lost) if one.lost != one.lost_lower else texts.NONE
    cells = [markup.loud(figure, is_bad=place == lost and one.lost_lower > 0) for place, figure in enumerate(figures)]
    ends = [missing, texts.span(one.lag_us.p95 if one.lag_us else None)]
    if isinstance(one, RollUp):
        verdicts = [(verdict, getattr(one, verdict.value.lower())) for verdict in Verdict]
        why = [texts.count(one.windows), ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts if count)]
    else:
        life = one.status.value if not one.revision else f"{one.status.value}, revision {one.revision}"
        why = [life, "; ".join(one.reasons)]
    start = markup.text(texts.moment(judged.start_us(one), UTC))
    return [start, markup.badge(judged.of(one).mark), *cells, *(markup.text(words) for words in [*ends, *why])]


def _detail(one: WindowResult) -> str:
    at = texts.moment(one.window_start_us)
    unknown = loss.unknown(one.lost_lower, one.lost_upper)
    lost = f"{loss.lost(one)} lost of {texts.count(one.known)}{unknown}"
    head = f"<summary>{markup.text(at)} {markup.badge(judged.of(one).mark)} {markup.text(lost)}</summary>"
    return f"<details>{head}{markup.elements('p', one.reasons, 'hw-note')}{nodes(one, f'Nodes at {at}')}</details>"


def _losses(found: Sequence[Judged]) -> dict[tuple[int, str], str]:
    return {
        (judged.start_us(one), node.node): loss.of_node(node) + loss.unknown(node.loss_lower, node.loss_upper)
        for one in found
        for node in one.nodes
    }


_WELL: Final = (Verdict.CLEAN, Verdict.IDLE)
