"""Windows of a node with two versions, as the store has them."""

from __future__ import annotations

from dataclasses import replace

from hopwatch.monitor.results import LabelCounts, LabelValueKind, Status
from hopwatch.monitor.store import dialect
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.conclusions import build_conclusion, write_conclusions
from tests.support.spool import START_US

Figures = tuple[int, int, int]
"""Messages of a version in a minute, those of them that are missing, and its slow departures."""


def build_row(value: str, figures: Figures, *, is_known: bool = True) -> LabelCounts:
    """Return the row of a version at b; of each message that is not missing a departure is stamped."""
    messages, lost, slow = figures
    return LabelCounts(
        "version", "b", LabelValueKind.VALUE, value, messages, 0, 0, lost, 0, lost, lost if is_known else None,
        departures=messages - lost, slow=slow, slow_dispersion=1.0,
    )  # fmt: skip


def write_minute(url: str, minute: int, *rows: LabelCounts, status: Status = Status.FINAL) -> None:
    """Write the window of a minute with rows of b."""
    conclusion = build_conclusion(status=status)
    result = replace(conclusion.result, window_start_us=START_US + minute * WINDOW_US)
    engine = dialect.create_engine(url)
    try:
        write_conclusions(engine, conclusion._replace(result=result, labels=((), rows)))
    finally:
        engine.dispose()


def write_versions(url: str, minutes: int, old: Figures, new: Figures) -> None:
    """Write minutes from the second on in which b has versions 1 and 2, and one before with version 1 alone."""
    write_minute(url, 0, build_row("1", old))
    for minute in range(1, minutes + 1):
        write_minute(url, minute, build_row("1", old), build_row("2", new))
