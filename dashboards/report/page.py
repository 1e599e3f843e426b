"""A report as one document: it asks no network for anything, and runs no script."""

from __future__ import annotations

from hopwatch.dashboards import markup
from hopwatch.dashboards.queries.report import Report, StreamReport
from hopwatch.dashboards.report import section, styles, tables
from hopwatch.dashboards.views import display_range
from hopwatch.display import loss_table, step_marks, texts
from hopwatch.display.colours import NO_DATA
from hopwatch.monitor.texts.read_progress import ReadProgress

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Content security policy: the document fetches nothing and runs no script."""


def render_report(report: Report, made_us: int, version: str) -> str:
    """Return the document; ``made_us`` is when it was asked for."""
    title = f"Hopwatch report, {_format_range(report)}"
    sections = "".join(section.render_section(told, place) for place, told in enumerate(report.streams))
    made = (
        f"Made {texts.format_moment(made_us)} by Hopwatch {version}, by the "
        f"{display_range.STEP_WORDS[report.step_us]}"
        ". All times UTC."
    )
    body = (
        f"<h1>Hopwatch report</h1>{markup.elements('p', [_format_range(report)])}"
        f"{markup.elements('p', [made], 'hw-note')}"
        f"{_render_progress(report.reached, made_us)}"
        f"{_render_stream_table(report)}{sections}<h2>What the monitor received</h2>"
        f"{markup.elements('p', ['Over all streams and all time, not of this range alone.'], 'hw-note')}"
        f"{tables.render_accounts(report.accounts)}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{markup.escape_html(title)}</title><style>{styles.build_styles()}</style></head><body><main>{body}</main></body></html>\n"
    )


def _format_range(report: Report) -> str:
    begins = "the beginning" if report.from_us is None else texts.format_moment(report.from_us)
    ends = "the newest window" if report.to_us is None else texts.format_moment(report.to_us)
    return f"from {begins} to {ends}"


def _render_progress(reached: ReadProgress, made_us: int) -> str:
    """Return up to when the store was read, as of when the report was made; nothing while the monitor is at work."""
    notice = reached.notice(made_us, texts.format_second)
    once = reached.once(texts.format_second)
    if notice is None:
        return markup.elements("p", [f"{once[0].upper()}{once[1:]}."], "hw-note") if once else ""
    return markup.elements("p", [notice.words], "hw-grave" if notice.is_grave else "hw-note")


def _render_stream_table(report: Report) -> str:
    """Return a row a stream, with a way to its section."""
    head = (("stream", "hw-name"), ("seen as", "hw-narrow"), *((name, "hw-number") for name in _FIGURE_NAMES))
    rows = [_build_row(told, place) for place, told in enumerate(report.streams)]
    return markup.table(head, rows, "hw-streams", "The streams of this report")


def _build_row(told: StreamReport, place: int) -> list[str]:
    whole = told.stream_range.total
    mark = NO_DATA if whole is None else step_marks.mark_step(whole).mark
    figures = dict(loss_table.build_figures(whole)) if whole else {}
    link = f'<a href="#stream-{place}">{markup.escape_html(told.stream_range.stream)}</a>'
    return [link, markup.badge(mark), *(markup.escape_html(figures.get(name, texts.NONE)) for name in _FIGURE_NAMES)]


_FIGURE_NAMES = ("known", "delivered", "lost end to end", "of known", "surely lost", "at most", "lag p95")
