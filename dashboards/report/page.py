"""A report as one document: it asks no network for anything, and runs no script."""

from __future__ import annotations

from hopwatch.dashboards import markup
from hopwatch.dashboards.reading.reported import Report, StreamReport
from hopwatch.dashboards.report import section, styles, tables
from hopwatch.dashboards.views import judged, loss_table, span, texts
from hopwatch.dashboards.views.colours import NOTHING
from hopwatch.monitor.texts.read_progress import ReadProgress

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The browser is told, too, that nothing is fetched and nothing runs."""


def of(report: Report, made_us: int, version: str) -> str:
    """Return the document; ``made_us`` is when it was asked for."""
    title = f"Hopwatch report, {_range(report)}"
    sections = "".join(section.of(told, place) for place, told in enumerate(report.streams))
    made = (
        f"Made {texts.moment(made_us)} by Hopwatch {version}, by the {span.STEP_WORDS[report.step_us]}. All times UTC."
    )
    body = (
        f"<h1>Hopwatch report</h1>{markup.elements('p', [_range(report)])}{markup.elements('p', [made], 'hw-note')}"
        f"{_reached(report.reached, made_us)}"
        f"{_streams(report)}{sections}<h2>What the monitor received</h2>"
        f"{markup.elements('p', ['Over all streams and all time, not of this range alone.'], 'hw-note')}"
        f"{tables.accounts(report.accounts)}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{markup.text(title)}</title><style>{styles.styles()}</style></head><body><main>{body}</main></body></html>\n"
    )


def _range(report: Report) -> str:
    begins = "the beginning" if report.from_us is None else texts.moment(report.from_us)
    ends = "the newest window" if report.to_us is None else texts.moment(report.to_us)
    return f"from {begins} to {ends}"


def _reached(reached: ReadProgress, made_us: int) -> str:
    """Return up to when the store was read, as of when the report was made; nothing while the monitor is at work."""
    notice = reached.notice(made_us, texts.second)
    once = reached.once(texts.second)
    if notice is None:
        return markup.elements("p", [f"{once[0].upper()}{once[1:]}."], "hw-note") if once else ""
    return markup.elements("p", [notice.words], "hw-grave" if notice.is_grave else "hw-note")


def _streams(report: Report) -> str:
    """Return a row a stream, with a way to its section."""
    head = (("stream", "hw-name"), ("seen as", "hw-narrow"), *((name, "hw-number") for name in _FIGURES))
    rows = [_row(told, place) for place, told in enumerate(report.streams)]
    return markup.table(head, rows, "hw-streams", "The streams of this report")


def _row(told: StreamReport, place: int) -> list[str]:
    whole = told.stretch.whole
    mark = NOTHING if whole is None else judged.of(whole).mark
    figures = dict(loss_table.figures(whole)) if whole else {}
    link = f'<a href="#stream-{place}">{markup.text(told.stretch.stream)}</a>'
    return [link, markup.badge(mark), *(markup.text(figures.get(name, texts.NONE)) for name in _FIGURES)]


_FIGURES = ("known", "delivered", "lost end to end", "of known", "surely lost", "at most", "lag p95")
