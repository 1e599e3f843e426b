"""``hopwatch doctor``: check the environment and give advice."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from hopwatch.cli import console
from hopwatch.cli.checks import Finding, Level, run_checks
from hopwatch.cli.configuration import DEFAULT_CONFIG, load_settings
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import DependencyError
from hopwatch.monitor.texts.escaping import escape_line

FINDING_EXIT_CODE: Final = 1
_STYLES: Final = {Level.OK: "green", Level.NOTE: "cyan", Level.WARN: "yellow", Level.FAIL: "bold red"}


def command(
    config: Annotated[
        Path | None, typer.Option("--config", help="The configuration file; hopwatch.toml, if there is one.")
    ] = None,
    *,
    allow_weak: Annotated[
        bool, typer.Option("--allow-weak", help="Take a topic that loses data when a broker dies, or soon.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Check the environment of Hopwatch, and give advice.

    Configuration, Python, Java, Spark, the transport, its clock, the store, message ids, the data, the self-test, who
    is told of alerts, and the work folder. Exits with 3 when something fails, with 1 when something should be looked
    at; a note is of something that may be as it was meant.
    """
    path = config or (DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None)
    chosen = load_settings(path, has_alerts=True)
    found = []
    for finding in run_checks(path, chosen, SystemClock(), allow_weak=allow_weak):
        found.append(finding)
        if not as_json:
            console.stdout().print(_format_finding(finding))
    if as_json:
        console.emit_json({"checks": [asdict(finding) for finding in found]})
    raise typer.Exit(exit_code([finding.level for finding in found]))


def exit_code(levels: list[Level]) -> int:
    """Return the exit code for the worst level."""
    if Level.FAIL in levels:
        return DependencyError.exit_code
    return FINDING_EXIT_CODE if Level.WARN in levels else 0


def _format_finding(finding: Finding) -> Text:
    told = Text.assemble(
        (f"{finding.level:<5}", _STYLES[finding.level]), f"{finding.check:<10} {escape_line(finding.message)}"
    )
    if finding.advice:
        told.append(f"\n{'':<16}{escape_line(finding.advice)}")
    return told
