"""``hopwatch outliers``: list the monitor's findings, and score CSV files with its detector."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.monitor import csv_series
from hopwatch.monitor.csv_series import CsvSeries
from hopwatch.monitor.errors import ConfigurationError, SeriesError
from hopwatch.monitor.outliers import detector, state
from hopwatch.monitor.outliers.detector import Scores
from hopwatch.monitor.outliers.explanation import explain
from hopwatch.monitor.outliers.finding_json import explanation_to_json, finding_to_json
from hopwatch.monitor.outliers.findings import OutlierFinding
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect, outliers, schema
from hopwatch.monitor.texts.moments import parse_range_us

command = typer.Typer(help="List outliers, and score series of numbers.", no_args_is_help=True)


@command.callback()
def _outliers() -> None:
    """List outliers, and score series of numbers."""


@command.command()
def score(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="CSV files of timestamp,value, at any depth.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where they go with their scores.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Score every series below a folder, never looking ahead.

    Written are files of timestamp,value,score,notice,outlier at the same relative paths.
    """
    _require_apart(folder, out)
    told: list[dict[str, Any]] = []
    refused: list[SeriesError] = []
    found = csv_series.list_files(folder)
    words = console.stderr()
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} of {task.total} files")
    with Progress(*columns, TimeElapsedColumn(), console=words, transient=True, disable=not words.is_terminal) as bar:
        task = bar.add_task("scoring", total=len(found))
        for name in found:
            try:
                one = csv_series.read_series(folder / name)
            except SeriesError as error:
                refused.append(error)
            else:
                told.append(_score_series(name, one, out))
            bar.advance(task)
    _print_outliers(told, as_json=as_json)
    if refused:
        raise csv_series.join_errors(refused)


@command.command("list")
def list_(  # noqa: PLR0913 - one a flag
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only this stream.")] = None,
    from_time: Annotated[str | None, typer.Option("--from", help="Windows from this moment on, ISO 8601.")] = None,
    to_time: Annotated[str | None, typer.Option("--to", help="Windows that start before this moment.")] = None,
    *,
    notices: Annotated[bool, typer.Option("--notices", help="Also what is only noticed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show what the monitor has found, and why.

    Outliers of final windows; what was only noticed with --notices.
    """
    chosen = load_settings(config)
    chosen.check_stream(stream)
    from_us, to_us = parse_range_us(from_time, to_time)
    schema.require_store(chosen.store.url)
    found = outliers.query_findings(dialect.create_engine(chosen.store.url), stream, from_us, to_us)
    asked = [(of_stream, one) for of_stream, one in found if one.is_outlier or notices]
    if as_json:
        console.emit_json({"outliers": [finding_to_json(of_stream, one) for of_stream, one in asked]})
        return
    for of_stream, one in asked:
        level = "outlier" if one.is_outlier else "notice"
        where = f"{format_iso(one.window_start_us)}  {of_stream}  {one.node}"
        console.stdout().print(f"{where}  {level}  score {one.why.score:.1f}  {one.why}")
    young = "" if found else "; a series has notices after 200 windows, and outliers once it is a day old"
    console.stderr().print(_format_counts(found, len(asked)) + young)


def _format_counts(found: list[tuple[str, OutlierFinding]], shown: int) -> str:
    count = sum(one.is_outlier for _, one in found)
    hidden = "" if shown == len(found) else "; --notices shows these too"
    return f"outliers: {count:,}, notices: {len(found) - count:,}{hidden}"


def _require_apart(folder: Path, out: Path) -> None:
    """Check that the output folder is outside of the input folder.

    Raises:
        ConfigurationError: it is the input folder, or inside of it.
    """
    read, written = folder.resolve(), out.resolve()
    if written == read or read in written.parents:
        raise ConfigurationError(
            f"--out {out} is {folder} or lies in it: name a folder outside, nothing is overwritten"
        )


def _score_series(name: Path, one: CsvSeries, out: Path) -> dict[str, Any]:
    """Score a series, write it, and return its summary."""
    rows = np.zeros(len(one.values), np.int64)
    _, scores = detector.score_values(state.new_states(1), rows, one.moments_us, one.values)
    csv_series.write_scores(out / name, one, scores)
    return {
        "path": name.as_posix(),
        "points": len(one.values),
        "gaps": int(np.isnan(one.values).sum()),
        "notices": int(scores.notice.sum()),
        "outliers": [_outlier_to_json(one, scores, at) for at in np.flatnonzero(scores.outlier).tolist()],
    }


def _outlier_to_json(one: CsvSeries, scores: Scores, at: int) -> dict[str, Any]:
    """Return an outlier as JSON, with its explanation as fields and as ``text``."""
    why = explain(Quantity.VALUE, float(one.values[at]), scores, at)
    return {"timestamp": one.timestamps[at]} | explanation_to_json(why)


def _print_outliers(told: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print the outliers and the counts."""
    sums = {
        "series": len(told),
        "points": sum(one["points"] for one in told),
        "gaps": sum(one["gaps"] for one in told),
        "notices": sum(one["notices"] for one in told),
        "outliers": sum(len(one["outliers"]) for one in told),
    }
    if as_json:
        console.emit_json(sums | {"files": told})
        return
    data = console.stdout()
    for one in told:
        for outlier in one["outliers"]:
            data.print(f"{one['path']}  {outlier['timestamp']}  score {outlier['score']:.1f}  {outlier['text']}")
    console.stderr().print(", ".join(f"{count:,} {what}" for what, count in sums.items()))
